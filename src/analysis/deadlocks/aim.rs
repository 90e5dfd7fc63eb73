//! What a statement locks, as far as its text tells: the table, and the row by its key.

use crate::sql::{Token, tokens};

/// What a statement is out for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aim {
    pub verb: Verb,
    /// The one table that it writes or locks.
    pub table: Option<String>,
    /// Equalities that pick one row; `None`: several rows, or it can't be told.
    pub key: Option<Key>,
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

/// Reads a statement; a text of several is read by its last, which is the one that waits.
pub fn aim(sql: &str) -> Aim {
    let all = tokens(sql);
    let last = all
        .split(|token| *token == Token::Symbol(';'))
        .rfind(|part| !part.is_empty())
        .unwrap_or_default();
    let word = |n: usize| last.get(n).and_then(word_of).unwrap_or_default();
    let (verb, name_at) = match word(0).as_str() {
        "update" => (Verb::Update, 1),
        "delete" => (Verb::Delete, 2),
        "insert" => (Verb::Insert, 2),
        "lock" => (Verb::LockTable, if word(1) == "table" { 2 } else { 1 }),
        "select" if locks_rows(last) => (
            Verb::SelectLock,
            position(last, "from").map_or(0, |at| at + 1),
        ),
        "truncate" => (Verb::Ddl, if word(1) == "table" { 2 } else { 1 }),
        "alter" | "drop" if word(1) == "table" => (Verb::Ddl, 2),
        "create" | "reindex" | "drop" | "alter" | "cluster" | "vacuum" | "refresh" => (
            Verb::Ddl,
            position(last, "on")
                .filter(|_| word(0) == "create")
                .map_or(0, |at| at + 1),
        ),
        _ => (Verb::Other, 0),
    };
    let table = (name_at > 0).then(|| name(last, name_at)).flatten();
    let joined = position(last, "join").is_some()
        || verb == Verb::SelectLock
            && position(last, "from").is_some_and(|at| has_comma(&last[at..]));
    let key = match verb {
        Verb::Update | Verb::Delete | Verb::SelectLock => key(last),
        Verb::Insert => inserted(last),
        _ => None,
    };
    Aim {
        verb,
        table: table.map(|(name, _)| name).filter(|_| !joined),
        key: key.filter(|_| !joined),
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

/// A second table in FROM, up to WHERE.
fn has_comma(from: &[Token<'_>]) -> bool {
    from.iter()
        .take_while(|token| !is(token, "where"))
        .any(|token| *token == Token::Symbol(','))
}

/// A name without its schema, and where it ends.
fn name(tokens: &[Token<'_>], at: usize) -> Option<(String, usize)> {
    let mut at = at;
    while ["only", "if", "exists", "concurrently"]
        .iter()
        .any(|word| tokens.get(at).is_some_and(|token| is(token, word)))
    {
        at += 1;
    }
    loop {
        let part = match tokens.get(at)? {
            Token::Word(word) => word.to_lowercase(),
            Token::Quoted(word) => word.trim_matches('"').replace("\"\"", "\""),
            _ => return None,
        };
        if tokens.get(at + 1) != Some(&Token::Symbol('.')) {
            return Some((part, at + 1));
        }
        at += 2;
    }
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
    let (_, after) = name(tokens, 2)?;
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
            ("begin; update t set a = 1 where id = 9", "Update t id 9"),
            ("", "Other  "),
        ];
        for (sql, expected) in cases {
            assert_eq!(said(sql), expected, "{sql}");
        }
    }
}
