//! The first lines of a report of Redis: which, when, how much of it was seen, and what the look itself did.

use super::numbers::{counted, thousands};
use crate::analysis::redis::RedisHead;
use crate::model::{RedisCoverage, RedisMode, RedisRole, Timestamp};
use crate::view::header::Heading;
use crate::view::prometheus::{self, Metric};
use crate::view::sanitize::clean;

impl Heading for RedisHead {
    /// `cache (10.0.0.7:6379) · Redis 7.0.15 primary, database 0, as oncall`
    fn who(&self) -> String {
        let target = &self.target;
        let mut text = clean(&target.label());
        if let Some(product) = &target.product {
            let product = if product == "valkey" {
                "Valkey"
            } else {
                "Redis"
            };
            text.push_str(&format!(" · {product}"));
        }
        if let Some(version) = &target.server_version {
            text.push_str(&format!(" {}", clean(version)));
        }
        match target.mode {
            RedisMode::Cluster => {
                text.push_str(&format!(
                    " cluster, {}",
                    counted(target.nodes.len() as u64, "primary").replace("primarys", "primaries")
                ));
            }
            RedisMode::Sentinel | RedisMode::Standalone => match target.role {
                Some(RedisRole::Primary) => text.push_str(" primary"),
                Some(RedisRole::Replica) => text.push_str(" replica"),
                None => {}
            },
        }
        if target.mode != RedisMode::Cluster {
            text.push_str(&format!(", database {}", target.database));
        }
        if let Some(user) = &target.user {
            text.push_str(&format!(", as {}", clean(user)));
        }
        text
    }

    fn taken_at(&self) -> Timestamp {
        self.taken_at
    }

    fn unseen(&self) -> Vec<String> {
        unseen(&self.coverage)
    }

    fn prometheus(&self, metrics: Vec<Metric>) -> String {
        prometheus::of_redis(self, metrics)
    }
}

fn unseen(coverage: &RedisCoverage) -> Vec<String> {
    let mut lines = Vec::new();
    for node in coverage.nodes.iter().filter(|node| !node.complete) {
        let total = node.keys_total.map_or_else(
            || "an unknown number of".into(),
            |n| format!("about {}", thousands(n)),
        );
        let why = node
            .stopped
            .as_ref()
            .map_or_else(String::new, |why| format!(": {why}"));
        let place = if coverage.nodes.len() > 1 {
            format!(" of {}", node.node)
        } else {
            String::new()
        };
        lines.push(clean(&format!(
            "incomplete: {} of {total} keys{place} seen{why}",
            thousands(node.keys_seen)
        )));
    }
    if let Some(pattern) = &coverage.pattern {
        lines.push(format!("only keys that match {}", clean(pattern)));
    }
    let tally = coverage.tally;
    for (count, what) in [
        (tally.vanished, "gone before it was read"),
        (tally.not_permitted, "not permitted to this login"),
        (tally.moved, "on its way to another node: ask again"),
        (tally.failed, "not read for another reason"),
    ] {
        if count > 0 {
            lines.push(format!("{}: {what}", counted(count, "key")));
        }
    }
    if coverage.slots_unserved > 0 {
        lines.push(format!(
            "{} of 16,384 slots are served by no primary",
            thousands(coverage.slots_unserved.into())
        ));
    }
    for (section, note) in &coverage.sections {
        let why = note.why.as_deref().unwrap_or_default();
        if note.status == "down" {
            lines.push(clean(why));
            continue;
        }
        lines.push(format!("not seen: {section}: {}", clean(why)));
    }
    for permission in &coverage.missing_permissions {
        lines.push(format!("missing: {}", clean(permission)));
    }
    lines
}

/// What the look itself added to the server's statistics, and how long it took.
pub fn own_effect(coverage: &RedisCoverage) -> String {
    let own = &coverage.own_effect;
    let seconds = own.took_ms as f64 / 1000.0;
    let waited = if own.waited_ms > 0 {
        format!(
            ", {:.1} s of it waiting so as to leave the server to others (--full doesn't)",
            own.waited_ms as f64 / 1000.0
        )
    } else {
        String::new()
    };
    format!(
        "read in {seconds:.1} s{waited}; it added {} to keyspace_hits and keyspace_misses, together",
        thousands(own.lookups)
    )
}
