//! What triage finds of a Redis: from one look at its numbers, its groups and its queues.

use serde::{Deserialize, Serialize};

use super::queues::{QueueRow, QueueVerdict};
use super::stampede::Stampede;
use crate::analysis::{catalog, redis_command, triage::Finding};
use crate::model::{
    FindingId, Guarded, Millis, Percent, Protection, RedisCoverage, RedisInfo, RedisTarget,
    Severity, Snapshot, Stopped, Timestamp, counted, thousands,
};

/// All that was seen in one look.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Look {
    /// By the clock of the Redis; unknown in files of older versions.
    #[serde(default)]
    pub taken_at: Option<Timestamp>,
    pub target: RedisTarget,
    pub coverage: RedisCoverage,
    /// `None` where INFO isn't permitted.
    pub info: Option<RedisInfo>,
    pub stampede: Stampede,
    /// The hottest key by its counter, with its group.
    pub hottest: Option<(String, String, u8)>,
    pub queues: Vec<QueueRow>,
}

/// In triage's report: which Redis, and how much of it was seen; or why nothing was.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RedisPart {
    pub target: Option<RedisTarget>,
    pub coverage: Option<RedisCoverage>,
    pub summary: String,
    /// Why it couldn't be looked at.
    pub failed: Option<String>,
}

impl RedisPart {
    pub fn failed(why: String) -> Self {
        Self {
            target: None,
            coverage: None,
            summary: format!("Redis couldn't be looked at: {why}"),
            failed: Some(why),
        }
    }

    /// All of it was seen.
    pub fn is_complete(&self) -> bool {
        self.coverage
            .as_ref()
            .is_some_and(|coverage| coverage.complete)
    }
}

/// Sections of the coverage that make all that was read doubtful.
const DOUBTS: [&str; 2] = ["cluster", "primary_link"];

/// A counter of so much is of a key that is read about a hundred thousand times in some minutes (lfu-log-factor 10).
const HOT: u8 = 140;
/// Of maxmemory and of maxclients.
const NEAR: f64 = 85.0;
const FULL: f64 = 95.0;
/// What expires within ten seconds is worth a word from so many keys on.
const CLIFF_KEYS: u64 = 1000;
const CLIFF_SOON: Millis = Millis::from_secs(300);

/// A reason about dead jobs.
fn is_dead(reason: &str) -> bool {
    reason.contains(" are dead") || reason.contains(" is dead")
}

/// What a queue is told for: its first reason where that isn't that jobs wait.
fn backlog_title(row: &QueueRow) -> String {
    let (queue, name) = (&row.queue, row.full_name());
    let why = row.reasons.iter().find(|why| !is_dead(why));
    let is_overdue = why.is_some_and(|why| why.contains(" overdue "));
    let of = |count: u64, one: &str, more: &str| match count {
        1 => format!("1 job {one} in {name}"),
        count => format!("{} jobs {more} in {name}", thousands(count)),
    };
    match (queue.overdue, queue.depth, why) {
        (Some(overdue @ 1..), _, _) if is_overdue => of(overdue, "is overdue", "are overdue"),
        (_, Some(depth @ 1..), _) => of(depth, "waits", "wait"),
        (_, _, Some(why)) => format!("{name}: {why}"),
        (_, _, None) => name,
    }
}

impl Look {
    /// The look that a snapshot has, or why it has none; `None`: none was asked for.
    pub fn of(snapshot: &Snapshot) -> Option<Result<Self, String>> {
        let section = snapshot.redis.as_ref()?;
        let Some(value) = section.get() else {
            return Some(Err(section.why().unwrap_or_default()));
        };
        Some(Self::deserialize(value).map_err(|error| error.to_string()))
    }

