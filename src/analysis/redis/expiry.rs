//! `redis expiry`: which groups expire at once, when, and the jitter that would flatten them.

use serde::{Deserialize, Serialize};

use super::head::RedisReport;
use crate::keys::{Spread, Window};
use crate::model::{
    Cliff, ExitCode, ExpiryGroup, ExpiryVerdict, Jitter, Millis, Percent, RedisCoverage,
    RedisTarget, Timestamp, counted,
};

/// From where on a group's expiry is a cliff.
#[derive(Clone, Copy, Debug)]
pub struct CliffLimits {
    /// Ten seconds hold at least this part of the keys that expire …
    pub share: Percent,
    /// … and at least so many keys.
    pub keys: u64,
}

impl Default for CliffLimits {
    fn default() -> Self {
        Self {
            share: Percent(10.0),
            keys: 100,
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Expiry {
    /// Cliffs first, then by the keys that expire.
    pub groups: Vec<ExpiryGroup>,
    /// The next first.
    pub cliffs: Vec<Cliff>,
    /// Of all keys: those in a group that has a name.
    pub classified_pct: Option<Percent>,
}

/// Parts of a histogram.
const BINS: usize = 48;
/// Ten seconds are a cliff only where the time before them, at its average, holds this much less.
const ABOVE_EVEN: f64 = 5.0;
/// From so many keys on a smaller part of the group is a cliff too: a cache that is filled in batches.
const LARGE: u64 = 1000;
const LARGE_SHARE: f64 = 3.0;
/// What lives no longer can't be told from a stream that never ends.
const SHORT_MS: u64 = 30_000;
/// Windows of one group that are looked at.
const MOST_OF_A_GROUP: usize = 500;

pub fn report(
    taken_at: Timestamp,
    target: RedisTarget,
    coverage: RedisCoverage,
    groups: &[(String, Spread)],
    limits: CliffLimits,
) -> RedisReport<Expiry> {
    let mut cliffs = Vec::new();
    let mut told: Vec<ExpiryGroup> = groups
        .iter()
        .map(|(name, spread)| group(name, spread, taken_at, limits, &mut cliffs))
        .collect();
    told.sort_by(|a, b| {
        let cliff = |group: &ExpiryGroup| group.verdict == ExpiryVerdict::Cliff;
        (cliff(b), b.with_ttl, b.keys)
            .cmp(&(cliff(a), a.with_ttl, a.keys))
            .then(a.group.cmp(&b.group))
    });
    of_many(groups, taken_at, limits, &mut cliffs);
    cliffs.sort_by(|a, b| {
        let order = |cliff: &Cliff| (cliff.at, cliff.groups.is_none());
        order(a).cmp(&order(b)).then(a.group.cmp(&b.group))
    });
    let all: u64 = told.iter().map(|group| group.keys).sum();
    let named = told
        .iter()
        .filter(|group| is_named(&group.group))
        .map(|group| group.keys)
        .sum();
    let data = Expiry {
        groups: told,
        cliffs,
        classified_pct: Percent::of(named, all),
    };
    RedisReport::of("expiry", taken_at, target, coverage, data)
}

/// What is a cliff over all groups, since the database sees the sum: but for where one group is most of it.
fn of_many(
    groups: &[(String, Spread)],
    now: Timestamp,
    limits: CliffLimits,
    cliffs: &mut Vec<Cliff>,
) {
    let all = Spread::of_all(groups.iter().map(|(_, spread)| spread));
    let alive = all.with_ttl - all.overdue - all.never;
    // Less is none, by whichever limit.
    let least = (alive as f64 * limits.share.0.min(LARGE_SHARE) / 100.0) as u64;
    let least = least.saturating_sub(10 * all.error()).max(limits.keys);
    let windows = all.windows(least, MOST_OF_A_GROUP);
    let (_, found) = judge(&all, alive, &windows, now.utc().timestamp_millis(), limits);
    let of_all = found.iter().filter_map(|window| {
        let is_it = |cliff: &Cliff| {
            let second = cliff.at.utc().timestamp();
            let is_large = cliff.keys >= LARGE || window.keys < LARGE;
            (window.at..=window.last).contains(&second) && cliff.keys * 2 > window.keys && is_large
        };
        let within = groups
            .iter()
            .filter(|(_, spread)| spread.within(window) > 0)
            .count() as u64;
        if within < 2 || cliffs.iter().any(is_it) {
            return None;
        }
        Some(Cliff {
            at: moment(window.peak)?,
            in_ms: left(window.peak, now),
            keys: window.keys,
            group: counted(within, "group"),
            groups: Some(within),
            share: Percent::of(window.keys, alive)?,
        })
    });
    let of_all: Vec<Cliff> = of_all.collect();
    cliffs.extend(of_all);
}

/// A name that tells the keys of the group from others: not the bare `*`, nor what is left over.
pub fn is_named(group: &str) -> bool {
    group != "(others)" && group.chars().any(char::is_alphanumeric)
}

fn group(
    name: &str,
    spread: &Spread,
    now: Timestamp,
    limits: CliffLimits,
    cliffs: &mut Vec<Cliff>,
) -> ExpiryGroup {
    let alive = spread.with_ttl - spread.overdue - spread.never;
    let share = |keys: u64| Percent::of(keys, alive);
    let windows = spread.windows(1, MOST_OF_A_GROUP);
    let (second, ten) = (spread.peak_second(), windows.first().copied());
    let until = spread.quantile_ms(0.99);
    let (verdict, of_group) = judge(
        spread,
        alive,
        &windows,
        now.utc().timestamp_millis(),
        limits,
    );
    cliffs.extend(of_group.iter().filter_map(|window| {
        Some(Cliff {
            at: moment(window.peak)?,
            in_ms: left(window.peak, now),
            keys: window.keys,
            group: name.to_owned(),
            groups: None,
            share: share(window.keys)?,
        })
    }));
    let histogram = if alive > 0 {
        spread.bins(until.max(1), BINS)
    } else {
        Vec::new()
    };
    ExpiryGroup {
        group: name.to_owned(),
        keys: spread.keys,
        with_ttl: spread.with_ttl,
        overdue: spread.overdue,
        never: spread.never,
        peak_1s_share: second.and_then(|window| share(window.keys)),
        peak_1s_keys: second.map(|window| window.keys),
        peak_1s_at: second.and_then(|window| moment(window.at)),
        peak_10s_share: ten.and_then(|window| share(window.keys)),
        peak_10s_keys: ten.map(|window| window.keys),
        peak_at: ten.and_then(|window| moment(window.peak)),
        counted_within: spread.error(),
        median_ms: (alive > 0).then(|| Millis(spread.quantile_ms(0.5))),
        longest_ms: (alive > 0).then(|| Millis(spread.longest_ms())),
        verdict,
        jitter: (verdict == ExpiryVerdict::Cliff)
            .then(|| {
                second.map(|second| jitter(alive, second, &of_group, spread.longest_ms(), now))
            })
            .flatten(),
        histogram_later: alive.saturating_sub(histogram.iter().sum()),
        histogram,
        histogram_until_ms: (alive > 0).then_some(Millis(until)),
    }
}

/// The windows that are cliffs.
///
/// Keys that are written all the time and live for some time expire the more evenly the sooner: of a steady stream no later
/// second has more than an earlier one, whatever lifetimes there are in it (the rest of a lifetime is spread evenly from now
/// on). So what stands out over the time before it was written together.
fn judge(
    spread: &Spread,
    alive: u64,
    windows: &[Window],
    now_ms: i64,
    limits: CliffLimits,
) -> (ExpiryVerdict, Vec<Window>) {
    if spread.with_ttl == 0 {
        return (ExpiryVerdict::NoTtl, Vec::new());
    }
    if alive < limits.keys {
        return (ExpiryVerdict::Few, Vec::new());
    }
    let stands_out = |window: &&Window| {
        // What was lost in counting counts for the share.
        let share = (window.keys + 10 * spread.error()).min(alive) as f64 / alive as f64 * 100.0;
        let large = window.keys >= LARGE && share >= LARGE_SHARE;
        let left_ms = window.at.saturating_mul(1000).saturating_sub(now_ms);
        let left_ms = u64::try_from(left_ms).unwrap_or(0);
        // Until it begins there is a time before it.
        let before_s = left_ms as f64 / 1000.0;
        let even = spread.before(left_ms) as f64 / before_s.max(1.0) * 10.0;
        before_s >= 1.0
            && window.keys >= limits.keys
            && (share >= limits.share.0 || large)
            && window.keys as f64 >= even * ABOVE_EVEN
    };
    let found: Vec<Window> = windows.iter().filter(stands_out).copied().collect();
    let verdict = match found.is_empty() {
        false => ExpiryVerdict::Cliff,
        true if spread.longest_ms() < SHORT_MS => ExpiryVerdict::ShortLived,
        true => ExpiryVerdict::Spread,
    };
    (verdict, found)
}

/// A fifth of the lifetime as a random part, half a minute at least.
fn jitter(
    alive: u64,
    second: Window,
    cliffs: &[Window],
    longest_ms: u64,
    now: Timestamp,
) -> Jitter {
    // What was written together has at least so long to live from the start as it has left.
    let last = cliffs.iter().map(|window| window.last).max();
    let last = left(last.unwrap_or(second.last).saturating_add(1), now);
    let lifetime_s = last.0.min(longest_ms).div_ceil(1000).max(1);
    let spread_s = (lifetime_s / 5).max(30).min(lifetime_s);
    Jitter {
        lifetime_s,
        base_s: lifetime_s - spread_s / 2,
        spread_s,
        peak_per_s: alive.div_ceil(spread_s),
        now_per_s: second.keys,
    }
}

fn moment(second: i64) -> Option<Timestamp> {
    chrono::DateTime::from_timestamp(second, 0).map(Timestamp::new)
}

fn left(second: i64, now: Timestamp) -> Millis {
    let ms = second.saturating_mul(1000);
    let ms = ms.saturating_sub(now.utc().timestamp_millis());
    Millis(u64::try_from(ms).unwrap_or(0))
}

impl RedisReport<Expiry> {
    /// For `--check`: a cliff is a warning, one of a thousand keys or more within five minutes is critical.
    pub fn exit_code(&self) -> ExitCode {
        let soon = |cliff: &Cliff| cliff.in_ms <= Millis::from_secs(300) && cliff.keys >= 1000;
        if self.data.cliffs.iter().any(soon) {
            ExitCode::Critical
        } else if !self.data.cliffs.is_empty() {
            ExitCode::Warning
        } else if !self.head.coverage.sees_all() {
            ExitCode::Unknown
        } else {
            ExitCode::Ok
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000;

    fn judged(times: impl Iterator<Item = i64>) -> (ExpiryGroup, Vec<Cliff>) {
        let mut spread = Spread::new(2048);
        for ms in times {
            spread.expires(NOW * 1000 + ms, NOW * 1000);
        }
        let mut cliffs = Vec::new();
        let now = moment(NOW).expect("a time");
        let group = group("g:*", &spread, now, CliffLimits::default(), &mut cliffs);
        (group, cliffs)
    }

    #[test]
    fn bursts_are_cliffs_and_streams_are_not() {
        // A fixed lifetime, loaded in eight seconds.
        let (group, cliffs) = judged((0..40_000).map(|n| 3_600_000 + n / 5));
        assert_eq!(group.verdict, ExpiryVerdict::Cliff);
        assert_eq!(
            (cliffs.len(), cliffs[0].keys, cliffs[0].share),
            (1, 40_000, Percent(100.0))
        );
        assert_eq!(cliffs[0].in_ms, Millis(3_600_000));
        let jitter = group.jitter.expect("advice");
        assert_eq!(
            (jitter.lifetime_s, jitter.spread_s, jitter.base_s),
            (3608, 721, 3248)
        );
        assert!(jitter.peak_per_s * 50 < jitter.now_per_s, "{jitter:?}");
        // A steady stream of keys that live for a minute.
        assert_eq!(
            judged((0..60_000).step_by(3)).0.verdict,
            ExpiryVerdict::Spread
        );
        // A burst among the stream.
        let mixed = (0..60_000)
            .step_by(20)
            .chain((0..9_000).map(|n| 45_000 + n / 10));
        let (group, cliffs) = judged(mixed);
        assert_eq!(
            (group.verdict, cliffs[0].keys),
            (ExpiryVerdict::Cliff, 9_500)
        );
        // The same stream beside some keys that live for hours: no later second has more than an earlier one.
        let both = (0..60_000)
            .step_by(3)
            .chain((0..400).map(|n| 3_600_000 + n * 9_000));
        assert_eq!(judged(both).0.verdict, ExpiryVerdict::Spread);
        // A cache that is filled in 24 batches: each is one, the next first.
        let batches =
            (0..24).flat_map(|hour| (0..5_000).map(move |n| hour * 3_600_000 + 240_000 + n / 5));
        let (group, cliffs) = judged(batches);
        assert_eq!((group.verdict, cliffs.len()), (ExpiryVerdict::Cliff, 24));
        assert_eq!(cliffs[0].in_ms, Millis(240_000));
        // Jittered over two hours.
        assert_eq!(
            judged((0..7_200_000).step_by(100)).0.verdict,
            ExpiryVerdict::Spread
        );
        // The same burst a minute before its end is a cliff still.
        assert_eq!(
            judged((0..40_000).map(|n| 60_000 + n / 5)).0.verdict,
            ExpiryVerdict::Cliff
        );
        // It is one as it comes nearer, until it has begun.
        assert_eq!(
            judged((0..40_000).map(|n| 9_000 + n / 5)).0.verdict,
            ExpiryVerdict::Cliff
        );
        assert_eq!(
            judged((0..40_000).map(|n| 2_000 + n / 5)).0.verdict,
            ExpiryVerdict::Cliff
        );
        assert_eq!(
            judged((0..40_000).map(|n| n / 2)).0.verdict,
            ExpiryVerdict::ShortLived
        );
        assert_eq!(
            judged((0..99).map(|_| 60_000)).0.verdict,
            ExpiryVerdict::Few
        );
    }

    #[test]
    fn advice_for_what_was_given_one_lifetime() {
        let advised = |times: Vec<i64>| {
            let advice = judged(times.into_iter()).0.jitter.expect("advice");
            (advice.lifetime_s, advice.base_s, advice.spread_s)
        };
        assert_eq!(advised(vec![60_000; 500]), (60, 45, 30));
        // Others of the group live longer, or for ever.
        let mut mixed = vec![60_000; 500];
        mixed.extend([600_000, 253_402_300_799_000]);
        assert_eq!(advised(mixed), (61, 46, 30));
    }

    #[test]
    fn a_time_that_means_never_is_no_cliff() {
        for far in [253_402_300_799_000, i64::MAX - NOW * 1000] {
            let (group, cliffs) = judged((0..5000).map(|_| far));
            assert_eq!(group.verdict, ExpiryVerdict::Few);
            assert_eq!((group.with_ttl, group.never), (5000, 5000));
            assert_eq!((cliffs.len(), group.jitter), (0, None));
        }
    }

    #[test]
    fn a_single_key_before_the_others_is_not_the_moment() {
        let burst = (0..2000).map(|n| 600_000 + n % 1000);
        let (group, cliffs) = judged(burst.chain([596_500]));
        let at = moment(NOW + 600);
        assert_eq!((group.peak_1s_at, group.peak_at), (at, at));
        assert_eq!((cliffs.len(), cliffs[0].keys), (1, 2001));
        assert_eq!((Some(cliffs[0].at), cliffs[0].in_ms), (at, Millis(600_000)));
        // Each key is in the histogram, or after it.
        let sum: u64 = group.histogram.iter().sum();
        assert_eq!(sum + group.histogram_later, 2001);
        let (group, _) = judged((0..1000).map(|n| n * n * 7 + 1000));
        let sum: u64 = group.histogram.iter().sum();
        assert_eq!(sum + group.histogram_later, group.with_ttl);
        assert!(group.histogram_later > 0 && group.histogram_later < 30);
    }

    #[test]
    fn what_is_a_cliff_over_all_groups_alone() {
        let now = moment(NOW).expect("a time");
        let cliffs = |groups: &[(u64, i64)]| {
            let spreads: Vec<(String, Spread)> = groups
                .iter()
                .enumerate()
                .map(|(n, (keys, ms))| {
                    let mut spread = Spread::new(2048);
                    for _ in 0..*keys {
                        spread.expires(NOW * 1000 + ms, NOW * 1000);
                    }
                    (format!("g{n}:*"), spread)
                })
                .collect();
            let mut found = Vec::new();
            for (name, spread) in &spreads {
                group(name, spread, now, CliffLimits::default(), &mut found);
            }
            let single = found.len();
            of_many(&spreads, now, CliffLimits::default(), &mut found);
            found.split_off(single)
        };
        let [sum] = cliffs(&[(900, 240_000); 60]).try_into().expect("one");
        assert_eq!(
            sum.forecast(),
            "in 4m 00s (22:17:20 UTC) 54,000 keys of 60 groups expire within 10 s: 100.0 % of all keys that expire"
        );
        // Groups too small to be judged by themselves.
        assert_eq!(cliffs(&[(60, 240_000); 30])[0].keys, 1800);
        // One group is most of it; or would be, if it alone were as bad.
        assert_eq!(cliffs(&[(5000, 240_000), (900, 240_000)]).len(), 0);
        assert_eq!(cliffs(&[(900, 240_000), (800, 240_000)]).len(), 1);
        assert_eq!(cliffs(&[(900, 240_000), (10, 240_000)]).len(), 0);
        // At times of their own.
        let apart: Vec<(u64, i64)> = (0..60).map(|n| (900, 60_000 * (n + 1))).collect();
        assert_eq!(cliffs(&apart).len(), 0);
    }

    #[test]
    fn several_cliffs_of_one_group() {
        let hours = (0..4).flat_map(|hour| (0..5_000).map(move |n| hour * 3_600_000 + 600_000 + n));
        let (group, cliffs) = judged(hours);
        assert_eq!(group.verdict, ExpiryVerdict::Cliff);
        assert_eq!(cliffs.len(), 4);
        assert!(
            cliffs
                .iter()
                .all(|cliff| cliff.keys == 5_000 && cliff.share == Percent(25.0))
        );
    }
}
