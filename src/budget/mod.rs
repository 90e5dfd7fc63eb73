//! The pool budget: what can connect at its peak, against what the server has. PURE: readers take texts, the math takes
//! numbers, and every number knows where it came from.

mod count;
mod flow;
mod join;
mod largest;
mod libraries;
mod limits;
mod math;
mod pools;
mod rules;
pub mod schema;
pub mod sources;
mod spec;

pub use count::{At, Count, Source};
pub use join::{Options, join};
pub use largest::{Largest, Most, largest, smallest_max_connections};
pub use math::{Report, SCENARIOS, Scenario, ServerReport, Verdict, WorkloadRow, judge};
pub use rules::{Breach, Level, RULES};
pub use sources::{Fault, Files, Found, Input, Suppression, read};
pub use spec::{Budget, Pooler, Server, Unknown, Workload};