    /// `beside`: when the snapshot was taken that it is shown with.
    pub fn part(&self, beside: Timestamp) -> RedisPart {
        let mut words = vec![format!(
            "{} {} at {}",
            self.target
                .product
                .as_deref()
                .map_or("Redis", |product| if product == "valkey" {
                    "Valkey"
                } else {
                    "Redis"
                }),
            self.target
                .server_version
                .as_deref()
                .unwrap_or("of an unknown version"),
            self.target.label()
        )];
        // Before its first colon it says what is down.
        let down = DOUBTS.map(|section| self.coverage.is_down(section)?.split_once(": "));
        words.extend(down.into_iter().flatten().map(|(what, _)| what.to_owned()));
        if let Some(keys) = self.coverage.keys_seen {
            words.push(counted(keys, "key"));
        }
        if let Some(info) = &self.info {
            if let Some(pct) = info.hit_pct {
                words.push(format!("{pct:.1} % hits since its start"));
            }
            if let (Some(clients), Some(most)) = (info.connected_clients, info.maxclients) {
                words.push(format!(
                    "{} of {} clients",
                    thousands(clients),
                    thousands(most)
                ));
            }
        }
        // A look of another time isn't one of now.
        const SAME: Millis = Millis::from_secs(15);
        if let Some(at) = self.taken_at
            && at.age_at(beside).max(beside.age_at(at)) > SAME
        {
            words.push(format!("looked at {} UTC", at.utc().format("%H:%M:%S")));
        }
        RedisPart {
            target: Some(self.target.clone()),
            coverage: Some(self.coverage.clone()),
            summary: words.join(", "),
            failed: None,
        }
    }

    pub fn findings(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        found.extend(self.cluster_down());
        found.extend(self.near_limit());
        found.extend(self.cliffs());
        found.extend(self.locks());
        found.extend(self.hot());
        found.extend(self.backlog());
        found.extend(self.dead_letters());
        found
    }

    /// What couldn't be judged, and why.
    pub fn unknown(&self) -> Vec<String> {
        let mut unknown = Vec::new();
        if self.info.is_none() {
            unknown.push("redis.near_limit: INFO isn't permitted to this login (+info)".into());
        }
        if !self.coverage.complete {
            let seen = self
                .coverage
                .keys_seen
                .map_or_else(|| "some".into(), thousands);
            let mut line = format!(
                "redis.expiry_cliff, redis.lock_ttl, redis.hot_key: {seen} keys were seen, not all"
            );
            for why in DOUBTS
                .iter()
                .filter_map(|section| self.coverage.is_down(section))
            {
                line.push_str(&format!("; {why}"));
            }
            if let Some(why) = self.unreached() {
                line.push_str(&format!("; {why}"));
            }
            unknown.push(line);
        }
        if self.hottest.is_none() && !self.refuses_keys() {
            unknown.push("redis.hot_key: the server has no LFU counters (stanch redis hotkeys says what would tell)".into());
        }
        unknown
    }

    fn find(
        &self,
        id: FindingId,
        severity: Severity,
        title: String,
        evidence: Vec<String>,
        next: &str,
    ) -> Finding {
        Finding {
            id,
            severity,
            pattern: None,
            title,
            evidence,
            notes: Vec::new(),
            caused_by: Vec::new(),
            next: vec![redis_command(next, &self.target)],
            runbook: catalog::runbook(id).map(Into::into),
        }
    }

    /// Primaries of the cluster that couldn't be asked, and why.
    fn unreached(&self) -> Option<&str> {
        self.coverage.sections.get("primaries")?.why.as_deref()
    }

    /// Told by the cluster itself, or, where this login may not ask it, by what its keys are refused for.
    fn refuses_keys(&self) -> bool {
        let refused = |stopped: &Stopped| matches!(stopped, Stopped::Failed(why) if why.starts_with("CLUSTERDOWN"));
        self.coverage.is_down("cluster").is_some()
            || self
                .coverage
                .nodes
                .iter()
                .any(|node| node.stopped.as_ref().is_some_and(refused))
    }

    fn cluster_down(&self) -> Option<Finding> {
        let is_down = self.refuses_keys();
        let unserved = self.coverage.slots_unserved;
        let slots = format!(
            "{} of 16,384 slots are served by no primary",
            thousands(unserved.into())
        );
        let what = match (is_down, unserved) {
            (true, _) => "the Redis cluster is down",
            (false, 0) => return None,
            (false, _) => slots.as_str(),
        };
        let title = match self.unreached() {
            Some(why) => format!("{what}: {why}"),
            None => what.to_owned(),
        };
        let mut evidence: Vec<String> = self
            .coverage
            .is_down("cluster")
            .map(str::to_owned)
            .into_iter()
            .collect();
        if unserved > 0 {
            evidence.push(slots.clone());
        }
        Some(self.find(
            FindingId::RedisClusterDown,
            Severity::Critical,
            title,
            evidence,
            "info",
        ))
    }

