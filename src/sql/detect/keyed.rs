//! Values behind a key that names a secret: `password=…`, `"api_key": "…"`, `requirepass …`.

use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex, RegexBuilder};

use super::extent::{Before, is_pair};
use super::shapes::is_masked;
use super::{Hit, Rule};

/// The key ends in the word: `password_encryption` and `token_id` are settings and columns.
const PATTERN: &str = r#"(?x)
    (?<dotted>[."]*) (?<key>(?i-u:[a-z0-9_-]*
        (?:password|passwd|passphrase|passwort|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|secret[_-]?key
        |account[_-]?key|encryption[_-]?key|signing[_-]?key|key[_-]?base|credentials?|authorization|cookie|session[_-]?id|requirepass|masterauth|cvv|cvc
        |pass|pw|sig|signature)))
    (?<close>\\?["'])? (?<gap>[\ \t\r\n]*) (?<op>=>|:=|=|:|[\ \t]) (?<after>[\ \t\r\n]*)
    (?<value>
        \\"(?:[^"\\]|\\\\.)*(?:\\")?
        |"(?:[^"\\]|\\.)*"?
        |'(?:[^'\\]|\\.|'')*'?
        |[^\s"'][^\s,;&<>|)}\]"'\\]*
    )"#;

/// In a name only the words that mean nothing else, and `=`.
const NAMED: &str = r#"(?x)
    (?<key>(?i-u:[a-z0-9_-]*(?:password|passwd|pwd|secret|token)))
    \ *(?<op>=)\ * (?<value>'(?:[^'\\]|\\.|'')*'?|[^\s"'][^\s,;&<>|)}\]"'\\]*)"#;

static KEYED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    RegexBuilder::new(PATTERN)
        .dfa_size_limit(8 << 20)
        .build()
        .ok()
});

static IN_NAME: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(NAMED).ok());

/// All such values of a name (a role, a database).
pub(super) fn named_hits(name: &str, all: &mut Vec<Hit>) {
    let Some(regex) = IN_NAME.as_ref().filter(|_| name.contains('=')) else {
        return;
    };
    let mut at = 0;
    while let Some(captures) = regex.captures_at(name, at) {
        let (Some(key), Some(value)) = (captures.name("key"), captures.name("value")) else {
            return;
        };
        at = value.end();
        let before = Before::key(name, key.start(), "=");
        let rest = &name[value.start()..];
        if is_none(before, rest, "=") || is_masked(rest) {
            continue;
        }
        let whole = whole(name, before, value.range());
        let inside = name[whole.clone()].trim_matches('\'');
        if !is_masked(inside) && !is_no_value(inside) {
            at = whole.end.max(at);
            all.push(Hit {
                range: within_quotes(name, whole),
                rule: rule(&captures, key.as_str()),
            });
        }
    }
}

/// All such values of a text.
pub(super) fn hits(text: &str, all: &mut Vec<Hit>) {
    let Some(regex) = KEYED.as_ref() else {
        return;
    };
    let mut at = 0;
    while let Some(captures) = regex.captures_at(text, at) {
        let (Some(key), Some(value)) = (captures.name("key"), captures.name("value")) else {
            return;
        };
        // The quote before it is the key's own where one follows it.
        let own = captures.name("close").and(captures.get(0));
        let start = own.map_or(key.start(), |all| all.start());
        let op = captures.name("op").map_or("", |op| op.as_str());
        let before = Before::key(text, start, op);
        // How far it reaches is looked for last: a text of nothing but keys is read once.
        let secret = Some(value.range())
            .filter(|_| is_secret(text, &captures, before))
            .map(|found| whole(text, before, found))
            .filter(|whole| !is_masked(&text[whole.clone()]) && !is_template(&text[whole.clone()]));
        if let Some(whole) = secret {
            at = whole.end;
            all.push(Hit {
                range: within_quotes(text, whole),
                rule: rule(&captures, key.as_str()),
            });
        } else {
            // What was no value may be the next key.
            at = captures
                .name("gap")
                .map_or(value.start(), |gap| gap.start());
        }
    }
}

/// Nothing stands behind the operator, or the next pair.
fn is_none(before: Before<'_>, rest: &str, op: &str) -> bool {
    let pair = rest.strip_prefix([',', ';', '&', '|']);
    before.is_end(rest, false) || pair.is_some_and(|pair| is_pair(pair, op))
}

