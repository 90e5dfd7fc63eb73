//! `redis stampede`: how each hot group is guarded, with the evidence.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::expiry::{self, CliffLimits};
use super::head::RedisReport;
use crate::keys::{GroupSeen, Spread, guarded, guards, is_lock};
use crate::model::{
    Cliff, ExitCode, ExpiryVerdict, Guarded, Locks, Millis, Misses, Protection, RedisCoverage,
    RedisTarget, Soft, Storming, Timestamp, counted,
};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stampede {
    /// The worst first.
    pub stampede: Vec<Guarded>,
    pub cliffs: Vec<Cliff>,
    /// How long a rebuild takes, given or seen.
    pub rebuild_ms: Option<Millis>,
    /// How misses were known: `keymiss` events that were on, or were switched on for this; `null`: not at all.
    pub misses_by: Option<Cow<'static, str>>,
    /// The same statement in several sessions of PostgreSQL at once; `null`: not looked at.
    pub statements: Option<Vec<Storming>>,
}

/// What else is known.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// How long a rebuild takes, as the person says.
    pub rebuild: Option<Millis>,
    pub misses_by: Option<&'static str>,
    pub statements: Option<Vec<Storming>>,
    /// So many groups at most.
    pub top: usize,
}

pub fn report(
    taken_at: Timestamp,
    target: RedisTarget,
    coverage: RedisCoverage,
    groups: Vec<GroupSeen>,
    around: Around,
) -> RedisReport<Stampede> {
    let (locks, mut cached): (Vec<GroupSeen>, Vec<GroupSeen>) =
        groups.into_iter().partition(|seen| is_lock(&seen.group));
    let pairs = pairs(&locks, &cached);
    // A lock of nothing that is known here: for itself it can still be one that stays for ever.
    let known: Vec<bool> = (0..locks.len())
        .map(|n| pairs.iter().any(|(lock, _)| *lock == n))
        .collect();
    let lone: Vec<Guarded> = locks
        .iter()
        .zip(known)
        .filter(|(lock, known)| !known && lock.spread.with_ttl < lock.spread.keys)
        .map(|(lock, _)| lone_lock(lock))
        .collect();
    let spreads: Vec<(String, Spread)> = cached
        .iter()
        .map(|seen| (seen.group.clone(), seen.spread.clone()))
        .collect();
    let cached_names: Vec<String> = cached.iter().map(|seen| seen.group.clone()).collect();
    let seen_rebuild = cached
        .iter()
        .filter_map(|seen| seen.misses.as_ref()?.rebuild_ms)
        .max();
    let whole = complete();
    let told = expiry::report(
        taken_at,
        target.clone(),
        whole,
        &spreads,
        CliffLimits::default(),
    )
    .data;
    let mut all: Vec<Guarded> = cached
        .drain(..)
        // What never expires isn't rebuilt.
        .filter(|seen| seen.spread.with_ttl > 0 || seen.misses.is_some())
        .map(|seen| {
            let of = told.groups.iter().find(|group| group.group == seen.group);
            let expiry = of.map_or(ExpiryVerdict::Few, |group| group.verdict);
            let share = of.and_then(|group| group.peak_10s_share);
            let locks = locks_of(&seen.group, &locks, &cached_names, &pairs);
            // Of the group itself: another's rebuild tells nothing of this one.
            let rebuild = around
                .rebuild
                .or(seen.misses.as_ref().and_then(|misses| misses.rebuild_ms));
            let (verdict, evidence) = judge(
                &seen,
                expiry,
                share.map_or(0.0, |share| share.0),
                &locks,
                rebuild,
            );
            Guarded {
                keys: seen.spread.keys,
                with_ttl: seen.spread.with_ttl,
                hottest: seen.hottest.map(u64::from),
                expiry,
                peak_10s_share: share,
                locks,
                soft: seen.soft,
                misses: seen.misses,
                verdict,
                evidence,
                group: seen.group,
            }
        })
        .collect();
    let misses = |group: &Guarded| group.misses.as_ref().map_or(0, |misses| misses.misses);
    all.extend(lone);
    // The hot ones are chosen, then the worst stand first.
    all.sort_by(|a, b| {
        (misses(b), b.hottest, b.with_ttl)
            .cmp(&(misses(a), a.hottest, a.with_ttl))
            .then(a.group.cmp(&b.group))
    });
    let is_bad = |group: &Guarded| group.verdict < Protection::NotSeen;
    let kept = all
        .iter()
        .filter(|group| is_bad(group))
        .count()
        .max(around.top);
    all.sort_by_key(|group| !is_bad(group));
    all.truncate(kept);
    all.sort_by_key(|group| group.verdict);
    let data = Stampede {
        stampede: all,
        cliffs: told.cliffs,
        rebuild_ms: around.rebuild.or(seen_rebuild),
        misses_by: around.misses_by.map(Cow::Borrowed),
        statements: around.statements,
    };
    RedisReport::of("stampede", taken_at, target, coverage, data)
}

