//! What a process waits for: by the server's own lines where there are any, else by its statement as far as that tells.

use super::aim::{Aim, Key, Verb, aim};
use super::names;
use crate::model::{LockMode, LogObject, LogPlace};

/// A table, and its schema where a statement has it.
pub type Bare = (Option<String>, String);

pub struct Target {
    /// Of the statement that waits: inside of a function that isn't the one that was sent.
    pub aim: Option<Aim>,
    pub table: Option<Bare>,
    /// The key of a row, where the statement's condition is about it.
    pub key: Option<Key>,
    /// A key that is inserted, by the name of its index.
    pub index: Option<String>,
    /// A key is inserted, and another's insert of it is waited for.
    pub by_key: bool,
    pub is_row: bool,
    pub foreign_key: bool,
    pub certainty: Certainty,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// By the server's line, or because the statement can wait for nothing else.
    Known,
    /// A statement that writes may wait for a row of its table, or of one that a foreign key or a trigger reaches.
    Likely,
}

/// The target of one wait.
pub fn target(
    on: &LogObject,
    mode: &LockMode,
    place: Option<&LogPlace>,
    statement: Option<&str>,
    inner: Option<&str>,
) -> Target {
    let aim = inner.or(statement).map(aim);
    let of_statement: Option<Bare> = aim
        .as_ref()
        .filter(|aim| names_it(aim, on, mode))
        .and_then(|aim| Some((aim.schema.clone(), aim.table.clone()?)));
    let verb = aim.as_ref().map_or(Verb::Other, |aim| aim.verb);
    let writes = matches!(verb, Verb::Insert | Verb::Update | Verb::Delete);
    let foreign_key = place.is_some_and(|place| place.foreign_key);
    let same = |place: &LogPlace| {
        of_statement
            .as_ref()
            .is_some_and(|(_, table)| *table == place.relation)
    };
    let mut index = None;
    let table = match place {
        Some(place) if place.index => {
            if !same(place) {
                index = Some(place.relation.clone());
            }
            of_statement.clone().filter(|_| writes)
        }
        // The place has no schema: the statement may.
        Some(place) if same(place) && !foreign_key => of_statement.clone(),
        Some(place) => Some((None, place.relation.clone())),
        None => of_statement.clone(),
    };
    let by_key = place.is_some_and(|place| place.index);
    // What the condition of an update picks isn't the key that it inserts, nor a row of another table.
    let own = !foreign_key && table.is_some() && table == of_statement;
    let key = aim
        .as_ref()
        .and_then(|aim| aim.key.clone())
        .filter(|_| own && on.is_row() && (!by_key || verb == Verb::Insert));
    Target {
        aim,
        table,
        key,
        index,
        by_key,
        is_row: on.is_row(),
        foreign_key,
        certainty: if place.is_none() && on.is_row() && writes {
            Certainty::Likely
        } else {
            Certainty::Known
        },
    }
}

impl Target {
    /// What is only likely stays where a certain one of the same circle is on the same table in the same way; else
    /// nothing is known of it.
    pub fn confirm(all: &mut [Self]) {
        let certain: Vec<(Bare, bool)> = all
            .iter()
            .filter(|target| target.is_row && target.certainty == Certainty::Known)
            .filter_map(|target| Some((target.table.clone()?, target.by_key)))
            .collect();
        for target in all
            .iter_mut()
            .filter(|target| target.certainty == Certainty::Likely)
        {
            let inserts = target.is(Verb::Insert);
            let confirmed = target.table.as_ref().is_some_and(|(schema, table)| {
                certain.iter().any(|((other_schema, other), by_key)| {
                    let schemas =
                        schema == other_schema || schema.is_none() || other_schema.is_none();
                    other == table && schemas && *by_key == inserts
                })
            });
            if confirmed {
                target.certainty = Certainty::Known;
                target.by_key = inserts;
            } else {
                target.table = None;
                target.key = None;
            }
        }
    }

    pub fn named(&self, unredacted: bool) -> Option<String> {
        let (schema, table) = self.table.as_ref()?;
        Some(names::shown(schema.as_deref(), table, unredacted))
    }

    /// To be held against other statements, never shown.
    pub fn raw_name(&self) -> Option<String> {
        self.named(true)
    }

