//! No planted secret survives the redaction of its place, and the gate would have found it had there been none.

use std::io::Write as _;
use std::time::Instant;

use crate::corpus::{INNOCENT, PLANTED, Place, Planted};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use stanch::bundle::{self, Class, KnownSecrets};
use stanch::model::RedactionLevel;
use stanch::sql::{detect, name_redacted, redacted, shown};

fn redact(place: Place, text: &str) -> String {
    if place.is_statement() {
        shown(text).text
    } else {
        redacted(text).into_owned()
    }
}

/// Whole groups of the secret's base64, so that its neighbours don't matter.
fn base64_of(secret: &str) -> String {
    let text = STANDARD_NO_PAD.encode(secret);
    text[..text.len() / 4 * 4].to_owned()
}

fn holds(text: &str, secret: &str) -> bool {
    let percent: Vec<u8> = percent_encoding::percent_decode_str(text).collect();
    let known = KnownSecrets::new([("planted", secret)]);
    text.contains(secret)
        || String::from_utf8_lossy(&percent).contains(secret)
        || text.contains(&base64_of(secret))
        || known.find(text).is_some()
}

#[test]
fn the_corpus_is_wide_and_its_names_differ() {
    assert!(PLANTED.len() >= 100, "{}", PLANTED.len());
    let mut names: Vec<_> = PLANTED.iter().map(|planted| planted.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), PLANTED.len());
}

#[test]
fn no_planted_secret_survives() {
    let mut faults = Vec::new();
    for Planted {
        name,
        place,
        text,
        secret,
    } in PLANTED.iter().copied()
    {
        let after = redact(place, text);
        if holds(&after, secret) {
            faults.push(format!("{name}: {after}"));
        }
        if redact(place, &after) != after {
            faults.push(format!("{name}: changes again: {after}"));
        }
        if let Some(rule) = detect(&after) {
            faults.push(format!(
                "{name}: the gate finds {} in: {after}",
                rule.name()
            ));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn names_that_hold_a_password_are_found_by_the_rules_of_names() {
    let of_names = |planted: &&Planted| {
        planted.name.starts_with("password ") && planted.place == Place::Username
    };
    let all: Vec<_> = PLANTED.iter().filter(of_names).collect();
    assert_eq!(all.len(), 2);
    for planted in all {
        let after = name_redacted(planted.text);
        assert!(!holds(&after, planted.secret), "{after}");
        assert_eq!(name_redacted(&after), after);
    }
    for (place, text) in INNOCENT {
        if *place == Place::Username {
            assert_eq!(name_redacted(text), *text);
        }
    }
}

#[test]
fn the_gate_finds_what_was_not_redacted() {
    let mut faults = Vec::new();
    for Planted {
        name, place, text, ..
    } in PLANTED.iter().copied()
    {
        let statement_changes = place.is_statement() && shown(text).text != text;
        if detect(text).is_none() && !statement_changes {
            faults.push(format!("{name}: {text}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Else the gate would refuse what the redactor itself has left.
#[test]
fn a_statement_that_was_redacted_stays_as_it_is() {
    let usual = [
        "SELECT pg_catalog.set_config('search_path', '', false)",
        "select set_config('statement_timeout', '5s', true), 1",
        "explain select set_config('app.key', 'x', false) from t",
        "with a as (select set_config('search_path', 'x', false)) select * from a",
        "select set_config(?, ?, true)",
        "SELECT …",
    ];
    let hidden = "SELECT …";
    let kept = bundle::shown(Class::Statement, hidden.into(), RedactionLevel::Redacted);
    assert_eq!(kept, hidden);
    let planted = PLANTED.iter().map(|planted| planted.text);
    let innocent = INNOCENT.iter().map(|(_, text)| *text);
    for text in planted.chain(innocent).chain(usual) {
        // Cut anywhere, as the server cuts them.
        let cuts = text.char_indices().map(|(at, _)| at).skip(1).step_by(7);
        for end in cuts.chain([text.len()]) {
            let once = bundle::shown(
                Class::Statement,
                text[..end].into(),
                RedactionLevel::Redacted,
            );
            let twice = bundle::shown(Class::Statement, once.clone(), RedactionLevel::Redacted);
            assert_eq!(twice, once, "{}", &text[..end]);
        }
    }
}

#[test]
fn innocent_texts_stay_as_they_are() {
    let mut faults = Vec::new();
    for (place, text) in INNOCENT.iter().copied() {
        let after = redact(place, text);
        // Lists fold; that is no redaction.
        if after != text && !after.contains(", …") {
            faults.push(format!("{text}\n    became {after}"));
        }
        if let Some(rule) = detect(text) {
            faults.push(format!("{}: {text}", rule.name()));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Told only when asked for: `cargo test --release thirty_megabytes -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn thirty_megabytes() {
    let mut text = String::new();
    while text.len() < 30_000_000 {
        for (_, line) in INNOCENT {
            text.push_str(line);
            text.push('\n');
        }
    }
    let mut out = std::io::stderr();
    let start = Instant::now();
    assert!(text.lines().all(|line| detect(line).is_none()));
    writeln!(out, "detect, line by line: {:?}", start.elapsed()).unwrap();

    let start = Instant::now();
    assert_eq!(detect(&text), None);
    writeln!(out, "detect, at once: {:?}", start.elapsed()).unwrap();

    let known =
        KnownSecrets::new((0..10).map(|n| (format!("{n}"), format!("hunter2-{n}-hunter2"))));
    let start = Instant::now();
    assert!(text.lines().all(|line| known.find(line).is_none()));
    writeln!(out, "ten known secrets: {:?}", start.elapsed()).unwrap();

    let start = Instant::now();
    let replaced: u32 = text.lines().map(|line| shown(line).replaced).sum();
    assert!(replaced > 0);
    writeln!(out, "shown, {replaced} replaced: {:?}", start.elapsed()).unwrap();
}

/// Whatever stands beside a value, no text makes the rules fall over.
#[test]
fn no_text_breaks_the_rules() {
    for text in [
        "password='ab'é",
        "password=\"ab\"é",
        "pw='a'日本",
        "password=\\\"a\\\"é",
        "password='a'é=b password=é'ü'",
        "postgres://u:é@h redis://ü:1é,é",
        "-u 'é:\"é' --password \"é",
    ] {
        let _ = (redacted(text), name_redacted(text));
        let said = redacted(text).into_owned();
        assert_eq!(redacted(&said), said, "{text}");
    }
    const PARTS: [&str; 14] = [
        "password",
        "token",
        "=",
        ":",
        "'",
        "\"",
        "\\",
        "é",
        "日",
        " ",
        "redis://a:",
        "@",
        "1",
        ")",
    ];
    let mut state = 7_u64;
    for _ in 0..20_000 {
        let text: String = (0..12)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                PARTS[usize::try_from(state >> 33).unwrap_or(0) % PARTS.len()]
            })
            .collect();
        let _ = (redacted(&text), name_redacted(&text));
    }
}

/// A text of nothing but what might be secrets is read in the time that its length takes: these never came to an end.
#[test]
fn texts_that_are_nothing_but_candidates() {
    for part in [
        "redis://a:6379,",
        "http://a:b",
        "token:",
        "x token=$1;",
        "token=null|",
        "(password=)",
    ] {
        let text = part.repeat((32 << 10) / part.len());
        let _ = (redacted(&text), name_redacted(&text));
    }
}
