//! Where to connect and as whom, as every client of PostgreSQL takes it: flags, a URL or key=value string, a service,
//! `PG*`, `DATABASE_URL`, in that order of precedence. Each value keeps its origin.

mod environment;
mod error;
mod keyvalue;
mod keywords;
mod layer;
pub mod options;
mod passfile;
mod plan;
mod resolve;
mod service;
#[cfg(test)]
mod tests;
mod url;

pub use environment::Environment;
pub use error::ConnInputError;
pub use keyvalue::quoted;
pub use options::{Options, SessionAttrs};
pub use plan::{ConnInput, ConnSpec, Plan};
pub use resolve::{check_target, has_password, names_a_place, passes_over_database_url, resolve};
