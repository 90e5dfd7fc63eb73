//! What has a shape of its own, wherever it stands.

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use base64::Engine as _;
use regex::{Captures, Regex, RegexSet, RegexSetBuilder};

use super::extent::Before;
use super::{Hit, Rule, numbers, rows};

/// A shape: its pattern, in which the group `text` (or all of it) is the secret, and what must hold besides.
pub(super) struct Shape {
    rule: Rule,
    pattern: &'static str,
    holds: Holds,
}

enum Holds {
    Always,
    /// Of the match.
    Match(fn(&str, &Captures<'_>) -> bool),
    /// The secret goes on to where a value ends; of all of it.
    Value(fn(&str) -> bool),
    /// The place of the secret that begins with the group `text`.
    Place(fn(&str, &Captures<'_>) -> Option<Range<usize>>),
}

const fn shape(rule: Rule, pattern: &'static str) -> Shape {
    let holds = Holds::Always;
    Shape {
        rule,
        pattern,
        holds,
    }
}

pub(super) const fn checked(
    rule: Rule,
    pattern: &'static str,
    holds: fn(&str, &Captures<'_>) -> bool,
) -> Shape {
    let holds = Holds::Match(holds);
    Shape {
        rule,
        pattern,
        holds,
    }
}

const fn value(rule: Rule, pattern: &'static str, holds: fn(&str) -> bool) -> Shape {
    let holds = Holds::Value(holds);
    Shape {
        rule,
        pattern,
        holds,
    }
}

/// No pattern asks for a border at its left: in JSON a token may follow the `n` of a `\n`.
static SHAPES: &[Shape] = &[
    Shape {
        rule: Rule::UrlPassword,
        pattern: r#"(?<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?<user>[^\s/?#"'<>:@]*):(?<text>\S)"#,
        holds: Holds::Place(url_password),
    },
    shape(
        Rule::PrivateKey,
        r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----(?:[^-]*(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----)?)",
    ),
    shape(
        Rule::Jwt,
        r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?",
    ),
    shape(
        Rule::AwsKey,
        r"(?:AKIA|ASIA|AROA|AIDA|ABIA|ACCA)[A-Z0-9]{12,}",
    ),
    shape(
        Rule::GithubToken,
        r"(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,})",
    ),
    shape(
        Rule::SlackToken,
        r"(?:xox[abeoprs]-[A-Za-z0-9-]{8,}|xapp-[0-9]-[A-Za-z0-9-]{8,}|hooks\.slack\.com/services/[A-Za-z0-9/]+)",
    ),
    shape(
        Rule::StripeKey,
        r"(?:(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{8,}|whsec_[A-Za-z0-9+/=]{16,})",
    ),
    shape(
        Rule::GoogleKey,
        r"(?:AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{16,}|GOCSPX-[A-Za-z0-9_-]{16,})",
    ),
    shape(
        Rule::VendorToken,
        r"(?:glpat-[A-Za-z0-9_-]{16,}|npm_[A-Za-z0-9]{30,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|hv[sb]\.[A-Za-z0-9_-]{20,}|dop_v1_[a-f0-9]{32,}|shp(?:at|ss|ca)_[a-fA-F0-9]{24,}|pypi-[A-Za-z0-9_-]{30,}|sk-[A-Za-z0-9]+-[A-Za-z0-9_-]{20,}|sk-[A-Za-z0-9]{32,})",
    ),
    checked(
        Rule::Bearer,
        r"(?i-u:bearer)[ +]+(?<text>[A-Za-z0-9._~+/=-]{8,})",
        bearer,
    ),
    checked(
        Rule::BasicAuth,
        r"(?i-u:basic)[ +]+(?<text>[A-Za-z0-9+/_-]{6,}=*)",
        basic,
    ),
    value(
        Rule::BasicAuth,
        r#"(?:\s-u|--user|--proxy-user)[ =]*\\?['"]?(?<text>[^\s:'"\\]+:\S)"#,
        login,
    ),
    checked(
        Rule::KeyValueSecret,
        r"<(?i-u:[a-z0-9_:-]*(?:password|passwd|secret|token|api_?key))(?: [^<>]*)?>(?<text>[^<>\s][^<>]*)<",
        |_, captures| stated(group(captures).0),
    ),
    value(
        Rule::KeyValueSecret,
        r#"--[a-z-]*(?:password|passwd|token|secret|api-key)[ \t]+\\?["']?(?<text>[^\s"'\\-])"#,
        stated,
    ),
    value(
        Rule::KeyValueSecret,
        r#"(?:redis-cli[^\n|;]* -a +|mysql[a-z]*[^\n|;]* -p)\\?["']?(?<text>[^\s"'\\])"#,
        stated,
    ),
    value(
        Rule::KeyValueSecret,
        r#"(?i-u:password|passwort|passphrase|secret|token) (?:is|ist|was|war) \\?["'`]?(?<text>[^\s"'`\\,])"#,
        told,
    ),
    shape(
        Rule::ScramVerifier,
        r"SCRAM-SHA-(?:1|256|512)\$[0-9]+:[A-Za-z0-9+/=$:]*",
    ),
    shape(Rule::Md5RoleHash, r"md5[0-9a-f]{32}"),
    value(
        Rule::PgpassLine,
        r#"(?m)(?:^|[\s"'])(?<text>(?:[A-Za-z0-9._*/-]+|\[[0-9a-fA-F:]+\]):(?:[0-9]{4,5}|\*):[^\s:"']+:[^\s:"']+:\S)"#,
        pgpass,
    ),
    checked(
        Rule::CardNumber,
        r"[0-9](?:[ -]?[0-9]){12,18}",
        numbers::card_number,
    ),
    checked(Rule::Ssn, r"[0-9]{3}-[0-9]{2}-[0-9]{4}", numbers::alone),
    checked(
        Rule::Email,
        r"[A-Za-z0-9._%+\x{80}-\x{10ffff}-]+@[A-Za-z0-9\x{80}-\x{10ffff}-]+(?:\.[A-Za-z0-9\x{80}-\x{10ffff}-]+)*\.[A-Za-z\x{80}-\x{10ffff}]{2,}",
        email,
    ),
];

fn all() -> impl Iterator<Item = &'static Shape> {
    SHAPES.iter().chain(rows::SHAPES)
}

/// Room for the states of all patterns at once: built again and again, they cost more than the search.
const DFA_SIZE: usize = 32 << 20;

// A pattern that doesn't compile would find nothing; a test holds that all of them do.
static SET: LazyLock<RegexSet> = LazyLock::new(|| {
    RegexSetBuilder::new(all().map(|shape| shape.pattern))
        .dfa_size_limit(DFA_SIZE)
        .build()
        .unwrap_or_else(|_| RegexSet::empty())
});
/// A shape, compiled when a text has it first: most texts have none.
struct Lazy {
    shape: &'static Shape,
    regex: OnceLock<Option<Regex>>,
}

static EACH: LazyLock<Vec<Lazy>> = LazyLock::new(|| {
    let lazy = |shape| Lazy {
        shape,
        regex: OnceLock::new(),
    };
    all().map(lazy).collect()
});

fn compiled(at: usize) -> Option<(&'static Shape, &'static Regex)> {
    let lazy = EACH.get(at)?;
    let compile = || Regex::new(lazy.shape.pattern).ok();
    Some((lazy.shape, lazy.regex.get_or_init(compile).as_ref()?))
}

/// All shapes in a text.
pub(super) fn hits(text: &str) -> Vec<Hit> {
    let mut found = Vec::new();
    // Cheaper than which of them, and most lines hold none.
    if !SET.is_match(text) {
        return found;
    }
    for i in SET.matches(text) {
        let Some((shape, regex)) = compiled(i) else {
            continue;
        };
        for captures in regex.captures_iter(text) {
            let (_, mut range) = group(&captures);
            if shape.rule == Rule::RowData {
                range = rows::to_last_bracket(text, range);
            }
            let taken_out = text[range.start..].starts_with("(not shown: ");
            let holds = match shape.holds {
                _ if taken_out => false,
                Holds::Always => true,
                Holds::Match(holds) => holds(text, &captures),
                Holds::Value(holds) => {
                    // Its first sign may be one that ends it.
                    let from = text[..range.end].char_indices().next_back();
                    let before = Before::word(text, range.start);
                    range.end = before.end(text, from.map_or(range.end, |(at, _)| at));
                    holds(&text[range.clone()])
                }
                Holds::Place(place) => match place(text, &captures) {
                    Some(place) => {
                        range = place;
                        true
                    }
                    None => false,
                },
            };
            if holds {
                found.push(Hit {
                    range,
                    rule: shape.rule,
                });
            }
        }
    }
    found
}

/// The secret of a match, and where it stands.
pub(super) fn group<'a>(captures: &Captures<'a>) -> (&'a str, Range<usize>) {
    captures
        .name("text")
        .or_else(|| captures.get(0))
        .map_or(("", 0..0), |found| (found.as_str(), found.range()))
}

/// What stands for a value that was taken out.
pub(super) fn is_masked(value: &str) -> bool {
    let value = value.trim_matches(['"', '\'', '\\', ' ', '`']);
    value.is_empty()
        || value.bytes().all(|b| b"?*.#-_ ".contains(&b))
        || value.len() >= 3 && value.bytes().all(|b| matches!(b, b'x' | b'X'))
        || value.contains('…') && value.chars().all(|c| "?,… ()*-".contains(c))
        || value.starts_with("(not shown")
        || ["[redacted", "<redacted", "redacted", "hidden", "[filtered", "[masked", "<masked"]
            .iter()
            .any(|word| value.get(..word.len()).is_some_and(|v| v.eq_ignore_ascii_case(word)))
        // A reference to where it is kept, or a place in a template.
        || value.starts_with("${") || value.starts_with("$(") || value.starts_with("{{")
        || value.starts_with("<") && value.ends_with('>')
        || value.starts_with('%') && value.len() == 2
        || value.strip_prefix('$').is_some_and(|name| {
            !name.is_empty()
                && name
                    .bytes()
                    .all(|b| b.is_ascii_uppercase() || b == b'_' || b.is_ascii_digit())
        })
}

/// Up to the last `@` before the next blank. Those of databases have a password also where the text is cut before its
/// host, and with a blank in it: a host with a port looks otherwise.
fn url_password(text: &str, captures: &Captures<'_>) -> Option<Range<usize>> {
    const FAMILIES: &[&str] = &[
        "postgres",
        "postgresql",
        "redis",
        "rediss",
        "valkey",
        "valkeys",
        "amqp",
        "amqps",
        "mysql",
        "mariadb",
        "mongodb",
        "mssql",
        "sqlserver",
        "clickhouse",
        "cockroachdb",
    ];
    // Further than this from its `@` a word is no part of it; and no password is so long.
    const FAR: usize = 100;
    const FURTHEST: usize = 4096;
    let part = |name: &str| captures.name(name).map_or("", |part| part.as_str());
    let (scheme, user) = (part("scheme"), part("user"));
    // `postgresql+psycopg2`, `redis+sentinel`
    let family = scheme.split('+').next().unwrap_or_default();
    let database = FAMILIES.iter().any(|it| family.eq_ignore_ascii_case(it));
    let (_, first) = group(captures);
    let outside = captures.get(0).map_or(first.start, |all| all.start());
    // What can be told from its beginning is: a text may be nothing but URLs.
    let rest = &text[first.start..];
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let is_port = (1..=5).contains(&digits);
    let mut near = rest.bytes().take(FURTHEST);
    let ends = near.any(|byte| matches!(byte, b'@' | b' ' | b'\n'));
    if is_port && rest[digits..].starts_with(['/', '?', '#', ',']) || !database && !ends {
        return None;
    }
    let word = first.start..Before::word(text, outside).end(text, first.start);
    let password = &text[word.clone()];
    let after = password.get(digits..).unwrap_or_default();
    let range = match password.rfind('@') {
        Some(at) => word.start..word.start + at,
        None if !database || user.contains(['[', '\\']) => return None,
        None if is_port
            && (after.starts_with(['/', '?', '#', ',', ';'])
                || !after.contains(char::is_alphanumeric)) =>
        {
            return None;
        }
        // A host, and what stands for a port.
        None if password
            .split(|c: char| !c.is_alphanumeric())
            .next()
            .is_some_and(|word| word.eq_ignore_ascii_case("port")) =>
        {
            return None;
        }
        None => {
            let rest = &text[word.end..];
            let line = &rest[..rest.find('\n').unwrap_or(rest.len())];
            let at = line
                .find('@')
                .filter(|at| rest.starts_with(' ') && *at < FAR);
            word.start..word.end + at.unwrap_or(0)
        }
    };
    (!is_masked(&text[range.clone()])).then_some(range)
}

fn bearer(_: &str, captures: &Captures<'_>) -> bool {
    let (token, _) = group(captures);
    token.bytes().any(|b| b.is_ascii_digit())
        || token.len() >= 20 && token.bytes().any(|b| b.is_ascii_uppercase())
}

/// `user:password` is in it.
fn basic(_: &str, captures: &Captures<'_>) -> bool {
    let (token, _) = group(captures);
    let bare = token.trim_end_matches('=');
    // The end may be cut: whole groups of four say enough.
    let whole = &bare[..bare.len() / 4 * 4];
    [bare, whole].iter().any(|part| {
        base64::engine::general_purpose::STANDARD_NO_PAD
            .decode(part)
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .is_some_and(|login| login.contains(':') && !login.contains(char::is_control))
    })
}

/// Not a word that stands for it, as documents have.
fn stated(value: &str) -> bool {
    let stands_for = |b: u8| b.is_ascii_uppercase() || matches!(b, b'_' | b'.' | b'[' | b']');
    !is_masked(value) && !value.bytes().all(stands_for)
}

/// "The password is …", with more than a word or a number behind it.
fn told(value: &str) -> bool {
    value.len() >= 4
        && !is_masked(value)
        && value.bytes().any(|b| b.is_ascii_digit())
        && value.bytes().any(|b| b.is_ascii_alphabetic())
}

/// Not the numbers of a user and a group.
fn login(login: &str) -> bool {
    login.split_once(':').is_some_and(|(_, password)| {
        !is_masked(password) && !password.bytes().all(|b| b.is_ascii_digit())
    })
}

fn pgpass(line: &str) -> bool {
    let mut fields = if let Some(rest) = line.strip_prefix('[') {
        rest.rsplitn(5, ':').collect::<Vec<_>>()
    } else {
        line.splitn(5, ':').collect::<Vec<_>>()
    };
    if line.starts_with('[') {
        fields.reverse();
    }
    let [host, port, _, _, password] = fields[..] else {
        return false;
    };
    let host_like = host == "*"
        || host == "localhost"
        || host.contains('.')
        || host.starts_with('/')
        || host.ends_with(']');
    let known_port = matches!(port, "6432" | "6543") || port.len() == 4 && port.starts_with("543");
    (known_port || host_like) && !is_masked(password)
}

fn email(text: &str, captures: &Captures<'_>) -> bool {
    let (address, range) = group(captures);
    let (name, domain) = address.split_once('@').unwrap_or_default();
    let in_url = text[..range.start].ends_with("://");
    let inside = [
        ".internal",
        ".local",
        ".localdomain",
        ".lan",
        ".svc",
        ".corp",
        ".intra",
    ];
    let lower = domain.to_lowercase();
    let host = inside.iter().any(|end| lower.ends_with(end));
    // `git@…` and `celery@…` name a host.
    !in_url && !host && !matches!(name, "git" | "celery") && !name.starts_with('%')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_patterns_compile() {
        assert_eq!(SET.len(), all().count());
        assert!((0..all().count()).all(|at| compiled(at).is_some()));
    }
}
