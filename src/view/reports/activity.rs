//! `pg activity` as a table.

use std::collections::BTreeMap;

use super::Table;
use super::cells::{NONE, age, or_none, sentence, short_state, statement};
use crate::analysis::Head;
use crate::analysis::activity::{Activity, SessionRow};
use crate::model::count;
use crate::view::console::Style;
use crate::view::layout::{Column, table};
use crate::view::sheet::{Col, Sheet, col, more};

impl Table for Activity {
    fn table(&self, head: &Head, style: Style) -> String {
        let summary = sentence(&self.summary(head), style);
        if self.sessions.is_empty() {
            return summary;
        }
        let columns = [
            Column::number("pid"),
            Column::text("user").shrink(6),
            Column::text("database").shrink(6).drop(3),
            Column::text("application").shrink(8).drop(2),
            Column::text("client").shrink(9).drop(4),
            Column::text("state").shrink(12),
            Column::text("wait event").shrink(8).drop(1),
            Column::number("query age"),
            Column::number("xact age"),
            Column::text("query").flex_from(36, 20),
        ];
        let rows = self.sessions.iter().map(row).collect();
        format!("{summary}{}", table(&columns, rows, style.width))
    }

    fn sentences(&self, head: &Head) -> Vec<String> {
        vec![self.summary(head)]
    }

    fn sheets(&self) -> Vec<Sheet> {
        const COLUMNS: [Col; 19] = [
            col("pid", "pid"),
            more("backend_start"),
            more("leader_pid"),
            col("user", "user"),
            col("database", "database"),
            col("application_name", "application"),
            col("client_addr", "client"),
            more("client_port"),
            more("backend_type"),
            col("state", "state"),
            more("hidden"),
            col("wait_event_type", "wait"),
            col("wait_event", "event"),
            more("xact_start"),
            col("query_age_ms", "query age"),
            col("xact_age_ms", "xact age"),
            col("state_age_ms", "state age"),
            more("query_truncated"),
            col("query", "query"),
        ];
        vec![Sheet::of("sessions", &COLUMNS, &self.sessions)]
    }
}

impl Activity {
    fn left_out(&self) -> String {
        let known = self.filtered_out - self.filter_unknown;
        let mut parts = Vec::new();
        if known > 0 {
            parts.push(format!("{known} more don't match the filter"));
        }
        if self.filter_unknown > 0 {
            parts.push(format!("{} hidden ones may match it", self.filter_unknown));
        }
        if parts.is_empty() {
            String::new()
        } else {
            format!(" ({})", parts.join(", "))
        }
    }

    /// `23 sessions: 16 idle, 5 active, 2 idle in transaction`
    fn summary(&self, head: &Head) -> String {
        if self.sessions.is_empty() {
            let why = if head.coverage.sees_all() {
                ""
            } else {
                " that could be seen"
            };
            return format!("no session{why}{}", self.left_out());
        }
        let mut states: BTreeMap<String, usize> = BTreeMap::new();
        for session in &self.sessions {
            *states.entry(state(session)).or_default() += 1;
        }
        let mut states: Vec<(String, usize)> = states.into_iter().collect();
        states.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
        let states: Vec<String> = states
            .into_iter()
            .map(|(state, number)| format!("{number} {state}"))
            .collect();
        format!(
            "{}: {}{}",
            count(self.sessions.len(), "session"),
            states.join(", "),
            self.left_out()
        )
    }
}

fn state(session: &SessionRow) -> String {
    match (&session.state, session.hidden) {
        (Some(state), _) => short_state(state).to_owned(),
        (None, true) => "hidden".into(),
        (None, false) => session
            .backend_type
            .as_ref()
            .map_or(NONE, |kind| kind.as_str())
            .to_owned(),
    }
}

fn row(s: &SessionRow) -> Vec<String> {
    let client = match (&s.client_addr, s.hidden, s.backend_start) {
        (Some(addr), ..) => addr.clone(),
        (None, true, _) | (None, _, None) => NONE.into(),
        (None, false, Some(_)) => "local".into(),
    };
    let wait = match (&s.wait_event_type, &s.wait_event) {
        // `Client/ClientRead` says it twice.
        (Some(class), Some(event)) if event.starts_with(class.as_str()) => event.clone(),
        (Some(class), Some(event)) => format!("{class}/{event}"),
        _ => NONE.into(),
    };
    let pid = match s.leader_pid {
        Some(leader) => format!("{} of {leader}", s.pid),
        None => s.pid.to_string(),
    };
    vec![
        pid,
        or_none(s.user.as_deref()),
        or_none(s.database.as_deref()),
        or_none(s.application_name.as_deref()),
        client,
        state(s),
        wait,
        age(s.query_age_ms),
        age(s.xact_age_ms),
        statement(s.query.as_deref(), s.query_truncated),
    ]
}
