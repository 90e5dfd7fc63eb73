//! Every query, every subcommand and a standby on every major version that is there (`make test-matrix` brings them).

use std::path::PathBuf;

use serde_json::Value;
use stanch::drill::{Incident, Scene, ServerOptions};
use stanch::source::postgres::catalog;

use crate::columns;
use crate::forest;
use crate::harness::{self, REPORTS, admin, client, stanch_as};

/// The programs of that version; without them the test says so, and `the_wanted_versions_are_there` tells whether it may.
fn bin_dir(major: u32) -> Option<PathBuf> {
    let found = harness::bin_dirs().remove(&major);
    if found.is_none() {
        harness::say(&format!(
            "left out: PostgreSQL {major} isn't there (make test-matrix)"
        ));
    }
    found
}

/// `STANCH_TEST_MAJORS` names the versions that must not be left out.
#[test]
fn the_wanted_versions_are_there() {
    let there = harness::bin_dirs();
    for major in std::env::var("STANCH_TEST_MAJORS")
        .unwrap_or_default()
        .split_whitespace()
    {
        let major: u32 = major.parse().expect("a major version");
        assert!(there.contains_key(&major), "{major} of {:?}", there.keys());
    }
}

/// The columns of each query are the same whatever the version: name and type, as the code reads them.
async fn columns_are_as_expected(major: u32, spec: &stanch::source::postgres::ConnSpec) {
    let client = client(spec, "columns").await;
    let mut text = String::new();
    for topic in catalog::all() {
        let statement = client
            .prepare(topic.sql(major))
            .await
            .unwrap_or_else(|e| panic!("{major} {}: {e:?}", topic.name));
        text.push_str(&format!("{}\n", topic.name));
        for column in statement.columns() {
            let kind = column.type_().name();
            // `name` and `text` are read alike.
            let kind = if kind == "name" { "text" } else { kind };
            text.push_str(&format!("  {} {kind}\n", column.name()));
        }
    }
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("columns-of-every-version", text);
    });
    columns::nulls(&client, major).await;
}

async fn every_subcommand(server: &stanch::drill::Server, major: u32) {
    let spec = admin(server);
    for report in REPORTS {
        for format in ["table", "json", "csv", "md"] {
            let run = stanch_as(&spec, &[report, &["-o", format]].concat());
            assert!(run.code <= 2, "{major} {report:?} {format}: {run:?}");
            assert!(
                !run.stdout.is_empty(),
                "{major} {report:?} {format}: {run:?}"
            );
        }
        let json = stanch_as(&spec, &[report, &["--json"]].concat()).json();
        let version = json["target"]["server_version"]
            .as_str()
            .expect("a version");
        assert!(version.starts_with(&format!("{major}.")), "{version}");
        for (name, section) in json["coverage"]["sections"].as_object().expect("sections") {
            assert_eq!(
                section["status"], "collected",
                "{major} {report:?} {name}: {section}"
            );
        }
        let check = stanch_as(&spec, &[report, &["--check"]].concat());
        assert!(
            check.code <= 2 && check.stdout.starts_with("STANCH "),
            "{check:?}"
        );
    }
    for report in [
        &["triage"][..],
        &["pg", "connections"],
        &["pg", "transactions"],
        &["pg", "blockers"],
    ] {
        let text = stanch_as(&spec, &[report, &["-o", "prometheus"]].concat()).stdout;
        assert!(text.contains("stanch_up{"), "{major} {report:?}: {text}");
    }
    for topic in catalog::all() {
        let rows = stanch_as(&spec, &["query", "run", topic.name, "--json"])
            .expect_code(0)
            .json();
        assert!(rows["rows"].is_array(), "{major} {}: {rows}", topic.name);
        let shown = stanch_as_plain(&["query", "show", topic.name, "--server", &major.to_string()]);
        let psql = client(&spec, "paste").await;
        psql.simple_query(&shown)
            .await
            .unwrap_or_else(|e| panic!("{major} {}: {e:?}", topic.name));
    }
}

fn stanch_as_plain(args: &[&str]) -> String {
    harness::run(harness::command(args)).expect_code(0).stdout
}

/// One incident on a server of that version, all reports on it, and the forest by the server's own word.
async fn version(major: u32) {
    let Some(bin_dir) = bin_dir(major) else {
        return;
    };
    for incident in [Incident::LockChain, Incident::Prepared, Incident::LockQueue] {
        let server = harness::start(ServerOptions {
            bin_dir: bin_dir.clone(),
            ..incident.server_options()
        })
        .await;
        let _scene = Scene::set(&server, incident)
            .await
            .expect("the scene is set");
        let report = forest::blockers(&server).await;
        let edges = forest::edges(&report);
        assert!(!edges.is_empty(), "{major} {incident:?}");
        assert_eq!(edges, forest::truth(&server).await, "{major} {incident:?}");
        let triage = stanch_as(&admin(&server), &["triage", "--json"]).json();
        let ids: Vec<&Value> = triage["findings"]
            .as_array()
            .expect("findings")
            .iter()
            .map(|finding| &finding["id"])
            .collect();
        assert!(
            ids.contains(&&Value::from(incident.finding().name())),
            "{major} {incident:?}: {ids:?}"
        );
        if incident == Incident::Prepared {
            columns_are_as_expected(major, &admin(&server)).await;
            every_subcommand(&server, major).await;
        }
    }
}

async fn standby(major: u32) {
    if let Some(bin_dir) = bin_dir(major) {
        forest::standby_in_both_directions(bin_dir).await;
    }
}

macro_rules! versions {
    ($($major:literal $version:ident $standby:ident),+ $(,)?) => {
        $(
            #[tokio::test]
            async fn $version() {
                version($major).await;
            }

            #[tokio::test]
            async fn $standby() {
                standby($major).await;
            }
        )+
    };
}

versions! {
    12 postgresql_12 standby_12,
    13 postgresql_13 standby_13,
    14 postgresql_14 standby_14,
    15 postgresql_15 standby_15,
    16 postgresql_16 standby_16,
    17 postgresql_17 standby_17,
    18 postgresql_18 standby_18,
}
