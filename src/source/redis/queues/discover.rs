//! Where the queues of a server are: the usual places of the libraries, and what a walk over all keys finds of others.

use std::collections::{BTreeMap, BTreeSet};

use super::QueueOptions;
use super::ask::{NAMES, answers, ask, members};
use super::celery::{Broker, SEPARATOR};
use super::seen::Seen;
use super::site::{Site, text};
use super::whose::sites;
use crate::model::{KeyType, RedisCoverage, Stopped};
use crate::source::redis::error::Refused;
use crate::source::redis::fleet::Fleet;
use crate::source::redis::touch::{NO_TOUCH, NoTouch, Policy};
use crate::source::redis::walk::{Answer, PerKey, Plan, Watch, walk};

/// What the quick way doesn't find.
const UNWALKED: &str = "the keys weren't walked (--quick): queues of BullMQ, and all under a prefix of their own, weren't looked for";

/// Streams that are looked at.
const STREAMS: usize = 1000;

/// What was found, to be inspected as often as is wanted without another walk.
#[derive(Clone, Debug, Default)]
pub struct QueuePlaces {
    pub(super) sidekiq: Vec<Site>,
    pub(super) resque: Vec<Site>,
    pub(super) rq: Vec<Site>,
    pub(super) celery: Vec<Broker>,
    pub(super) bullmq: Vec<Vec<u8>>,
    pub(super) streams: Vec<Vec<u8>>,
    /// There are more than are looked at.
    pub(super) more: bool,
    refused: Option<Refused>,
}

impl QueuePlaces {
    /// What may not be read could be a queue; what is of another type is none.
    pub(super) fn refused(&mut self, refused: Option<Refused>) {
        let of_type = |refused: &Refused| refused.text().starts_with("WRONGTYPE");
        if self.refused.is_none() {
            self.refused = refused.filter(|refused| !of_type(refused));
        }
    }
}

/// Finds them. How much of the keys was seen, and what wasn't looked for, is in the coverage.
pub async fn discover(
    fleet: &mut Fleet,
    watch: &dyn Watch,
    options: QueueOptions,
) -> (QueuePlaces, RedisCoverage) {
    let no_touch = fleet.no_touch().await;
    let untouched = no_touch == NoTouch::On;
    let policy = if untouched || options.touch {
        None
    } else {
        let policy = fleet.evicts_by().await;
        Some(policy).filter(|policy| !policy.idle_decides_nothing())
    };
    let mut seen = Seen::default();
    let mut coverage = RedisCoverage {
        complete: true,
        ..RedisCoverage::default()
    };
    if options.walk {
        let plan = Plan {
            pattern: None,
            of_type: None,
            per_key: &[],
        };
        let mut each = |_: &str, keys: Vec<Vec<u8>>, _: Vec<Answer>| {
            for key in &keys {
                seen.key(key);
            }
        };
        coverage = walk(fleet, plan, options.budget, watch, &mut each).await;
    } else {
        coverage.note("discovery", "skipped", UNWALKED);
    }
    if let Some(policy) = policy {
        let bars = (no_touch, policy);
        by_name(fleet, options, watch, &seen, &mut coverage, bars).await;
        return (QueuePlaces::default(), coverage);
    }
    for usual in [
        "queues",
        "resque:queues",
        "rq:queues",
        "_kombu.binding.celery",
    ] {
        seen.key(usual.as_bytes());
    }
    let mut places = QueuePlaces::default();
    sites(fleet, &seen, &mut places).await;
    places.celery = brokers(fleet, &seen, &mut places).await;
    places.bullmq = bullmq(fleet, &seen, &mut places).await;
    if let Some(refused) = &places.refused {
        coverage.without("discovery", "partial", refused.text().to_owned());
    }
    if seen.overflown || places.more {
        let why = "there are more queues, or keys with names like theirs, than are looked at";
        coverage.without("discovery", "partial", why.into());
    }
    if options.walk && options.streams && !coverage.was_stopped() {
        streams(fleet, options, watch, &mut places, &mut coverage).await;
    } else {
        coverage.note("streams", "skipped", "they weren't looked for");
    }
    if !untouched {
        let why = format!(
            "{}: the queues' own keys count as just used",
            fleet.why_touched(no_touch)
        );
        coverage.note("touched", "noted", &why);
    }
    fleet.state_own_effect(&mut coverage);
    (places, coverage)
}