/// A value of which the pattern found the beginning. Behind its closing quote one goes on only as a shell's words do:
/// `'ab'\''cd'`.
fn whole(text: &str, before: Before<'_>, found: Range<usize>) -> Range<usize> {
    let quoted = text[found.clone()].starts_with(['"', '\'', '\\']);
    let goes_on =
        text[found.end..].starts_with(|c: char| c.is_alphanumeric() || "\"'\\".contains(c));
    if quoted && !(goes_on && text[..found.start].ends_with('=')) {
        return found;
    }
    // The quote before the key may be the one that seems to open the value.
    found.start..before.end(text, found.end)
}

/// The quotes stay, so that a document remains one.
fn within_quotes(text: &str, range: Range<usize>) -> Range<usize> {
    let value = &text[range.clone()];
    let mark = match value.as_bytes() {
        [b'\\', b'"', ..] => "\\\"",
        [b'"', ..] => "\"",
        [b'\'', ..] => "'",
        _ => return range,
    };
    let inside = &value[mark.len()..];
    let end = inside.strip_suffix(mark).map_or(0, |_| mark.len());
    range.start + mark.len()..range.end - end
}

fn rule(captures: &Captures<'_>, key: &str) -> Rule {
    let op = captures.name("op").map_or("", |op| op.as_str());
    if key == "PGPASSWORD" {
        Rule::PgpasswordEnv
    } else if op == "="
        && captures.name("close").is_none()
        && matches!(key, "password" | "sslpassword")
    {
        Rule::ConninfoPassword
    } else {
        Rule::KeyValueSecret
    }
}

fn is_secret(text: &str, captures: &Captures<'_>, before: Before<'_>) -> bool {
    let part = |name: &str| captures.name(name).map_or("", |part| part.as_str());
    let (key, op, value) = (part("key"), part("op"), part("value"));
    let lower_key = key.to_ascii_lowercase();
    let start = captures.name("value").map_or(0, |value| value.start());
    let end = captures.name("value").map_or(0, |value| value.end());
    let quoted = value.starts_with(['"', '\'']) || value.starts_with("\\\"");
    let inside = value.trim_matches(['"', '\'', '\\']);
    let sql = is_sql(text, start);
    let spaced = !part("gap").is_empty() || !part("after").is_empty();
    // Given to a program, where any sign may be one of a password.
    let given = op == "=" && !spaced && !sql;
    let alone = !given || {
        let more = &text[end..whole(text, before, start..end).end];
        let mut rest = more.chars();
        rest.next().is_none() || is_pair(rest.as_str(), op)
    };
    if alone && (is_masked(value) || is_no_value(inside)) {
        return false;
    }
    let sign = value.starts_with([',', ';', '&', '<', '>', '|', ')', '}', ']', '\\']);
    if !quoted && sign && (!given || is_none(before, &text[start..], op)) {
        return false;
    }
    if op.trim().is_empty() {
        // `requirepass x` of a configuration; other words may be followed by anything.
        return matches!(lower_key.as_str(), "requirepass" | "masterauth");
    }
    let weak = ["pass", "pw", "sig", "signature"]
        .iter()
        .any(|word| lower_key.ends_with(word));
    if weak
        && (op != "=" || !part("close").is_empty() || alone && is_other_word(&lower_key, inside))
    {
        return false;
    }
    let after = text[end..].trim_start_matches(' ');
    if !quoted && after.starts_with('(')
        || value.starts_with(['$', '(', ':', '@', '~', '!', '='])
            && is_bind(value)
            && !(given && value.contains(|c: char| c.is_ascii_digit()) && !value.starts_with('$'))
    {
        return false;
    }
    if quoted {
        // `token = "t"."token"` compares columns.
        return !(value.starts_with(['"', '\\']) && after.starts_with('.'));
    }
    let called = value
        .split_once('(')
        .is_some_and(|(name, _)| weak || is_name(name));
    if called && (spaced || part("dotted").contains('.') || sql) {
        return false;
    }
    match op {
        ":" => colon(text, start, end, spaced, value),
        _ => {
            let sql =
                sql && (weak || spaced || value.to_ascii_lowercase().contains(tail(&lower_key)));
            !is_column(&lower_key, part("dotted").contains('.'), sql, value)
        }
    }
}

/// `bypass`, `pass=3`, `sig=SIGTERM`: a key or a value that says nothing of secrets.
fn is_other_word(key: &str, value: &str) -> bool {
    const OTHERS: &[&str] = &[
        "bypass",
        "compass",
        "encompass",
        "overpass",
        "surpass",
        "trespass",
        "underpass",
    ];
    let digits = |part: &str| part.len() < 6 && part.bytes().all(|b| b.is_ascii_digit());
    let count = match value.split_once(['/', '.', '-']) {
        Some((whole, part)) => digits(whole) && digits(part.trim_end_matches('%')),
        None => digits(value.trim_end_matches('%')),
    };
    let signal = key.ends_with("sig") && value.bytes().all(|b| b.is_ascii_uppercase());
    count || signal || OTHERS.iter().any(|other| key.ends_with(other))
}

