//! `stanch capture` on real servers: what was captured before a kill, a full disk or a folder taken away is there; no secret
//! survives; and what is replayed is what was seen.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use stanch::bundle::{Bundle, KnownSecrets};
use stanch::drill::{CacheIncident, CacheScene, Incident, find_tool};

use crate::corpus::{PLANTED, Planted};
use crate::deadlocks::find;
use crate::harness::{
    self, REPORTS, Run, admin, bin_dir, client, command, folder, path, run, say, scene, sql,
    stanch_as, stanch_command,
};

/// The only bundle in a folder.
fn only(place: &Path) -> PathBuf {
    let mut all: Vec<PathBuf> = fs::read_dir(place)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("stanch-")
        })
        .collect();
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn from(args: &[&str], bundle: &Path) -> Run {
    let bundle = bundle.display().to_string();
    run(command(&[args, &["--from", &bundle]].concat()))
}

/// Every report says of the first and the last frame what it says of the same snapshot by itself, sealed or not, also with the server gone.
#[tokio::test]
async fn reports_replay_the_first_and_last_frame() {
    let (server, scene) = scene(Incident::LockQueue).await;
    let folder = folder();
    let out = folder.path().display().to_string();
    let spec = admin(&server);
    let args = [
        "capture", "--every", "300ms", "--for", "2s", "--out", &out, "--json",
    ];
    let captured = stanch_as(&spec, &args).expect_code(0).json();
    assert_eq!(captured["why_partial"], Value::Null, "{captured:#}");
    assert!(
        captured["frames"]
            .as_u64()
            .is_some_and(|frames| frames >= 2),
        "{captured:#}"
    );
    drop((scene, server));
    let sealed = only(folder.path());
    assert_eq!(
        sealed.display().to_string(),
        captured["path"].as_str().expect("a path")
    );
    let unpacked = folder.path().join("unpacked");
    fs::create_dir(&unpacked).expect("a folder");
    let decoder = zstd::Decoder::new(fs::File::open(&sealed).expect("it")).expect("zstd");
    tar::Archive::new(decoder)
        .unpack(&unpacked)
        .expect("unpacked");
    let root = only(&unpacked);
    let bundle = Bundle::open(&sealed).expect("a bundle");
    // The first and the last; those between are no other.
    let (first, last) = (bundle.frames().first(), bundle.frames().last());
    for frame in first.into_iter().chain(last) {
        let number = frame.number.to_string();
        for report in REPORTS {
            for format in [&[][..], &["--json"], &["--check"]] {
                let args = [report, format].concat();
                let single = from(&args, &root.join(&frame.path));
                assert!(
                    !single.stdout.is_empty() && single.code <= 2,
                    "{args:?}: {single:?}"
                );
                for bundle in [&sealed, &root] {
                    let replay = from(&[&args[..], &["--at", &number]].concat(), bundle);
                    assert_eq!(replay.stdout, single.stdout, "{args:?}");
                    assert_eq!(
                        (replay.code, replay.stderr.as_str()),
                        (single.code, ""),
                        "{args:?}"
                    );
                }
            }
        }
    }
    let counted = from(&["pg", "deadlocks", "--json"], &sealed);
    assert_eq!(
        counted.json()["schema"],
        "stanch.deadlock_counters/1",
        "{counted:?}"
    );
    let verified = run(command(&[
        "bundle",
        "verify",
        &sealed.display().to_string(),
    ]));
    assert!(verified.expect_code(0).stdout.contains("as it was sealed"));
    let book = ["runbook", "run", "lock-pileup", "--at", "worst"];
    let walked = from(&book, &sealed);
    assert!(!walked.stderr.contains("no server"), "{walked:?}");
    assert!([0, 2, 4, 6].contains(&walked.code), "{walked:?}");
}

