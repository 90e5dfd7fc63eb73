//! Every column of every query: NULL, and bytes of every encoding. No row is lost, and a text of a known encoding is right.

use stanch::model::{Database, Oid};
use stanch::source::postgres::catalog::{self, Topic};
use stanch::source::postgres::encoding::{Encoding, Encodings};
use stanch::source::postgres::rows::{self, Cells, Names, RowError};
use tokio_postgres::Client;

use crate::harness::{self, client, sql, stanch_as};

/// Encoding, a text in it as hexadecimal bytes, and the text.
const SAMPLES: [(&str, &str, &str); 37] = [
    ("UTF8", "e59ca8e5baab20636166c3a9", "在庫 café"),
    ("SQL_ASCII", "e59ca8e5baab20636166c3a9", "在庫 café"),
    ("LATIN1", "636166e920c3a9", "café Ã©"),
    ("LATIN2", "a36f6462e6", "Łodbć"),
    ("LATIN3", "a6a1", "ĤĦ"),
    ("LATIN4", "a2b1", "ĸą"),
    ("LATIN5", "fdf0dd", "ığİ"),
    ("LATIN6", "a1bf", "Ąŋ"),
    ("LATIN7", "c0e0d0", "ĄąŠ"),
    ("LATIN8", "a1a2", "Ḃḃ"),
    ("LATIN9", "a4bd", "€œ"),
    ("LATIN10", "aaba", "Șș"),
    ("WIN1250", "8c9c", "Śś"),
    ("WIN1251", "c7e0eae0e7", "Заказ"),
    ("WIN1252", "80e9", "€é"),
    ("WIN1253", "d0e1f1", "Παρ"),
    ("WIN1254", "fdf0", "ığ"),
    ("WIN1255", "e0e1", "אב"),
    ("WIN1256", "c7c8", "اب"),
    ("WIN1257", "d0e0", "Šą"),
    ("WIN1258", "d5f0", "Ơđ"),
    ("WIN866", "87a0aaa0a7", "Заказ"),
    ("WIN874", "a1a2", "กข"),
    ("KOI8R", "fac1cbc1da", "Заказ"),
    ("KOI8U", "fac1cbc1da20a4", "Заказ є"),
    ("ISO_8859_5", "b7d0dad0d7", "Заказ"),
    ("ISO_8859_6", "c7c8", "اب"),
    ("ISO_8859_7", "d0e1f1", "Παρ"),
    ("ISO_8859_8", "e0e1", "אב"),
    ("EUC_JP", "badfb8cb208eb1", "在庫 ｱ"),
    ("EUC_JIS_2004", "badfb8cb", "在庫"),
    ("EUC_KR", "c1d6b9ae", "주문"),
    ("EUC_CN", "b6a9b5a5", "订单"),
    ("EUC_TW", "61c4e362", "a\u{fffd}b"),
    ("MULE_INTERNAL", "6181e962", "a\u{fffd}b"),
    // Bytes that aren't of the encoding that they should be of.
    ("UTF8", "61ff62", "a\u{fffd}b"),
    ("EUC_JP", "61ff62", "a\u{fffd}b"),
];

/// The version of whose queries the columns are looked at; `matrix` has all of them.
const OWN: u32 = 15;

fn databases(encoding: &str) -> Vec<Database> {
    vec![Database {
        oid: Oid(1),
        name: "there".into(),
        encoding: encoding.into(),
        connection_limit: None,
        backends: 0,
        deadlocks: None,
        stats_reset: None,
    }]
}

