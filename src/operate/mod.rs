//! Carries decisions out: choosing sessions, asking, signalling through `action`, writing the journal, measuring again.
//! Whoever asks and shows is an `Operator`: a person at a terminal, or a script in a test.

mod act;
mod book;
mod found;
mod halt;
mod operator;
mod select;
mod until;

pub use act::{ActError, ActRequest, Acted, act};
pub use book::{BookRequest, Ended, Said, Walked, Walker, walk};
pub use halt::Halt;
pub use operator::{Ask, Operator, Plan};
pub use select::{Chosen, Selection, choose};
pub use until::Until;