/// `$1`, `:name`, `:=`, `::text`, `(select`.
fn is_bind(value: &str) -> bool {
    let rest = &value[1..];
    match value.as_bytes().first() {
        Some(b'$') => !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()),
        Some(b'(') => true,
        _ => {
            rest.starts_with(|c: char| c.is_ascii_lowercase() || matches!(c, ':' | '='))
                || rest.is_empty()
        }
    }
}

fn is_no_value(inside: &str) -> bool {
    const WORDS: &[&str] = &[
        "null",
        "nil",
        "none",
        "true",
        "false",
        "yes",
        "no",
        "on",
        "off",
        "default",
        "required",
        "optional",
        "missing",
        "invalid",
        "expired",
        "unset",
        "unknown",
        "string",
        "text",
        "varchar",
        "bytea",
        "any",
        "all",
        "env",
        "set",
        "empty",
        "scram-sha-256",
        "md5",
        "trust",
        "bearer",
        "basic",
        "undefined",
        "is",
        "not",
        "ok",
        "failed",
        "denied",
        "incorrect",
        "wrong",
        "authentication",
    ];
    let bare = inside.trim_end_matches(['.', ',', '!', ':', '`']);
    WORDS.iter().any(|word| bare.eq_ignore_ascii_case(word)) || matches!(bare, "{" | "[")
}

/// `{}`, `{user},{host}`: nothing but places that something else is put in.
fn is_template(value: &str) -> bool {
    let mut rest = value;
    loop {
        let name = rest.trim_start_matches('{');
        let after =
            name.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || "_.:?$".contains(c));
        if name.len() == rest.len() || !after.starts_with('}') {
            return false;
        }
        rest = after.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '{');
        if rest.is_empty() {
            return true;
        }
    }
}

/// `password: hunter2` is one, `password: see the vault` is prose.
fn colon(text: &str, start: usize, end: usize, spaced: bool, value: &str) -> bool {
    if text[..start].ends_with("::") || value.starts_with(':') || value.starts_with("//") {
        return false;
    }
    let plain = value
        .trim_end_matches(['.', ','])
        .bytes()
        .all(|b| b.is_ascii_alphabetic() || b == b'-' || b == b'_');
    let after = text[end..].trim_start_matches(['"', '\'', ' ', '}', ']', '\\']);
    let last = after.is_empty() || after.starts_with(['\n', '\r']);
    // Keys and classes: `token:user:42`
    let composed = !spaced && value.contains(':');
    !composed && !value.starts_with(['/', '*']) && (!plain || last && value.len() >= 4)
}

