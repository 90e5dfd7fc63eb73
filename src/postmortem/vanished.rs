//! Applications whose sessions were all gone from one capture to the next: ended by somebody, or by themselves.

use super::timeline::{Entry, Known, Source, entry};
use crate::analysis::connections;
use crate::model::{BackendId, Snapshot, Timestamp};

/// Fewer come and go by themselves.
const AT_LEAST: usize = 3;
/// Between captures that are farther apart a pool may have renewed its sessions, one after the other.
const APART_AT_MOST_MS: u64 = 60_000;

/// Of one application.
#[derive(Clone, Debug)]
struct Vanished {
    after: Timestamp,
    at: Timestamp,
    application: String,
    sessions: usize,
    /// The first capture that has sessions of it again.
    back: Option<Timestamp>,
}

/// What is watched of the sessions.
#[derive(Debug, Default)]
pub(super) struct Watch {
    last: Option<(Timestamp, Vec<(String, BackendId)>)>,
    all: Vec<Vanished>,
}

impl Watch {
    /// The next capture. `known`: sessions that something was done to by a run, which its journal tells of.
    pub fn add(&mut self, snapshot: &Snapshot, known: &[(BackendId, Timestamp)]) {
        let at = snapshot.taken_at;
        if snapshot.activity.get().is_none() {
            return;
        }
        let now: Vec<(String, BackendId)> = connections::clients(snapshot)
            .map(|s| (s.application_name.clone().unwrap_or_default(), s.id))
            .collect();
        let has = |application: &str| now.iter().any(|(name, _)| name == application);
        for gone in self.all.iter_mut().filter(|gone| gone.back.is_none()) {
            gone.back = has(&gone.application).then_some(at);
        }
        if let Some((after, before)) = self.last.take()
            && after.age_at(at).0 <= APART_AT_MOST_MS
        {
            let mut names: Vec<&str> = before.iter().map(|(name, _)| name.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            for name in names.into_iter().filter(|name| !name.is_empty()) {
                let of: Vec<&BackendId> = (before.iter())
                    .filter(|(application, _)| application == name)
                    .map(|(_, id)| id)
                    .collect();
                let is_told = of
                    .iter()
                    .any(|id| known.iter().any(|(done, _)| done == *id));
                let is_left = of.iter().any(|id| now.iter().any(|(_, is)| is == *id));
                if of.len() >= AT_LEAST && !is_told && !is_left {
                    self.all.push(Vanished {
                        after,
                        at,
                        application: name.to_owned(),
                        sessions: of.len(),
                        back: has(name).then_some(at),
                    });
                }
            }
        }
        self.last = Some((at, now));
    }

    /// Those of the same two captures in one line.
    pub fn told(&self, last: Timestamp, all: &mut Vec<Entry>) {
        for group in self.all.chunk_by(|a, b| a.at == b.at) {
            let names = group
                .iter()
                .map(|g| format!("{} (all {})", g.application, g.sessions));
            let names: Vec<String> = names.collect();
            let back: Vec<String> = (group.iter())
                .filter_map(|g| Some((g, g.back.filter(|back| *back > g.at)?)))
                .map(|(g, back)| {
                    format!(
                        "{} was back by {}",
                        g.application,
                        back.utc().format("%H:%M:%S")
                    )
                })
                .collect();
            let renewed: Vec<&str> = (group.iter())
                .filter(|g| g.back == Some(g.at))
                .map(|g| g.application.as_str())
                .collect();
            let mut then = back;
            if !renewed.is_empty() {
                then.push(format!("{} had others by then", renewed.join(", ")));
            }
            let away = group.iter().filter(|g| g.back.is_none()).count();
            if away > 0 {
                let of = if then.is_empty() {
                    "none"
                } else {
                    "of the others none"
                };
                then.push(format!(
                    "{of} was back by {}",
                    last.utc().format("%H:%M:%S")
                ));
            }
            let (first, line) = (&group[0], names.join(", "));
            all.push(Entry {
                known: Known::Reconstructed,
                until: Some(first.at),
                ..entry(
                    first.after,
                    Source::Capture,
                    format!(
                        "the sessions of {line} ended, by whom isn't recorded; {}",
                        then.join("; ")
                    ),
                )
            });
        }
    }
}
