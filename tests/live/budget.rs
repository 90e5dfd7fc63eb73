//! The budget against what really is: PgBouncer's pools driven to their limit, and a design against a running server.

use std::process::Child;
use std::time::{Duration, Instant};

use stanch::budget::Input;
use stanch::budget::sources::pgbouncer;
use stanch::drill::{Incident, Server, find_tool};
use stanch::source::postgres::ConnSpec;
use tokio::task::JoinSet;

use crate::harness::{
    admin, client, command, folder, path, run, scene, server, sql, stanch_command,
};

struct Pooler(Child);

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const USERS: [&str; 3] = ["a", "b", "c"];

/// Starts PgBouncer with these settings and databases; its file comes back as well.
async fn pooler(
    server: &Server,
    n: u16,
    databases: &str,
    settings: &str,
) -> (Pooler, ConnSpec, Input) {
    let program = find_tool(&path(), "pgbouncer").expect("PgBouncer; `make servers` installs it");
    let port = server.port() + 1 + n;
    let databases: String = databases
        .lines()
        .map(|line| {
            format!(
                "{} host={} port={}\n",
                line.trim(),
                server.folder().display(),
                server.port()
            )
        })
        .collect();
    let users: String = USERS
        .iter()
        .map(|user| format!("\"{user}\" \"\"\n"))
        .collect();
    let users = server
        .write_file(&format!("users-{n}.txt"), &users)
        .expect("a file");
    let text = format!(
        "[databases]\n{databases}[pgbouncer]\nlisten_addr =\nlisten_port = {port}\nunix_socket_dir = {}\nauth_type = trust\n\
         auth_file = {}\npool_mode = session\nmax_client_conn = 400\n{settings}\n",
        server.folder().display(),
        users.display()
    );
    let ini = server
        .write_file(&format!("bouncer-{n}.ini"), &text)
        .expect("a file");
    let child = server
        .spawn_beside(
            &program,
            &[&ini.display().to_string()],
            &format!("bouncer-{n}.log"),
        )
        .expect("PgBouncer starts");
    let spec = ConnSpec {
        port,
        ..server.spec("a", "one")
    };
    let pooler = Pooler(child);
    let give_up = Instant::now() + Duration::from_secs(10);
    while stanch::drill::connect(&spec, "").await.is_err() {
        assert!(Instant::now() < give_up, "PgBouncer doesn't come up");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let input = Input {
        path: ini.display().to_string(),
        text,
    };
    (pooler, spec, input)
}

/// Server connections through the pooler, once no more come.
async fn at_most(server: &Server, spec: &ConnSpec, databases: &[&str]) -> u64 {
    let mut clients = JoinSet::new();
    // More than any pool of these tests holds; one after the other at first, so that a limit over several is shared by them.
    for round in 0..12 {
        for database in databases {
            for user in USERS {
                let spec = ConnSpec {
                    user: user.into(),
                    database: (*database).into(),
                    ..spec.clone()
                };
                let (told, served) = tokio::sync::oneshot::channel();
                clients.spawn(async move {
                    // It holds what it gets, or waits for what it doesn't.
                    if let Ok(client) = stanch::drill::connect(&spec, "held").await {
                        let _ = client.simple_query("SELECT 1").await;
                        let _ = told.send(());
                        std::future::pending::<()>().await;
                    }
                });
                if round == 0 {
                    let _ = tokio::time::timeout(Duration::from_secs(5), served).await;
                }
            }
        }
    }
    let watcher = client(&server.spec("postgres", "postgres"), "watcher").await;
    let count = "SELECT count(*) FROM pg_stat_activity WHERE usename IN ('a', 'b', 'c')";
    let (mut most, mut since) = (0, Instant::now());
    // The reserve comes only after its timeout of a second.
    while since.elapsed() < Duration::from_secs(8) {
        let now: i64 = watcher.query_one(count, &[]).await.expect("a count").get(0);
        if now > most {
            (most, since) = (now, Instant::now());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    clients.abort_all();
    u64::try_from(most).expect("a count")
}

/// What is counted at the limit is what was computed, for each kind of limit and for several at once.
#[tokio::test]
async fn pools_driven_to_their_limit() {
    let server = server(&[("max_connections", "200")]).await;
    let boss = client(&server.spec("postgres", "postgres"), "boss").await;
    for user in USERS {
        sql(&boss, &format!("CREATE ROLE {user} LOGIN")).await;
    }
    for database in ["one", "two"] {
        sql(&boss, &format!("CREATE DATABASE {database}")).await;
    }
    let both = "one = dbname=one\ntwo = dbname=two";
    for (n, (databases, settings, predicted)) in [
        // Two databases × three users × 3.
        (both, "default_pool_size = 3", 18),
        // The database's own size wins: 5 × 3 + 2 × 3.
        (
            "one = dbname=one pool_size=5\ntwo = dbname=two",
            "default_pool_size = 2",
            21,
        ),
        // One login for all of a database is one pool: 4 + 3 × 4.
        (
            "one = dbname=one user=a\ntwo = dbname=two",
            "default_pool_size = 4",
            16,
        ),
        // The reserve is each pool's: 6 × (2 + 1).
        (
            both,
            "default_pool_size = 2\nreserve_pool_size = 1\nreserve_pool_timeout = 1",
            18,
        ),
        // 0 switches the reserve off.
        (
            both,
            "default_pool_size = 2\nreserve_pool_size = 1\nreserve_pool_timeout = 0",
            12,
        ),
        // Over a database: 7 + 7 of 9 + 9.
        (both, "default_pool_size = 3\nmax_db_connections = 7", 14),
        // Over a user: 3 × 4 of 3 × 6.
        (both, "default_pool_size = 3\nmax_user_connections = 4", 12),
        // Both: one database at most 2, each user at most 4: 2 + (at most 3 a user in the other) 9 = 11, users bound 12.
        (
            "one = dbname=one max_db_connections=2\ntwo = dbname=two",
            "default_pool_size = 3\nmax_user_connections = 4",
            11,
        ),
        // A user's own limit: 2 of 6, and 6 each for the two others.
        (
            both,
            "default_pool_size = 3\n[users]\na = max_user_connections=2",
            14,
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let (_pooler, spec, input) = pooler(
            &server,
            u16::try_from(n).expect("small"),
            databases,
            settings,
        )
        .await;
        let files = |path: &str| std::fs::read_to_string(path).ok();
        let read = pgbouncer::read(&input, &files)
            .expect("read")
            .expect("it is PgBouncer's");
        let (cap, _, unknown) = read.cap().expect("a cap");
        assert_eq!(
            (cap.at_least, unknown),
            (predicted, None),
            "{databases}\n{settings}"
        );
        let counted = at_most(&server, &spec, &["one", "two"]).await;
        assert_eq!(counted, predicted, "{databases}\n{settings}");
        drop(_pooler);
        let gone = "SELECT count(*) = 0 FROM pg_stat_activity WHERE usename IN ('a', 'b', 'c')";
        stanch::drill::until(&boss, gone)
            .await
            .expect("they go with it");
    }
}

/// The design against the running server, and the same on what was kept of it.
#[tokio::test]
async fn a_design_against_a_running_server() {
    let (server, _scene) = scene(Incident::Exhaustion).await;
    let spec = admin(&server);
    let files = folder();
    let write = |text: &str| {
        std::fs::write(files.path().join("budget.yaml"), text).expect("written");
    };
    let path = files.path().display().to_string();
    let check = |more: &[&str]| {
        let all = [&["budget", "check", &path, "--json"], more].concat();
        run(stanch_command(&spec, &all))
    };
    // As it is: 20 of 23, and each application with what it has.
    write(
        "servers: { main: { max_connections: 23, warn_at: 100% } }\nworkloads:\n  web: { pods: 12, connections: 1 }\n  worker: { pods: 6, connections: 1 }\n  reports: { pods: 2, connections: 1 }\n",
    );
    let fits = check(&["--live"]);
    assert_eq!(fits.code, 0, "{fits:?}");
    let told = fits.json();
    let web = told["live"]["workloads"]
        .as_array()
        .and_then(|rows| rows.iter().find(|row| row["workload"] == "web"))
        .unwrap_or_else(|| panic!("no row of web: {told}"));
    assert_eq!(web["connected"], 12, "{told}");
    // Another limit than designed, more than designed, and somebody whom nobody designed.
    write(
        "servers: { main: { max_connections: 30, warn_at: 100%, roles: { worker: 7 } } }\nworkloads:\n  web: { pods: 4, connections: 1 }\n  worker: { pods: 6, connections: 1 }\n",
    );
    let saved = files.path().join("kept.json").display().to_string();
    let drifted = check(&["--live", "--save", &saved]);
    assert_eq!(drifted.code, 1, "{drifted:?}");
    let json = drifted.json();
    let breaches: Vec<&str> = json["breaches"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|breach| breach["message"].as_str())
        .collect();
    for said in [
        "max_connections is 23, designed 30",
        "web has 12 connections, designed at most 4",
        "role worker has no limit, designed 7",
        "2 connections are nobody's of the budget (reports)",
    ] {
        assert!(
            breaches.iter().any(|message| message.contains(said)),
            "{said}: {breaches:?}"
        );
    }
    let mut replayed = command(&[
        "budget",
        "check",
        &files.path().join("budget.yaml").display().to_string(),
        "--json",
        "--from",
        &saved,
    ]);
    replayed.current_dir("/");
    let replayed = run(replayed);
    assert_eq!(
        (&replayed.stdout, replayed.code),
        (&drifted.stdout, drifted.code)
    );
}