    fn near_limit(&self) -> Option<Finding> {
        let info = self.info.as_ref()?;
        let pct = |part: Option<u64>, whole: Option<u64>| {
            Percent::of(part?, whole.filter(|most| *most > 0)?)
        };
        let memory = pct(info.used_memory_bytes, info.maxmemory_bytes);
        let clients = pct(info.connected_clients, info.maxclients);
        let policy = info.maxmemory_policy.as_deref().unwrap_or("unknown");
        let mut evidence = Vec::new();
        let mut severity = None;
        let mut worse = |is_full: bool| {
            let level = if is_full {
                Severity::Critical
            } else {
                Severity::Warning
            };
            severity = severity.max(Some(level));
        };
        // A cache that evicts is meant to be full; one that may not evict refuses writes.
        if let Some(used) = memory.filter(|used| used.0 >= NEAR && policy == "noeviction") {
            worse(used.0 >= FULL);
            evidence.push(format!("{used} of maxmemory, and nothing may be evicted (noeviction): writes are refused when it is full"));
        }
        if let Some(used) = clients.filter(|used| used.0 >= NEAR) {
            worse(used.0 >= FULL);
            evidence.push(format!("{used} of maxclients"));
        }
        let severity = severity?;
        let title = "a limit of the Redis is nearly reached".to_owned();
        Some(self.find(FindingId::RedisNearLimit, severity, title, evidence, "info"))
    }

    fn cliffs(&self) -> Option<Finding> {
        let cliffs = self.stampede.cliffs.iter();
        let mut cliffs: Vec<_> = cliffs.filter(|cliff| cliff.keys >= CLIFF_KEYS).collect();
        cliffs.sort_by_key(|cliff| cliff.at);
        let next = cliffs.first()?;
        let soon = next.in_ms <= CLIFF_SOON;
        let title = format!(
            "in {} {} of {} expire within 10 s",
            next.in_ms,
            counted(next.keys, "key"),
            next.group
        );
        let evidence = cliffs
            .iter()
            .take(3)
            .map(|cliff| {
                format!(
                    "{} UTC: {} of {}, {:.1} % of {} that expire",
                    cliff.moment(),
                    counted(cliff.keys, "key"),
                    cliff.group,
                    cliff.share.0,
                    match cliff.groups {
                        None => "those of the group",
                        Some(_) => "all keys",
                    }
                )
            })
            .collect();
        let severity = if soon {
            Severity::Critical
        } else {
            Severity::Warning
        };
        Some(self.find(
            FindingId::RedisExpiryCliff,
            severity,
            title,
            evidence,
            "expiry",
        ))
    }

    fn locks(&self) -> Option<Finding> {
        let bad: Vec<&Guarded> = self
            .stampede
            .stampede
            .iter()
            .filter(|group| {
                matches!(
                    group.verdict,
                    Protection::LockWithoutTtl | Protection::LockTooShort
                )
            })
            .collect();
        let first = bad.first()?;
        let title = format!(
            "{}: {}",
            first.locks.group.as_deref().unwrap_or(&first.group),
            first.verdict.word()
        );
        let evidence = bad
            .iter()
            .flat_map(|group| {
                let lines = group.evidence.iter().take(2);
                lines.map(|line| format!("{}: {line}", group.group))
            })
            .collect();
        let severity = match first.verdict {
            Protection::LockWithoutTtl => Severity::Critical,
            _ => Severity::Warning,
        };
        Some(self.find(
            FindingId::RedisLockTtl,
            severity,
            title,
            evidence,
            "stampede",
        ))
    }

    fn backlog(&self) -> Option<Finding> {
        let bad = |row: &&QueueRow| {
            row.verdict >= QueueVerdict::Warning && row.reasons.iter().any(|why| !is_dead(why))
        };
        let mut rows: Vec<&QueueRow> = self.queues.iter().filter(bad).collect();
        rows.sort_by_key(|row| {
            std::cmp::Reverse((row.verdict, row.queue.oldest_age_ms, row.queue.depth))
        });
        let first = rows.first()?;
        let severity = match first.verdict {
            QueueVerdict::Critical => Severity::Critical,
            _ => Severity::Warning,
        };
        let title = backlog_title(first);
        let evidence = rows
            .iter()
            .flat_map(|row| {
                row.reasons
                    .iter()
                    .filter(|why| !is_dead(why))
                    .map(|why| format!("{}: {why}", row.full_name()))
            })
            .take(4)
            .collect();
        Some(self.find(
            FindingId::QueueBacklog,
            severity,
            title,
            evidence,
            "queues --sample 10s",
        ))
    }

