//! Likely secrets in any text: what has the shape of one, what stands behind a key that names one, what looks random.
//! They are the last net, behind the masking of literals: the text of a bundle is searched with them before it is sealed.

mod decoded;
mod extent;
mod keyed;
mod numbers;
mod random;
mod rows;
mod rule;
mod search;
mod shapes;

pub(super) use random::{is_random, is_traceparent};
pub use rule::Rule;
use search::direct;
pub(super) use search::random_part;
pub use search::{Hit, credential_hits, detect, detect_named, hits, named_hits};
