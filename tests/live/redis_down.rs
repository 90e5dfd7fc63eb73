//! A cluster that is down, a replica without its primary: what is there isn't taken for all that there is.

use serde_json::Value;
use stanch::drill::Cache;

use crate::harness::{eventually, run, server, stanch_command};
use crate::redis_keys::{connect, say_to, stanch, start};

/// Three primaries that share the slots, with some keys.
async fn cluster() -> Option<Vec<Cache>> {
    let settings = [
        ("cluster-enabled", "yes"),
        ("cluster-config-file", "nodes.conf"),
        ("cluster-node-timeout", "1000"),
    ];
    let mut nodes = Vec::new();
    for _ in 0..3 {
        nodes.push(start("redis-server", &settings, true).await?);
    }
    let first = nodes[0].port().expect("a port");
    for (node, (from, to)) in nodes.iter().zip([(0, 5460), (5461, 10922), (10923, 16383)]) {
        let mut link = connect(&node.url());
        say_to(&mut link, &format!("CLUSTER ADDSLOTSRANGE {from} {to}"));
        say_to(&mut link, &format!("CLUSTER MEET 127.0.0.1 {first}"));
    }
    eventually("the cluster", || states(&nodes, "ok")).await;
    for node in &nodes {
        let mut link = connect(&node.url());
        for n in 0..300 {
            // Those of the other nodes are refused.
            let _ = redis::cmd("SET")
                .arg(format!("session:{n}"))
                .arg("v")
                .query::<redis::Value>(&mut link);
        }
    }
    Some(nodes)
}

fn states(nodes: &[Cache], state: &str) -> bool {
    nodes.iter().all(|node| {
        let info = format!("{:?}", say_to(&mut connect(&node.url()), "CLUSTER INFO"));
        info.contains(&format!("cluster_state:{state}"))
            && info.contains("cluster_known_nodes:3")
            && (state == "ok" || info.contains("cluster_slots_fail:5461"))
    })
}

#[tokio::test]
async fn a_cluster_that_is_down_is_told_by_every_report() {
    let Some(mut nodes) = cluster().await else {
        return;
    };
    let address = |node: &Cache| format!("127.0.0.1:{}", node.port().expect("a port"));
    let url = format!("redis://{}", address(&nodes[0]));
    let mut lost = nodes.pop().expect("a node");
    lost.kill().expect("it ends");
    let place = address(&lost);
    eventually("the cluster is down", || states(&nodes, "fail")).await;
    for what in ["expiry", "bigkeys"] {
        let report = stanch(&url, &[what, "--json"]).expect_code(3).json();
        let coverage = &report["coverage"];
        assert_eq!(coverage["slots_unserved"], 5461, "{coverage}");
        for node in coverage["nodes"].as_array().expect("nodes") {
            assert_eq!(node["complete"], false, "{coverage}");
            assert_eq!(node["stopped"]["what"], "CLUSTERDOWN The cluster is down");
        }
    }
    for what in ["expiry", "bigkeys", "queues", "info"] {
        let shown = stanch(&url, &[what]).expect_code(3).stdout;
        assert!(
            shown.contains("the cluster is down (cluster_state:fail)")
                && shown.contains("CLUSTER FAILOVER TAKEOVER")
                && shown.contains(&format!("{place} isn't reached")),
            "{shown}"
        );
        assert!(!shown.contains("MEMORY USAGE is refused"), "{shown}");
    }
    let info = stanch(&url, &["info", "--sample", "10ms", "--json"]).expect_code(3);
    assert_eq!(info.json()["info"][0]["cluster_state"], "fail");
    let database = server(&[]).await;
    let spec = database.spec(database.superuser(), "postgres");
    let triage = |more: &[&str]| {
        run(stanch_command(
            &spec,
            &[&["triage", "--redis", &url], more].concat(),
        ))
        .expect_code(2)
    };
    let report = triage(&["--json"]).json();
    let found = report["findings"].as_array().expect("findings");
    let found = found.iter().find(|f| f["id"] == "redis.cluster_down");
    let found = found.unwrap_or_else(|| panic!("{report:#}"));
    assert_eq!(found["severity"], "critical");
    let unknown = report["unknown"].to_string();
    assert!(
        unknown.contains("the cluster is down") && unknown.contains(&place),
        "{unknown}"
    );
    let shown = triage(&[]).stdout;
    assert!(
        shown.contains("the Redis cluster is down") && shown.contains(&place),
        "{shown}"
    );
}

#[tokio::test]
async fn a_replica_that_has_lost_its_primary() {
    let nobody = stanch::drill::free_port().expect("a free port");
    let primary = format!("127.0.0.1 {nobody}");
    let Some(replica) = start("redis-server", &[], true).await else {
        return;
    };
    let mut link = connect(&replica.url());
    say_to(&mut link, "SET old 1");
    say_to(&mut link, &format!("REPLICAOF {primary}"));
    let why = format!(
        "the link to the primary 127.0.0.1:{nobody} is down: what is here may be old or empty"
    );
    for what in ["expiry", "queues", "stampede"] {
        let check = stanch(&replica.url(), &[what, "--check"]).expect_code(3);
        assert!(check.stdout.contains(" UNKNOWN: "), "{check:?}");
        assert!(check.stdout.contains(&why), "{check:?}");
    }
    let shown = stanch(&replica.url(), &["info", "--sample", "10ms"]).expect_code(3);
    assert!(
        shown.stdout.contains(&why) && shown.stdout.contains("primary   the link to it is down"),
        "{shown:?}"
    );
    let report = stanch(&replica.url(), &["info", "--sample", "10ms", "--json"])
        .expect_code(3)
        .json();
    assert_eq!(report["info"][0]["primary_link"], "down");
    assert_eq!(
        report["coverage"]["sections"]["primary_link"]["status"],
        "down"
    );
    // As a primary it is all that there is.
    say_to(&mut link, "REPLICAOF NO ONE");
    let report = stanch(&replica.url(), &["info", "--sample", "10ms", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(report["info"][0]["primary_link"], Value::Null);
}
