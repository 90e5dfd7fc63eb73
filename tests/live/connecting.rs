//! The ways in, each taken by psql and by `stanch doctor` on the same servers: the same login, database, server and TLS,
//! or a refusal by both.
//!
//! psql runs with the newest libpq that there is (`STANCH_TEST_LIBPQ`, which `make test` provides), so that parameters of
//! PostgreSQL 16 to 18 are compared too; without it those rows are left out, and that is said.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use stanch::drill::{Server, ServerOptions};

use crate::harness::{self, client, folder, run, sql};
use crate::pki::Pki;

/// One input: options, environment and files of the home folder, and what both programs shall make of it.
struct Row {
    args: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
    /// Path in the home folder, content, mode.
    files: &'static [(&'static str, &'static str, u32)],
    /// libpq knows it from this version on.
    libpq: u32,
    want: Want,
}

enum Want {
    /// Both get in, and tell the same.
    In,
    /// Both get in, and this is what they tell: `user|database|port|TLS|client certificate`.
    As(&'static str),
    /// Neither gets in; a word of each.
    Out(&'static str, &'static str),
}

use Want::{As, In, Out};

const fn row(args: &'static [&'static str], want: Want) -> Row {
    Row {
        args,
        env: &[],
        files: &[],
        libpq: 0,
        want,
    }
}

const fn env(
    args: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
    want: Want,
) -> Row {
    Row {
        env,
        ..row(args, want)
    }
}

const fn files(
    args: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
    files: &'static [(&'static str, &'static str, u32)],
    want: Want,
) -> Row {
    Row {
        args,
        env,
        files,
        libpq: 0,
        want,
    }
}

const fn since(libpq: u32, args: &'static [&'static str], want: Want) -> Row {
    Row {
        libpq,
        ..row(args, want)
    }
}

/// The places that rows name in braces.
struct Places(Vec<(&'static str, String)>);

impl Places {
    fn fill(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (name, value)| {
            text.replace(name, value)
        })
    }
}

fn libpq() -> Option<PathBuf> {
    std::env::var_os("STANCH_TEST_LIBPQ").map(PathBuf::from)
}

/// psql as it is, without the wrapper that some distributions put before it.
fn psql() -> PathBuf {
    let beside = harness::bin_dir().join("psql");
    if beside.exists() {
        beside
    } else {
        "psql".into()
    }
}

fn prepare(mut command: Command, row: &Row, places: &Places, home: &Path) -> Command {
    command
        .args(row.args.iter().map(|arg| places.fill(arg)))
        .env("HOME", home)
        .env("PGCONNECT_TIMEOUT", "10");
    for (name, value) in row.env {
        command.env(name, places.fill(value));
    }
    command
}

const TELL: &str = "SELECT pg_catalog.concat_ws('|', current_user, current_database(), current_setting('port'), \
    (SELECT coalesce(version, '-') || '|' || coalesce(length(client_dn) > 0, false) FROM pg_stat_ssl \
      WHERE pid = pg_backend_pid()))";

fn by_psql(row: &Row, places: &Places, home: &Path) -> Result<String, String> {
    let mut command = Command::new(psql());
    command
        .env_clear()
        .env("PATH", harness::path())
        .args(["-X", "-A", "-t", "-q", "-w", "-c", TELL]);
    if let Some(folder) = libpq() {
        command.env("LD_LIBRARY_PATH", folder);
    }
    let output = prepare(command, row, places, home)
        .output()
        .expect("psql runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(text(&output.stderr))
    }
}

fn by_stanch(row: &Row, places: &Places, home: &Path) -> Result<String, String> {
    let command = harness::command(&["doctor", "--json", "--wait-slot", "0s"]);
    let run = run(prepare(command, row, places, home));
    if run.code > 1 {
        return Err(run.stderr);
    }
    let report = run.json();
    let (target, tls) = (&report["target"], &report["link"]["tls"]);
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    Ok([
        text(&target["user"]),
        text(&target["database"]),
        target["port"].to_string(),
        text(&tls["version"]),
        tls["client_certificate"]
            .as_bool()
            .unwrap_or(false)
            .to_string(),
    ]
    .join("|"))
}

/// Takes every way by both programs; all faults are told together.
fn compare(rows: &[Row], places: &Places) {
    let mut faults = Vec::new();
    let mut left_out = 0;
    for row in rows {
        if row.libpq > 15 && libpq().is_none() {
            left_out += 1;
            continue;
        }
        let home = folder();
        for (path, content, mode) in row.files {
            let path = home.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            match content.strip_prefix("copy of ") {
                Some(from) => std::fs::copy(places.fill(from), &path).map(drop),
                None => std::fs::write(&path, places.fill(content)),
            }
            .expect("a file");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(*mode))
                .expect("a mode");
        }
        let (theirs, ours) = (
            by_psql(row, places, home.path()),
            by_stanch(row, places, home.path()),
        );
        let right = match (&row.want, &theirs, &ours) {
            (In, Ok(theirs), Ok(ours)) => theirs == ours,
            (As(want), Ok(theirs), Ok(ours)) => theirs == ours && *ours == places.fill(want),
            (Out(a, b), Err(theirs), Err(ours)) => {
                theirs.contains(&places.fill(a)) && ours.contains(&places.fill(b))
            }
            _ => false,
        };
        if !right {
            faults.push(format!(
                "{:?} {:?}\n   psql:   {theirs:?}\n   stanch: {ours:?}",
                row.args
                    .iter()
                    .map(|arg| places.fill(arg))
                    .collect::<Vec<_>>(),
                row.env
            ));
        }
    }
    if left_out > 0 {
        harness::say(&format!(
            "left out without STANCH_TEST_LIBPQ: {left_out} rows for libpq 16 and newer"
        ));
    }
    assert!(
        faults.is_empty(),
        "{} faults\n{}",
        faults.len(),
        faults.join("\n")
    );
}

