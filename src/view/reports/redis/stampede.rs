//! `redis stampede`: the badly guarded groups first, each with its evidence, then the others in a line each.

use super::head::own_effect;
use super::numbers::{counted, thousands};
use crate::analysis::redis::RedisHead;
use crate::analysis::redis::stampede::Stampede;
use crate::model::{Cliff, Guarded, Protection};
use crate::view::console::Style;
use crate::view::layout::{Column, table};
use crate::view::reports::Table;
use crate::view::reports::cells::{NONE, sentence, wrap};
use crate::view::sanitize::clean;
use crate::view::sheet::{Col, Sheet, col, more};

impl Table<RedisHead> for Stampede {
    fn table(&self, head: &RedisHead, style: Style) -> String {
        let most = style.width.unwrap_or(usize::MAX);
        let mut out = sentence(&self.summary(), style);
        for statement in self.statements.iter().flatten().take(3) {
            let line = format!(
                "PostgreSQL runs this in {} at once, the longest for {}: {}",
                counted(statement.sessions, "session"),
                statement.longest_ms,
                statement.statement
            );
            out.push_str(&wrap(&clean(&line), most, 2));
        }
        for cliff in self.cliffs.iter().take(3) {
            out.push_str(&wrap(&clean(&cliff.forecast()), most, 2));
        }
        for group in self
            .stampede
            .iter()
            .filter(|group| group.verdict < Protection::NotSeen)
        {
            out.push('\n');
            out.push_str(&format!(
                "{}: {}\n",
                style.strong(&clean(&group.group)),
                group.verdict.word()
            ));
            for line in &group.evidence {
                out.push_str(&wrap(&clean(line), most, 2));
            }
        }
        if !self.stampede.is_empty() {
            out.push('\n');
            out.push_str(&self.all(style));
        }
        if let Some(by) = &self.misses_by {
            let misses = self
                .stampede
                .iter()
                .filter_map(|group| group.misses.as_ref());
            let misses: u64 = misses.map(|misses| misses.misses).sum();
            out.push_str(&wrap(
                &format!("misses while listening: {} ({by})", thousands(misses)),
                most,
                0,
            ));
        }
        for line in self.unknown() {
            out.push_str(&wrap(&line, most, 0));
        }
        out.push('\n');
        out.push_str(&style.faint(wrap(&own_effect(&head.coverage), most, 0).trim_end()));
        out.push('\n');
        out
    }

    fn sentences(&self, _: &RedisHead) -> Vec<String> {
        self.worst_of_all()
            .into_iter()
            .chain([self.summary()])
            .chain(self.unknown())
            .collect()
    }

    fn sheets(&self) -> Vec<Sheet> {
        const GROUPS: [Col; 13] = [
            col("group", "group"),
            col("verdict", "verdict"),
            col("hottest", "hottest"),
            col("keys", "keys"),
            col("with_ttl", "with TTL"),
            col("expiry", "expiry"),
            more("peak_10s_share"),
            col("locks.keys", "locks"),
            more("locks.without_ttl"),
            more("locks.longest_ms"),
            more("soft.found"),
            col("misses.misses", "misses"),
            col("evidence", "evidence"),
        ];
        const STATEMENTS: [Col; 3] = [
            col("sessions", "sessions"),
            col("longest_ms", "longest"),
            col("statement", "statement"),
        ];
        vec![
            Sheet::of("stampede", &GROUPS, &self.stampede),
            Sheet::of(
                "statements",
                &STATEMENTS,
                self.statements.as_deref().unwrap_or_default(),
            ),
        ]
    }
}

impl Stampede {
    /// The cliff that comes soon, the worst group, and why it is.
    fn worst_of_all(&self) -> Vec<String> {
        let group = self.worst().map(|worst| {
            let word = worst.verdict.word();
            let why = worst.evidence.first().map_or(word, String::as_str);
            format!("{}: {why}", worst.group)
        });
        self.soon()
            .map(Cliff::forecast)
            .into_iter()
            .chain(group)
            .collect()
    }

    fn summary(&self) -> String {
        let bad = self
            .stampede
            .iter()
            .filter(|group| group.verdict < Protection::NotSeen)
            .count();
        let guarded = self
            .stampede
            .iter()
            .filter(|group| group.verdict == Protection::Protected)
            .count();
        let groups = counted(self.stampede.len() as u64, "group");
        if self.stampede.is_empty() {
            return "no cached keys found: nothing expires".into();
        }
        match bad {
            0 => {
                format!("{groups} of cached keys, none badly guarded, {guarded} seen to be guarded")
            }
            1 => format!("1 of {groups} of cached keys is badly guarded"),
            bad => format!("{bad} of {groups} of cached keys are badly guarded"),
        }
    }

    /// What wasn't looked at, and what would.
    fn unknown(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.misses_by.is_none() {
            lines.push("misses of single keys aren't known: the server doesn't tell them (--enable-keymiss has it, for as long as we listen)".into());
        }
        if self.statements.is_none() {
            lines.push(
                "PostgreSQL wasn't looked at: -d names it, to see what it runs many times at once"
                    .into(),
            );
        }
        if self
            .stampede
            .iter()
            .all(|group| group.soft == crate::model::Soft::default())
        {
            lines.push("no value was looked into for an expiry of its own: --peek reads one of each hot group".into());
        }
        lines
    }

    fn all(&self, style: Style) -> String {
        let columns = [
            Column::text("group").flex_from(28, 16),
            Column::text("guard"),
            Column::number("hottest"),
            Column::number("keys"),
            Column::text("expiry"),
            Column::number("locks"),
            Column::text("stale copy").drop(1),
            Column::number("misses").drop(2),
        ];
        let row = |group: &Guarded| {
            vec![
                group.group.clone(),
                group.verdict.word().to_owned(),
                group.hottest.map_or_else(|| NONE.into(), thousands),
                thousands(group.keys),
                group.expiry.word().to_owned(),
                thousands(group.locks.keys),
                match group.soft.found {
                    Some(true) => "yes".into(),
                    Some(false) => "no".into(),
                    None => NONE.into(),
                },
                group
                    .misses
                    .as_ref()
                    .map_or_else(|| NONE.into(), |misses| thousands(misses.misses)),
            ]
        };
        table(
            &columns,
            self.stampede.iter().map(row).collect(),
            style.width,
        )
    }
}
