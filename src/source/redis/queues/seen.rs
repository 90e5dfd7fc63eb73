//! What the names of keys say of queues: candidates, collected during a walk.

use std::collections::BTreeSet;

use super::celery::SEPARATOR;

/// Of each kind, so that keys of another kind with such names don't fill the memory.
const CANDIDATES: usize = 2000;

#[derive(Debug, Default)]
pub struct Seen {
    /// Prefixes of sets of queue names (`<prefix>queues`): Sidekiq, Resque, RQ.
    pub sites: BTreeSet<Vec<u8>>,
    /// Prefix and name of `<prefix>queue:<name>`.
    pub lists: BTreeSet<(Vec<u8>, Vec<u8>)>,
    /// Prefix and exchange of kombu's bindings.
    pub bindings: BTreeSet<(Vec<u8>, Vec<u8>)>,
    /// Celery's queues that have a list of another priority.
    pub stepped: BTreeSet<Vec<u8>>,
    /// `<base>:meta`, as of BullMQ's queues.
    pub metas: BTreeSet<Vec<u8>>,
    /// There were more of them.
    pub overflown: bool,
}

const BINDING: &[u8] = b"_kombu.binding.";
pub const LIST: &[u8] = b"queue:";

impl Seen {
    /// Names that may be of queues.
    pub fn count(&self) -> usize {
        let (sites, lists) = (self.sites.len(), self.lists.len());
        sites + lists + self.bindings.len() + self.stepped.len() + self.metas.len()
    }

    pub fn key(&mut self, key: &[u8]) {
        if let Some(prefix) = key.strip_suffix(b"queues")
            && is_prefix(prefix)
        {
            keep(&mut self.sites, prefix.to_vec(), &mut self.overflown);
        }
        if let Some(base) = key.strip_suffix(b":meta") {
            if base.starts_with(b"bull:") {
                self.metas.insert(base.to_vec());
            } else {
                keep(&mut self.metas, base.to_vec(), &mut self.overflown);
            }
        }
        if let Some(at) = find(key, BINDING) {
            let binding = (key[..at].to_vec(), key[at + BINDING.len()..].to_vec());
            keep(&mut self.bindings, binding, &mut self.overflown);
        }
        if let Some(at) = find(key, SEPARATOR) {
            let step = &key[at + SEPARATOR.len()..];
            if at > 0 && !step.is_empty() && step.iter().all(u8::is_ascii_digit) {
                keep(&mut self.stepped, key[..at].to_vec(), &mut self.overflown);
            }
        }
        if let Some((prefix, name)) = list(key) {
            let list = (prefix.to_vec(), name.to_vec());
            keep(&mut self.lists, list, &mut self.overflown);
        }
    }
}

/// Prefix and name of a list of jobs.
fn list(key: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = (0..key.len()).find(|at| key[*at..].starts_with(LIST) && is_prefix(&key[..*at]))?;
    let name = &key[at + LIST.len()..];
    // What RQ's workers have just taken, and what those of Sidekiq Pro hold.
    let is_taken = name.ends_with(b":intermediate") || name.starts_with(b"sq|");
    (!name.is_empty() && !is_taken).then_some((&key[..at], name))
}

fn is_prefix(bytes: &[u8]) -> bool {
    bytes.last().is_none_or(|last| *last == b':')
}

fn find(key: &[u8], part: &[u8]) -> Option<usize> {
    key.windows(part.len()).position(|window| window == part)
}

fn keep<T: Ord>(kept: &mut BTreeSet<T>, one: T, overflown: &mut bool) {
    if kept.len() < CANDIDATES {
        kept.insert(one);
    } else if !kept.contains(&one) {
        *overflown = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_their_prefixes() {
        let mut seen = Seen::default();
        for key in [
            &b"queues"[..],
            b"my:app:queues",
            b"myqueues",
            b"rq:queue:reports:intermediate",
            b"queue:sq|web1:71|default",
            b"my:queue:mail:high",
            b"queue:low",
            b"myqueue:low",
            b"{bull}:mail:meta",
            b"p._kombu.binding.celery.pidbox",
            b"_kombu.binding_permanent.celery",
            b"priority\x06\x166",
            b"odd\x06\x16name",
        ] {
            seen.key(key);
        }
        let sites: Vec<&[u8]> = seen.sites.iter().map(Vec::as_slice).collect();
        assert_eq!(sites, [&b""[..], b"my:app:"]);
        let lists: Vec<(&[u8], &[u8])> = seen.lists.iter().map(|(p, n)| (&p[..], &n[..])).collect();
        assert_eq!(lists, [(&b""[..], &b"low"[..]), (b"my:", b"mail:high")]);
        assert!(seen.metas.contains(&b"{bull}:mail"[..]));
        assert!(
            seen.bindings
                .contains(&(b"p.".to_vec(), b"celery.pidbox".to_vec()))
        );
        assert_eq!((seen.bindings.len(), seen.stepped.len()), (1, 1));
    }

    #[test]
    fn no_more_are_kept_than_can_be_looked_at() {
        let mut seen = Seen::default();
        for n in 0..CANDIDATES + 1 {
            seen.key(format!("user:{n}:meta").as_bytes());
        }
        seen.key(b"bull:mail:meta");
        assert!(seen.overflown && seen.metas.len() == CANDIDATES + 1);
    }
}