const HBA: &str = "hostssl all tls_only 127.0.0.1/32 scram-sha-256
hostnossl all clear_only 127.0.0.1/32 scram-sha-256
hostssl all cert_user 127.0.0.1/32 cert
host all tls_only,clear_only,cert_user 127.0.0.1/32 reject
host all md5_user 127.0.0.1/32 md5
host all plain_user 127.0.0.1/32 password
host all trust_user 127.0.0.1/32 trust
host all root 127.0.0.1/32 trust";

async fn primary(bin_dir: PathBuf) -> Server {
    let server = harness::start(ServerOptions {
        bin_dir,
        tcp: true,
        hba: HBA,
        ..ServerOptions::default()
    })
    .await;
    let boss = client(&server.spec("postgres", "postgres"), "boss").await;
    sql(
        &boss,
        "CREATE ROLE app LOGIN PASSWORD 'p@ss:w/rd%'; CREATE ROLE tls_only LOGIN PASSWORD 'tls';
         CREATE ROLE clear_only LOGIN PASSWORD 'clear'; CREATE ROLE cert_user LOGIN;
         CREATE ROLE plain_user LOGIN PASSWORD 'plain'; CREATE ROLE trust_user LOGIN; CREATE ROLE root LOGIN;
         SET password_encryption = 'md5'; CREATE ROLE md5_user LOGIN PASSWORD 'md5'",
    )
    .await;
    for database in [
        "shop",
        "app",
        "root",
        "trust_user",
        "\"in stock\"",
        "cert_user",
    ] {
        sql(&boss, &format!("CREATE DATABASE {database}")).await;
    }
    server
}

fn places(server: &Server) -> Places {
    Places(vec![
        ("{port}", server.port().to_string()),
        ("{dir}", server.folder().display().to_string()),
        (
            "{url-dir}",
            server.folder().display().to_string().replace('/', "%2F"),
        ),
    ])
}