fn complete() -> RedisCoverage {
    RedisCoverage {
        complete: true,
        ..RedisCoverage::default()
    }
}

/// Which lock group (by its place) guards which cached one: the group of the same name, else those whose names go on where
/// the lock's ends, else the longest whose name the lock's goes on from.
fn pairs(locks: &[GroupSeen], cached: &[GroupSeen]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for (n, lock) in locks.iter().enumerate() {
        let Some(left) = guarded(&lock.group) else {
            continue;
        };
        let places = |is: &dyn Fn(&str) -> bool| -> Vec<usize> {
            (0..cached.len())
                .filter(|m| is(&cached[*m].group))
                .collect()
        };
        let mut found = places(&|group| group == left);
        if found.is_empty() {
            found = places(&|group| group.len() > left.len() && guards(&left, group));
        }
        if found.is_empty() {
            found = places(&|group| guards(&left, group));
            found.sort_by_key(|m| std::cmp::Reverse(cached[*m].group.len()));
            found.truncate(1);
        }
        pairs.extend(found.into_iter().map(|m| (n, m)));
    }
    pairs
}

/// All lock keys that guard a group; named is the group of them with most.
fn locks_of(
    group: &str,
    locks: &[GroupSeen],
    cached: &[String],
    pairs: &[(usize, usize)],
) -> Locks {
    let mut sum = Locks::default();
    let mut most = 0;
    for (lock, _) in pairs.iter().filter(|(_, of)| cached[*of] == group) {
        let spread = &locks[*lock].spread;
        sum.keys += spread.keys;
        sum.without_ttl += spread.keys - spread.with_ttl;
        if spread.with_ttl > 0 {
            sum.longest_ms = sum.longest_ms.max(Some(Millis(spread.longest_ms())));
        }
        if spread.keys > most {
            most = spread.keys;
            sum.group = Some(locks[*lock].group.clone());
        }
    }
    sum
}

/// Lock keys of no group that is cached here, some without TTL: of a rebuild, or of anything else.
fn lone_lock(lock: &GroupSeen) -> Guarded {
    let without = lock.spread.keys - lock.spread.with_ttl;
    Guarded {
        group: lock.group.clone(),
        keys: lock.spread.keys,
        with_ttl: lock.spread.with_ttl,
        hottest: lock.hottest.map(u64::from),
        expiry: ExpiryVerdict::Few,
        peak_10s_share: None,
        locks: Locks {
            group: Some(lock.group.clone()),
            keys: lock.spread.keys,
            without_ttl: without,
            longest_ms: None,
        },
        soft: Soft::default(),
        misses: None,
        verdict: Protection::NotSeen,
        evidence: vec![format!(
            "{} without TTL, of no group that is cached here: if they guard something, whoever holds one and dies holds it for ever",
            counted(without, "lock key")
        )],
    }
}

/// So many locks tell by the longest time left what they are given.
const SEVERAL: u64 = 5;