/// Each look at a queue would make its keys hotter, and another key colder and evicted in its place: only by their names and
/// types it is told whether there are any.
async fn by_name(
    fleet: &mut Fleet,
    options: QueueOptions,
    watch: &dyn Watch,
    seen: &Seen,
    coverage: &mut RedisCoverage,
    (no_touch, policy): (NoTouch, Policy),
) {
    let mut places = QueuePlaces::default();
    if options.walk && options.streams && !coverage.was_stopped() {
        streams(fleet, options, watch, &mut places, coverage).await;
    }
    let alike = seen.count() + places.streams.len();
    if !options.walk || alike > 0 {
        let what = if options.walk {
            let keys = crate::model::count(alike, "key");
            format!("{keys} that may be of queues weren't looked at")
        } else {
            "nothing was looked at".into()
        };
        let missing = match (no_touch, &policy) {
            (NoTouch::NotPermitted, _) => Some(NO_TOUCH),
            (_, Policy::Untold(rule)) => *rule,
            (_, Policy::Known(_)) => None,
        };
        let untold = missing
            .filter(|rule| *rule != NO_TOUCH)
            .map_or_else(String::new, |rule| {
                format!(" to this login ({})", fleet.grant(rule))
            });
        let evicts = match (policy, no_touch) {
            (Policy::Known(policy), NoTouch::NotPermitted) => {
                format!("the server evicts by {policy}, so a look would make them hotter")
            }
            (Policy::Known(policy), _) => {
                format!("evicts by {policy}, so a look would make them hotter")
            }
            (Policy::Untold(_), _) => format!(
                "what it evicts by isn't told{untold}, so a look might make them hotter, and others be evicted"
            ),
        };
        let why = format!(
            "{what}: {} and {evicts}; stanch redis queues --touch looks all the same",
            fleet.why_touched(no_touch)
        );
        coverage.without("queues", "skipped", why);
        if let Some(rule) = missing {
            coverage.lacks(fleet.grant(rule));
        }
    }
    fleet.state_own_effect(coverage);
}

/// Celery's queues by kombu's bindings: routing key, pattern and queue.
async fn brokers(fleet: &mut Fleet, seen: &Seen, places: &mut QueuePlaces) -> Vec<Broker> {
    let mut brokers: BTreeMap<Vec<u8>, Broker> = BTreeMap::new();
    for (prefix, exchange) in &seen.bindings {
        let set = [prefix, &b"_kombu.binding."[..], exchange].concat();
        let bound = match members(fleet, &set, NAMES).await {
            Ok((bound, whole)) => {
                places.more |= !whole;
                bound
            }
            Err(refused) => {
                places.refused(Some(refused));
                continue;
            }
        };
        for binding in bound {
            let Some((routing_key, queue, separator)) = binding_of(&binding) else {
                continue;
            };
            if !is_task_queue(queue) {
                continue;
            }
            let broker = brokers.entry(prefix.clone()).or_default();
            broker.prefix.clone_from(prefix);
            let route = (text(exchange), text(routing_key));
            broker.routes.insert(route, text(queue));
            let separators = broker.names.entry(queue.to_vec()).or_default();
            separators.insert(separator.to_vec());
        }
    }
    for base in &seen.stepped {
        let prefix = brokers.keys().rev().find(|prefix| base.starts_with(prefix));
        let prefix = prefix.cloned().unwrap_or_default();
        let name = base[prefix.len()..].to_vec();
        let broker = brokers.entry(prefix.clone()).or_default();
        broker.prefix = prefix;
        // A list of it has the usual one, whatever its bindings show.
        let separators = broker.names.entry(name).or_default();
        separators.insert(SEPARATOR.to_vec());
    }
    brokers.into_values().collect()
}

/// Routing key, queue, and what stands between them: `key SEP pattern SEP queue`. `sep` can be set to anything.
fn binding_of(binding: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    parts(binding, SEPARATOR)
        .or_else(|| mirrored(binding))
        .or_else(|| parts(binding, b":"))
}

fn parts<'b>(binding: &'b [u8], separator: &'b [u8]) -> Option<(&'b [u8], &'b [u8], &'b [u8])> {
    let width = separator.len();
    let at = |from: usize| {
        let rest = binding.get(from..)?;
        let found = rest.windows(width).position(|part| part == separator)?;
        Some(from + found)
    };
    let first = at(0)?;
    let second = at(first + width)?;
    Some((&binding[..first], &binding[second + width..], separator))
}

/// The usual binding has the queue's name as its key and no pattern: the same twice, and the separator twice between.
fn mirrored(binding: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    const WIDEST: usize = 8;
    (1..=WIDEST).find_map(|width| {
        let name = binding.len().checked_sub(2 * width)?;
        if name == 0 || name % 2 != 0 {
            return None;
        }
        let (key, rest) = binding.split_at(name / 2);
        let (between, queue) = rest.split_at(2 * width);
        let (first, second) = between.split_at(width);
        (key == queue && first == second).then_some((key, queue, first))
    })
}