/// URLs, strings, variables and files.
#[rustfmt::skip]
static WAYS: &[Row] = &[
    // URLs
    row(&["-d", "postgresql://trust_user@127.0.0.1:{port}/shop"], As("trust_user|shop|{port}|-|false")),
    row(&["-d", "postgres://trust_user@127.0.0.1:{port}"], As("trust_user|trust_user|{port}|-|false")),
    row(&["-d", "postgresql://app:p%40ss%3Aw%2Frd%25@127.0.0.1:{port}/shop"], As("app|shop|{port}|-|false")),
    row(&["-d", "postgresql://app:wrong@127.0.0.1:{port}/shop"], Out("password authentication failed", "28P01")),
    row(&["-d", "postgresql://app@127.0.0.1:{port}/shop"], Out("no password supplied", "no password given")),
    row(&["-d", "postgresql://trust_user@{url-dir}:{port}/shop"], As("trust_user|shop|{port}|-|false")),
    row(&["-d", "postgresql:///shop?host={dir}&port={port}&user=trust_user"], As("trust_user|shop|{port}|-|false")),
    row(&["-d", "postgresql://trust_user@localhost:{port}/in%20stock?hostaddr=127.0.0.1"], As("trust_user|in stock|{port}|-|false")),
    row(&["-d", "postgresql://trust_user@127.0.0.1:{port}/shop?application_name=x&connect_timeout=5"], In),
    row(&["-d", "postgresql://trust_user@127.0.0.1:{port}/shop?user=md5_user&password=md5"], As("md5_user|shop|{port}|-|false")),
    row(&["-d", "postgresql://127.0.0.1:{port}"], As("root|root|{port}|-|false")),
    row(&["-d", "postgresql://trust_user@127.0.0.1:{port}/shop?ssl=true"], Out("does not support SSL", "the server has no TLS")),
    row(&["-d", "postgresql://trust_user@127.0.0.1:{port}/shop?nonsense=1"], Out("invalid URI query parameter", "unknown parameter")),
    row(&["-d", "postgresql://trust_user@127.0.0.1:{port}/shop?user"], Out("missing key/value separator", "without '='")),
    row(&["-d", "postgresql://trust_user@127.0.0.1:{port}/shop?user=a=b"], Out("extra key/value separator", "a second '='")),
    row(&["-d", "postgresql://trust_user@127.0.0.1:{port}/sh%zzop"], Out("invalid percent-encoded token", "hexadecimal")),
    row(&["-d", "postgresql://trust_user@127.0.0.1:{port}/sh%00op"], Out("forbidden value %00", "zero byte")),
    row(&["-d", "postgresql://trust_user@[::1/shop"], Out("looking for matching \"]\"", "'[' without ']'")),
    row(&["-d", "postgresql://trust_user@127.0.0.1:70000/shop"], Out("invalid port number", "1 to 65535")),
    row(&["-d", "postgresql://trust_user@127.0.0.1:{port}/nowhere"], Out("does not exist", "3D000")),
    row(&["-d", "postgresql://nobody@127.0.0.1:{port}/shop"], Out("no password supplied", "no password given")),
    row(&["-d", "postgresql://trust_user@127.0.0.1:1/shop"], Out("Connection refused", "onnection refused")),
    // Strings
    row(&["-d", "host=127.0.0.1 port={port} user=trust_user dbname=shop"], As("trust_user|shop|{port}|-|false")),
    row(&["-d", "host = 127.0.0.1 port = {port} user=trust_user dbname='in stock'"], As("trust_user|in stock|{port}|-|false")),
    row(&["-d", "host=127.0.0.1 port={port} user=app password=p@ss:w/rd% dbname=shop"], As("app|shop|{port}|-|false")),
    row(&["-d", "host={dir} port={port} user=postgres dbname=in\\ stock"], As("postgres|in stock|{port}|-|false")),
    row(&["-d", "hostaddr=127.0.0.1 port={port} user=trust_user dbname=shop"], As("trust_user|shop|{port}|-|false")),
    row(&["-d", "host=no.such.host hostaddr=127.0.0.1 port={port} user=trust_user dbname=shop"], In),
    row(&["-d", "host=127.0.0.1 port={port} user=plain_user password=plain dbname=shop"], In),
    row(&["-d", "host=127.0.0.1 port={port} user=md5_user password=md5 dbname=shop"], In),
    row(&["-d", "host=127.0.0.1 port={port} user=trust_user dbname=shop keepalives_idle=30 keepalives_count=3 tcp_user_timeout=10000"], In),
    row(&["-d", "host=127.0.0.1 port={port} user=trust_user dbname=shop sslmode=maybe"], Out("invalid sslmode", "sslmode: one of")),
    row(&["-d", "host=127.0.0.1 port={port} user=trust_user dbname='shop"], Out("unterminated quoted string", "a quote that doesn't end")),
    row(&["-d", "host=127.0.0.1 port={port} user=trust_user nonsense=1"], Out("invalid connection option", "unknown parameter")),
    row(&["-d", "host=127.0.0.1 port"], Out("missing \"=\"", "without '='")),
    row(&["-d", "host=127.0.0.1 port={port} user=trust_user dbname=shop connect_timeout=soon"], Out("invalid integer value", "connect_timeout")),
    row(&["-d", "host=127.0.0.1 port={port} user=trust_user dbname=shop gssencmode=require"], Out("GSSAPI", "gssencmode")),
    row(&["-d", "host=127.0.0.1 port={port} user=trust_user dbname=shop channel_binding=require"], Out("channel binding", "channel binding")),
    row(&["-d", "host={dir} port={port} user=trust_user dbname=shop sslmode=require"], As("trust_user|shop|{port}|-|false")),
    row(&["-d", "host={dir} port={port} user=trust_user dbname=shop requirepeer=postgres"], In),
    row(&["-d", "host={dir} port={port} user=trust_user dbname=shop requirepeer=daemon"], Out("requirepeer", "requirepeer is daemon")),
    since(16, &["-d", "host=127.0.0.1 port={port} user=app password=p@ss:w/rd% dbname=shop require_auth=scram-sha-256"], In),
    since(16, &["-d", "host=127.0.0.1 port={port} user=plain_user password=plain dbname=shop require_auth=scram-sha-256,md5"], Out("authentication method requirement", "require_auth doesn't allow")),
    since(16, &["-d", "host=127.0.0.1 port={port} user=trust_user dbname=shop require_auth=!none"], Out("authentication method requirement", "require_auth doesn't allow")),
    since(16, &["-d", "host=127.0.0.1 port={port} user=trust_user dbname=shop require_auth=!md5,!password"], In),
    since(16, &["-d", "host=127.0.0.1 port={port} user=trust_user dbname=shop require_auth=md5,!password"], Out("cannot be mixed", "can't be mixed")),
    // Options beside a name
    row(&["-h", "127.0.0.1", "-p", "{port}", "-U", "trust_user", "-d", "shop"], As("trust_user|shop|{port}|-|false")),
    row(&["-h", "{dir}", "-p", "{port}", "-U", "postgres", "-d", "in stock"], As("postgres|in stock|{port}|-|false")),
    row(&["--host=127.0.0.1", "--port={port}", "--username=trust_user", "--dbname=shop"], In),
    row(&["-h", "127.0.0.1", "-p", "{port}", "-d", "dbname=shop user=trust_user"], As("trust_user|shop|{port}|-|false")),
    row(&["-h", "127.0.0.1", "-p", "{port}"], As("root|root|{port}|-|false")),
    // Variables
    env(&[], &[("PGHOST", "127.0.0.1"), ("PGPORT", "{port}"), ("PGUSER", "trust_user"), ("PGDATABASE", "shop")], As("trust_user|shop|{port}|-|false")),
    env(&["-U", "md5_user"], &[("PGHOST", "127.0.0.1"), ("PGPORT", "{port}"), ("PGUSER", "trust_user"), ("PGPASSWORD", "md5"), ("PGDATABASE", "shop")], As("md5_user|shop|{port}|-|false")),
    env(&["-d", "postgresql:///shop"], &[("PGHOST", "{dir}"), ("PGPORT", "{port}"), ("PGUSER", "trust_user")], As("trust_user|shop|{port}|-|false")),
    env(&["-d", "user=trust_user"], &[("PGHOSTADDR", "127.0.0.1"), ("PGPORT", "{port}"), ("PGDATABASE", "shop")], As("trust_user|shop|{port}|-|false")),
    env(&["-d", "host='' hostaddr=127.0.0.1 user=trust_user dbname=shop"], &[("PGHOST", "no.such.host"), ("PGPORT", "{port}")], As("trust_user|shop|{port}|-|false")),
    env(&["-h", "127.0.0.1", "-U", "trust_user", "-d", "shop"], &[("PGPORT", "{port}"), ("PGSSLMODE", "require")], Out("does not support SSL", "the server has no TLS")),
    env(&["-h", "127.0.0.1", "-U", "trust_user", "-d", "shop"], &[("PGPORT", "{port}"), ("PGSSLMODE", "maybe")], Out("invalid sslmode", "sslmode: one of")),
    env(&["-h", "127.0.0.1", "-U", "trust_user", "-d", "shop"], &[("PGPORT", "{port}"), ("PGREQUIRESSL", "1")], Out("does not support SSL", "the server has no TLS")),
    env(&["-h", "127.0.0.1", "-U", "trust_user", "-d", "shop"], &[("PGPORT", "{port}"), ("PGAPPNAME", "x"), ("PGCLIENTENCODING", "LATIN1"), ("PGOPTIONS", "-c work_mem=1MB")], In),
    env(&["-h", "127.0.0.1", "-U", "trust_user", "-d", "shop"], &[("PGPORT", "{port}"), ("PGTARGETSESSIONATTRS", "sometimes")], Out("invalid target_session_attrs", "target_session_attrs: one of")),
    env(&["-h", "127.0.0.1", "-U", "trust_user", "-d", "shop"], &[("PGPORT", "x")], Out("invalid", "1 to 65535")),
    // Password files
    files(&["-h", "127.0.0.1", "-p", "{port}", "-U", "app", "-d", "shop"], &[], &[(".pgpass", "127.0.0.1:{port}:shop:app:p@ss\\:w/rd%\n", 0o600)], As("app|shop|{port}|-|false")),
    files(&["-h", "127.0.0.1", "-p", "{port}", "-U", "app", "-d", "shop"], &[], &[(".pgpass", "# ours\nother:*:*:*:no\n*:*:*:app:p@ss\\:w/rd%", 0o600)], In),
    files(&["-h", "127.0.0.1", "-p", "{port}", "-U", "app", "-d", "shop"], &[], &[(".pgpass", "*:*:*:*:p@ss:w/rd%\n", 0o644)], Out("group or world access", "others may read password file")),
    files(&["-h", "127.0.0.1", "-p", "{port}", "-U", "app", "-d", "shop"], &[], &[(".pgpass", "*:*:other:*:p@ss:w/rd%\n", 0o600)], Out("no password supplied", "no password given")),
    files(&["-h", "127.0.0.1", "-p", "{port}", "-U", "app", "-d", "shop"], &[("PGPASSWORD", "wrong")], &[(".pgpass", "*:*:*:*:p@ss\\:w/rd%\n", 0o600)], Out("password authentication failed", "28P01")),
    files(&["-d", "hostaddr=127.0.0.1 port={port} user=app dbname=shop"], &[], &[(".pgpass", "127.0.0.1:*:*:*:p@ss\\:w/rd%\n", 0o600)], In),
    files(&["-d", "host=db.internal hostaddr=127.0.0.1 port={port} user=app dbname=shop"], &[], &[(".pgpass", "127.0.0.1:*:*:*:no\ndb.internal:*:*:*:p@ss\\:w/rd%\n", 0o600)], In),
    files(&["-d", "host=127.0.0.1 port={port} user=app dbname=shop passfile={dir}/other-pass"], &[], &[], In),
    files(&["-h", "127.0.0.1", "-p", "{port}", "-U", "app", "-d", "shop"], &[("PGPASSFILE", "{dir}/other-pass")], &[(".pgpass", "*:*:*:*:wrong\n", 0o600)], In),
    // Services
    files(&["-d", "service=prod"], &[], &[(".pg_service.conf", "# all of ours\n[test]\nport=1\n\n[prod]\nhost=127.0.0.1\nport={port}\nuser=trust_user\ndbname=shop\n", 0o644)], As("trust_user|shop|{port}|-|false")),
    files(&["-d", "service=prod dbname=app"], &[("PGDATABASE", "root")], &[(".pg_service.conf", "[prod]\nhost=127.0.0.1\nport={port}\nuser=trust_user\ndbname=shop\n", 0o644)], As("trust_user|app|{port}|-|false")),
    files(&[], &[("PGSERVICE", "prod"), ("PGUSER", "root")], &[(".pg_service.conf", "[prod]\nhost=127.0.0.1\nport={port}\nuser=trust_user\ndbname=shop\n", 0o644)], As("trust_user|shop|{port}|-|false")),
    files(&["-U", "root"], &[("PGSERVICE", "prod"), ("PGSERVICEFILE", "{dir}/services")], &[], As("root|shop|{port}|-|false")),
    files(&["-d", "postgresql://root@/app?service=prod"], &[("PGSERVICEFILE", "{dir}/services")], &[], As("root|app|{port}|-|false")),
    files(&["-d", "service=prod"], &[("PGSYSCONFDIR", "{dir}/etc")], &[(".pg_service.conf", "[test]\nport=1\n", 0o644)], As("trust_user|shop|{port}|-|false")),
    files(&["-d", "service=nowhere"], &[("PGSYSCONFDIR", "{dir}")], &[(".pg_service.conf", "[prod]\nport=1\n", 0o644)], Out("definition of service \"nowhere\" not found", "service nowhere isn't defined")),
    files(&["-d", "service=prod"], &[("PGSERVICEFILE", "/nonexistent/services")], &[], Out("not found", "/nonexistent/services")),
    files(&["-d", "service=prod"], &[], &[(".pg_service.conf", "[prod]\nhost = 127.0.0.1\n", 0o644)], Out("syntax error in service file", "line 2")),
    files(&["-d", "service=prod"], &[], &[(".pg_service.conf", "[prod]\nservice=test\n", 0o644)], Out("nested", "a service inside a service"))];