/// SQL compares and sets columns: `a.token = b.token`, `set token = new_token`.
fn is_column(key: &str, dotted: bool, sql: bool, value: &str) -> bool {
    let value = value.split("::").next().unwrap_or(value);
    let parts: Vec<&str> = value.split('.').collect();
    if !parts.iter().all(|part| is_name(part)) {
        return false;
    }
    if let [.., _, last] = parts[..] {
        return last.to_ascii_lowercase().contains(tail(key)) || dotted || sql;
    }
    // `token2` is a column beside `token`.
    let bare = value.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = value.len() - bare.len();
    let small = !bare
        .bytes()
        .any(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
    sql && small && (digits == 0 || digits < 3 && bare.ends_with(tail(key)))
}

/// `token` of `reset_token`.
fn tail(key: &str) -> &str {
    key.rsplit(['_', '-']).next().unwrap_or(key)
}

fn is_name(part: &str) -> bool {
    part.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && part.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// A statement's words stand before, not far off.
fn is_sql(text: &str, at: usize) -> bool {
    const FAR: usize = 600;
    let mut from = at.saturating_sub(FAR);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let lower = text[from..at].to_ascii_lowercase();
    [
        "select ", "update ", "insert ", "delete ", "merge ", " where ", " set ", " join ",
    ]
    .iter()
    .any(|word| lower.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        let mut all = Vec::new();
        hits(text, &mut all);
        all.iter().map(|hit| &text[hit.range.clone()]).collect()
    }

    #[test]
    fn values_behind_their_keys() {
        for (text, value) in [
            ("host=x password=hunter2 dbname=y", "hunter2"),
            ("host=x password = 'hun ter2' dbname=y", "hun ter2"),
            ("PGPASSWORD=hunter2 psql", "hunter2"),
            ("{\"password\": \"correct horse\"}", "correct horse"),
            ("{\\\"api_key\\\":\\\"abc\\\"}", "abc"),
            ("?user=a&password=hunter&x=1", "hunter"),
            ("password: hunter2", "hunter2"),
            ("aws_secret_access_key = Ab3", "Ab3"),
            ("requirepass hunter", "hunter"),
            ("\\npassword=hunter", "hunter"),
            ("password=correcthorse", "correcthorse"),
            ("host=db DB_PASS=hunter2", "hunter2"),
            ("user=app pass=hunter", "hunter"),
            ("\\npass='hun ter'", "hun ter"),
            ("pw=hunter2;", "hunter2"),
            ("?se=2026&sig=aB%2F3x&sv=1", "aB%2F3x"),
            ("X-Amz-Signature=abc123", "abc123"),
            ("sig=471147", "471147"),
            ("AccountName=a;AccountKey=hunter2==;x=y", "hunter2=="),
            ("host=x password=ab,hunter91x", "ab,hunter91x"),
            ("host=x password=ab'hunter91x user=y", "ab'hunter91x"),
            ("password=a\\ hunter91x user=y", "a\\ hunter91x"),
            ("PGPASSWORD='ab'\\''hunter91x' psql", "ab'\\''hunter91x"),
            ("--password=ab|hunter91x)", "ab|hunter91x)"),
            ("?password=ab&hunter91x&a=b", "ab&hunter91x"),
            ("password=no;hunter91x", "no;hunter91x"),
            ("password=<hunter91x", "<hunter91x"),
            ("password=!hunter91x", "!hunter91x"),
            ("password={hunter91x", "{hunter91x"),
            (
                "{\"dsn\": \"password=ab\"hunter91x\", \"a\": 1}",
                "ab\"hunter91x",
            ),
            ("SharedAccessKey=hunter2=", "hunter2="),
            ("apikey=hunter", "hunter"),
        ] {
            assert_eq!(found(text), [value], "{text}");
        }
    }

    #[test]
    fn values_within_names() {
        let found = |name: &'static str| {
            let mut all = Vec::new();
            named_hits(name, &mut all);
            all.iter()
                .map(|hit| &name[hit.range.clone()])
                .collect::<Vec<_>>()
        };
        for (name, value) in [
            ("eve password=hunter2X", "hunter2X"),
            ("shop_password=hunter2db", "hunter2db"),
            ("password=x", "x"),
            ("PASSWD = 'hun ter'", "hun ter"),
            ("a token=hunter, b", "hunter"),
            ("app(secret=hunter)", "hunter"),
            ("app secret=ab)hunter", "ab)hunter"),
            ("eve password=ab,hunter", "ab,hunter"),
            ("pwd=hunt\\er", "hunt\\er"),
        ] {
            assert_eq!(found(name), [value], "{name}");
        }
        let none: [&str; 0] = [];
        for name in [
            "password_resets",
            "token_id=4",
            "secret-rotation",
            "password",
            "password=",
            "password=***",
            "token=(not shown: a secret value)",
            "a=b",
            "pass=hunter2",
        ] {
            assert_eq!(found(name), none, "{name}");
        }
    }

    #[test]
    fn what_is_no_value() {
        let none: [&str; 0] = [];
        for text in [
            "update t set password = crypt(?, gen_salt(?))",
            "select 1 where a.token = b.token and t.secret=u.secret",
            "select * from s where token = $1 and password = ?",
            "update t set token = new_token where x",
            "UPDATE t SET token=new_token, password=old.password where token = token2",
            "\"users\".\"token\" = \"t\".\"token\"",
            "password_encryption=md5",
            "{\"password_encryption\": \"on\"}",
            "token::text",
            "select token from auth_tokens",
            "password: see the vault",
            "token: required",
            "PGPASSWORD=$PASS psql",
            "password=(not shown: a secret value)",
            "password=*** host=x",
            "bypass=always compass=north fs_bypass=hunter2x",
            "pass=3 pw=1 sig=11 pass=12/20 pass=99.5%",
            "sig=SIGTERM",
            "pass: hunter2 signature: hunter2",
            "pass hunter2",
            "select * from t where pass=hash and t.sig=u.sig and pw = $1",
            "update t set pw=crypt(?, pw), pass = new_pass",
            "pass=%s pw=? sig=***",
            "let sig = input.parse(x)?",
            "password={password},{host} token={} secret={name:?}",
            "password=<secret> token=, secret=;host=x",
            "?token=&x=1",
            "update t set token=?,secret=?,a=b",
            "pass=3,fail=4",
            "a password in a connection string is reduced",
        ] {
            assert_eq!(found(text), none, "{text}");
        }
    }
}