fn judge(
    seen: &GroupSeen,
    expiry: ExpiryVerdict,
    share: f64,
    locks: &Locks,
    rebuild: Option<Millis>,
) -> (Protection, Vec<String>) {
    let mut evidence = Vec::new();
    let mut verdicts = Vec::new();
    if let Some(name) = &locks.group {
        let left = locks.longest_ms.map_or_else(String::new, |left| {
            format!(", the longest with {left} left")
        });
        evidence.push(format!(
            "{} of {name}{left}",
            counted(locks.keys, "lock key")
        ));
        if locks.without_ttl > 0 {
            evidence.push(format!(
                "{} without TTL: whoever holds one and dies blocks the rebuild for ever",
                counted(locks.without_ttl, "lock key")
            ));
            verdicts.push(Protection::LockWithoutTtl);
        }
        // What a lock was given isn't kept, only what is left. The longest of several is near to it.
        let short = match (locks.longest_ms, rebuild) {
            (Some(left), Some(rebuild)) => left < rebuild,
            _ => false,
        };
        if short && locks.keys >= SEVERAL {
            evidence.push(format!(
                "a rebuild takes {}, and of {} locks none has more than {} left",
                rebuild.unwrap_or_default(),
                locks.keys,
                locks.longest_ms.unwrap_or_default()
            ));
            verdicts.push(Protection::LockTooShort);
        } else {
            verdicts.push(Protection::Protected);
        }
    }
    match (seen.soft.found, &seen.soft.why_unknown) {
        (Some(true), _) => {
            let kept = seen.soft.stale_for_ms.map_or_else(
                || "for ever".into(),
                |kept| format!("{kept} longer than they are good for"),
            );
            let field = seen.soft.field.as_deref().unwrap_or_default();
            evidence.push(format!("copies are kept {kept} ({field})"));
            verdicts.push(Protection::Protected);
        }
        (Some(false), _) => {
            evidence.push("values have no expiry of their own before the key's".into())
        }
        (None, Some(why)) => evidence.push(format!("its value tells nothing: {why}")),
        (None, None) => {}
    }
    if expiry == ExpiryVerdict::Cliff {
        evidence.push(format!(
            "{share:.1} % of its expiring keys expire within the same ten seconds"
        ));
        verdicts.push(Protection::NoJitter);
    }
    if let Some(misses) = &seen.misses {
        evidence.push(told_misses(misses));
        // Several before it was written again: they were rebuilding it at once, unless they waited for whoever did.
        if misses.locked {
            evidence.push("a lock of that key was set while it was missing".into());
            verdicts.push(Protection::Protected);
        } else if misses.worst_misses > 1 && misses.rebuild_ms.is_some() {
            verdicts.push(Protection::Unprotected);
        }
    }
    if verdicts.is_empty() && seen.soft.found.is_none() {
        evidence.push("no lock key was there (one is only while something is rebuilt)".into());
    }
    (
        verdicts.into_iter().min().unwrap_or(Protection::NotSeen),
        evidence,
    )
}

fn told_misses(misses: &Misses) -> String {
    let mut text = format!(
        "{} of {} while listening",
        plural(misses.misses),
        counted(misses.keys, "key")
    );
    if let Some(key) = &misses.worst
        && misses.worst_misses > 1
    {
        let until = misses.rebuild_ms.map_or_else(
            || " and nobody wrote it".into(),
            |rebuild| format!(" before it was written {rebuild} later"),
        );
        text.push_str(&format!(
            "; {} was missed {} times{until}",
            key.text(),
            misses.worst_misses
        ));
    }
    text
}

fn plural(misses: u64) -> String {
    counted(misses, "miss").replace("misss", "misses")
}

impl Stampede {
    /// The first large cliff of the next minutes.
    pub fn soon(&self) -> Option<&Cliff> {
        let soon = |cliff: &&Cliff| cliff.in_ms <= Millis::from_secs(300) && cliff.keys >= 1000;
        self.cliffs.iter().find(soon)
    }

    /// The group that a check is told by.
    pub fn worst(&self) -> Option<&Guarded> {
        let bad = |group: &&Guarded| group.verdict < Protection::NotSeen;
        let rank = |group: &&Guarded| (!is_critical(group.verdict), group.verdict);
        self.stampede.iter().filter(bad).min_by_key(rank)
    }
}

fn is_critical(verdict: Protection) -> bool {
    matches!(
        verdict,
        Protection::LockWithoutTtl | Protection::Unprotected
    )
}

