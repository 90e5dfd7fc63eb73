//! What was given, and the plan that comes of it. The table of ways that psql takes too is in `tests/live/connecting.rs`.

use super::*;
use crate::model::{Origin, Secret};

fn env(pairs: &[(&str, &str)]) -> Environment {
    pairs
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect()
}

fn plan(input: &ConnInput, pairs: &[(&str, &str)]) -> Result<Plan, ConnInputError> {
    resolve(input, &env(pairs))
}

fn of(dbname: &str, pairs: &[(&str, &str)]) -> Result<Plan, ConnInputError> {
    let dbname = (!dbname.is_empty()).then(|| dbname.to_owned());
    plan(
        &ConnInput {
            dbname,
            ..ConnInput::default()
        },
        pairs,
    )
}

/// `user:password@host:port/database` of each place.
fn shown(plan: &Plan) -> String {
    let one = |spec: &ConnSpec| {
        let password = spec.password.as_ref().map_or("-", Secret::expose);
        format!(
            "{}:{password}@{}:{}/{}",
            spec.user, spec.host, spec.port, spec.database
        )
    };
    plan.places.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn urls_and_strings_in_all_their_forms() {
    for (text, want) in [
        ("postgresql://u:p@h:1/d", "u:p@h:1/d"),
        ("postgres://u@h", "u:-@h:5432/u"),
        ("postgresql://u:p%40%3A@[::1]:7/d%20b", "u:p@:@::1:7/d b"),
        ("postgresql://u@%2Ftmp%2Fx/d", "u:-@/tmp/x:5432/d"),
        (
            "postgresql:///d?host=/tmp/x&port=9&user=u&password=p",
            "u:p@/tmp/x:9/d",
        ),
        ("postgresql://u@h:/d?sslmode=prefer", "u:-@h:5432/d"),
        ("postgresql://u@a:1,b:2/d", "u:-@a:1/d u:-@b:2/d"),
        ("postgresql://u@a,b/d?port=7", "u:-@a:7/d u:-@b:7/d"),
        ("host=a,b port=1,2 user=u dbname=d", "u:-@a:1/d u:-@b:2/d"),
        (r"user=u host=h dbname='it\'s'", "u:-@h:5432/it's"),
    ] {
        let plan = of(text, &[]).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(shown(&plan), want, "{text}");
    }
}

#[test]
fn faults_say_what_is_wrong_and_never_the_password() {
    for text in [
        "mysql://u:hunter2@h/d",
        "postgresql://u:hunter2@ss@h/d",
        "postgresql://u:hunter2@s/w@h/d?x",
        "postgresql://u@h/d?password=ab&hunter2=x",
        "postgresql://u:hunter2@h:0/d",
        "postgresql://u:hunter2@h:x/d",
        "postgresql://u:hunter2@h/d?nonsense=1",
        "postgresql://u:hunter2@h/d?sslmode=maybe",
        "postgresql://u:hunter2%ff@h/d",
        "postgresql://u:hunter2@[::1/d",
        "host=h password=hunter2 port=x",
        "password=hunter2 sslmode=hunter2",
        "host=h password=hunter2 connect_timeout=hunter2",
    ] {
        let error = of(text, &[]).expect_err(text).to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn precedence_is_flag_string_env_database_url() {
    let all = [
        ("PGHOST", "envhost"),
        ("PGUSER", "envuser"),
        ("PGPASSWORD", "envpass"),
        ("DATABASE_URL", "postgresql://du:dp@dh:99/dd"),
    ];
    let input = ConnInput {
        host: Some("flaghost".into()),
        dbname: Some("postgresql://urluser@urlhost/urldb".into()),
        ..ConnInput::default()
    };
    let both = plan(&input, &all).expect("a plan");
    assert_eq!(shown(&both), "urluser:envpass@flaghost:5432/urldb");
    let origins: Vec<(&str, &Origin)> = both
        .parameters
        .iter()
        .map(|p| (p.name.as_str(), &p.origin))
        .collect();
    assert_eq!(
        origins,
        [
            ("host", &Origin::flag("-h")),
            ("port", &Origin::Default),
            ("dbname", &Origin::Url),
            ("user", &Origin::Url),
            ("password", &Origin::environment("PGPASSWORD")),
            ("sslmode", &Origin::Default),
        ]
    );
    assert!(
        !format!("{both:?}").contains("envpass"),
        "no password in what can be printed"
    );
    let none = of("", &all).expect("a plan");
    assert_eq!(shown(&none), "envuser:envpass@envhost:5432/envuser");
}

#[test]
fn database_urls_password_goes_nowhere_else() {
    let only = [("DATABASE_URL", "postgresql://du:dp@dh:99/dd")];
    let with = |input: ConnInput| shown(&plan(&input, &only).expect("a plan"));
    assert_eq!(with(ConnInput::default()), "du:dp@dh:99/dd");
    let user = |name: &str| ConnInput {
        user: Some(name.into()),
        ..ConnInput::default()
    };
    assert_eq!(with(user("du")), "du:dp@dh:99/dd", "it is its own login");
    assert_eq!(with(user("other")), "other:-@dh:99/dd");
    let host = ConnInput {
        host: Some("other".into()),
        ..ConnInput::default()
    };
    assert_eq!(with(host), "postgres:-@other:5432/postgres");
    for text in [
        "postgresql://me@there/shop",
        "host=there user=me dbname=shop",
    ] {
        let given = of(text, &only).expect("a plan");
        assert_eq!(shown(&given), "me:-@there:5432/shop");
    }
}

#[test]
fn what_applications_keep_in_database_url_is_no_fault() {
    let user = |url: &str| {
        of("", &[("DATABASE_URL", url), ("USER", "me")]).map(|plan| plan.first().user.clone())
    };
    assert_eq!(user("mysql://u@h/d"), Ok("me".into()));
    assert_eq!(user("postgresql+asyncpg://u@h/d"), Ok("u".into()));
    for query in [
        "schema=public&pool=5",
        "ssl=false",
        "sslmode=no-verify",
        "options=-csearch_path=app",
    ] {
        assert_eq!(user(&format!("postgresql://u@h/d?{query}")), Ok("u".into()));
    }
    let wrong = user("postgresql://u@h/d?sslmode=maybe").expect_err("no mode");
    assert!(wrong.to_string().starts_with("DATABASE_URL: "), "{wrong}");
    let broken = [("DATABASE_URL", "postgresql://u@h:x/d")];
    assert!(
        of("postgresql://u@h/d", &broken).is_ok(),
        "it isn't looked at"
    );
}

#[test]
fn the_next_command_goes_the_same_way_to_the_same_place() {
    let next = |text: &str, env: &[(&str, &str)], place: usize| {
        let plan = of(text, env).expect("a plan");
        plan.conninfo(&plan.places[place])
    };
    let tls = [("PGSSLMODE", "require")];
    let of_url = "postgresql://u:secret@h/d";
    assert_eq!(next(of_url, &tls, 0), None, "place and login are enough");
    for (text, env, place, want) in [
        (
            "postgresql://u:secret@h/d?sslmode=verify-full&sslrootcert=/a b.crt",
            &tls[..],
            0,
            "host=h port=5432 user=u dbname=d sslmode=verify-full sslrootcert='/a b.crt'",
        ),
        // Of several hosts the one that answered; nothing is left to choose.
        (
            "host=a,b port=1,2 user=u dbname=d load_balance_hosts=random sslmode=require",
            &[],
            1,
            "host=b port=2 user=u dbname=d sslmode=require",
        ),
        (
            "user=u dbname=d",
            &[
                ("PGHOST", "a,b"),
                ("PGHOSTADDR", "::1,::2"),
                ("PGPORT", "1,2"),
            ],
            1,
            "host=b hostaddr=::2 port=2 user=u dbname=d",
        ),
        // The environment's place is written out beside what the options gave.
        (
            "user=u dbname=d passfile=/p sslmode=prefer",
            &[("PGHOST", "there"), ("PGPORT", "7")],
            0,
            "host=there port=7 user=u dbname=d passfile=/p sslmode=prefer",
        ),
        // `DATABASE_URL` isn't looked at again once a place is named.
        (
            "",
            &[(
                "DATABASE_URL",
                "postgresql://u:secret@h/d?sslmode=verify-full",
            )],
            0,
            "host=h port=5432 user=u dbname=d sslmode=verify-full",
        ),
        (
            "postgresql://u@h/a%3Db",
            &[],
            0,
            "host=h port=5432 user=u dbname=a=b",
        ),
    ] {
        let shown = next(text, env, place);
        assert_eq!(shown.as_deref(), Some(want), "{text}");
        // It leads to that one place, with the same options.
        let again = of(want, env).expect(want);
        let first = &of(text, env).expect(text).places[place];
        assert_eq!(again.places.len(), 1, "{want}");
        let same = |spec: &ConnSpec| {
            (
                spec.host.clone(),
                spec.hostaddr.clone(),
                spec.port,
                spec.user.clone(),
                spec.database.clone(),
                spec.options.clone(),
            )
        };
        assert_eq!(same(again.first()), same(first), "{want}");
    }
    let url = [("DATABASE_URL", "postgresql://u:secret@h/d")];
    let again = of("host=h port=5432 user=u dbname=d", &url).expect("a plan");
    assert!(again.first().password.is_some(), "its own place and login");
}

#[test]
fn a_target_holds_no_password() {
    for text in [
        "postgresql://u:p@h/d",
        "host=h password=p",
        "postgresql://h/d?password=p",
    ] {
        let fault = check_target(text).expect_err(text);
        assert!(fault.contains("a password doesn't belong"), "{fault}");
    }
    for text in [
        "postgresql://u@h/d",
        "service=prod",
        "host=h user=u",
        "shop",
    ] {
        assert_eq!(check_target(text), Ok(()));
    }
    assert!(check_target("host=h nonsense=1").is_err());
}
