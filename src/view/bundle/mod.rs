//! Bundles for people: what was captured, what is in one, what is otherwise in another; and how full the server is while it
//! is captured.

mod gauge;
mod names;
mod text;

pub use gauge::Gauge;
pub use names::{NamedToken, NamedTokens, named};
pub use text::{
    Captured, Missing, Shown, ShownAllowance, ShownFrame, ShownReport, Verified, captured,
    compared, shown, verified,
};