    /// What is waited for, without the key of a row.
    pub fn words(&self, on: &LogObject, unredacted: bool) -> String {
        let table = self.named(unredacted);
        match on {
            LogObject::Transaction { .. } | LogObject::Tuple { .. } => match (table, &self.index) {
                (Some(table), _) if self.by_key => format!("a key of {table}"),
                (Some(table), _) => format!("a row of {table}"),
                (None, Some(index)) => {
                    format!("a key of {}", names::shown(None, index, unredacted))
                }
                (None, None) if self.certainty == Certainty::Likely => {
                    "a row (of the statement's table or of one it refers to)".into()
                }
                (None, None) => "a row".into(),
            },
            LogObject::Relation { relation, database } => {
                table.unwrap_or_else(|| format!("relation {relation} of database {database}"))
            }
            LogObject::Advisory {
                key: [high, low, 1],
                ..
            } => {
                let whole = (u64::from(*high) << 32 | u64::from(*low)).cast_signed();
                format!("advisory lock {whole}")
            }
            LogObject::Advisory {
                key: [high, low, _],
                ..
            } => format!(
                "advisory lock ({}, {})",
                high.cast_signed(),
                low.cast_signed()
            ),
            LogObject::VirtualTransaction { vxid } => format!("the end of transaction {vxid}"),
            LogObject::Other { text } => text.clone(),
        }
    }

    pub fn is(&self, verb: Verb) -> bool {
        self.aim.as_ref().is_some_and(|aim| aim.verb == verb)
    }
}

/// The lock that is waited for is the one that the statement takes on its own table: another may be a parent's, an
/// index's, or a view's, or of another statement that was sent with it.
fn names_it(aim: &Aim, on: &LogObject, mode: &LockMode) -> bool {
    if on.is_row() {
        return true;
    }
    let of_a_table = matches!(on, LogObject::Relation { .. }) && aim.alone;
    of_a_table
        && match aim.verb {
            Verb::LockTable => aim.mode.as_ref() == Some(mode),
            Verb::Ddl => mode.strength() >= LockMode::ShareUpdateExclusive.strength(),
            Verb::Update | Verb::Delete | Verb::Insert => *mode == LockMode::RowExclusive,
            Verb::SelectLock => *mode == LockMode::RowShare,
            Verb::Other => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(relation: &str, index: bool, foreign_key: bool) -> LogPlace {
        LogPlace {
            relation: relation.into(),
            page: 12,
            tuple: 190,
            index,
            foreign_key,
        }
    }

    /// Table, key and words of a wait for a row.
    fn told(
        place: Option<&LogPlace>,
        statement: &str,
        inner: Option<&str>,
    ) -> (Option<String>, bool, String) {
        let on = LogObject::Transaction { xid: 7 };
        let target = target(&on, &LockMode::Share, place, Some(statement), inner);
        let words = target.words(&on, false);
        (target.named(false), target.key.is_some(), words)
    }

    #[test]
    fn rows_and_keys_by_the_server_s_line() {
        let cases = [
            (
                place("parent", false, true),
                "insert into child2 values (1, 2)",
                None,
                (Some("parent"), false, "a row of parent"),
            ),
            (
                place("uniq_pkey", true, false),
                "insert into uniq values (1, 2)",
                None,
                (Some("uniq"), true, "a key of uniq"),
            ),
            (
                place("uniq", true, false),
                "insert into uniq values (1) on conflict do nothing",
                None,
                (Some("uniq"), true, "a key of uniq"),
            ),
            (
                place("uniq_pkey", true, false),
                "select f()",
                None,
                (None, false, "a key of uniq_pkey"),
            ),
            (
                place("uniq_pkey", true, false),
                "select f()",
                Some("insert into uniq values (1, 2)"),
                (Some("uniq"), true, "a key of uniq"),
            ),
            (
                place("u_email_key", true, false),
                "update u set email = 'a' where id = 1",
                None,
                (Some("u"), false, "a key of u"),
            ),
            (
                place("注文", false, false),
                "execute p(5)",
                None,
                (Some("注文"), false, "a row of 注文"),
            ),
            (
                place("注文", false, false),
                "do $$ … $$",
                Some("update shop.\"注文\" set a = 1 where id = 5"),
                (Some("shop.注文"), true, "a row of shop.注文"),
            ),
        ];
        for (place, statement, inner, (table, key, words)) in cases {
            assert_eq!(
                told(Some(&place), statement, inner),
                (table.map(str::to_owned), key, words.to_owned()),
                "{statement}"
            );
        }
    }

    #[test]
    fn a_lock_on_a_table_is_of_the_function_s_statement() {
        let on = LogObject::Relation {
            relation: 16456,
            database: 5,
        };
        let of = |mode: LockMode| {
            let inner = Some("LOCK TABLE l_five IN SHARE MODE");
            target(&on, &mode, None, Some("do $$ x $$"), inner).words(&on, false)
        };
        assert_eq!(of(LockMode::Share), "l_five");
        assert_eq!(of(LockMode::AccessShare), "relation 16456 of database 5");
    }
}
