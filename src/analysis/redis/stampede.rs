//! `redis stampede`: how each hot group is guarded, with the evidence.

use serde::Serialize;

use super::expiry::{self, CliffLimits};
use super::head::RedisReport;
use crate::keys::{Spread, guarded, guards};
use crate::model::{
    Cliff, ExitCode, ExpiryVerdict, Guarded, Locks, Millis, Misses, Protection, RedisCoverage,
    RedisTarget, Soft, Storming, Timestamp, counted,
};

/// One group as it was seen.
#[derive(Clone, Debug)]
pub struct GroupSeen {
    pub group: String,
    pub spread: Spread,
    pub hottest: Option<u8>,
    pub soft: Soft,
    pub misses: Option<Misses>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Stampede {
    /// The worst first.
    pub stampede: Vec<Guarded>,
    pub cliffs: Vec<Cliff>,
    /// How long a rebuild takes, given or seen.
    pub rebuild_ms: Option<Millis>,
    /// How misses were known: `keymiss` events that were on, or were switched on for this; `null`: not at all.
    pub misses_by: Option<&'static str>,
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
    let (locks, cached): (Vec<GroupSeen>, Vec<GroupSeen>) = groups
        .into_iter()
        .partition(|seen| guarded(&seen.group).is_some());
    let spreads: Vec<(String, Spread)> = cached
        .iter()
        .map(|seen| (seen.group.clone(), seen.spread.clone()))
        .collect();
    let whole = complete();
    let told = expiry::report(
        taken_at,
        target.clone(),
        whole,
        &spreads,
        CliffLimits::default(),
    )
    .data;
    let seen_rebuild = cached
        .iter()
        .filter_map(|seen| seen.misses.as_ref()?.rebuild_ms)
        .max();
    let rebuild = around.rebuild.or(seen_rebuild);
    let mut all: Vec<Guarded> = cached
        .into_iter()
        // What never expires isn't rebuilt.
        .filter(|seen| seen.spread.with_ttl > 0 || seen.misses.is_some())
        .map(|seen| {
            let of = told.groups.iter().find(|group| group.group == seen.group);
            let expiry = of.map_or(ExpiryVerdict::Few, |group| group.verdict);
            let share = of.and_then(|group| group.peak_10s_share);
            let locks = locks_of(&seen.group, &locks);
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
        rebuild_ms: rebuild,
        misses_by: around.misses_by,
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

/// The lock keys that guard a group: of several groups of them the one with most.
fn locks_of(group: &str, locks: &[GroupSeen]) -> Locks {
    let of = locks
        .iter()
        .filter(|lock| guarded(&lock.group).is_some_and(|left| guards(&left, group)))
        .max_by_key(|lock| lock.spread.keys);
    of.map_or_else(Locks::default, |lock| Locks {
        group: Some(lock.group.clone()),
        keys: lock.spread.keys,
        without_ttl: lock.spread.keys - lock.spread.with_ttl,
        longest_ms: (lock.spread.with_ttl > 0).then(|| Millis(lock.spread.longest_ms())),
    })
}

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
        match (locks.longest_ms, rebuild) {
            (Some(left), Some(rebuild)) if left < rebuild => {
                evidence.push(format!(
                    "a rebuild takes {rebuild}, the longest-lived lock has {left} left"
                ));
                verdicts.push(Protection::LockTooShort);
            }
            _ => verdicts.push(Protection::Protected),
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
        if misses.worst_misses > 1 {
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

impl RedisReport<Stampede> {
    /// For `--check`.
    pub fn exit_code(&self) -> ExitCode {
        let worst = self.data.stampede.iter().map(|group| group.verdict).min();
        let storming = self
            .data
            .statements
            .as_ref()
            .is_some_and(|all| !all.is_empty());
        match worst {
            Some(Protection::LockWithoutTtl | Protection::Unprotected) => ExitCode::Critical,
            Some(Protection::LockTooShort | Protection::NoJitter) => ExitCode::Warning,
            _ if storming => ExitCode::Warning,
            _ if !self.head.coverage.complete => ExitCode::Unknown,
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
            verdict(vec![jittered(), lock(vec![Some(9_000)])], slow),
            Protection::LockTooShort
        );
        assert_eq!(
            verdict(vec![jittered(), lock(vec![Some(9_000), None])], slow),
            Protection::LockWithoutTtl
        );
        assert_eq!(
            verdict(
                vec![jittered(), seen("user:*:lock", [None].into_iter())],
                None
            ),
            Protection::NotSeen
        );
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
        let missed = GroupSeen {
            misses: Some(Misses {
                misses: 40,
                keys: 1,
                worst: Some(KeyName(b"catalog:product:7:v1".to_vec())),
                worst_misses: 40,
                rebuild_ms: Some(Millis(1_500)),
            }),
            ..jittered()
        };
        let told = judged(vec![missed], None);
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