/// What a column of the query's own type is given.
enum Fill {
    Null,
    /// Raw bytes into this text column.
    Bytes(String, &'static str),
}

/// Each decoder on a row of its query's own columns: keys have a value, the others what `fill` says.
async fn each_query(
    client: &Client,
    major: u32,
    encoding: &str,
    fill: impl Fn(&str) -> Vec<Fill>,
    want: Option<&str>,
) {
    let names = Names::default();
    // As if connected to a database of that encoding, of which a session runs.
    let all = Encodings::new(Encoding::named(encoding), &databases(encoding));
    let own = all.own;
    macro_rules! check {
        ($topic:ident, $keys:expr, $decode:expr) => {
            check(
                client,
                major,
                &catalog::$topic,
                $keys,
                own,
                &fill,
                want,
                $decode,
            )
            .await
        };
    }
    check!(ACTIVITY, &["pid", "datid"], |c| rows::session(
        c,
        Some(1024),
        &all
    ));
    check!(LOCKS, &[], rows::lock);
    check!(BLOCKING, &["pid"], rows::blocked_by);
    check!(DATABASES, &["oid", "name"], rows::database);
    check!(ROLES, &["oid", "name"], rows::role);
    check!(RELATIONS, &["oid", "schema", "name"], rows::relation);
    check!(PREPARED, &["xid", "gid", "prepared", "dbid"], |c| {
        rows::prepared(c, &names, &all)
    });
    check!(SETTINGS, &["name"], rows::setting);
    check!(OVERRIDES, &["config"], rows::setting_override);
    check!(SLOTS, &["name"], rows::slot);
    check!(LOGIN, &["user"], rows::login);
}

async fn check<T: std::fmt::Debug>(
    client: &Client,
    major: u32,
    topic: &'static Topic,
    keys: &[&str],
    own: Encoding,
    fill: &impl Fn(&str) -> Vec<Fill>,
    want: Option<&str>,
    decode: impl Fn(&Cells<'_>) -> Result<T, RowError>,
) {
    let statement = client.prepare(topic.sql(major)).await.expect(topic.name);
    for fill in fill(topic.name) {
        let columns: Vec<String> = statement
            .columns()
            .iter()
            .map(|column| {
                let (name, ty) = (column.name(), column.type_().name());
                let value = match (&fill, keys.contains(&name), ty) {
                    (Fill::Bytes(hex, into), _, _) if *into == name => {
                        format!("convert_from('\\x{hex}', 'SQL_ASCII')")
                    }
                    (_, false, _) => "NULL".into(),
                    (_, true, "timestamptz") => "now()".into(),
                    (_, true, _) => "'1'".into(),
                };
                format!("{value}::{ty} AS \"{name}\"")
            })
            .collect();
        let row = client
            .query_typed(&format!("SELECT {}", columns.join(", ")), &[])
            .await
            .expect(topic.name);
        let decoded =
            rows::decode(topic.name, &row, own, &decode).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(decoded.len(), 1, "{}", topic.name);
        if let (Fill::Bytes(_, column), Some(want)) = (&fill, want) {
            let shown = format!("{decoded:?}");
            assert!(shown.contains(want), "{} {column}: {shown}", topic.name);
        }
    }
}

/// Every column that isn't the row's own name may be NULL, and the row is kept.
#[tokio::test]
async fn null_in_every_nullable_column() {
    let server = harness::server(&[]).await;
    let client = client(&server.spec("postgres", "postgres"), "nulls").await;
    nulls(&client, OWN).await;
}

pub async fn nulls(client: &Client, major: u32) {
    each_query(client, major, "UTF8", |_| vec![Fill::Null], None).await;
}

/// The text columns of a query, but for those that hold a number or one of PostgreSQL's own words.
fn text_columns(topic: &str) -> &'static [&'static str] {
    match topic {
        "activity" => &["query", "application_name", "client_addr"],
        "databases" | "roles" => &["name"],
        "relations" => &["schema", "name"],
        "prepared" => &["gid"],
        "settings" => &["name", "value", "unit", "boot_value", "source"],
        "overrides" => &["config"],
        "slots" => &["name", "slot_type"],
        "login" => &["user"],
        _ => &[],
    }
}

/// And those: a word that isn't known is a word all the same, in whatever bytes.
fn word_columns(topic: &str) -> &'static [&'static str] {
    match topic {
        "activity" => &["backend_type", "state", "wait_event_type", "wait_event"],
        "locks" => &["locktype", "mode", "virtualxid", "virtualtransaction"],
        "databases" => &["encoding"],
        _ => &[],
    }
}

/// A database that takes any bytes, and a session that hands them out as they are.
async fn raw_client() -> (stanch::drill::Server, Client) {
    let server = harness::server(&[]).await;
    let boss = client(&server.spec("postgres", "postgres"), "boss").await;
    sql(
        &boss,
        "CREATE DATABASE raw ENCODING 'SQL_ASCII' TEMPLATE template0",
    )
    .await;
    let raw = client(&server.spec("postgres", "raw"), "raw").await;
    sql(&raw, "SET client_encoding = 'SQL_ASCII'").await;
    (server, raw)
}

