//! What stands between a reader and the data: a cluster that is down, a replica that has lost its primary.

use super::error::Refused;
use super::fleet::Node;
use super::info::Facts;
use super::value;

/// A cluster by `CLUSTER INFO` of one of its nodes; what it doesn't tell is unknown.
#[derive(Debug, Default)]
pub(super) struct ClusterState {
    /// `ok` or `fail`.
    pub state: Option<String>,
    /// Slots of primaries that the cluster has given up.
    pub failed: u64,
    /// Slots of primaries that this node doesn't reach.
    pub doubted: u64,
    /// This login may not ask.
    pub not_permitted: bool,
}

impl ClusterState {
    /// Asks it of one node.
    pub async fn of(node: &mut Node) -> Self {
        match node.say("CLUSTER INFO").await {
            Ok(told) => Self::read(&value::text(&told).unwrap_or_default()),
            Err(refused) => Self {
                not_permitted: matches!(refused, Refused::NotPermitted(_)),
                ..Self::default()
            },
        }
    }

    fn read(text: &str) -> Self {
        let facts = Facts::read(text);
        Self {
            state: facts.word("cluster_state"),
            failed: facts.number("cluster_slots_fail").unwrap_or(0),
            doubted: facts.number("cluster_slots_pfail").unwrap_or(0),
            not_permitted: false,
        }
    }

    /// Why keys are refused; `None`: they aren't, or it isn't told.
    pub fn down(&self) -> Option<String> {
        let state = self.state.as_deref().filter(|state| *state != "ok")?;
        Some(format!(
            "the cluster is down (cluster_state:{state}): keys are refused (CLUSTERDOWN) until each slot has a primary again; \
             start the primary that is lost, or have a replica of it take over (CLUSTER FAILOVER TAKEOVER, asked of the replica)"
        ))
    }
}

/// What is wrong with a replica's link to its primary.
pub(super) fn lost_primary(facts: &Facts) -> Option<String> {
    let is_syncing = facts.number("master_sync_in_progress") == Some(1);
    let is_down = facts
        .word("master_link_status")
        .is_some_and(|status| status != "up");
    if !is_down && !is_syncing {
        return None;
    }
    let primary = match (facts.word("master_host"), facts.word("master_port")) {
        (Some(host), Some(port)) => format!(" {host}:{port}"),
        _ => String::new(),
    };
    let since = facts
        .number("master_link_down_since_seconds")
        .map_or_else(String::new, |seconds| format!(" for {seconds} s"));
    let syncing = if is_syncing {
        ", and a sync with it is going on"
    } else {
        ""
    };
    let down = if is_down {
        format!("the link to the primary{primary} is down{since}{syncing}")
    } else {
        format!("a sync with the primary{primary} is going on")
    };
    Some(format!("{down}: what is here may be old or empty"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_that_is_down_and_one_that_is_not() {
        let down = ClusterState::read(
            "cluster_enabled:1\r\ncluster_state:fail\r\ncluster_slots_ok:10923\r\ncluster_slots_fail:5461\r\n",
        );
        assert_eq!(down.failed, 5461);
        let why = down.down().expect("it is down");
        assert!(
            why.starts_with("the cluster is down (cluster_state:fail): "),
            "{why}"
        );
        assert_eq!(ClusterState::read("cluster_state:ok\r\n").down(), None);
        assert_eq!(ClusterState::read("").down(), None);
    }

    #[test]
    fn a_replica_without_its_primary() {
        let of = |more: &str| lost_primary(&Facts::read(&format!("role:slave\r\n{more}")));
        assert_eq!(
            of("master_host:a\r\nmaster_port:6379\r\nmaster_link_status:down\r\nmaster_link_down_since_seconds:12\r\nmaster_sync_in_progress:0\r\n").as_deref(),
            Some("the link to the primary a:6379 is down for 12 s: what is here may be old or empty")
        );
        assert_eq!(
            of("master_link_status:down\r\nmaster_link_down_since_seconds:-1\r\nmaster_sync_in_progress:1\r\n").as_deref(),
            Some("the link to the primary is down, and a sync with it is going on: what is here may be old or empty")
        );
        assert_eq!(
            of("master_link_status:up\r\nmaster_sync_in_progress:0\r\n"),
            None
        );
        assert_eq!(lost_primary(&Facts::read("role:master\r\n")), None);
    }
}