/// Killed at any moment, what has a name is whole.
#[tokio::test]
async fn killed_at_any_moment() {
    let server = harness::server(&[]).await;
    let spec = server.spec(server.superuser(), "postgres");
    // How many frames are there, and how many milliseconds after that it is killed; `None`: as soon as there is a folder.
    let moments = [
        (None, 0),
        (Some(0), 0),
        (Some(0), 20),
        (Some(1), 0),
        (Some(1), 30),
        (Some(2), 11),
        (Some(3), 47),
        (Some(5), 0),
        (Some(8), 23),
    ];
    for (frames, wait) in moments {
        let folder = folder();
        let out = folder.path().display().to_string();
        let mut capture = stanch_command(&spec, &["capture", "--every", "50ms", "--out", &out]);
        capture.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = capture.spawn().expect("it runs");
        let root = loop {
            let there = fs::read_dir(folder.path()).expect("a folder").next();
            match there {
                Some(entry) => break entry.expect("an entry").path(),
                None => tokio::time::sleep(Duration::from_millis(2)).await,
            }
        };
        if let Some(frames) = frames {
            harness::eventually("so many frames", || {
                Bundle::open(&root).is_ok_and(|bundle| bundle.frames().len() >= frames)
            })
            .await;
        }
        tokio::time::sleep(Duration::from_millis(wait)).await;
        child.kill().expect("killed");
        child.wait().expect("gone");
        let bundle = match Bundle::open(&root) {
            Ok(bundle) => bundle,
            // Before the first file had its name.
            Err(error) => {
                assert!(frames.is_none(), "{frames:?}: {error}");
                continue;
            }
        };
        assert!(
            bundle
                .why_partial()
                .is_some_and(|why| why.contains("cut off"))
        );
        assert!(bundle.frames().len() >= frames.unwrap_or(0), "{frames:?}");
        bundle
            .each_frame(&mut |_, frame| drop(frame.expect("a frame")))
            .expect("every frame is whole");
        if !bundle.frames().is_empty() {
            let told = from(&["triage", "--json"], &root);
            assert!(told.stderr.contains("a partial bundle"), "{told:?}");
            assert_eq!(told.json()["schema"], "stanch.triage/1");
            let sealed = run(command(&["bundle", "seal", &root.display().to_string()]));
            assert_eq!(sealed.code, 3, "{sealed:?}");
            assert!(sealed.stderr.contains("a partial bundle"), "{sealed:?}");
        }
    }
}

/// A disk of its own that is full soon. As root only, and where mounting is allowed.
struct Disk(PathBuf);