#[tokio::test]
async fn bytes_of_every_encoding_in_every_text_column() {
    let (_server, raw) = raw_client().await;
    for (encoding, hex, want) in SAMPLES {
        let bytes = |columns: &'static [&'static str]| {
            columns
                .iter()
                .map(|column| Fill::Bytes(hex.to_owned(), column))
                .collect()
        };
        each_query(
            &raw,
            OWN,
            encoding,
            |topic| bytes(text_columns(topic)),
            Some(want),
        )
        .await;
        each_query(
            &raw,
            OWN,
            encoding,
            |topic| bytes(word_columns(topic)),
            None,
        )
        .await;
    }
}

/// Every text column is in one of the two lists, or is a number as text.
#[tokio::test]
async fn no_text_column_is_forgotten() {
    let (_server, raw) = raw_client().await;
    let numbers = [
        "backend_xid",
        "backend_xmin",
        "transactionid",
        "xid",
        "xmin",
        "catalog_xmin",
    ];
    for topic in catalog::all() {
        // These are only run as they are (`query run`), by one rule for all columns; `server` is one row of facts.
        if ["waits", "progress", "replication", "server"].contains(&topic.name) {
            continue;
        }
        let statement = raw.prepare(topic.sql(OWN)).await.expect(topic.name);
        for column in statement.columns() {
            let is_text = ["text", "name", "varchar", "char"].contains(&column.type_().name());
            let name = &column.name();
            let known = text_columns(topic.name).contains(name)
                || word_columns(topic.name).contains(name)
                || numbers.contains(name);
            assert!(!is_text || known, "{} {name}", topic.name);
        }
    }
}

/// What PostgreSQL itself makes of each character of one and two bytes.
#[tokio::test]
async fn texts_read_as_the_server_reads_them() {
    let server = harness::server(&[]).await;
    let boss = client(&server.spec("postgres", "postgres"), "boss").await;
    sql(
        &boss,
        "CREATE FUNCTION reads(bytes bytea, encoding name) RETURNS text LANGUAGE plpgsql AS $$
         BEGIN RETURN convert_from(bytes, encoding); EXCEPTION WHEN OTHERS THEN RETURN NULL; END $$",
    )
    .await;
    let done: std::collections::BTreeSet<&str> =
        SAMPLES.iter().map(|(encoding, ..)| *encoding).collect();
    for encoding in done {
        let two = encoding.starts_with("EUC_") && encoding != "EUC_TW";
        if ["EUC_TW", "MULE_INTERNAL", "SQL_ASCII", "UTF8"].contains(&encoding) {
            continue;
        }
        let bytes = if two {
            "SELECT decode(to_hex(a) || to_hex(b), 'hex') AS b FROM generate_series(161, 254) a, generate_series(161, 254) b"
        } else {
            "SELECT decode(to_hex(a), 'hex') AS b FROM generate_series(160, 255) a"
        };
        let rows = boss
            .query(
                &format!("SELECT b, reads(b, '{encoding}') FROM ({bytes}) x"),
                &[],
            )
            .await
            .expect(encoding);
        let (mut same, mut other) = (0, Vec::new());
        for row in &rows {
            let (bytes, theirs): (&[u8], Option<&str>) = (row.get(0), row.get(1));
            let Some(theirs) = theirs else { continue };
            let ours = Encoding::named(encoding).decode(bytes);
            // Some punctuation of GB 2312 and JIS X 0208 has two readings.
            let two_readings = "・―‾—〜‖−¥¢£¬".contains(theirs);
            if ours == theirs || two_readings {
                same += 1;
            } else if !ours.contains('\u{fffd}') {
                other.push(format!("{bytes:x?} {ours} {theirs}"));
            }
        }
        assert!(same > 20, "{encoding}: {same}");
        assert!(
            other.is_empty(),
            "{encoding}: {} differ, {same} don't: {other:?}",
            other.len()
        );
    }
}

