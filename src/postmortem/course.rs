//! The captures one after the other, folded: numbers of each, and whole only what was worst.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::found::{Bounds, Seen};
use super::frame::{Frame, RedisSeen};
use super::hurt::{Hurt, hurt};
use super::server::Watch;
use super::vanished;
use crate::analysis::blocking::{self, Blockers};
use crate::analysis::connections::{Capacity, Group};
use crate::analysis::redis::Look;
use crate::analysis::{Report, connections, triage};
use crate::model::{
    BackendId, FindingId, Millis, Pid, RedactionLevel, Section, Session, Severity, Snapshot,
    Target, Thresholds, Timestamp, Verb,
};

/// What is looked for in every capture beside the numbers.
#[derive(Clone, Debug, Default)]
pub struct Followed {
    /// Workloads of the budget: each with the application names that its sessions have.
    pub workloads: Vec<(String, Vec<String>)>,
    /// Sessions that something was done to, and when.
    pub sessions: Vec<(BackendId, Timestamp)>,
    /// Sessions of stanch itself, by the captures: they are no part of the incident.
    pub own: BTreeSet<Pid>,
}

/// The capture with most slots taken.
#[derive(Clone, Debug)]
pub struct Peak {
    pub at: Timestamp,
    pub capacity: Capacity,
    /// Largest first, a few of them.
    pub groups: Vec<Group>,
    /// When the last of its sessions had connected.
    pub youngest: Option<Timestamp>,
}

/// The forest at its worst.
#[derive(Clone, Debug)]
pub struct Forest {
    pub report: Report<Blockers>,
    /// Whose sessions waited, most first.
    pub hurt: Vec<Hurt>,
}

/// All captures, in the order of time.
#[derive(Debug)]
pub struct Course {
    thresholds: Thresholds,
    followed: Followed,
    pub target: Option<Target>,
    pub frames: Vec<Frame>,
    /// By their first sight; those at warning or above.
    pub seen: Vec<Seen>,
    /// Anything at warning or above.
    pub trouble: Option<Bounds>,
    /// Anything critical.
    pub critical: Option<Bounds>,
    pub peak: Option<Peak>,
    pub forest: Option<Forest>,
    pub oldest: Option<Oldest>,
    pub(super) server: Watch,
    pub(super) vanished: vanished::Watch,
    /// Who was behind a session, at its last sight before something was done to it.
    pub who: Vec<((BackendId, Timestamp), String)>,
    /// Each Redis that was looked at, or why none was: beside how many captures.
    pub redis: BTreeMap<String, usize>,
    /// The most sessions of stanch itself that were left out of one capture.
    pub own_left_out: usize,
    /// Parts that some captures don't have, with why and how many.
    pub unread: BTreeMap<(&'static str, String), usize>,
    pub most_hidden: usize,
    /// How far texts were reduced, each once.
    pub redactions: Vec<RedactionLevel>,
    /// Of each workload that is followed: most connections, and when.
    pub workloads: Vec<Option<(usize, Timestamp)>>,
    last_clean: Option<Timestamp>,
    last_uncritical: Option<Timestamp>,
    last_judged: Option<Timestamp>,
}

/// The longest transaction.
#[derive(Clone, Debug)]
pub struct Oldest {
    pub age: Millis,
    pub at: Timestamp,
    pub began: Timestamp,
    pub who: String,
}

impl Course {
    pub fn new(thresholds: Thresholds, followed: Followed) -> Self {
        let workloads = vec![None; followed.workloads.len()];
        Self {
            thresholds,
            followed,
            target: None,
            frames: Vec::new(),
            seen: Vec::new(),
            trouble: None,
            critical: None,
            peak: None,
            forest: None,
            oldest: None,
            server: Watch::default(),
            vanished: vanished::Watch::default(),
            who: Vec::new(),
            redis: BTreeMap::new(),
            own_left_out: 0,
            unread: BTreeMap::new(),
            most_hidden: 0,
            redactions: Vec::new(),
            workloads,
            last_clean: None,
            last_uncritical: None,
            last_judged: None,
        }
    }

