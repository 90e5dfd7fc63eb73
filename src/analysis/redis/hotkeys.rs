//! `redis hotkeys`: the ranking, what it is worth, and what would tell more.

use serde::{Deserialize, Serialize};

use super::head::RedisReport;
use crate::model::{
    HotFound, HotGroup, HotKey, HotMethod, Millis, RedisCoverage, RedisTarget, Timestamp, counted,
    thousands,
};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hotkeys {
    /// `null`: this server and login have no way that isn't asked for by name.
    pub method: Option<HotMethod>,
    /// How long was looked; `null` for counters, which have no window.
    pub window_ms: Option<Millis>,
    /// Keys whose counter was read, or commands that were seen.
    pub sampled: u64,
    /// What the ranking is worth, in words.
    pub confidence: Vec<String>,
    pub keys: Vec<HotKey>,
    pub groups: Vec<HotGroup>,
    /// Commands that would tell (more).
    pub next: Vec<String>,
}

/// What is known of the server that the counters' worth turns on; `None`: not told.
#[derive(Clone, Copy, Debug, Default)]
pub struct Circumstances {
    /// A child writes the data set: counters stand still until it has ended.
    pub saving: Option<bool>,
    /// Keys that hold small whole numbers share their counters.
    pub no_maxmemory: Option<bool>,
    pub uptime: Option<Millis>,
}

/// With a ranking.
pub fn report(
    taken_at: Timestamp,
    target: RedisTarget,
    coverage: RedisCoverage,
    found: HotFound,
    around: Circumstances,
) -> RedisReport<Hotkeys> {
    let confidence = confidence(&found, around);
    let data = Hotkeys {
        method: Some(found.method),
        window_ms: found.window,
        sampled: found.sampled,
        confidence,
        keys: found.keys,
        groups: found.groups,
        next: Vec::new(),
    };
    RedisReport::of("hotkeys", taken_at, target, coverage, data)
}

/// Without one: why, and what would give one.
pub fn without(
    taken_at: Timestamp,
    target: RedisTarget,
    mut coverage: RedisCoverage,
    why: String,
    next: Vec<String>,
) -> RedisReport<Hotkeys> {
    coverage.without("ranking", "skipped", why);
    let data = Hotkeys {
        method: None,
        window_ms: None,
        sampled: 0,
        confidence: Vec::new(),
        keys: Vec::new(),
        groups: Vec::new(),
        next,
    };
    RedisReport::of("hotkeys", taken_at, target, coverage, data)
}

fn confidence(found: &HotFound, around: Circumstances) -> Vec<String> {
    let mut said = Vec::new();
    if let Some(counters) = &found.counters {
        said.push(
            "counters are logarithms of the accesses since some minutes (0 to 255, one less for each \
             lfu-decay-time without any): an order, not a number of requests; writes count too"
                .into(),
        );
        let read: u64 = counters.iter().sum();
        if read > 0 && counters[0] == read {
            said.push(
                "every counter is 0: LFU was switched on a moment ago, or nothing has been asked for in a while; \
                 ask again in a minute"
                    .into(),
            );
        } else if read > 0 && counters[0] * 100 >= read * 99 && counters[0] < read {
            said.push(format!(
                "{} of {} counters are 0: keys that were there when LFU was switched on begin at 0",
                thousands(counters[0]),
                thousands(read)
            ));
        }
        if counters[255] > 1 {
            said.push(format!(
                "{} keys are at 255, the most there is: their order among themselves isn't known",
                thousands(counters[255])
            ));
        }
        if around.saving == Some(true) {
            said.push(
                "the server saves its data now: counters stand still until the child process has ended".into(),
            );
        }
        if around.no_maxmemory == Some(true) {
            said.push(
                "maxmemory is 0: keys that hold whole numbers below 10000 share their counters, so one of them may \
                 show another's"
                    .into(),
            );
        }
        if let Some(uptime) = around.uptime.filter(|uptime| uptime.0 < 600_000) {
            said.push(format!(
                "the server is up for {uptime} only: counters are no older"
            ));
        }
    } else {
        match found.method {
            HotMethod::Monitor => said.push(sample_worth(found)),
            _ => said.push("the server's own sample, since its last reset".into()),
        }
    }
    if found.tied_out > 0 {
        said.push(format!(
            "{} more have the score of the last one listed: names decide there",
            thousands(found.tied_out)
        ));
    }
    said
}

/// What a sample of so many commands can tell: a key's share has a standard error of √(p(1−p)/n).
fn sample_worth(found: &HotFound) -> String {
    let n = found.sampled as f64;
    let share = found
        .keys
        .first()
        .and_then(|key| key.share_pct)
        .map_or(0.0, |p| p.0 / 100.0);
    if found.sampled == 0 {
        return "no command went by".into();
    }
    if found.sampled < 200 {
        return format!(
            "a sample of {}: too few to judge by",
            counted(found.sampled, "key access").replace("accesss", "accesses")
        );
    }
    let error = 100.0 * (share * (1.0 - share) / n).sqrt();
    format!(
        "a sample of {} accesses: the share of the first key is right to about ±{:.1} points",
        thousands(found.sampled),
        1.96 * error
    )
}
