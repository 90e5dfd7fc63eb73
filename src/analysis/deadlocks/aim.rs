//! What a statement locks, as far as its text tells: the table, and the row by its key.

use super::masked::sure;
use crate::model::LockMode;
use crate::sql::{Token, tokens};

/// Longest name that the server has, in bytes.
const NAME: usize = 63;

/// What a statement is out for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aim {
    pub verb: Verb,
    /// The one table that it writes or locks, without its schema.
    pub table: Option<String>,
    /// The table's schema, where it is written.
    pub schema: Option<String>,
    /// No other table is named.
    pub alone: bool,
    /// Of LOCK TABLE the mode that it asks for.
    pub mode: Option<LockMode>,
    /// Equalities that all must hold; `None`: several values, or it can't be told.
    pub key: Option<Key>,
}

impl Aim {
    const NOTHING: Self = Self {
        verb: Verb::Other,
        table: None,
        schema: None,
        alone: false,
        mode: None,
        key: None,
    };

    /// The table with its schema, unless that is `public`.
    pub fn named(&self) -> Option<String> {
        let table = self.table.as_ref()?;
        Some(match self.schema.as_deref() {
            Some(schema) if schema != "public" => format!("{schema}.{table}"),
            _ => table.clone(),
        })
    }

    /// By its name the key picks one row: of `id`, `uuid`, or `account_id` in `accounts`. Of `status` it may be many.
    pub fn picks_one(&self) -> bool {
        let Some((table, key)) = self.table.as_ref().zip(self.key.as_ref()) else {
            return false;
        };
        let one = table.strip_suffix('s').unwrap_or(table);
        let own = format!("{one}_id");
        key.iter()
            .any(|(column, _)| *column == "id" || *column == "uuid" || *column == own)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Update,
    Delete,
    Insert,
    SelectLock,
    LockTable,
    Ddl,
    Other,
}

/// Columns with their values, as written.
pub type Key = Vec<(String, Value)>;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    Number(String),
    Text(String),
}

/// Reads a statement. Of a text with several that lock, nobody knows which one waits.
pub fn aim(sql: &str) -> Aim {
    let all = tokens(sure(sql));
    let mut aims = all
        .split(|token| *token == Token::Symbol(';'))
        .map(of_one)
        .filter(|aim| aim.verb != Verb::Other);
    match (aims.next(), aims.next()) {
        (Some(only), None) => only,
        _ => Aim::NOTHING,
    }
}