impl Disk {
    fn mount(at: PathBuf, size: &str) -> Option<Self> {
        fs::create_dir(&at).expect("a folder");
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(&at);
        let done = mount.stderr(Stdio::null()).status();
        done.is_ok_and(|status| status.success())
            .then_some(Self(at))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[tokio::test]
async fn a_full_disk() {
    let place = folder();
    let Some(disk) = Disk::mount(place.path().join("disk"), "128k") else {
        say("no file system can be mounted here: a full disk is left out");
        return;
    };
    let server = harness::server(&[]).await;
    let spec = server.spec(server.superuser(), "postgres");
    let out = disk.0.display().to_string();
    let args = [
        "capture", "--every", "50ms", "--for", "5s", "--out", &out, "--json",
    ];
    let capture = stanch_as(&spec, &args);
    assert_eq!(capture.code, 3, "{capture:?}");
    assert_eq!(
        capture.stderr.matches("frame: not written").count(),
        1,
        "{capture:?}"
    );
    let root = only(&disk.0);
    let bundle = Bundle::open(&root).expect("a bundle");
    let why = bundle.why_partial().expect("partial");
    assert!(why.contains("couldn't be written"), "{why}");
    assert!(!bundle.frames().is_empty() && !bundle.gaps().is_empty());
    bundle
        .each_frame(&mut |_, frame| drop(frame.expect("a frame")))
        .expect("every frame is whole");
    assert_eq!(capture.json()["frames"], bundle.frames().len());
    from(&["pg", "connections"], &root).expect_code(0);
}

#[tokio::test]
async fn a_folder_that_is_removed() {
    let server = harness::server(&[]).await;
    let spec = server.spec(server.superuser(), "postgres");
    let place = folder();
    let out = place.path().join("in/here");
    let shown = out.display().to_string();
    let mut capture = stanch_command(
        &spec,
        &["capture", "--every", "50ms", "--out", &shown, "--json"],
    );
    capture.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = capture.spawn().expect("it runs");
    let frames = |root: &Path| fs::read_dir(root.join("frames")).map_or(0, Iterator::count);
    let has_frames = || {
        fs::read_dir(&out)
            .is_ok_and(|mut all| all.any(|root| root.is_ok_and(|root| frames(&root.path()) > 3)))
    };
    harness::eventually("a few frames", has_frames).await;
    // What is written meanwhile makes a folder that isn't empty.
    let gone = place.path().join("in");
    harness::eventually("it is removed", || fs::remove_dir_all(&gone).is_ok()).await;
    harness::eventually("a few more", has_frames).await;
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a signal");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let bundle = Bundle::open(&only(&out)).expect("a bundle");
    assert!(bundle.frames().len() > 3, "{}", bundle.frames().len());
    assert_eq!(bundle.frames()[0].number, 1);
    assert!(
        bundle.gaps()[0].why.contains("written again"),
        "{:?}",
        bundle.gaps()
    );
    bundle
        .each_frame(&mut |_, frame| drop(frame.expect("a frame")))
        .expect("every frame is whole");
}

/// No server at all: a bundle without a frame, which says so.
#[tokio::test]
async fn a_server_that_is_gone() {
    let place = folder();
    let out = place.path().display().to_string();
    let args = [
        "capture",
        "--json",
        "--out",
        &out,
        "-h",
        "/nonexistent",
        "-p",
        "5999",
    ];
    let capture = run(command(&args));
    assert_eq!(capture.code, 3, "{capture:?}");
    let told = capture.json();
    assert_eq!(
        (&told["frames"], &told["why_partial"]),
        (&0.into(), &"the server was never read".into())
    );
    assert_eq!(told["gaps"][0]["what"], "frame");
    let bundle = only(place.path());
    let shown = run(command(&["bundle", "show", &bundle.display().to_string()])).expect_code(0);
    assert!(
        shown.stdout.contains("the server was never read"),
        "{shown:?}"
    );
    assert_eq!(from(&["triage"], &bundle).code, 65);
}

/// Round after round away for one reason: told once, and how often.
#[tokio::test]
async fn a_server_that_stays_away_is_told_once() {
    let place = folder();
    let out = place.path().display().to_string();
    let capture = run(command(&[
        "capture",
        "--every",
        "100ms",
        "--for",
        "1s",
        "--out",
        &out,
        "-h",
        "/nonexistent",
        "-p",
        "5999",
    ]));
    assert_eq!(capture.code, 3, "{capture:?}");
    let told = capture.stderr.matches("/nonexistent").count();
    let again = capture.stderr.matches("the same").count();
    assert!(told < 4 && again == 1, "{}", capture.stderr);
    let none = run(command(&["capture", "--for", "0", "--out", &out]));
    assert_eq!(none.code, 64, "{none:?}");
    let bundle = only(place.path()).display().to_string();
    let seal = run(command(&["bundle", "seal", &bundle, "--allow", "nope=x"]));
    assert_eq!(seal.code, 64, "{seal:?}");
    assert!(seal.stderr.contains("values-in-statement"), "{seal:?}");
}

/// A login that is called as its schema is, and spelt in another case: the capture is sealed, whatever the key.
#[tokio::test]
async fn tokens_stand_in_statements() {
    let server = harness::server(&[]).await;
    let spec = server.spec(server.superuser(), "postgres");
    let boss = client(&spec, "boss").await;
    sql(
        &boss,
        "CREATE ROLE storefront LOGIN; CREATE SCHEMA storefront",
    )
    .await;
    sql(
        &boss,
        "CREATE TABLE storefront.orders (); GRANT ALL ON SCHEMA storefront TO storefront",
    )
    .await;
    sql(&boss, "GRANT ALL ON storefront.orders TO storefront").await;
    let mut all = Vec::new();
    for statement in [
        "select count(*) from storefront.orders",
        "select count(*) from STOREFRONT.orders",
        "select count(*) from \"storefront\".orders as Storefront",
    ] {
        let one = client(&server.spec("storefront", "postgres"), "web").await;
        sql(&one, statement).await;
        all.push(one);
    }
    let state = folder();
    for _ in 0..6 {
        let place = folder();
        let out = place.path().display().to_string();
        let mut capture = stanch_command(&spec, &["capture", "--tokens", "--out", &out]);
        capture.env("XDG_STATE_HOME", state.path());
        run(capture).expect_code(0);
        let text = text_of(&only(place.path()));
        assert!(text.contains("select count(*) from user_"), "{text}");
        assert!(!text.to_lowercase().contains("storefront"), "{text}");
    }
}

/// No slot for anybody is a frame as well.
#[tokio::test]
async fn a_full_server() {
    let (server, scene) = scene(Incident::Exhaustion).await;
    let place = folder();
    let out = place.path().display().to_string();
    let app = server.spec("app_rw", "shop");
    let capture = stanch_as(
        &app,
        &["capture", "--json", "--wait-slot", "0s", "--out", &out],
    );
    assert_eq!(capture.code, 3, "{capture:?}");
    assert_eq!(capture.json()["frames"], 1);
    drop((scene, server));
    let triage = from(&["triage", "--json"], &only(place.path())).expect_code(2);
    assert_eq!(triage.json()["findings"][0]["id"], "conn.exhausted");
}

/// All that is in a bundle, unpacked.
fn text_of(bundle: &Path) -> String {
    let decoder = zstd::Decoder::new(fs::File::open(bundle).expect("it")).expect("zstd");
    let mut text = String::new();
    for entry in tar::Archive::new(decoder).entries().expect("entries") {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut entry.expect("an entry"), &mut bytes).expect("bytes");
        text.push_str(&String::from_utf8(bytes).expect("UTF-8"));
    }
    text
}

fn assert_none_of_them(text: &str, planted: &[Planted]) {
    // Short ones stand in any text by chance.
    let all = planted.iter().map(|secret| (secret.name, secret.secret));
    let known = KnownSecrets::new(all);
    for line in text.lines() {
        assert_eq!(known.find(line), None, "{line}");
    }
}

/// Every secret of the corpus as a statement or an application_name of a session: PostgreSQL keeps the last statement of an
/// idle session, also of one that failed.
#[tokio::test]
async fn no_secret_survives_a_real_server() {
    // With a log that has all of them, in a form that is easily read.
    let server = harness::server(&[
        ("max_connections", "300"),
        ("track_activity_query_size", "4096"),
        ("logging_collector", "on"),
        ("log_destination", "csvlog,stderr"),
        ("log_directory", "log"),
        ("log_filename", "pg.log"),
        ("log_statement", "all"),
        ("log_lock_waits", "on"),
        ("log_line_prefix", "%m [%p] %q%u@%d/%a "),
    ])
    .await;
    let spec = server.spec(server.superuser(), "postgres");
    let mut all = Vec::new();
    for secret in PLANTED {
        // A bare word that became a name is one: nothing can tell.
        if secret.text == "SET application_name = hunter2x" {
            continue;
        }
        let client = client(&spec, "x").await;
        if secret.place.is_statement() {
            let _ = client.batch_execute(secret.text).await;
        } else {
            // PostgreSQL makes `?` of whatever isn't ASCII: then it is another text.
            if !secret.text.is_ascii() {
                continue;
            }
            let name: String = secret.text.chars().filter(|c| !c.is_control()).collect();
            let quoted = name.replace('\'', "''");
            sql(
                &client,
                &format!("SET application_name = E'{}'", quoted.replace('\\', "\\\\")),
            )
            .await;
        }
        all.push(client);
    }
    let place = folder();
    let out = place.path().display().to_string();
    stanch_as(&spec, &["capture", "--out", &out]).expect_code(0);
    let text = text_of(&only(place.path()));
    assert!(text.contains("\"query\""), "the sessions are in it");
    assert_none_of_them(&text, PLANTED);
    // The same with the server's logs, which hold every statement as it was.
    for ending in ["log", "csv"] {
        let log = find(server.folder(), &format!("pg.{ending}")).expect("a log");
        let written = fs::read(&log).expect("a log");
        assert!(
            String::from_utf8_lossy(&written).contains("hunter2x"),
            "the log has them"
        );
        let place = folder();
        let out = place.path().display().to_string();
        let log = log.display().to_string();
        let args = ["capture", "--out", &out, "--log", &log, "--json"];
        let captured = stanch_as(&spec, &args);
        assert!([0, 3].contains(&captured.code), "{captured:?}");
        assert_none_of_them(&captured.stdout, PLANTED);
        assert_none_of_them(&text_of(&only(place.path())), PLANTED);
    }
    // What is shown live is what would be saved.
    for report in REPORTS {
        let live = stanch_as(&spec, &[report, &["--json"]].concat());
        assert_none_of_them(&live.stdout, PLANTED);
    }
    assert_none_of_them(
        &stanch_as(&spec, &["query", "run", "activity"]).stdout,
        PLANTED,
    );
    // Unredacted, it is loud, and what carries a password isn't in it even so.
    let loud = folder();
    let out = loud.path().display().to_string();
    let run = stanch_as(
        &spec,
        &["capture", "--out", &out, "--unredacted", "--no-seal"],
    );
    assert!(run.stderr.contains("--unredacted"), "{run:?}");
    let root = only(loud.path());
    assert!(root.display().to_string().contains("UNREDACTED"));
    let told = from(&["triage"], &root);
    assert!(told.stderr.contains("isn't redacted"), "{told:?}");
    drop(all);
}

/// A long log is read last, and a person can end it: what was captured before is kept and sealed.
#[tokio::test]
async fn a_log_that_is_ended_by_hand() {
    let server = harness::server(&[]).await;
    let spec = server.spec(server.superuser(), "postgres");
    let place = folder();
    let log = place.path().join("long.log.zst");
    let mut packed = zstd::Encoder::new(fs::File::create(&log).expect("a file"), 1).expect("zstd");
    let chunk = "2099-01-01 00:00:00.000 UTC [7] LOG:  checkpoint complete\n".repeat(40_000);
    for _ in 0..2000 {
        packed.write_all(chunk.as_bytes()).expect("written");
    }
    packed.finish().expect("written");
    let out = place.path().join("out");
    let (shown, log) = (out.display().to_string(), log.display().to_string());
    let args = [
        "capture", "--out", &shown, "--log", &log, "--log", &log, "--json",
    ];
    let mut capture = stanch_command(&spec, &args);
    capture.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = capture.spawn().expect("it runs");
    harness::eventually("a frame", || {
        fs::read_dir(&out).is_ok_and(|mut all| {
            all.any(|root| {
                let frames = root.expect("an entry").path().join("frames");
                fs::read_dir(frames).is_ok_and(|mut frames| frames.next().is_some())
            })
        })
    })
    .await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let asked = Instant::now();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a signal");
    let output = child.wait_with_output().expect("it ends");
    assert!(
        asked.elapsed() < Duration::from_secs(60),
        "{:?}",
        asked.elapsed()
    );
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let bundle = Bundle::open(&only(&out)).expect("a bundle");
    assert!(bundle.is_sealed() && bundle.frames().len() == 1);
    let told: Vec<&str> = bundle.gaps().iter().map(|gap| gap.why.as_str()).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told.iter().all(|why| why.ends_with("stopped by hand")),
        "{told:?}"
    );
}

