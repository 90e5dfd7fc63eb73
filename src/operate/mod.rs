//! Carries decisions out: choosing sessions, asking, signalling through `action`, writing the journal, measuring again.
//! Whoever asks and shows is an `Operator`: a person at a terminal, or a script in a test.

mod act;
mod book;
mod command;
mod effects;
mod found;
mod halt;
mod operator;
mod past;
mod redis;
mod resume;
mod select;
mod settings;
mod steps;
mod until;
mod world;

pub use act::{ActError, ActRequest, Acted, act};
pub use book::{Begins, BookRequest, Said, Seen, Walked, Walker, Yes, walk};
pub use halt::Halt;
pub use operator::{Ask, Operator, Plan};
pub use past::{Past, PastEffect, PastStep};
pub use redis::read as redis_report;
pub use select::{Chosen, Selection, choose};
pub use settings::{change as change_settings, left_changed, same as same_setting, unrestored};
pub use until::Until;
pub use world::World;