/// A session, a locked table and a prepared transaction in a database of each encoding, seen from another database and
/// from within.
#[tokio::test]
async fn a_database_of_each_encoding() {
    let server = harness::server(&[
        ("max_prepared_transactions", "40"),
        ("max_connections", "60"),
    ])
    .await;
    let boss = client(&server.spec("postgres", "postgres"), "boss").await;
    let mut sessions = Vec::new();
    let mut seen = Vec::new();
    for (encoding, _, text) in SAMPLES {
        if text.contains('\u{fffd}') {
            continue;
        }
        let database = format!("in_{}", encoding.to_lowercase());
        sql(
            &boss,
            &format!("CREATE DATABASE {database} ENCODING '{encoding}' TEMPLATE template0"),
        )
        .await;
        let spec = server.spec("postgres", &database);
        let preparer = client(&spec, "preparer").await;
        sql(
            &preparer,
            &format!("BEGIN; CREATE TABLE made (); PREPARE TRANSACTION '{encoding} {text}'"),
        )
        .await;
        let session = client(&spec, encoding).await;
        sql(&session, &format!("CREATE TABLE \"{text}\" ()")).await;
        sql(
            &session,
            &format!("BEGIN; LOCK TABLE \"{text}\" /* {text} */"),
        )
        .await;
        sessions.push(session);
        seen.push((encoding, text, spec));
    }
    let there = server.spec("postgres", "postgres");
    let activity = stanch_as(&there, &["pg", "activity", "--json"])
        .expect_code(0)
        .json();
    let raw = stanch_as(&there, &["query", "run", "activity", "--json"])
        .expect_code(0)
        .json();
    let transactions = stanch_as(&there, &["pg", "transactions", "--json"])
        .expect_code(0)
        .json();
    for (encoding, text, spec) in &seen {
        // Comments go before anything is shown.
        let query = format!("BEGIN; LOCK TABLE \"{text}\"");
        let find = |list: &serde_json::Value| {
            let sessions = list.as_array().expect("sessions");
            let session = sessions
                .iter()
                .find(|s| s["application_name"] == *encoding)
                .expect("the session");
            session["query"].as_str().expect("a query").to_owned()
        };
        assert_eq!(find(&activity["sessions"]), query, "{encoding}");
        assert_eq!(find(&raw["rows"]), query, "{encoding}");
        let gid = format!("{encoding} {text}");
        let prepared = transactions["prepared"].as_array().expect("prepared");
        assert!(
            prepared.iter().any(|p| p["gid"] == gid.as_str()),
            "{gid}: {prepared:?}"
        );
        let within = stanch_as(spec, &["pg", "locks", "--json"])
            .expect_code(0)
            .json();
        let relation = format!("public.{text}");
        let locks = within["locks"].as_array().expect("locks");
        assert!(
            locks.iter().any(|l| l["relation"] == relation.as_str()),
            "{encoding}: {relation} in {:?}",
            locks
                .iter()
                .filter(|l| l["relation"]
                    .as_str()
                    .is_some_and(|r| r.starts_with("public")))
                .collect::<Vec<_>>()
        );
    }
}

/// Bytes of no encoding at all: a database that checks nothing, and a client that sends what it likes.
#[tokio::test]
async fn broken_bytes_lose_no_row() {
    use std::os::unix::ffi::OsStrExt as _;
    let (server, raw) = raw_client().await;
    let role = b"CREATE ROLE \"r\xe9\xff\"; ALTER ROLE \"r\xe9\xff\" SET statement_timeout = '7s'";
    let work = b"CREATE TABLE \"t\xe9\xff\" (); BEGIN; LOCK TABLE \"t\xe9\xff\"; SELECT pg_sleep(600) /* \xe9\xff */";
    let mut psql = std::process::Command::new(server.bin_dir().join("psql"));
    psql.args(["-X", "-q", "-h"])
        .arg(server.folder())
        .args([
            "-p",
            &server.port().to_string(),
            "-U",
            "postgres",
            "-d",
            "raw",
            "-c",
        ])
        .arg(std::ffi::OsStr::from_bytes(role))
        .arg("-c")
        .arg(std::ffi::OsStr::from_bytes(work))
        .env("PGCLIENTENCODING", "SQL_ASCII");
    let mut child = psql.spawn().expect("psql runs");
    stanch::drill::until(
        &raw,
        "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'",
    )
    .await
    .expect("it sleeps");
    for database in ["postgres", "raw"] {
        let spec = server.spec("postgres", database);
        for report in harness::REPORTS {
            for format in ["table", "json"] {
                let run = stanch_as(&spec, &[report, &["-o", format]].concat());
                assert!(run.code <= 2, "{report:?}: {run:?}");
            }
        }
        for topic in catalog::all() {
            stanch_as(&spec, &["query", "run", topic.name]).expect_code(0);
        }
        let activity = stanch_as(&spec, &["pg", "activity", "--json", "--unredacted"]).json();
        let sleeping = activity["sessions"]
            .as_array()
            .expect("sessions")
            .iter()
            .find(|s| s["wait_event"] == "PgSleep")
            .expect("the session");
        assert!(
            sleeping["query"]
                .as_str()
                .expect("a query")
                .contains("/* \u{fffd}\u{fffd} */"),
            "{sleeping:#}"
        );
    }
    child.kill().expect("psql ends");
    child.wait().expect("psql ends");
}