/// Kombu's own channels between workers aren't queues of tasks.
fn is_task_queue(name: &[u8]) -> bool {
    !name.is_empty() && !name.ends_with(b".pidbox") && !name.starts_with(b"celeryev")
}

async fn bullmq(fleet: &mut Fleet, seen: &Seen, places: &mut QueuePlaces) -> Vec<Vec<u8>> {
    let metas = seen.metas.iter().map(|base| {
        let meta = ask("HMGET", [base, &b":meta"[..]].concat());
        meta.arg("opts.maxLenEvents").arg("version")
    });
    let mut told = answers(fleet, metas.collect()).await;
    let bases = seen.metas.iter().filter(|_| {
        let mut fields = told.fields().into_iter();
        let (events, version) = (fields.next().flatten(), fields.next().flatten());
        places.refused(told.refusal());
        events.is_some() || version.is_some_and(|version| version.starts_with("bullmq"))
    });
    bases.cloned().collect()
}

/// Every stream but those that BullMQ and RQ keep beside their queues.
async fn streams(
    fleet: &mut Fleet,
    options: QueueOptions,
    watch: &dyn Watch,
    places: &mut QueuePlaces,
    coverage: &mut RedisCoverage,
) {
    let events: BTreeSet<Vec<u8>> = places
        .bullmq
        .iter()
        .map(|base| [base, &b":events"[..]].concat())
        .collect();
    let results: Vec<Vec<u8>> = places
        .rq
        .iter()
        .map(|site| site.key(&[b"results:"]))
        .collect();
    let mut found: BTreeSet<Vec<u8>> = BTreeSet::new();
    let mut more = false;
    let mut of_walk = {
        let mut each = |_: &str, keys: Vec<Vec<u8>>, kinds: Vec<Answer>| {
            for (n, key) in keys.into_iter().enumerate() {
                let is_stream =
                    kinds.is_empty() || kinds.get(n) == Some(&Answer::Type(KeyType::Stream));
                let is_beside =
                    events.contains(&key) || results.iter().any(|of| key.starts_with(of));
                if !is_stream || is_beside {
                    continue;
                }
                if found.len() < STREAMS {
                    found.insert(key);
                } else {
                    more |= !found.contains(&key);
                }
            }
        };
        let mut plan = Plan {
            pattern: None,
            of_type: Some(KeyType::Stream),
            per_key: &[],
        };
        let mut of_walk = walk(fleet, plan, options.budget, watch, &mut each).await;
        let unknown =
            |stopped: &Stopped| matches!(stopped, Stopped::Failed(what) if what.contains("syntax"));
        if of_walk
            .nodes
            .iter()
            .any(|node| node.stopped.as_ref().is_some_and(unknown))
        {
            // Before 6.0.
            plan.of_type = None;
            plan.per_key = &[PerKey::Type];
            of_walk = walk(fleet, plan, options.budget, watch, &mut each).await;
        }
        of_walk
    };
    places.streams = found.into_iter().collect();
    let own = of_walk.own_effect;
    coverage.own_effect.took_ms += own.took_ms;
    coverage.own_effect.waited_ms += own.waited_ms;
    if let Some(stopped) = of_walk
        .nodes
        .iter_mut()
        .find_map(|node| node.stopped.take())
    {
        coverage.without("streams", "partial", stopped.to_string());
        if stopped == Stopped::Asked
            && let Some(node) = coverage.nodes.first_mut()
        {
            node.stopped = Some(stopped);
        }
    } else if more {
        let why = format!("more than {STREAMS} streams: the others weren't looked at");
        coverage.without("streams", "partial", why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bindings_of_kombu() {
        let of = |binding: &'static [u8]| binding_of(binding);
        let told = |key: &'static str, queue: &'static str, separator: &'static str| {
            Some((key.as_bytes(), queue.as_bytes(), separator.as_bytes()))
        };
        assert_eq!(
            of(b"mail\x06\x16\x06\x16mail"),
            told("mail", "mail", "\x06\x16")
        );
        assert_eq!(of(b"a.#\x06\x16x\x06\x16q"), told("a.#", "q", "\x06\x16"));
        // With a separator of one's own.
        assert_eq!(of(b"celery::celery"), told("celery", "celery", ":"));
        assert_eq!(of(b"a:b::a:b"), told("a:b", "a:b", ":"));
        assert_eq!(of(b"mail-|-|mail"), told("mail", "mail", "-|"));
        assert_eq!(of(b"mail.*:x:mail"), told("mail.*", "mail", ":"));
        assert_eq!(of(b"odd"), None);
        assert!(!is_task_queue(b"live@scene.celery.pidbox") && !is_task_queue(b"celeryev.1"));
    }
}
