//! `stanch budget` as CI and people see it: every format, exit codes, what is hostile, what if, and the rules beyond the sum.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use stanch::budget::{self, Options, RULES};

use crate::budget::judged;

const WEB: &str = "apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  replicas: 12
  template:
    spec:
      containers:
        - name: app
          env:
            - { name: RAILS_MAX_THREADS, value: \"5\" }
            - { name: WEB_CONCURRENCY, value: \"2\" }
";
const JOBS: &str = "apiVersion: apps/v1
kind: Deployment
metadata: { name: jobs }
spec:
  replicas: 4
  template:
    spec:
      containers:
        - { name: sidekiq, command: [sidekiq, -c, \"10\"] }
";
const SERVER: &str = "servers: { main: { max_connections: 200 } }\n";

#[derive(Debug, PartialEq)]
struct Run {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Run {
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

fn run_in(folder: &Path, args: &[&str]) -> Run {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_stanch"))
        .args(args)
        .env_clear()
        .env("HOME", "/nonexistent")
        .current_dir(folder)
        .stdin(std::process::Stdio::null())
        .output()
        .expect("the program runs");
    Run {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, text).expect("written");
    }
    folder
}

fn stanch(folder: &Path, args: &[&str]) -> Run {
    run_in(folder, &[&["budget"], args].concat())
}

fn of(files: &[(&str, &str)], options: &Options) -> budget::Report {
    let files: BTreeMap<String, String> = files
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect();
    judged(&files, options).expect("a budget")
}

/// The worked example: it fits at rest and not while both are rolled out.
#[test]
fn each_format_of_the_worked_example() {
    let all = folder(&[
        ("budget.yaml", SERVER),
        ("deploy/web.yaml", WEB),
        ("deploy/jobs.yaml", JOBS),
    ]);
    for format in ["table", "json", "csv", "md", "sarif", "junit", "github"] {
        let run = stanch(all.path(), &["check", ".", "-o", format]);
        assert_eq!((run.code, run.stderr.as_str()), (2, ""), "{run:?}");
        insta::assert_snapshot!(format!("budget.{format}"), run.stdout);
    }
    let explained = stanch(all.path(), &["explain", "."]);
    insta::assert_snapshot!("budget.explain", explained.stdout);
    let began = stanch(all.path(), &["init", "deploy"]);
    insta::assert_snapshot!("budget.init", began.stdout);
    // What init writes is a budget again, of the same sum.
    let text = began
        .stdout
        .replace("100      # isn't known: SHOW max_connections", "200");
    let again = of(&[("budget.yaml", &text)], &Options::default());
    assert_eq!(again.servers[0].applications.at_least, 160);
    // Two of one name are two in it as well; what isn't known stays unknown.
    let twins = folder(&[
        ("web.yaml", WEB),
        (
            "docker-compose.yml",
            "services: { web: { image: web, labels: { stanch.dev/connections: '5' } } }\n",
        ),
        (
            "hidden.yaml",
            &WEB.replace("name: web", "name: hidden").replace(
                "value: \"5\"",
                "valueFrom: { secretKeyRef: { name: s, key: k } }",
            ),
        ),
        (
            "pgbouncer.ini",
            "[databases]\napp = host=h user=app\n[pgbouncer]\n",
        ),
    ]);
    let began = stanch(twins.path(), &["init", "."]);
    std::fs::write(twins.path().join("budget.yaml"), &began.stdout).expect("written");
    let whole = stanch(
        twins.path(),
        &["check", ".", "--json", "--max-connections", "500"],
    );
    let again = stanch(
        twins.path(),
        &[
            "check",
            "budget.yaml",
            "pgbouncer.ini",
            "--json",
            "--max-connections",
            "500",
        ],
    );
    assert_eq!(
        again.json()["servers"][0]["applications"],
        145,
        "{}\n{again:?}",
        began.stdout
    );
    assert_eq!(
        again.json()["unknowns"].as_array().map(Vec::len),
        Some(1),
        "{again:?}"
    );
    assert_eq!(
        whole.code, 65,
        "two objects have the name that the budget gives one: {whole:?}"
    );
    let other = run_in(all.path(), &["explain", "-o", "sarif"]);
    assert_eq!(other.code, 64, "{other:?}");
}

/// The order in which files are named never changes the verdict; a base shows what has changed.
#[test]
fn the_order_of_files_means_nothing() {
    let all = folder(&[
        ("budget.yaml", SERVER),
        ("web.yaml", WEB),
        ("jobs.yaml", JOBS),
        ("old/web.yaml", &WEB.replace("12", "8")),
        ("old/budget.yaml", SERVER),
    ]);
    let orders = [
        ["budget.yaml", "web.yaml", "jobs.yaml"],
        ["jobs.yaml", "web.yaml", "budget.yaml"],
        ["web.yaml", "budget.yaml", "jobs.yaml"],
    ];
    let [first, rest @ ..] =
        orders.map(|order| stanch(all.path(), &[&["check", "--json"], &order[..]].concat()));
    assert_eq!(first.code, 2);
    for run in rest {
        assert_eq!(run, first);
    }
    let md = stanch(
        all.path(),
        &[
            "check",
            "web.yaml",
            "budget.yaml",
            "-o",
            "md",
            "--base",
            "old",
        ],
    );
    assert!(
        md.stdout
            .contains("| steady | 120 | 80 | +40 | 197 | fits |"),
        "{}",
        md.stdout
    );
}

/// What if, and the most that still fits: one more doesn't.
#[test]
fn what_if_and_what_still_fits() {
    let all = folder(&[
        ("budget.yaml", SERVER),
        ("web.yaml", WEB),
        ("jobs.yaml", JOBS),
    ]);
    let run = stanch(all.path(), &["explain", ".", "--json"]);
    let explained = run.json();
    let rows = explained["largest"].as_array().expect("a list");
    assert_eq!(rows.len(), 2);
    for row in rows {
        for factor in ["pods", "processes", "connections"] {
            let most = row[factor].as_u64().expect("a number");
            for (number, fits) in [(most, true), (most + 1, false)] {
                let name = row["workload"].as_str().expect("a name");
                let set = format!("{name}.{factor}={number}");
                let run = stanch(all.path(), &["check", ".", "--set", &set]);
                assert_eq!(run.code < 2, fits, "{set}: {run:?}");
            }
        }
    }
    let least = explained["smallest_max_connections"]["main"]
        .as_u64()
        .expect("a number");
    for (number, fits) in [(least, true), (least - 1, false)] {
        let run = stanch(
            all.path(),
            &["check", ".", "--max-connections", &number.to_string()],
        );
        assert_eq!(run.code < 2, fits, "{number}: {run:?}");
    }
    // A pooler's as well, whether budget.yaml names it or not: 3 × 20 and one more while they are replaced.
    let pooled = folder(&[(
        "pgbouncer.ini",
        "[databases]\napp = host=h user=app\n[pgbouncer]\n",
    )]);
    let sets = [
        "--set",
        "pgbouncer.ini.pods=3",
        "--set",
        "pgbouncer.ini.surge=1",
    ];
    let run = stanch(
        pooled.path(),
        &[
            &["check", ".", "--json", "--max-connections", "100"][..],
            &sets,
        ]
        .concat(),
    );
    let scenarios = &run.json()["servers"][0]["scenarios"];
    assert_eq!(
        (&scenarios[0]["peak"], &scenarios[1]["peak"]),
        (&json!(60), &json!(80)),
        "{run:?}"
    );
    for (args, code) in [
        (&["--max-connections", "500"][..], 0),
        (&["--set", "main.max_connections=500"], 0),
        (&["--set", "jobs.connections=2"], 1),
        (&["--fail-on", "steady"], 1),
        (
            &["--fail-on", "rollout-drain", "--max-connections", "260"],
            2,
        ),
        (&["--set", "webb.pods=4"], 64),
        (&["--set", "web.pods=few"], 64),
        (&["--fail-on", "sometimes"], 64),
    ] {
        let run = stanch(all.path(), &[&["check", "."], args].concat());
        assert_eq!(run.code, code, "{args:?}: {run:?}");
    }
}

/// What isn't known is said, never 0; it fails where that is asked for.
#[test]
fn unknown_stays_unknown() {
    let hidden = WEB.replace(
        "value: \"5\"",
        "valueFrom: { secretKeyRef: { name: s, key: k } }",
    );
    let all = folder(&[
        ("budget.yaml", SERVER),
        ("web.yaml", &hidden),
        ("jobs.yaml", JOBS),
    ]);
    let run = stanch(all.path(), &["check", "."]);
    assert_eq!(run.code, 0, "{run:?}");
    for shown in [
        ">= 40",
        "unknown: RAILS_MAX_THREADS of container app (web.yaml:11)",
        "settled by",
        "budget: unknown",
    ] {
        assert!(run.stdout.contains(shown), "{shown}: {}", run.stdout);
    }
    assert_eq!(stanch(all.path(), &["check", ".", "--strict"]).code, 2);
    let json = stanch(all.path(), &["check", ".", "--json"]).json();
    assert_eq!(
        json["servers"][0]["workloads"][1]["connections"],
        Value::Null
    );
    // Without any limit nothing can be told.
    assert_eq!(stanch(all.path(), &["check", "jobs.yaml"]).code, 3);
}

/// Right answer or one clear error with its place: never a hang, never a panic.
#[test]
fn hostile_input_ends_in_one_clear_error() {
    let bomb = format!(
        "a: &a [x, x, x, x, x, x, x, x, x]\n{}kind: Deployment\n",
        ('b'..='j')
            .map(|c| format!(
                "{c}: &{c} [{}]\n",
                vec![format!("*{}", char::from(c as u8 - 1)); 9].join(", ")
            ))
            .collect::<String>()
    );
    for (name, text, want) in [
        ("bomb.yaml", bomb.as_str(), "bomb.yaml:"),
        ("tabs.yaml", "servers:\n\tmain: {}\n", "tabs.yaml:2"),
        ("twice.yaml", "servers: {}\nservers: {}\n", "twice.yaml:2"),
        (
            "quoted.yaml",
            &WEB.replace("replicas: 12", "replicas: \"3\""),
            "quoted.yaml:5",
        ),
        ("list.yaml", "servers: [a]\n", "list.yaml:1"),
        (
            "key.yaml",
            "servers: { main: { max_connection: 3 } }\n",
            "unknown key \"max_connection\"",
        ),
        (
            "helm.yaml",
            "replicas: {{ .Values.replicas }}\n",
            "helm template",
        ),
        (
            "kustomization.yaml",
            "resources: [web.yaml]\n",
            "kustomize build",
        ),
        ("open.yaml", "a: [\n", "open.yaml:"),
        (
            "target.yaml",
            "servers: { main: { max_connections: 9 } }\nworkloads: { a: { target: mian, connections: 1 } }\n",
            "target.yaml:2",
        ),
        ("deep.yaml", &"[".repeat(100_000), "deep.yaml:"),
        (
            "nothing.yaml",
            "kind: Service\napiVersion: v1\n",
            "no object found",
        ),
        (
            "pgbouncer.ini",
            "[databases]\na = host=h\n[pgbouncer]\ndefault_pool_size = many\n",
            "pgbouncer.ini:4",
        ),
    ] {
        let all = folder(&[(name, text)]);
        let began = std::time::Instant::now();
        let run = stanch(all.path(), &["check", "."]);
        assert!(
            began.elapsed() < std::time::Duration::from_secs(120),
            "{name}"
        );
        assert_eq!(run.code, 65, "{name}: {run:?}");
        assert!(
            run.stdout.is_empty() && run.stderr.contains(want),
            "{name}: {run:?}"
        );
    }
    // Merge keys and anchors are read as they are meant; a circle of folders is walked once; binary files are told.
    let merged = "servers: { main: { max_connections: 100 } }\nworkloads:\n  a: &a { pods: 2, connections: 5 }\n  b: { <<: *a, pods: 3 }\n";
    let report = of(&[("budget.yaml", merged)], &Options::default());
    assert_eq!(report.servers[0].applications.at_least, 25);
    let all = folder(&[("budget.yaml", SERVER), ("web.yaml", WEB)]);
    std::os::unix::fs::symlink(all.path(), all.path().join("again")).expect("a link");
    let once = stanch(all.path(), &["check", ".", "--json"]);
    assert_eq!(once.json()["servers"][0]["applications"], 120, "{once:?}");
    std::fs::write(all.path().join("binary.yaml"), [0_u8, 159, 146, 150]).expect("written");
    let run = stanch(all.path(), &["check", "."]);
    assert_eq!(
        (run.code, run.stderr.contains("binary.yaml")),
        (65, true),
        "{run:?}"
    );
    let large = folder(&[]);
    let file = std::fs::File::create(large.path().join("large.yaml")).expect("a file");
    file.set_len(100 << 20).expect("a size");
    let run = stanch(large.path(), &["check", "."]);
    assert_eq!(
        (run.code, run.stderr.contains("larger than")),
        (65, true),
        "{run:?}"
    );
}

/// The parts of SARIF 2.1.0 that are used, by the words of its schema.
fn sarif_schema() -> Value {
    let text = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"], "additionalProperties": false });
    let region = json!({ "type": "object", "additionalProperties": false, "properties": {
        "startLine": { "type": "integer", "minimum": 1 }, "startColumn": { "type": "integer", "minimum": 1 } } });
    let location = json!({ "type": "object", "additionalProperties": false, "properties": { "physicalLocation": {
        "type": "object", "additionalProperties": false, "properties": {
            "artifactLocation": { "type": "object", "additionalProperties": false, "properties": { "uri": { "type": "string", "format": "uri-reference" } } },
            "region": region } } } });
    let result = json!({ "type": "object", "additionalProperties": false, "required": ["message"], "properties": {
        "ruleId": { "type": "string" }, "ruleIndex": { "type": "integer", "minimum": 0 },
        "level": { "enum": ["none", "note", "warning", "error"] }, "message": text,
        "locations": { "type": "array", "items": location },
        "partialFingerprints": { "type": "object", "additionalProperties": { "type": "string" } } } });
    let rule = json!({ "type": "object", "required": ["id"], "properties": { "id": { "type": "string" }, "shortDescription": text } });
    let driver = json!({ "type": "object", "required": ["name"], "properties": {
        "name": { "type": "string" }, "version": { "type": "string" }, "rules": { "type": "array", "uniqueItems": true, "items": rule } } });
    let run = json!({ "type": "object", "additionalProperties": false, "required": ["tool", "results"], "properties": {
        "tool": { "type": "object", "required": ["driver"], "properties": { "driver": driver } },
        "columnKind": { "enum": ["utf16CodeUnits", "unicodeCodePoints"] },
        "results": { "type": "array", "items": result } } });
    json!({ "type": "object", "additionalProperties": false, "required": ["version", "runs"], "properties": {
        "$schema": { "type": "string", "format": "uri" }, "version": { "const": "2.1.0" },
        "runs": { "type": "array", "items": run } } })
}

#[test]
fn sarif_is_what_readers_expect() {
    let schema = jsonschema::validator_for(&sarif_schema()).expect("a schema");
    let fine = folder(&[
        (
            "budget.yaml",
            "servers: { main: { max_connections: 500 } }\n",
        ),
        ("jobs.yaml", JOBS),
    ]);
    let bad = folder(&[
        ("budget.yaml", SERVER),
        ("a b/\u{e9}.yaml", WEB),
        ("jobs.yaml", JOBS),
        (
            "pgbouncer.ini",
            "[databases]\n* = host=h\n[pgbouncer]\nauth_type = md5\n",
        ),
    ]);
    for (folder, code) in [(&fine, 0), (&bad, 2)] {
        let run = stanch(folder.path(), &["check", ".", "-o", "sarif"]);
        assert_eq!(run.code, code, "{run:?}");
        let found: Vec<String> = schema
            .iter_errors(&run.json())
            .map(|error| error.to_string())
            .collect();
        assert!(found.is_empty(), "{found:?}");
    }
    let run = stanch(fine.path(), &["check", ".", "-o", "sarif"]);
    assert_eq!(run.json()["runs"][0]["results"], json!([]));
}

/// Each rule beyond the sum, at its place; and what is accepted, for a reason and up to a day.
#[test]
fn the_rules_beyond_the_sum() {
    let spec = "servers:
  main: { max_connections: 500, settings: { statement_timeout: 30s, password_encryption: scram-sha-256 } }
workloads:
  api: { pods: 2, connections: 4, pool: { threads: 8, max_lifetime: 30m, balancer_idle_timeout: 10m, acquire_timeout: 30s, request_timeout: 10s, retries: forever } }
  big: { pods: 2, connections: 20, pool: { threads: 8, max_lifetime: 5m, balancer_idle_timeout: 10m, acquire_timeout: 2s, request_timeout: 10s, retries: 3, retry_backoff: exponential with jitter } }
poolers:
  edge: { pgbouncer: pgbouncer.ini, session_features: true }
";
    let ini = "[databases]\napp = host=h user=u\n[pgbouncer]\npool_mode = transaction\nquery_wait_timeout = 0\nserver_idle_timeout = 0\nauth_type = md5\nreserve_pool_size = 5\nreserve_pool_timeout = 0\n";
    let sidekiq = JOBS.replace(
        "command: [sidekiq, -c, \"10\"]",
        "command: [sidekiq, -c, \"10\"], env: [{ name: DB_POOL, value: \"5\" }]",
    );
    let probed = WEB.replace("        - name: app\n", "        - name: app\n          readinessProbe: { exec: { command: [psql, -c, \"SELECT 1\"] } }\n");
    let files = [
        ("budget.yaml", spec),
        ("pgbouncer.ini", ini),
        ("jobs.yaml", &sidekiq),
        ("web.yaml", &probed),
    ];
    let report = of(&files, &Options::default());
    for (rule, at) in [
        ("pool.smaller_than_threads", "budget.yaml:4"),
        ("pool.lifetime", "budget.yaml:4"),
        ("pool.acquire_timeout", "budget.yaml:4"),
        ("retries.unbounded", "budget.yaml:4"),
        ("pool.larger_than_threads", "budget.yaml:5"),
        ("server.timeouts", "budget.yaml:2"),
        ("pooler.transaction_mode", "pgbouncer.ini:4"),
        ("pooler.query_wait", "pgbouncer.ini:5"),
        ("pooler.idle_timeout", "pgbouncer.ini:6"),
        ("pooler.auth", "pgbouncer.ini:7"),
        ("pooler.reserve", "pgbouncer.ini:9"),
        ("pool.smaller_than_threads", "jobs.yaml:9"),
        ("probe.opens_connections", "web.yaml:10"),
    ] {
        let found = report.breaches.iter().any(|breach| {
            breach.rule == rule && breach.at.as_ref().is_some_and(|place| place.words() == at)
        });
        assert!(found, "{rule} at {at}: {:#?}", report.breaches);
    }
    for breach in &report.breaches {
        assert!(
            RULES.iter().any(|(id, _)| *id == breach.rule),
            "{}",
            breach.rule
        );
        let about_big =
            breach.message.starts_with("big:") && breach.rule != "pool.larger_than_threads";
        assert!(!about_big, "{breach:?}");
    }
    let day = |text: &str| chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").expect("a day");
    let accepted = format!(
        "{spec}suppress:\n  - {{ rule: pooler.transaction_mode, reason: advisory locks are gone next month, until: 2027-01-31 }}\n"
    );
    let files = [("budget.yaml", accepted.as_str()), ("pgbouncer.ini", ini)];
    for (today, has, expired) in [("2027-01-31", false, false), ("2027-02-01", true, true)] {
        let options = Options {
            today: Some(day(today)),
            ..Options::default()
        };
        let rules: Vec<&str> = of(&files, &options)
            .breaches
            .iter()
            .map(|b| b.rule)
            .collect();
        assert_eq!(rules.contains(&"pooler.transaction_mode"), has, "{today}");
        assert_eq!(rules.contains(&"suppression.expired"), expired, "{today}");
    }
    // One scenario accepted, another warns: the one that is accepted decides nothing.
    let one = format!(
        "{SERVER}suppress: [{{ rule: budget.over, about: rollout-all, reason: rolled one by one, until: 2099-01-31 }}]\n"
    );
    let all = folder(&[
        ("budget.yaml", one.as_str()),
        ("web.yaml", WEB),
        ("jobs.yaml", JOBS),
    ]);
    let run = stanch(all.path(), &["check", "."]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stdout.contains("accepted until 2099-01-31 budget.over"),
        "{run:?}"
    );
    let unreasoned = [(
        "budget.yaml",
        "servers: { a: { max_connections: 5 } }\nsuppress: [{ rule: budget.over, until: 2027-01-31 }]\n",
    )];
    let files: BTreeMap<String, String> = unreasoned
        .iter()
        .map(|(n, t)| ((*n).to_owned(), (*t).to_owned()))
        .collect();
    assert!(
        judged(&files, &Options::default())
            .expect_err("no reason")
            .what
            .contains("reason")
    );
}

/// The README's commands, on files as it tells of them; what asks a server or another program is tested elsewhere.
#[test]
fn the_commands_of_the_readme() {
    let all = folder(&[
        ("new/budget.yaml", SERVER),
        ("new/deploy/web.yaml", WEB),
        ("new/deploy/jobs.yaml", JOBS),
        ("main/deploy/web.yaml", &WEB.replace("12", "8")),
    ]);
    let readme = include_str!("../../README.md");
    let lines = readme
        .lines()
        .filter_map(|line| line.strip_prefix("$ stanch budget "));
    let mut ran = 0;
    for line in lines.filter(|line| !line.contains("--live")) {
        let command = line.split(" # ").next().unwrap_or(line);
        let command = command.split(" > ").next().unwrap_or(command);
        let words: Vec<&str> = command.split_whitespace().collect();
        let run = stanch(&all.path().join("new"), &words);
        assert!([0, 2, 3].contains(&run.code), "{line}: {run:?}");
        assert!(
            !run.stdout.is_empty() && run.stderr.is_empty(),
            "{line}: {run:?}"
        );
        ran += 1;
    }
    assert!(ran >= 5, "{ran}");
}

/// The README's budget can be read as it stands there, and its schema takes it.
#[test]
fn the_budget_of_the_readme_is_sound() {
    let readme = include_str!("../../README.md");
    let at = readme.find("```yaml\n# budget.yaml").expect("a budget");
    let text = readme[at..].trim_start_matches("```yaml\n");
    let (text, _) = text.split_once("```").expect("its end");
    let schema = jsonschema::validator_for(&budget::schema::budget()).expect("a schema");
    assert!(schema.is_valid(&serde_yaml::from_str(text).expect("yaml")));
    let ini = "[databases]\napp = host=h user=app\n[pgbouncer]\n";
    let report = of(
        &[
            ("budget.yaml", text),
            ("config/sidekiq.yml", ":concurrency: 10\n"),
            ("deploy/pgbouncer.ini", ini),
        ],
        &Options::default(),
    );
    // 24 × 8 + 4 × 10 + 2 × 20.
    assert_eq!(report.servers[0].applications.at_least, 272);
    assert!(report.breaches.is_empty(), "{:#?}", report.breaches);
    let accepted: Vec<&str> = report
        .accepted
        .iter()
        .map(|(breach, _)| breach.rule)
        .collect();
    assert_eq!(accepted, ["pool.larger_than_threads"]);
}