fn of_one(tokens: &[Token<'_>]) -> Aim {
    let word = |n: usize| tokens.get(n).and_then(word_of).unwrap_or_default();
    let behind = |wanted: &str| position(tokens, wanted).map_or(0, |at| at + 1);
    let or_table = if word(1) == "table" { 2 } else { 1 };
    let (verb, name_at) = match word(0).as_str() {
        "update" => (Verb::Update, 1),
        "delete" => (Verb::Delete, 2),
        "insert" => (Verb::Insert, 2),
        "lock" => (Verb::LockTable, or_table),
        "select" if locks_rows(tokens) => (Verb::SelectLock, behind("from")),
        "truncate" => (Verb::Ddl, or_table),
        "alter" | "drop" if word(1) == "table" => (Verb::Ddl, 2),
        "create" => (Verb::Ddl, behind("on")),
        "reindex" | "drop" | "alter" | "cluster" | "vacuum" | "refresh" => (Verb::Ddl, 0),
        _ => return Aim::NOTHING,
    };
    let Some((schema, table, after)) = (name_at > 0).then(|| name(tokens, name_at)).flatten()
    else {
        return Aim {
            verb,
            ..Aim::NOTHING
        };
    };
    let rest = &tokens[after..];
    let names = |words: &[&str]| words.iter().any(|word| position(rest, word).is_some());
    let several = match verb {
        Verb::Update => names(&["from", "select"]),
        Verb::Delete => names(&["using", "select"]),
        Verb::Insert => names(&["select", "table"]),
        Verb::SelectLock => names(&["join", "select", "from"]) || has_comma(rest),
        Verb::LockTable => rest.contains(&Token::Symbol(',')),
        Verb::Ddl => {
            names(&["references", "inherit", "attach", "partition"])
                || (word(0) == "drop" || word(0) == "truncate") && has_comma(rest)
        }
        Verb::Other => true,
    };
    let key = match verb {
        Verb::Update | Verb::Delete | Verb::SelectLock => key(rest),
        Verb::Insert => inserted(tokens),
        _ => None,
    };
    // Of several tables the written one is still the first; what a SELECT locks isn't.
    let told = !several || matches!(verb, Verb::Update | Verb::Delete | Verb::Insert);
    Aim {
        verb,
        table: Some(table).filter(|_| told),
        schema: schema.filter(|_| told),
        alone: !several,
        mode: (verb == Verb::LockTable).then(|| lock_mode(rest)),
        key: key.filter(|_| !several),
    }
}

fn word_of(token: &Token<'_>) -> Option<String> {
    match token {
        Token::Word(word) => Some(word.to_lowercase()),
        _ => None,
    }
}

fn is(token: &Token<'_>, wanted: &str) -> bool {
    matches!(token, Token::Word(word) if word.eq_ignore_ascii_case(wanted))
}

fn position(tokens: &[Token<'_>], wanted: &str) -> Option<usize> {
    tokens.iter().position(|token| is(token, wanted))
}

fn locks_rows(tokens: &[Token<'_>]) -> bool {
    tokens.windows(2).any(|two| {
        is(&two[0], "for")
            && ["update", "share", "no", "key"]
                .iter()
                .any(|word| is(&two[1], word))
    })
}

/// `IN SHARE ROW EXCLUSIVE MODE`; without, the strongest.
fn lock_mode(tokens: &[Token<'_>]) -> LockMode {
    let words: Vec<String> = tokens.iter().filter_map(word_of).collect();
    let from = words.iter().position(|word| word == "in");
    let to = words.iter().position(|word| word == "mode");
    let between = from.zip(to).and_then(|(from, to)| words.get(from + 1..to));
    LockMode::ALL
        .into_iter()
        .find(|mode| {
            between.is_some_and(|words| mode.short().eq_ignore_ascii_case(&words.concat()))
        })
        .unwrap_or(LockMode::AccessExclusive)
}

/// A second table in FROM, up to WHERE.
fn has_comma(from: &[Token<'_>]) -> bool {
    from.iter()
        .take_while(|token| !is(token, "where"))
        .any(|token| *token == Token::Symbol(','))
}

/// A schema where there is one, the name, and where it ends.
fn name(tokens: &[Token<'_>], at: usize) -> Option<(Option<String>, String, usize)> {
    let mut at = at;
    while ["only", "if", "exists", "concurrently"]
        .iter()
        .any(|word| tokens.get(at).is_some_and(|token| is(token, word)))
    {
        at += 1;
    }
    let mut schema = None;
    loop {
        let part = match tokens.get(at)? {
            Token::Word(word) => word.to_lowercase(),
            Token::Quoted(word) => unquoted(word),
            _ => return None,
        };
        if part.len() > NAME {
            return None;
        }
        if tokens.get(at + 1) != Some(&Token::Symbol('.')) {
            return Some((schema, part, at + 1));
        }
        schema = Some(part);
        at += 2;
    }
}

/// A quote that belongs to the name may stand at its end.
fn unquoted(word: &str) -> String {
    let inside = word.strip_prefix('"').unwrap_or(word);
    inside
        .strip_suffix('"')
        .unwrap_or(inside)
        .replace("\"\"", "\"")
}

/// The equalities of WHERE that all must hold.
fn key(tokens: &[Token<'_>]) -> Option<Key> {
    let start = position(tokens, "where")? + 1;
    let end = tokens[start..]
        .iter()
        .position(|token| {
            ["returning", "for", "order", "limit"]
                .iter()
                .any(|word| is(token, word))
        })
        .map_or(tokens.len(), |at| start + at);
    let condition = &tokens[start..end];
    // Of alternatives none can be told for sure, and what a subquery compares isn't this row's.
    if ["or", "select", "between", "not"]
        .iter()
        .any(|word| position(condition, word).is_some())
    {
        return None;
    }
    let mut key = Key::new();
    let mut at = 0;
    while at < condition.len() {
        let equals = condition.get(at + 1) == Some(&Token::Symbol('='))
            && !matches!(condition.get(at + 2), Some(Token::Symbol('=')));
        let column = match condition[at] {
            Token::Word(word) if equals => Some(word.to_lowercase()),
            Token::Quoted(word) if equals => Some(word.trim_matches('"').to_owned()),
            _ => None,
        };
        if let Some(column) = column
            && let Some((value, next)) = value(condition, at + 2)
        {
            key.push((column, value));
            at = next;
            continue;
        }
        if let Some((column, value, next)) = list_of_one(condition, at) {
            key.push((column, value));
            at = next;
            continue;
        }
        at += 1;
    }
    (!key.is_empty()).then_some(key)
}

/// `id IN (7)`
fn list_of_one(tokens: &[Token<'_>], at: usize) -> Option<(String, Value, usize)> {
    let column = word_of(tokens.get(at)?)?;
    let shaped = is(tokens.get(at + 1)?, "in") && tokens.get(at + 2) == Some(&Token::Symbol('('));
    let (value, next) = value(tokens, at + 3).filter(|_| shaped)?;
    (tokens.get(next) == Some(&Token::Symbol(')'))).then_some((column, value, next + 1))
}

/// A literal that nothing is computed with.
fn value(tokens: &[Token<'_>], at: usize) -> Option<(Value, usize)> {
    let (value, mut next) = match tokens.get(at)? {
        Token::Number(number) => (Value::Number((*number).to_owned()), at + 1),
        Token::Symbol('-') => match tokens.get(at + 1)? {
            Token::Number(number) => (Value::Number(format!("-{number}")), at + 2),
            _ => return None,
        },
        // A text that was masked before is any text.
        Token::Text("…") => return None,
        Token::Text(text) => (Value::Text((*text).to_owned()), at + 1),
        _ => return None,
    };
    // A cast changes nothing of it.
    if tokens.get(next..next + 2) == Some(&[Token::Symbol(':'), Token::Symbol(':')]) {
        next += 3;
    }
    let ends = match tokens.get(next) {
        None | Some(Token::Symbol(')' | ',')) => true,
        Some(Token::Word(word)) => word.eq_ignore_ascii_case("and"),
        _ => false,
    };
    ends.then_some((value, next))
}

/// The first value of the one row that is inserted.
fn inserted(tokens: &[Token<'_>]) -> Option<Key> {
    let (_, _, after) = name(tokens, 2)?;
    let column = match tokens.get(after..after + 2) {
        Some([Token::Symbol('('), Token::Word(first)]) => first.to_lowercase(),
        _ => "value".into(),
    };
    let values = position(tokens, "values")?;
    let opening = |at: usize| tokens.get(at) == Some(&Token::Symbol('('));
    let (value, _) = value(tokens, values + 2).filter(|_| opening(values + 1))?;
    let rows = tokens[values..]
        .windows(3)
        .filter(|three| **three == [Token::Symbol(')'), Token::Symbol(','), Token::Symbol('(')])
        .count();
    (rows == 0).then(|| vec![(column, value)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(sql: &str) -> String {
        let aim = aim(sql);
        let key = aim.key.map(|key| {
            key.iter()
                .map(|(column, value)| match value {
                    Value::Number(n) => format!("{column} {n}"),
                    Value::Text(t) => format!("{column} '{t}'"),
                })
                .collect::<Vec<_>>()
                .join(" ")
        });
        format!(
            "{:?} {} {}",
            aim.verb,
            aim.table.unwrap_or_default(),
            key.unwrap_or_default()
        )
    }

    #[test]
    fn a_schema_tells_tables_apart() {
        let cases = [
            ("update s2.t set a = 1", Some("s2.t")),
            ("update public.t set a = 1", Some("t")),
            (
                "update shop.\"S \"\"2\"\"\".\"T\" set a = 1",
                Some("S \"2\".T"),
            ),
            ("update t set a = 1", Some("t")),
            ("select 1", None),
        ];
        for (sql, named) in cases {
            assert_eq!(aim(sql).named().as_deref(), named, "{sql}");
        }
    }

    #[test]
    fn what_lock_table_asks_for() {
        let cases = [
            ("lock table t", LockMode::AccessExclusive),
            (
                "LOCK t IN SHARE ROW EXCLUSIVE MODE NOWAIT",
                LockMode::ShareRowExclusive,
            ),
            ("lock table only s.t in /* x */ share mode", LockMode::Share),
        ];
        for (sql, mode) in cases {
            assert_eq!(aim(sql).mode, Some(mode), "{sql}");
        }
        assert_eq!(aim("update t set a = 1").mode, None);
    }

    #[test]
    fn a_name_has_a_longest_length() {
        let of = |length: usize| aim(&format!("update \"{}\" set a = 1", "x".repeat(length))).table;
        assert_eq!(of(63).map(|name| name.len()), Some(63));
        assert_eq!(of(64), None);
    }

    #[test]
    fn tables_and_keys() {
        let cases = [
            (
                "update accounts set balance = balance + 1\n where id = 2;",
                "Update accounts id 2",
            ),
            (
                "UPDATE ONLY public.\"Accounts\" a SET x = 1 WHERE a.id = -7::bigint",
                "Update Accounts id -7",
            ),
            (
                "delete from t where a = 'x' and b = 3 returning *",
                "Delete t a 'x' b 3",
            ),
            (
                "select * from t where id in (5) for no key update",
                "SelectLock t id 5",
            ),
            (
                "select 1 from a, b where a.id = 1 for update",
                "SelectLock  ",
            ),
            ("select * from t where id = 1", "Other  "),
            ("insert into s.t (id, n) values (4, 5)", "Insert t id 4"),
            ("insert into t values ('k', 5)", "Insert t value 'k'"),
            ("insert into t values (1), (2)", "Insert t "),
            ("update t set x = 1 where id = 1 or id = 2", "Update t "),
            ("update t set x = 1 where id in (1, 2)", "Update t "),
            ("update t set x = 1 where id = $1", "Update t "),
            ("update t set x = 1 where id = 1 + 1", "Update t "),
            ("update t set x = 1 where id >= 1", "Update t "),
            (
                "lock table accounts in exclusive mode",
                "LockTable accounts ",
            ),
            ("alter table if exists only x.y add z int", "Ddl y "),
            ("create index concurrently i on t (a)", "Ddl t "),
            (
                "begin; update t set a = 1 where id = 9; commit",
                "Update t id 9",
            ),
            (
                "update t set a = 1 where id = 8; update t set a = 1 where id = 9",
                "Other  ",
            ),
            (
                "update t set a = b.x from b where t.id = b.id and b.id = 5",
                "Update t ",
            ),
            ("update t set a = 1 where id = '…'", "Update t "),
            ("lock table a, b", "LockTable  "),
            ("alter table a add foreign key (x) references b", "Ddl  "),
            ("", "Other  "),
        ];
        for (sql, expected) in cases {
            assert_eq!(said(sql), expected, "{sql}");
        }
    }
}