/// What the way to the server needs is known to whoever looks at the bundle later, too.
#[tokio::test]
async fn a_password_of_pgpass_is_never_sealed() {
    let server = harness::server(&[]).await;
    let spec = server.spec(server.superuser(), "postgres");
    let _app = client(&spec, "web-blue-harbour").await;
    let place = folder();
    let out = place.path().display().to_string();
    stanch_as(&spec, &["capture", "--out", &out, "--no-seal"]).expect_code(0);
    let root = only(place.path()).display().to_string();
    let pass = place.path().join("pass");
    fs::write(&pass, "").expect("written");
    // Of a file no folder can be made.
    let file = pass.display().to_string();
    let wrong = stanch_as(&spec, &["capture", "--out", &file]).expect_code(64);
    assert!(wrong.stderr.contains("that is a file"), "{wrong:?}");
    let told = |args: &[&str], password: &str| {
        let line = format!("*:{}:*:*:{password}\n", spec.port);
        fs::write(&pass, line).expect("written");
        fs::set_permissions(&pass, fs::Permissions::from_mode(0o600)).expect("a mode");
        let mut command = command(&[&["bundle"], args].concat());
        command.env("PGPASSFILE", &pass);
        run(command)
    };
    let seal = ["seal", &root, "--out", &format!("{root}.tar.zst")];
    for args in [&seal[..], &["verify", &root]] {
        let refused = told(args, "blue-harbour").expect_code(2);
        let all = format!("{}{}", refused.stdout, refused.stderr);
        assert!(
            all.contains("known-secret (password of the connection)"),
            "{all}"
        );
        assert!(!all.contains("blue-harbour"), "{all}");
    }
    told(&seal, "another-one").expect_code(0);
}