impl RedisReport<Stampede> {
    /// For `--check`.
    pub fn exit_code(&self) -> ExitCode {
        if self.data.soon().is_some() {
            return ExitCode::Critical;
        }
        let storming = self
            .data
            .statements
            .as_ref()
            .is_some_and(|all| !all.is_empty());
        match self.data.worst().map(|group| group.verdict) {
            Some(verdict) if is_critical(verdict) => ExitCode::Critical,
            Some(_) => ExitCode::Warning,
            _ if storming => ExitCode::Warning,
            _ if !self.head.coverage.sees_all() => ExitCode::Unknown,
            _ => ExitCode::Ok,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::KeyName;

    const NOW: i64 = 1_700_000_000_000;

    fn seen(group: &str, lefts: impl Iterator<Item = Option<i64>>) -> GroupSeen {
        let mut spread = Spread::new(2048);
        for left in lefts {
            match left {
                Some(left) => spread.expires(NOW + left, NOW),
                None => spread.without_ttl(),
            }
        }
        GroupSeen {
            group: group.into(),
            spread,
            hottest: Some(9),
            soft: Soft::default(),
            misses: None,
        }
    }

    fn judged(groups: Vec<GroupSeen>, rebuild: Option<Millis>) -> Vec<Guarded> {
        let target = RedisTarget {
            name: None,
            host: "h".into(),
            port: Some(1),
            database: 0,
            user: None,
            tls: false,
            product: None,
            server_version: None,
            role: None,
            mode: crate::model::RedisMode::Standalone,
            nodes: Vec::new(),
        };
        let now = Timestamp::new(chrono::DateTime::from_timestamp_millis(NOW).expect("a time"));
        let around = Around {
            rebuild,
            top: 20,
            ..Around::default()
        };
        report(now, target, complete(), groups, around)
            .data
            .stampede
    }

    fn jittered() -> GroupSeen {
        seen("catalog:product:*:v1", (0..5_000).map(|n| Some(n * 700)))
    }

    #[test]
    fn each_verdict_in_its_turn() {
        let fixed = || {
            seen(
                "catalog:product:*:v1",
                (0..5_000).map(|n| Some(3_600_000 + n)),
            )
        };
        let lock = |lefts: Vec<Option<i64>>| seen("lock:catalog:product:*", lefts.into_iter());
        let verdict = |groups: Vec<GroupSeen>, rebuild| {
            let all = judged(groups, rebuild);
            assert_eq!(all.len(), 1, "locks are no group of their own");
            all[0].verdict
        };
        assert_eq!(verdict(vec![jittered()], None), Protection::NotSeen);
        assert_eq!(verdict(vec![fixed()], None), Protection::NoJitter);
        assert_eq!(
            verdict(vec![jittered(), lock(vec![Some(9_000)])], None),
            Protection::Protected
        );
        assert_eq!(
            verdict(vec![fixed(), lock(vec![Some(9_000)])], None),
            Protection::NoJitter
        );
        let slow = Some(Millis(12_000));
        assert_eq!(
            verdict(vec![jittered(), lock(vec![Some(9_000); 6])], slow),
            Protection::LockTooShort
        );
        assert_eq!(
            verdict(vec![jittered(), lock(vec![Some(9_000), None])], slow),
            Protection::LockWithoutTtl
        );
        let lone = judged(
            vec![jittered(), seen("user:*:lock", [None].into_iter())],
            None,
        );
        assert_eq!(
            lone.iter().map(|group| group.verdict).collect::<Vec<_>>(),
            [Protection::NotSeen, Protection::NotSeen]
        );
        // Another's locks aren't of a rebuild: a door, a job that may be there but once.
        for other in ["door:lock:*", "uniquejobs:*:LOCKED"] {
            let all = judged(vec![jittered(), seen(other, [None].into_iter())], None);
            assert!(
                all.iter().all(|group| group.verdict == Protection::NotSeen),
                "{all:?}"
            );
        }
        let soft = GroupSeen {
            soft: Soft {
                found: Some(true),
                field: Some("stale_at".into()),
                stale_for_ms: Some(Millis(60_000)),
                why_unknown: None,
            },
            ..jittered()
        };
        assert_eq!(verdict(vec![soft], None), Protection::Protected);
        let missed = |locked| GroupSeen {
            misses: Some(Misses {
                locked,
                misses: 40,
                keys: 1,
                worst: Some(KeyName(b"catalog:product:7:v1".to_vec())),
                worst_misses: 40,
                rebuild_ms: Some(Millis(1_500)),
            }),
            ..jittered()
        };
        let guarded = judged(vec![missed(true)], None);
        assert_eq!(guarded[0].verdict, Protection::Protected);
        let told = judged(vec![missed(false)], None);
        assert_eq!(told[0].verdict, Protection::Unprotected);
        assert!(
            told[0]
                .evidence
                .iter()
                .any(|line| line.contains("missed 40 times before it was written 1.5 s later")),
            "{told:?}"
        );
    }
}
