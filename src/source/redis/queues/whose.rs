//! Whose a set of queue names is: Sidekiq, Resque and RQ all call it `queues`.

use std::collections::{BTreeMap, BTreeSet};

use super::ask::{Ask, NAMES, answers, ask, members};
use super::discover::QueuePlaces;
use super::seen::{LIST, Seen};
use super::site::{Name, Site};
use crate::source::redis::fleet::Fleet;

/// What the payload of a job says of its library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    Sidekiq,
    Resque,
    Other,
}

/// Only Sidekiq gives its jobs a `jid`.
fn sign(payload: &[u8]) -> Sign {
    #[derive(serde::Deserialize)]
    struct Job {
        class: Option<serde::de::IgnoredAny>,
        args: Option<serde::de::IgnoredAny>,
        jid: Option<serde::de::IgnoredAny>,
    }
    match serde_json::from_slice::<Job>(payload) {
        Ok(job) if job.class.is_some() && job.jid.is_some() => Sign::Sidekiq,
        Ok(job) if job.class.is_some() && job.args.is_some() => Sign::Resque,
        _ => Sign::Other,
    }
}

/// Finds the installations by the sets and lists that were seen.
pub async fn sites(fleet: &mut Fleet, seen: &Seen, places: &mut QueuePlaces) {
    let of_lists = seen.lists.iter().map(|(prefix, _)| prefix);
    let prefixes: BTreeSet<&Vec<u8>> = seen.sites.iter().chain(of_lists).collect();
    for prefix in prefixes {
        let registered = if seen.sites.contains(prefix) {
            match members(fleet, &[prefix, &b"queues"[..]].concat(), NAMES).await {
                Ok((names, whole)) => {
                    places.more |= !whole;
                    names
                }
                Err(refused) => {
                    places.refused(Some(refused));
                    Vec::new()
                }
            }
        } else {
            Vec::new()
        };
        let start = [prefix, LIST].concat();
        let is_rq = registered.iter().any(|name| name.starts_with(&start));
        let mut names: BTreeMap<Vec<u8>, bool> = BTreeMap::new();
        for name in registered {
            let bare = name.strip_prefix(start.as_slice()).filter(|_| is_rq);
            names.insert(bare.unwrap_or(&name).to_vec(), true);
        }
        for (_, name) in seen.lists.iter().filter(|(of, _)| of == prefix) {
            names.entry(name.clone()).or_insert(false);
        }
        let names = names.into_iter().map(|(bytes, registered)| Name {
            bytes,
            registered,
            doubtful: false,
        });
        let mut names: Vec<Name> = names.collect();
        places.more |= names.len() > NAMES;
        names.truncate(NAMES);
        if !names.is_empty() {
            site(fleet, prefix.clone(), names, is_rq, places).await;
        }
    }
}

/// Tells whose an installation is, each queue by its own payload where it has one.
async fn site(
    fleet: &mut Fleet,
    prefix: Vec<u8>,
    names: Vec<Name>,
    is_rq: bool,
    places: &mut QueuePlaces,
) {
    let bare = Site {
        prefix,
        ..Site::default()
    };
    let asks: Vec<Ask> = names
        .iter()
        .map(|name| ask("LINDEX", bare.key(&[LIST, &name.bytes])).arg("0"))
        .collect();
    let mut heads = answers(fleet, asks).await;
    let mut found: [Vec<Name>; 3] = Default::default();
    let mut undecided = Vec::new();
    let mut ids = Vec::new();
    for name in names {
        let head = heads.bytes();
        places.refused(heads.refusal());
        // Gone since the walk has found it, or no list.
        if !name.registered && head.is_none() {
            continue;
        }
        match head.as_deref().map_or(Sign::Other, sign) {
            _ if is_rq && name.registered => found[2].push(name),
            Sign::Sidekiq => found[0].push(name),
            Sign::Resque => found[1].push(name),
            Sign::Other if name.registered => undecided.push(name),
            Sign::Other => ids.extend(head.map(|id| (name, id))),
        }
    }
    // Of RQ the list has ids alone.
    let jobs = ids
        .iter()
        .map(|(_, id)| ask("EXISTS", bare.key(&[b"job:", id])));
    let mut jobs = answers(fleet, jobs.collect()).await;
    for (name, _) in ids {
        if jobs.yes() == Some(true) {
            found[2].push(name);
        }
    }
    if !undecided.is_empty() {
        let sidekiqs = !found[0].is_empty();
        match (sidekiqs, found[1].is_empty()) {
            (true, true) => found[0].append(&mut undecided),
            (false, false) => found[1].append(&mut undecided),
            _ => match by_sets(fleet, &bare).await {
                Sign::Sidekiq => found[0].append(&mut undecided),
                Sign::Resque => found[1].append(&mut undecided),
                // A set of that name under an own prefix may be anything.
                Sign::Other if bare.prefix.is_empty() || sidekiqs => {
                    let doubtful = undecided.into_iter().map(|name| Name {
                        doubtful: true,
                        ..name
                    });
                    found[0].extend(doubtful);
                }
                Sign::Other => {}
            },
        }
    }
    let into = [&mut places.sidekiq, &mut places.resque, &mut places.rq];
    for (into, mut names) in into.into_iter().zip(found) {
        names.sort();
        if !names.is_empty() {
            into.push(Site {
                prefix: bare.prefix.clone(),
                names,
            });
        }
    }
}

/// By the other keys of the installation, while all of its queues are empty.
async fn by_sets(fleet: &mut Fleet, site: &Site) -> Sign {
    let sidekiq = ["processes", "schedule", "retry", "dead"];
    let resque = [
        "workers",
        "failed",
        "delayed_queue_schedule",
        "workers:heartbeat",
    ];
    let asks = sidekiq.iter().chain(&resque);
    let asks = asks.map(|of| ask("EXISTS", site.key(&[of.as_bytes()])));
    let mut there = answers(fleet, asks.collect()).await;
    let mut any = |sets: &[&str]| {
        let known: Vec<bool> = sets.iter().filter_map(|_| there.yes()).collect();
        known.contains(&true)
    };
    match (any(&sidekiq), any(&resque)) {
        (true, false) => Sign::Sidekiq,
        (false, true) => Sign::Resque,
        _ if site.prefix == super::resque::USUAL => Sign::Resque,
        _ => Sign::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sidekiq_and_resque_by_their_payload() {
        assert_eq!(sign(br#"{"class":"A","args":[],"jid":"1"}"#), Sign::Sidekiq);
        assert_eq!(sign(br#"{"class":"A","args":[1]}"#), Sign::Resque);
        for other in ["{}", "[]", "81a1b9eb-c2a1", r#"{"class":"A"}"#] {
            assert_eq!(sign(other.as_bytes()), Sign::Other, "{other}");
        }
    }
}
