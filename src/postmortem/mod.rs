//! The postmortem: journal, captures and log moments → one document. PURE: it is given plain values, and what it makes is
//! data; `view` renders it. What people write into it is theirs, and no re-render loses it.

mod actions;
mod book;
mod causes;
mod course;
mod document;
mod done;
mod drift;
mod found;
mod frame;
mod helped;
mod how_bad;
mod hurt;
mod lint;
mod logged;
mod marked;
mod merge;
mod origin;
mod people;
mod reconstructed;
mod runs;
mod server;
mod summary;
mod timeline;
mod vanished;
mod when;

pub use actions::{ActionItem, of_records as actions_of};
pub use book::{Departure, Walked};
pub use causes::{Cause, Suggestion};
pub use course::{Course, Followed, Forest, Peak};
pub use document::{Gap, Material, Of, Other, Postmortem, Supply, make};
pub use done::{Act, Came, Run};
pub use drift::{Drift, DriftRow, Match, WorkloadDrift, shown};
pub use found::{Bounds, Seen};
pub use frame::{Frame, RedisSeen, Slots, States};
pub use hurt::Hurt;
pub use lint::{Lint, is_one, lint};
pub use logged::once;
pub use marked::{Damage, Offer, Piece, parse, seal};
pub use merge::{Block, Merged, Note, Notes, merge};
pub use origin::{Lost, ORIGIN, Origin};
pub use people::{
    Answer, Answers, NO_ACTIONS, QUESTIONS, Question, STATUSES, TODO, TYPES, question,
};
pub use runs::{Operators, followed};
pub use timeline::{Entry, Known, Source};
