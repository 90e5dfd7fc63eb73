//! One installation of a library: the prefix of its keys, and its queues.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::ask::key;
use crate::model::{KeyName, Queue, QueueSystem};

/// A queue by its bare name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    pub bytes: Vec<u8>,
    /// It is in the set of queues, so it is there even while it is empty.
    pub registered: bool,
    /// Nothing tells whether it is Sidekiq's or Resque's.
    pub doubtful: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Site {
    /// With the colon at its end, if there is one.
    pub prefix: Vec<u8>,
    pub names: Vec<Name>,
}

impl Site {
    pub fn key(&self, parts: &[&[u8]]) -> Vec<u8> {
        [self.prefix.as_slice(), &key(parts)].concat()
    }

    /// An empty row, with what has to be said of how it was found.
    pub fn row(&self, system: QueueSystem, usual: &[u8], name: &Name) -> Queue {
        let mut row = Queue::new(system, label(&self.prefix, usual, &name.bytes));
        if !name.registered {
            row.note("the list isn't in the set of queues");
        }
        if name.doubtful {
            row.note("Sidekiq or Resque: nothing tells which");
        }
        row
    }

    /// The row for what is kept for all queues together.
    pub fn all(&self, system: QueueSystem, usual: &[u8]) -> Queue {
        Queue::new(system, label(&self.prefix, usual, b"*"))
    }
}

/// The name, and the prefix before it where it isn't the usual one.
pub fn label(prefix: &[u8], usual: &[u8], name: &[u8]) -> String {
    let name = if prefix == usual {
        name.to_vec()
    } else {
        [prefix, name].concat()
    };
    KeyName(name).text()
}

pub fn text(bytes: &[u8]) -> String {
    KeyName(bytes.to_vec()).text()
}

/// Tells one payload from another without keeping it.
pub fn mark(payload: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    payload.hash(&mut hasher);
    hasher.finish()
}