    /// The next capture; each is later than the one before.
    pub fn add(&mut self, snapshot: &Snapshot) {
        let others = self.without_own(snapshot);
        let snapshot = others.as_ref();
        let mut triage = triage::report(snapshot, &self.thresholds);
        let look = Look::of(snapshot);
        let redis = look.as_ref().map(RedisSeen::of);
        if let Some(look) = &look {
            triage = triage.with_redis(look.as_ref().map_err(String::as_str), snapshot);
        }
        let forest = blocking::report(snapshot);
        let frame = Frame::of(snapshot, &triage.data, forest.data.longest_wait_ms, redis);
        self.found(&frame, &triage.data.findings);
        self.worst(snapshot, forest);
        self.server.add(snapshot);
        self.vanished.add(snapshot, &self.followed.sessions);
        self.sessions(snapshot);
        for (n, (_, names)) in self.followed.workloads.iter().enumerate() {
            let is_of =
                |name: Option<&str>| name.is_some_and(|name| names.iter().any(|n| n == name));
            let now = connections::clients(snapshot)
                .filter(|s| is_of(s.application_name.as_deref()))
                .count();
            if frame.states.is_some() && self.workloads[n].is_none_or(|(most, _)| now > most) {
                self.workloads[n] = Some((now, frame.at));
            }
        }
        for (part, why) in triage.head.coverage.failed() {
            *self.unread.entry((part, why.to_owned())).or_default() += 1;
        }
        let hidden = triage.head.coverage.sessions_hidden.unwrap_or(0);
        self.most_hidden = self.most_hidden.max(hidden);
        let level = snapshot.redaction.level;
        if !self.redactions.contains(&level) {
            self.redactions.push(level);
        }
        // Of a target that was reached more is known.
        if self
            .target
            .as_ref()
            .is_none_or(|target| target.server_version.is_none())
        {
            self.target = Some(snapshot.target.clone());
        }
        if let Some(redis) = &frame.redis {
            *self.redis.entry(redis.label.clone()).or_default() += 1;
        }
        self.frames.push(frame);
    }