#[tokio::test]
async fn urls_strings_variables_and_files() {
    let server = primary(harness::bin_dir()).await;
    let services = "[prod]\nhost=127.0.0.1\nport={port}\nuser=trust_user\ndbname=shop\n";
    let places = places(&server);
    server
        .write_file("services", &places.fill(services))
        .expect("a file");
    std::fs::create_dir(server.folder().join("etc")).expect("a folder");
    std::fs::write(
        server.folder().join("etc/pg_service.conf"),
        places.fill(services),
    )
    .expect("a file");
    let pass = server
        .write_file("other-pass", "*:*:*:*:p@ss\\:w/rd%\n")
        .expect("a file");
    std::fs::set_permissions(&pass, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    compare(WAYS, &places);
}

const HOST: &str = "host=localhost hostaddr=127.0.0.1 port={port} dbname=shop user=trust_user";

/// TLS, by the certificate that the server shows. `{at}` stands for the place above.
#[rustfmt::skip]
static TLS: &[(&str, &[Row])] = &[
("server", &[
    row(&["-d", "{at}"], As("trust_user|shop|{port}|TLSv1.3|false")),
    row(&["-d", "{at} sslmode=disable"], As("trust_user|shop|{port}|-|false")),
    row(&["-d", "{at} sslmode=allow"], As("trust_user|shop|{port}|-|false")),
    row(&["-d", "{at} sslmode=prefer"], As("trust_user|shop|{port}|TLSv1.3|false")),
    row(&["-d", "{at} sslmode=require"], As("trust_user|shop|{port}|TLSv1.3|false")),
    row(&["-d", "{at} sslmode=require ssl_max_protocol_version=TLSv1.2"], As("trust_user|shop|{port}|TLSv1.2|false")),
    row(&["-d", "{at} sslmode=require ssl_min_protocol_version=TLSv1.3"], As("trust_user|shop|{port}|TLSv1.3|false")),
    row(&["-d", "{at} sslmode=require ssl_min_protocol_version=TLSv1.3 ssl_max_protocol_version=TLSv1.2"], Out("SSL protocol version range", "below ssl_min_protocol_version")),
    // Each way in clear and with TLS, where only one is let in.
    row(&["-d", "{at} user=tls_only password=tls sslmode=allow"], As("tls_only|shop|{port}|TLSv1.3|false")),
    row(&["-d", "{at} user=tls_only password=tls sslmode=disable"], Out("pg_hba.conf rejects connection", "28000")),
    row(&["-d", "{at} user=clear_only password=clear sslmode=prefer"], As("clear_only|shop|{port}|-|false")),
    row(&["-d", "{at} user=clear_only password=clear sslmode=require"], Out("pg_hba.conf rejects connection", "28000")),
    // A password that is missing is no reason to go on in clear.
    row(&["-d", "{at} user=tls_only sslmode=prefer"], Out("no password supplied", "no password given")),
    // Which root
    row(&["-d", "{at} sslmode=verify-full sslrootcert={pki}/ca.crt"], As("trust_user|shop|{port}|TLSv1.3|false")),
    row(&["-d", "{at} sslmode=verify-ca sslrootcert={pki}/ca.crt"], In),
    row(&["-d", "{at} sslmode=verify-ca sslrootcert={pki}/other-ca.crt"], Out("certificate verify failed", "doesn't pass")),
    row(&["-d", "{at} sslmode=require sslrootcert={pki}/other-ca.crt"], Out("certificate verify failed", "doesn't pass")),
    row(&["-d", "{at} sslmode=require sslrootcert={pki}/nowhere.crt"], In),
    row(&["-d", "{at} sslmode=verify-ca sslrootcert={pki}/nowhere.crt"], Out("does not exist", "doesn't exist")),
    row(&["-d", "{at} sslmode=verify-full"], Out("does not exist", "doesn't exist")),
    row(&["-d", "{at} sslmode=verify-full sslrootcert={pki}/server.crt"], Out("certificate verify failed", "no root certificate")),
    row(&["-d", "{at} sslmode=prefer sslrootcert={pki}/other-ca.crt"], As("trust_user|shop|{port}|-|false")),
    files(&["-d", "{at} sslmode=verify-full"], &[], &[(".postgresql/root.crt", "copy of {pki}/ca.crt", 0o644)], As("trust_user|shop|{port}|TLSv1.3|false")),
    files(&["-d", "{at} sslmode=require"], &[], &[(".postgresql/root.crt", "copy of {pki}/other-ca.crt", 0o644)], Out("certificate verify failed", "doesn't pass")),
    env(&["-d", "{at}"], &[("PGSSLMODE", "verify-full"), ("PGSSLROOTCERT", "{pki}/ca.crt")], As("trust_user|shop|{port}|TLSv1.3|false")),
    row(&["-d", "postgresql://trust_user@localhost:{port}/shop?hostaddr=127.0.0.1&sslmode=verify-full&sslrootcert={pki}/ca.crt"], As("trust_user|shop|{port}|TLSv1.3|false")),
    // Which name
    row(&["-d", "{at} host=DB.example sslmode=verify-full sslrootcert={pki}/ca.crt"], In),
    row(&["-d", "{at} host=127.0.0.1 sslmode=verify-full sslrootcert={pki}/ca.crt"], In),
    row(&["-d", "{at} host=somebody sslmode=verify-full sslrootcert={pki}/ca.crt"], Out("does not match host name", "isn't made out to")),
    row(&["-d", "hostaddr=127.0.0.1 port={port} user=trust_user dbname=shop sslmode=verify-full sslrootcert={pki}/ca.crt"], Out("host name must be specified", "needs a host name")),
    row(&["-d", "hostaddr=127.0.0.1 port={port} user=trust_user dbname=shop sslmode=verify-ca sslrootcert={pki}/ca.crt"], In),
    row(&["-d", "{at} sslmode=require sslsni=0"], In),
    // Client certificates
    row(&["-d", "{at} user=cert_user sslcert={pki}/client.crt sslkey={pki}/client.key"], As("cert_user|shop|{port}|TLSv1.3|true")),
    row(&["-d", "{at} user=cert_user sslcert={pki}/client.crt sslkey={pki}/client.key ssl_max_protocol_version=TLSv1.2"], As("cert_user|shop|{port}|TLSv1.2|true")),
    row(&["-d", "{at} user=cert_user sslmode=require"], Out("requires a valid client certificate", "28000")),
    row(&["-d", "{at} user=cert_user sslmode=require sslcert={pki}/stranger.crt sslkey={pki}/stranger.key"], Out("unknown ca", "UnknownCA")),
    row(&["-d", "{at} user=cert_user sslmode=require sslcert={pki}/client.crt sslkey={pki}/stranger.key"], Out("key values mismatch", "don't belong together")),
    row(&["-d", "{at} user=cert_user sslmode=require sslcert={pki}/client.crt sslkey={pki}/nowhere.key"], Out("but not private key file", "its private key isn't")),
    row(&["-d", "{at} user=cert_user sslmode=require sslcert={pki}/client.crt sslkey={pki}/client-open.key"], Out("group or world access", "others may read private key")),
    row(&["-d", "{at} user=cert_user sslmode=require sslcert={pki}/client.crt sslkey={pki}/client-locked.key sslpassword=hunter2"], As("cert_user|shop|{port}|TLSv1.3|true")),
    row(&["-d", "{at} user=cert_user sslmode=require sslcert={pki}/client.crt sslkey={pki}/client-locked.key sslpassword=other"], Out("could not load private key", "the passphrase doesn't open it")),
    row(&["-d", "{at} user=cert_user sslmode=require sslcert={pki}/client.crt sslkey={pki}/client.der"], As("cert_user|shop|{port}|TLSv1.3|true")),
    row(&["-d", "{at} user=trust_user sslmode=require sslcert={pki}/nowhere.crt"], In),
    files(&["-d", "{at} user=cert_user"], &[], &[(".postgresql/postgresql.crt", "copy of {pki}/client.crt", 0o644), (".postgresql/postgresql.key", "copy of {pki}/client.key", 0o600)], As("cert_user|shop|{port}|TLSv1.3|true")),
    since(16, &["-d", "{at} user=cert_user sslmode=require sslcertmode=disable sslcert={pki}/client.crt sslkey={pki}/client.key"], Out("requires a valid client certificate", "28000")),
    since(16, &["-d", "{at} sslmode=require sslcertmode=require sslcert={pki}/client.crt sslkey={pki}/client.key"], As("trust_user|shop|{port}|TLSv1.3|true")),
    // Channel binding
    row(&["-d", "{at} user=app password=p@ss:w/rd% sslmode=require channel_binding=require"], As("app|shop|{port}|TLSv1.3|false")),
    row(&["-d", "{at} user=app password=p@ss:w/rd% sslmode=disable channel_binding=require"], Out("channel binding", "channel binding")),
    row(&["-d", "{at} user=md5_user password=md5 sslmode=require channel_binding=require"], Out("channel binding", "channel binding")),
    row(&["-d", "{at} user=app password=p@ss:w/rd% sslmode=require channel_binding=disable"], In),
    row(&["-d", "{at} user=app password=wrong sslmode=prefer"], Out("password authentication failed", "28P01")),
    // Revocation
    row(&["-d", "{at} sslmode=verify-full sslrootcert={pki}/ca.crt sslcrl={pki}/crl.pem"], In),
    row(&["-d", "{at} sslmode=verify-full sslrootcert={pki}/ca.crt sslcrl={pki}/old.pem"], Out("certificate verify failed", "revocation")),
    // A root that is none
    row(&["-d", "{at} sslmode=verify-full sslrootcert={pki}/ca-expired.crt"], Out("certificate verify failed", "no root certificate")),
    row(&["-d", "{at} sslmode=prefer sslrootcert={pki}/ca-expired.crt"], As("trust_user|shop|{port}|-|false")),
    // The system's roots
    since(16, &["-d", "{at} sslrootcert=system"], Out("certificate verify failed", "doesn't pass")),
    since(16, &["-d", "{at} sslmode=require sslrootcert=system"], Out("weak sslmode", "only verify-full is safe")),
    since(17, &["-d", "{at} sslnegotiation=direct"], Out("weak sslmode", "needs require")),
    since(17, &["-d", "{at} sslmode=require sslnegotiation=direct"], Out("", "TLS"))]),
("wrong-host", &[
    row(&["-d", "{at} sslmode=verify-full sslrootcert={pki}/ca.crt"], Out("does not match host name", "isn't made out to")),
    row(&["-d", "{at} sslmode=verify-ca sslrootcert={pki}/ca.crt"], In)]),
("cn-only", &[
    row(&["-d", "{at} sslmode=verify-full sslrootcert={pki}/ca.crt"], As("trust_user|shop|{port}|TLSv1.3|false"))]),
("wildcard", &[
    row(&["-d", "{at} host=db.example sslmode=verify-full sslrootcert={pki}/ca.crt"], In),
    row(&["-d", "{at} host=a.db.example sslmode=verify-full sslrootcert={pki}/ca.crt"], Out("does not match host name", "isn't made out to"))]),
("v1", &[
    row(&["-d", "{at} sslmode=require"], As("trust_user|shop|{port}|TLSv1.3|false")),
    row(&["-d", "{at} sslmode=require ssl_max_protocol_version=TLSv1.2"], As("trust_user|shop|{port}|TLSv1.2|false")),
    row(&["-d", "{at} sslmode=verify-full sslrootcert={pki}/ca.crt"], As("trust_user|shop|{port}|TLSv1.3|false")),
    row(&["-d", "{at} sslmode=verify-ca sslrootcert={pki}/other-ca.crt"], Out("certificate verify failed", "doesn't pass")),
    row(&["-d", "{at} sslmode=verify-full sslrootcert={pki}/ca.crt sslcrl={pki}/crl.pem"], Out("certificate verify failed", "doesn't pass")),
    row(&["-d", "{at} user=app password=p@ss:w/rd% sslmode=require channel_binding=require"], In)]),
("by-no-ca", &[
    row(&["-d", "{at} sslmode=verify-full sslrootcert={pki}/no-ca.crt"], Out("certificate verify failed", "no root certificate")),
    row(&["-d", "{at} sslmode=require"], In)]),
("self-signed", &[
    row(&["-d", "{at} sslmode=require"], In),
    row(&["-d", "{at} sslmode=verify-full sslrootcert={pki}/self-signed.crt"], As("trust_user|shop|{port}|TLSv1.3|false")),
    row(&["-d", "{at} host=db.example sslmode=verify-full sslrootcert={pki}/self-signed.crt"], Out("does not match host name", "isn't made out to")),
    row(&["-d", "{at} sslmode=verify-ca sslrootcert={pki}/ca.crt"], Out("certificate verify failed", "doesn't pass"))]),
("expired", &[
    row(&["-d", "{at} sslmode=verify-ca sslrootcert={pki}/ca.crt"], Out("certificate verify failed", "it has expired")),
    row(&["-d", "{at} sslmode=require"], In)]),
("chain", &[
    row(&["-d", "{at} sslmode=verify-full sslrootcert={pki}/ca.crt"], In),
    row(&["-d", "{at} sslmode=verify-full sslrootcert={pki}/middle.crt"], Out("certificate verify failed", "no root certificate"))]),
("revoked", &[
    row(&["-d", "{at} sslmode=verify-full sslrootcert={pki}/ca.crt sslcrl={pki}/crl.pem"], Out("certificate verify failed", "it is revoked")),
    row(&["-d", "{at} sslmode=verify-full sslrootcert={pki}/ca.crt sslcrl={pki}/none.pem"], In),
    row(&["-d", "{at} sslmode=verify-full sslrootcert={pki}/ca.crt sslcrl={pki}/nowhere.pem"], In)])];

/// The server shows this certificate to every new connection.
async fn show_certificate(server: &Server, pki: &Pki, name: &str) {
    let boss = client(&server.spec("postgres", "postgres"), "boss").await;
    for (kind, from) in [
        ("crt", format!("{name}.crt")),
        ("key", format!("{name}.key")),
    ] {
        let content = std::fs::read_to_string(pki.path(&from)).expect("a file");
        let file = server
            .write_file(&format!("{name}.{kind}"), &content)
            .expect("a file");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("a mode");
        let setting = if kind == "crt" { "cert" } else { "key" };
        sql(
            &boss,
            &format!("ALTER SYSTEM SET ssl_{setting}_file = '{}'", file.display()),
        )
        .await;
    }
    sql(&boss, "ALTER SYSTEM SET ssl = on").await;
    sql(&boss, "SELECT pg_reload_conf()").await;
    // A new process has what the postmaster has read.
    let shown =
        format!("SELECT setting LIKE '%/{name}.crt' FROM pg_settings WHERE name = 'ssl_cert_file'");
    loop {
        let fresh = client(&server.spec("postgres", "postgres"), "fresh").await;
        if fresh.query_one(&shown, &[]).await.expect("a row").get(0) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

/// The server takes client certificates of our authority; what rows name is told.
async fn with_tls(server: &Server, pki: &Pki) -> Places {
    let authority = std::fs::read_to_string(pki.path("ca.crt")).expect("the root");
    let file = server
        .write_file("clients.crt", &authority)
        .expect("a file");
    let boss = client(&server.spec("postgres", "postgres"), "boss").await;
    sql(
        &boss,
        &format!("ALTER SYSTEM SET ssl_ca_file = '{}'", file.display()),
    )
    .await;
    let mut places = places(server);
    places.0.push(("{pki}", pki.folder().display().to_string()));
    places.0.insert(0, ("{at}", HOST.to_owned()));
    places
}

#[tokio::test]
async fn tls_of_all_kinds() {
    let pki = Pki::new();
    let server = primary(harness::bin_dir()).await;
    let places = with_tls(&server, &pki).await;
    for (certificate, rows) in TLS {
        show_certificate(&server, &pki, certificate).await;
        compare(rows, &places);
    }
}

#[rustfmt::skip]
static SEVERAL: &[Row] = &[
    row(&["-d", "host={dir},{standby-dir} port={port},{standby-port} user=postgres dbname=shop"], As("postgres|shop|{port}|-|false")),
    row(&["-d", "host=/nonexistent,{dir} port=1,{port} user=postgres dbname=shop"], As("postgres|shop|{port}|-|false")),
    row(&["-d", "host=127.0.0.1,127.0.0.1 port=1,{port} user=trust_user dbname=shop"], As("trust_user|shop|{port}|-|false")),
    row(&["-d", "postgresql://trust_user@127.0.0.1:1,127.0.0.1:{port}/shop"], As("trust_user|shop|{port}|-|false")),
    row(&["-h", "127.0.0.1,127.0.0.1", "-p", "1,{port}", "-U", "trust_user", "-d", "shop"], As("trust_user|shop|{port}|-|false")),
    row(&["-d", "host={dir},{standby-dir} port={port},{standby-port} user=postgres dbname=shop target_session_attrs=standby"], As("postgres|shop|{standby-port}|-|false")),
    row(&["-d", "host={standby-dir},{dir} port={standby-port},{port} user=postgres dbname=shop target_session_attrs=primary"], As("postgres|shop|{port}|-|false")),
    row(&["-d", "host={standby-dir},{dir} port={standby-port},{port} user=postgres dbname=shop target_session_attrs=read-write"], As("postgres|shop|{port}|-|false")),
    row(&["-d", "host={dir},{standby-dir} port={port},{standby-port} user=postgres dbname=shop target_session_attrs=read-only"], As("postgres|shop|{standby-port}|-|false")),
    row(&["-d", "host={dir},{standby-dir} port={port},{standby-port} user=postgres dbname=shop target_session_attrs=prefer-standby"], As("postgres|shop|{standby-port}|-|false")),
    row(&["-d", "host={dir},/nonexistent port={port},1 user=postgres dbname=shop target_session_attrs=prefer-standby"], As("postgres|shop|{port}|-|false")),
    row(&["-d", "host={dir} port={port} user=postgres dbname=shop target_session_attrs=standby"], Out("server is not in hot standby mode", "a primary, and target_session_attrs is standby")),
    row(&["-d", "host={standby-dir} port={standby-port} user=postgres dbname=shop target_session_attrs=read-write"], Out("session is read-only", "target_session_attrs is read-write")),
    env(&["-d", "host={dir},{standby-dir} port={port},{standby-port} user=postgres dbname=shop"], &[("PGTARGETSESSIONATTRS", "standby")], As("postgres|shop|{standby-port}|-|false")),
    row(&["-d", "postgresql:///shop?host={dir},{standby-dir}&port={port},{standby-port}&user=postgres&target_session_attrs=standby"], As("postgres|shop|{standby-port}|-|false")),
    // A refused login ends it: the next host isn't asked.
    row(&["-d", "host=127.0.0.1,{dir} port={port},{port} user=app password=wrong dbname=shop"], Out("password authentication failed", "28P01")),
    row(&["-d", "host=127.0.0.1,127.0.0.1 port=1,1 user=app dbname=shop"], Out("Connection refused", "before: 127.0.0.1, port 1")),
    row(&["-d", "host=a,b port=1,2,3 user=app dbname=shop"], Out("could not match 3 port numbers to 2 hosts", "2 hosts and 3 ports")),
    row(&["-d", "host=a,b hostaddr=127.0.0.1 port={port} user=app dbname=shop"], Out("could not match 2 host names to 1 hostaddr", "2 hosts and 1 addresses")),
    files(&["-d", "host=127.0.0.1,localhost hostaddr=127.0.0.1,127.0.0.1 port=1,{port} user=app dbname=shop"], &[], &[(".pgpass", "127.0.0.1:1:*:*:no\nlocalhost:*:*:*:p@ss\\:w/rd%\n", 0o600)], As("app|shop|{port}|-|false")),
    since(16, &["-d", "host={dir},{dir} port={port},{port} user=postgres dbname=shop load_balance_hosts=random"], In),
    since(16, &["-d", "host={dir} port={port} user=postgres dbname=shop load_balance_hosts=often"], Out("invalid load_balance_hosts", "load_balance_hosts: one of"))];

#[tokio::test]
async fn several_hosts() {
    let server = primary(harness::bin_dir()).await;
    let standby = harness::start(ServerOptions {
        standby_of: Some(server.spec("postgres", "postgres")),
        ..ServerOptions::default()
    })
    .await;
    let watcher = client(&server.spec("postgres", "postgres"), "watcher").await;
    let caught_up =
        "SELECT count(*) = 1 FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()";
    stanch::drill::until(&watcher, caught_up)
        .await
        .expect("it follows");
    let mut places = places(&server);
    places
        .0
        .push(("{standby-port}", standby.port().to_string()));
    places
        .0
        .push(("{standby-dir}", standby.folder().display().to_string()));
    compare(SEVERAL, &places);
}

#[rustfmt::skip]
static DIRECT: &[Row] = &[
    since(17, &["-d", "{at} sslmode=require sslnegotiation=direct"], As("trust_user|shop|{port}|TLSv1.3|false")),
    since(17, &["-d", "{at} sslmode=verify-full sslnegotiation=direct sslrootcert={pki}/ca.crt"], As("trust_user|shop|{port}|TLSv1.3|false")),
    since(17, &["-d", "{at} sslmode=verify-full sslnegotiation=direct sslrootcert={pki}/other-ca.crt"], Out("certificate verify failed", "doesn't pass")),
    since(17, &["-d", "{at} sslmode=require sslnegotiation=direct user=app password=p@ss:w/rd% channel_binding=require"], As("app|shop|{port}|TLSv1.3|false")),
    since(17, &["-d", "{at} sslmode=require sslnegotiation=direct user=cert_user sslcert={pki}/client.crt sslkey={pki}/client.key"], As("cert_user|shop|{port}|TLSv1.3|true")),
    since(17, &["-d", "{at} sslmode=require sslnegotiation=postgres"], In),
    since(17, &["-d", "{at} sslmode=prefer sslnegotiation=direct"], Out("weak sslmode", "needs require")),
];

/// TLS from the first byte, which PostgreSQL 17 and newer take.
#[tokio::test]
async fn direct_tls() {
    let pki = Pki::new();
    for (major, bin_dir) in harness::bin_dirs().split_off(&17) {
        let server = primary(bin_dir).await;
        let places = with_tls(&server, &pki).await;
        show_certificate(&server, &pki, "server").await;
        harness::say(&format!("direct TLS on PostgreSQL {major}"));
        compare(DIRECT, &places);
    }
}

/// At a terminal a password that is wanted is asked for, and isn't shown; without one, or with `-w`, nothing is asked.
#[tokio::test]
async fn a_password_at_a_terminal() {
    use std::io::Write as _;
    let server = primary(harness::bin_dir()).await;
    let at_terminal = |more: &str| {
        let line = format!(
            "{} doctor -h 127.0.0.1 -p {} -U plain_user -d shop {more}",
            env!("CARGO_BIN_EXE_stanch"),
            server.port()
        );
        let mut child = Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .env_clear()
            .env("PATH", harness::path())
            .env("HOME", "/nonexistent")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("script runs");
        let mut keys = child.stdin.take().expect("its input");
        keys.write_all(b"plain\n").expect("typed");
        let output = child.wait_with_output().expect("it ends");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    let (code, shown) = at_terminal("");
    assert!(shown.contains("password for plain_user: "), "{shown}");
    assert!(shown.contains("shop@127.0.0.1"), "{shown}");
    assert_eq!(code, Some(1), "a login without grants: {shown}");
    let (code, shown) = at_terminal("-w");
    assert!(!shown.contains("password for"), "{shown}");
    assert_eq!(code, Some(3), "{shown}");
}
