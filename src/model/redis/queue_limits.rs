//! What is expected of queues: how long they may get, how old their jobs, how many dead ones are usual.

use std::collections::BTreeMap;

use super::{Queue, QueueSystem};
use crate::model::Millis;

/// Of one queue; `None`: nothing is said, and so nothing is judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueLimits {
    /// Jobs that may wait at once.
    pub bound: Option<u64>,
    /// How old the oldest waiting one may be.
    pub oldest: Option<Millis>,
    /// Dead ones that are usual.
    pub dead: Option<u64>,
}

/// Of all queues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueBounds {
    /// For what isn't said of a queue by its name.
    pub default: QueueLimits,
    /// By `name` or `system/name`.
    pub named: BTreeMap<String, QueueLimits>,
}

impl QueueBounds {
    /// `system/name` goes before `name`, and that before the default, each number by itself.
    pub fn of(&self, queue: &Queue) -> QueueLimits {
        self.by_name(queue.system, &queue.name)
    }

    fn by_name(&self, system: QueueSystem, name: &str) -> QueueLimits {
        let full = self.named.get(&format!("{}/{name}", system.name()));
        let said = [full, self.named.get(name), Some(&self.default)];
        let none = QueueLimits::default();
        said.into_iter()
            .flatten()
            .fold(none, |limits, more| QueueLimits {
                bound: limits.bound.or(more.bound),
                oldest: limits.oldest.or(more.oldest),
                dead: limits.dead.or(more.dead),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_counts() {
        let bound = |bound| QueueLimits {
            bound: Some(bound),
            ..QueueLimits::default()
        };
        let bounds = QueueBounds {
            default: QueueLimits {
                dead: Some(10),
                ..bound(1)
            },
            named: [("mail".into(), bound(2)), ("rq/mail".into(), bound(3))].into(),
        };
        let of = |system, name| bounds.by_name(system, name);
        assert_eq!(of(QueueSystem::Rq, "mail").bound, Some(3));
        assert_eq!(of(QueueSystem::Celery, "mail").bound, Some(2));
        assert_eq!(of(QueueSystem::Celery, "mail").dead, Some(10));
        assert_eq!(of(QueueSystem::Celery, "else").bound, Some(1));
        assert_eq!(of(QueueSystem::Celery, "else").oldest, None);
    }
}