    fn dead_letters(&self) -> Option<Finding> {
        let told: Vec<String> = self
            .queues
            .iter()
            .filter(|row| row.verdict >= QueueVerdict::Warning)
            .flat_map(|row| {
                row.reasons
                    .iter()
                    .filter(|why| is_dead(why))
                    .map(|why| format!("{}: {why}", row.full_name()))
            })
            .collect();
        let title = told.first()?.clone();
        Some(self.find(
            FindingId::QueueDeadLetters,
            Severity::Warning,
            title,
            told,
            "queues",
        ))
    }

    fn hot(&self) -> Option<Finding> {
        let (key, group, counter) = self
            .hottest
            .as_ref()
            .filter(|(_, _, counter)| *counter >= HOT)?;
        let title = format!("{key} is hot: its LFU counter is {counter} of 255");
        let evidence = vec![
            format!("of group {group}"),
            "a counter is a logarithm: from about 140 on, a hundred thousand accesses in some minutes".into(),
        ];
        Some(self.find(
            FindingId::RedisHotKey,
            Severity::Info,
            title,
            evidence,
            "hotkeys",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Cliff, Queue, QueueSystem, RedisMode};

    fn look() -> Look {
        Look {
            taken_at: None,
            target: RedisTarget {
                name: None,
                host: "cache".into(),
                port: Some(6379),
                database: 0,
                user: None,
                tls: false,
                product: None,
                server_version: None,
                role: None,
                mode: RedisMode::Standalone,
                nodes: Vec::new(),
            },
            coverage: RedisCoverage::default(),
            info: None,
            stampede: Stampede {
                stampede: Vec::new(),
                cliffs: Vec::new(),
                rebuild_ms: None,
                misses_by: None,
                statements: None,
            },
            hottest: None,
            queues: Vec::new(),
        }
    }

    #[test]
    fn the_cliff_of_the_title_is_the_first_of_the_evidence() {
        let now = 1_796_035_700_i64;
        let cliff = |in_s: i64, keys| Cliff {
            at: Timestamp::new(chrono::DateTime::from_timestamp(now + in_s, 0).expect("a time")),
            in_ms: Millis(in_s.unsigned_abs() * 1000),
            keys,
            group: format!("g{in_s}:*"),
            groups: None,
            share: Percent(50.0),
        };
        let mut look = look();
        let (small, large) = ([10, 20, 30, 40], [(200_000, 4000), (100, 2000)]);
        look.stampede.cliffs = small.map(|in_s| cliff(in_s, CLIFF_KEYS - 1)).into();
        let large = large.map(|(in_s, keys)| cliff(in_s, keys));
        look.stampede.cliffs.extend(large);
        let [found] = look.findings().try_into().expect("one");
        assert_eq!(
            found.title,
            "in 1m 40s 2,000 keys of g100:* expire within 10 s"
        );
        assert_eq!(
            found.evidence,
            [
                "10:50:00 UTC: 2,000 keys of g100:*, 50.0 % of those of the group that expire",
                "2026-12-02 18:21 UTC: 4,000 keys of g200000:*, 50.0 % of those of the group that expire",
            ]
        );
    }

    #[test]
    fn what_a_queue_is_told_for() {
        let title = |depth, overdue, why: &str| {
            let mut queue = Queue::new(QueueSystem::Rq, "mail".into());
            (queue.depth, queue.overdue) = (depth, overdue);
            let mut look = look();
            look.queues = vec![QueueRow {
                queue,
                verdict: QueueVerdict::Warning,
                reasons: vec!["31 are dead, 10 are usual".into(), why.into()],
                severities: Vec::new(),
            }];
            look.backlog().expect("a finding").title
        };
        let late =
            "3 have been overdue for more than a minute: the scheduler is late, or there is none";
        assert_eq!(
            title(Some(0), Some(3), late),
            "3 jobs are overdue in rq/mail"
        );
        assert_eq!(title(Some(7), Some(1), late), "1 job is overdue in rq/mail");
        let old = "the oldest waits for 6 min 0 s, the limit is 5 min 0 s";
        assert_eq!(title(Some(1), Some(3), old), "1 job waits in rq/mail");
        assert_eq!(title(Some(2000), None, old), "2,000 jobs wait in rq/mail");
        let most = "at least 10000 wait, the bound is 100";
        assert_eq!(title(None, None, most), format!("rq/mail: {most}"));
    }
}
