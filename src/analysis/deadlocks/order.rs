//! The lock-order conflict: what each holds and what it asks for, by the logic of a circle.
//!
//! Who is waited for holds what is asked for. So each member holds what the one before it wants, and then asks for
//! what it waits for itself: two members make "A: 1, then 2; B: 2, then 1" without any line but the report's own.

use std::collections::BTreeMap;

use super::aim::{Aim, Value, Verb, aim};
use super::masked::is_private;
use super::names;
use super::report::{Basis, Order, OrderConflict, Shape};
use super::target::{Target, target};
use crate::model::{LogDeadlock, LogEdge, LogObject, Pid};

/// One edge with what it is about.
pub struct Want {
    pub target: Target,
    /// The table, or what else is locked, in words.
    pub on: String,
    pub table: Option<String>,
    /// Which of its rows, in words.
    pub key: Option<String>,
    object: LogObject,
}

impl Want {
    fn is_row(&self) -> bool {
        self.object.is_row()
    }

    /// `accounts id 1`, `accounts`, `advisory lock 22`; `None` where a row is meant and which one isn't known.
    fn thing(&self) -> Option<String> {
        match (&self.table, &self.key, self.is_row()) {
            (Some(table), Some(key), true) => Some(format!("{table} {key}")),
            (_, _, true) => None,
            _ => Some(self.on.clone()),
        }
    }

    /// By their names they may be rows of one table or of two: only one of the statements has a schema.
    fn may_share_table(&self, other: &Self) -> bool {
        let ((Some((a, mine)), Some((b, theirs))), true) = (
            (&self.target.table, &other.target.table),
            self.is_row() && other.is_row(),
        ) else {
            return false;
        };
        let elsewhere =
            |schema: &Option<String>| schema.as_deref().is_some_and(|name| name != "public");
        mine == theirs && (a.is_none() && elsewhere(b) || b.is_none() && elsewhere(a))
    }

    /// The same thing is meant, not only the same word.
    fn is_same(&self, other: &Self) -> bool {
        match (self.is_row(), other.is_row()) {
            (true, true) => self.thing().is_some() && self.thing() == other.thing(),
            (false, false) => self.object == other.object,
            _ => false,
        }
    }
}

/// All want one thing, and it is one: rows by a key that may pick several are none.
fn want_one(wants: &[Want]) -> bool {
    wants.len() > 1
        && wants.iter().all(|want| want.is_same(&wants[0]))
        && wants
            .iter()
            .all(|want| !want.is_row() || want.target.aim.as_ref().is_some_and(Aim::picks_one))
}

/// What each member waits for; texts in keys get letters unless they may be shown.
pub fn wants(deadlock: &LogDeadlock, unredacted: bool) -> Vec<Want> {
    let mut letters = BTreeMap::new();
    let mut targets: Vec<Target> = deadlock
        .edges
        .iter()
        .map(|edge| {
            target(
                &edge.on,
                &edge.mode,
                edge.place.as_ref(),
                edge.statement.as_deref(),
                edge.inner.as_deref(),
            )
        })
        .collect();
    Target::confirm(&mut targets);
    deadlock
        .edges
        .iter()
        .zip(targets)
        .map(|(edge, target)| want(edge, target, &mut letters, unredacted))
        .collect()
}

fn want(
    edge: &LogEdge,
    target: Target,
    letters: &mut BTreeMap<String, String>,
    unredacted: bool,
) -> Want {
    let mut spell = |value: &Value| match value {
        Value::Number(number) if unredacted || !is_private(number) => number.clone(),
        Value::Text(text) if unredacted => format!("'{text}'"),
        Value::Text(text) | Value::Number(text) => {
            let next = letter(letters.len());
            letters.entry(text.clone()).or_insert(next).clone()
        }
    };
    let key = target.key.as_ref().map(|key| {
        key.iter()
            .map(|(column, value)| format!("{column} {}", spell(value)))
            .collect::<Vec<_>>()
            .join(", ")
    });
    let table = target.named(unredacted);
    let on = match (&table, &key) {
        (Some(table), Some(key)) if target.is_row => format!("{table} {key}"),
        _ => target.words(&edge.on, unredacted),
    };
    Want {
        on,
        table,
        key,
        object: edge.on.clone(),
        target,
    }
}

/// A, B, … Z, AA, …
fn letter(n: usize) -> String {
    let last = char::from(b'A' + u8::try_from(n % 26).unwrap_or(0));
    match n / 26 {
        0 => last.to_string(),
        more => format!("{}{last}", letter(more - 1)),
    }
}

