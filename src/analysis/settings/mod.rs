//! `pg settings`: what incidents turn on, judged.

mod duration;
mod report;
mod rules;

pub use duration::duration_ms;
pub use report::{Judged, OverrideRow, PARTS, Settings, Verdict, judge_all, report};