    /// Without the sessions of stanch itself; one whose pid somebody else has by now stays.
    fn without_own<'s>(&mut self, snapshot: &'s Snapshot) -> Cow<'s, Snapshot> {
        let own = &self.followed.own;
        let is_own = |session: &Session| {
            own.contains(&session.id.pid)
                && matches!(
                    session.application_name.as_deref(),
                    None | Some("" | "stanch")
                )
        };
        let count = snapshot
            .activity
            .rows()
            .iter()
            .filter(|s| is_own(s))
            .count();
        if count == 0 {
            return Cow::Borrowed(snapshot);
        }
        self.own_left_out = self.own_left_out.max(count);
        let mut snapshot = snapshot.clone();
        if let Section::Collected(sessions) = &mut snapshot.activity {
            sessions.retain(|session| !is_own(session));
        }
        Cow::Owned(snapshot)
    }

    fn found(&mut self, frame: &Frame, findings: &[triage::Finding]) {
        let at = frame.at;
        // Of one area several may be found; the first is the worst.
        let mut now: Vec<FindingId> = Vec::new();
        for found in findings.iter().filter(|f| f.severity > Severity::Info) {
            if now.contains(&found.id) {
                continue;
            }
            now.push(found.id);
            match self.seen.iter_mut().find(|seen| seen.id == found.id) {
                Some(seen) => seen.again(found, frame),
                None => self.seen.push(Seen::new(found, frame, self.last_judged)),
            }
        }
        if frame.is_judged() {
            let gone = self.seen.iter_mut().filter(|seen| {
                // Slots that are gone were nearly gone before: that it got worse is no end.
                let got_worse =
                    seen.id == FindingId::ConnNearLimit && now.contains(&FindingId::ConnExhausted);
                !now.contains(&seen.id)
                    && !got_worse
                    && (frame.is_redis_judged() || !seen.id.is_of_redis())
            });
            gone.for_each(|seen| seen.bounds.gone(at));
        }
        // Where Redis wasn't looked at, what was found there may still be so.
        let seen = &self.seen;
        let ends = |at_least: Severity| {
            let may_last = |s: &Seen| {
                s.id.is_of_redis() && s.severity >= at_least && s.bounds.not_after.is_none()
            };
            frame.is_judged() && (frame.is_redis_judged() || !seen.iter().any(may_last))
        };
        // The earliest of what is first seen now.
        let since = |at_least: Severity| {
            let new = seen.iter().filter(|s| s.bounds.first == at);
            let bad = new.filter(|s| s.severity >= at_least);
            bad.filter_map(|s| s.bounds.since).min()
        };
        for (level, bounds, clean) in [
            (Severity::Warning, &mut self.trouble, &mut self.last_clean),
            (
                Severity::Critical,
                &mut self.critical,
                &mut self.last_uncritical,
            ),
        ] {
            let is_so = frame.findings.iter().any(|(_, is)| *is >= level);
            match bounds {
                Some(bounds) if is_so => bounds.seen(at),
                Some(bounds) if ends(level) => bounds.gone(at),
                None if is_so => *bounds = Some(Bounds::at(at, *clean, since(level))),
                _ => {}
            }
            if !is_so && ends(level) {
                *clean = Some(at);
            }
        }
        if frame.is_judged() {
            self.last_judged = Some(at);
        }
    }

    fn worst(&mut self, snapshot: &Snapshot, mut forest: Report<Blockers>) {
        let at = snapshot.taken_at;
        let report = connections::report(snapshot).data;
        if let Some(capacity) = report.capacity
            && self
                .peak
                .as_ref()
                .is_none_or(|peak| capacity.used > peak.capacity.used)
        {
            let mut groups = report.groups;
            groups.truncate(8);
            self.peak = Some(Peak {
                at,
                capacity,
                groups,
                youngest: connections::clients(snapshot)
                    .filter_map(|s| s.id.backend_start)
                    .max(),
            });
        }
        let rank = |b: &Blockers| (b.blocked, b.longest_wait_ms);
        let worse = self
            .forest
            .as_ref()
            .is_none_or(|worst| rank(&forest.data) > rank(&worst.report.data));
        if forest.data.blocked > 0 && worse {
            let hurt = hurt(snapshot, &forest.data.edges);
            // Thousands of pairs say no more than the trees do.
            forest.data.edges = Vec::new();
            self.forest = Some(Forest {
                report: forest,
                hurt,
            });
        }
        let oldest = connections::clients(snapshot)
            .filter_map(|s| Some((s.xact_start?, s)))
            .min_by_key(|(began, s)| (*began, s.pid()));
        if let Some((began, session)) = oldest {
            let age = began.age_at(at);
            if self.oldest.as_ref().is_none_or(|known| age > known.age) {
                self.oldest = Some(Oldest {
                    age,
                    at,
                    began,
                    who: described(session, None),
                });
            }
        }
    }

    fn sessions(&mut self, snapshot: &Snapshot) {
        for done in &self.followed.sessions {
            // What it was like afterwards is what was made of it.
            if snapshot.taken_at > done.1 {
                continue;
            }
            let session = snapshot.activity.rows().iter().find(|s| s.id == done.0);
            let Some(session) = session else { continue };
            let text = described(session, Some(snapshot.taken_at));
            match self.who.iter_mut().find(|(known, _)| known == done) {
                Some((_, who)) => *who = text,
                None => self.who.push((*done, text)),
            }
        }
    }

    /// From the first capture to the last.
    pub fn span(&self) -> Option<(Timestamp, Timestamp)> {
        Some((self.frames.first()?.at, self.frames.last()?.at))
    }

    /// When the server itself was changed.
    pub fn changed_at(&self) -> impl Iterator<Item = Timestamp> {
        self.server.changes.iter().map(|change| change.at)
    }

    /// `db1:5432`: what tells servers apart.
    pub fn place(&self) -> String {
        self.target.as_ref().map_or_else(
            || "a server that isn't known".to_owned(),
            |target| format!("{}:{}", target.host, target.port),
        )
    }

    /// Who was behind a session that something was done to then.
    pub fn who(&self, id: &BackendId, at: Timestamp) -> Option<&str> {
        self.who
            .iter()
            .find(|(known, _)| *known == (*id, at))
            .map(|(_, who)| who.as_str())
    }

    /// Captures with a login that was refused for want of a slot.
    pub fn refused(&self) -> usize {
        self.frames
            .iter()
            .filter(|frame| !frame.refusals.is_empty())
            .count()
    }
}

/// `app_rw, web, idle in transaction for 2m 05s`
fn described(session: &crate::model::Session, now: Option<Timestamp>) -> String {
    let names = [session.user.as_deref(), session.application_name.as_deref()];
    let mut parts: Vec<String> = names
        .into_iter()
        .flatten()
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    if let Some(state) = &session.state {
        let age = now.and_then(|now| session.state_age(now));
        // What is told of is mostly later than its last capture.
        let at = now.map_or(String::new(), |now| {
            format!(" at {}", now.utc().format("%H:%M:%S"))
        });
        let age = age.map_or(at.clone(), |age| format!(" for {age}{at}"));
        parts.push(format!("{}{age}", state.as_str()));
    }
    if parts.is_empty() {
        return "not seen".into();
    }
    parts.join(", ")
}

/// `terminate pid 4711`
pub(super) fn signal_words(verb: Verb, id: &BackendId) -> String {
    format!("{} pid {}", verb.word(), id.pid)
}
