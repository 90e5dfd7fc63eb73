//! PURE: keys by their names: the groups they fall into, the top N, when they expire.

mod glob;
mod grouped;
pub mod groups;
mod locks;
pub mod monitor;
mod seen;
mod spread;
mod top;

pub use glob::is_like;
pub use grouped::{Absorb, Grouped};
pub use groups::{GroupId, Grouping, Pattern, Sample};
pub use locks::{guarded, guards, is_lock};
pub use seen::GroupSeen;
pub use spread::{Spread, Window};
pub use top::Top;