/// What kind of conflict it is.
pub fn shape(deadlock: &LogDeadlock, wants: &[Want]) -> Shape {
    let edges = &deadlock.edges;
    let is = |check: fn(&LogObject) -> bool| edges.iter().all(|edge| check(&edge.on));
    if is(|on| matches!(on, LogObject::Advisory { .. })) {
        return Shape::AdvisoryOrder;
    }
    if wants.iter().any(|want| want.target.is(Verb::Ddl)) {
        return Shape::Ddl;
    }
    if wants.iter().any(|want| want.target.foreign_key) {
        return Shape::ForeignKey;
    }
    if want_one(wants) {
        return Shape::LockUpgrade;
    }
    if is(|on| matches!(on, LogObject::Relation { .. })) {
        return Shape::TableOrder;
    }
    if wants.iter().all(|want| want.target.by_key) {
        return Shape::UniqueKey;
    }
    let rows = wants.iter().all(Want::is_row);
    let tables: Vec<&String> = wants
        .iter()
        .filter_map(|want| want.table.as_ref())
        .collect();
    let unsure = wants
        .iter()
        .any(|a| wants.iter().any(|b| a.may_share_table(b)));
    match rows && tables.len() == wants.len() && !unsure {
        true if tables.iter().all(|table| *table == tables[0]) => Shape::RowOrder,
        true => Shape::TableOrder,
        false => Shape::Mixed,
    }
}

/// The order of each, where it can be told of all.
pub fn conflict(deadlock: &LogDeadlock, wants: &[Want], names: &[String]) -> Option<OrderConflict> {
    let n = wants.len();
    let things: Vec<String> = wants.iter().map(Want::thing).collect::<Option<_>>()?;
    if n < 2 {
        return None;
    }
    if want_one(wants) {
        return Some(OrderConflict {
            text: format!(
                "{} each hold a weaker lock on {} and ask for a stronger one",
                and(names),
                things[0]
            ),
            basis: Basis::Deduced,
            orders: Vec::new(),
        });
    }
    let distinct =
        (0..n).all(|a| (0..a).all(|b| !wants[a].is_same(&wants[b]) && things[a] != things[b]));
    if !distinct {
        return None;
    }
    let orders: Vec<Order> = (0..n)
        .map(|own| {
            // Who waits for this one wants what it holds.
            let before = (own + n - 1) % n;
            Order {
                pid: deadlock.edges[own].pid,
                who: names[own].clone(),
                first: things[before].clone(),
                then: things[own].clone(),
                seen: seen(deadlock, deadlock.edges[own].pid, &wants[before]),
            }
        })
        .collect();
    let same_by_chance = wants.iter().any(|a| {
        wants
            .iter()
            .any(|b| a.may_share_table(b) && a.target.key == b.target.key)
    });
    if same_by_chance && !orders.iter().all(|order| order.seen) {
        return None;
    }
    let basis = if orders.iter().all(|order| order.seen) {
        Basis::Seen
    } else {
        Basis::Deduced
    };
    Some(OrderConflict {
        text: text(&orders, wants),
        basis,
        orders,
    })
}

/// An earlier statement of its transaction, in the log, took what it is said to hold.
fn seen(deadlock: &LogDeadlock, pid: Pid, held: &Want) -> bool {
    deadlock
        .before
        .iter()
        .filter(|before| before.pid == pid)
        .flat_map(|before| &before.statements)
        .map(|statement| aim(statement))
        .any(|earlier| {
            let held = &held.target;
            earlier.table.is_some()
                && earlier.named() == held.raw_name()
                && (!held.is_row || earlier.key == held.key)
        })
}

/// `transfer-a locks accounts id 1, then id 2; transfer-b id 2, then id 1`
fn text(orders: &[Order], wants: &[Want]) -> String {
    let common = wants[0].table.as_ref().filter(|table| {
        wants
            .iter()
            .all(|want| want.is_row() && want.table.as_ref() == Some(table))
    });
    let mut parts = Vec::new();
    for (n, order) in orders.iter().enumerate() {
        let short = |thing: &str| match common {
            Some(table) => thing
                .strip_prefix(&format!("{table} "))
                .unwrap_or(thing)
                .to_owned(),
            None => thing.to_owned(),
        };
        let verb = if n == 0 { " locks" } else { "" };
        let first = if n == 0 {
            order.first.clone()
        } else {
            short(&order.first)
        };
        parts.push(format!(
            "{}{verb} {first}, then {}",
            order.who,
            short(&order.then)
        ));
    }
    parts.join("; ")
}

/// All tables of a circle, also those that only the statements of DDL and LOCK tell; of an index its table.
pub fn relations(deadlock: &LogDeadlock) -> Vec<String> {
    let mut all: Vec<String> = wants(deadlock, false)
        .into_iter()
        .filter_map(|want| {
            // The statement's own table is what DDL and LOCK are about, whatever they wait for.
            let of_statement = want
                .target
                .aim
                .filter(|aim| matches!(aim.verb, Verb::Ddl | Verb::LockTable))
                .and_then(|aim| {
                    let schema = aim.schema.as_deref();
                    Some(names::shown(schema, aim.table.as_ref()?, false))
                });
            want.table.or(of_statement)
        })
        .collect();
    all.sort();
    all.dedup();
    all
}

/// `a and b`, `a, b and c`
pub fn and(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}