/// Each report of Redis, live and replayed: a saved one and those of a capture.
#[tokio::test]
async fn reports_of_redis_replay() {
    let Some(redis) = find_tool(&path(), "redis-server") else {
        say("there is no redis-server here: left out");
        return;
    };
    let database = harness::server(&[]).await;
    let spec = database.spec(database.superuser(), "postgres");
    for incident in CacheIncident::ALL {
        let scene = CacheScene::set(incident, &redis, &bin_dir())
            .await
            .expect("a scene");
        let url = scene.redis_url();
        let place = folder();
        let mut seen = Vec::new();
        for (report, options) in [
            ("info", &["--sample", "50ms"][..]),
            ("hotkeys", &[]),
            ("bigkeys", &[]),
            ("expiry", &[]),
            ("stampede", &["--listen", "50ms"]),
            ("queues", &[]),
        ] {
            for format in [&[][..], &["--json"]] {
                let file = place
                    .path()
                    .join(format!("{}.json", seen.len()))
                    .display()
                    .to_string();
                let args = [&["redis", report], format].concat();
                let read = [&args[..], options, &["--redis", &url, "--save", &file]].concat();
                let live = run(command(&read));
                assert!(
                    live.code <= 3 && !live.stdout.is_empty(),
                    "{read:?}: {live:?}"
                );
                seen.push((
                    args.iter().map(ToString::to_string).collect::<Vec<_>>(),
                    file,
                    live,
                ));
            }
        }
        let file = place.path().join("triage.json").display().to_string();
        // Without a URL it is that of the environment; without --redis none is looked at.
        let of_environment = |args: &[&str]| {
            let mut command = stanch_command(&spec, args);
            command.env("REDIS_URL", &url);
            run(command)
        };
        assert!(!of_environment(&["triage"]).stdout.contains("Redis"));
        let live = of_environment(&["triage", "--save", &file, "--redis"]);
        assert!(live.stdout.contains("Redis"), "{live:?}");
        seen.push((vec!["triage".into()], file, live));
        let out = place.path().display().to_string();
        let captured = of_environment(&["capture", "--redis", "--out", &out, "--json"]);
        drop(scene);
        for (args, file, live) in &seen {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let replay = run(command(&[&args[..], &["--from", file]].concat()));
            assert_eq!(
                (&replay.stdout, replay.code),
                (&live.stdout, live.code),
                "{args:?}"
            );
        }
        let bundle = only(place.path());
        let gaps = captured.json()["gaps"].clone();
        for report in ["info", "hotkeys", "bigkeys", "expiry", "stampede", "queues"] {
            let shown = from(&["redis", report, "--json"], &bundle);
            if gaps.to_string().contains(&format!("redis {report}")) {
                assert_eq!(shown.code, 65, "{report}: {shown:?}");
            } else {
                assert_eq!(
                    shown.json()["schema"],
                    format!("stanch.{report}/1"),
                    "{captured:?}"
                );
            }
        }
        assert!(
            from(&["triage"], &bundle).stdout.contains("Redis"),
            "{captured:?}"
        );
    }
}
