//! `pg blockers` as a forest: a root, its tree, what to do about it.

use std::collections::BTreeMap;

use super::Table;
use super::cells::{sentence, statement, wrap};
use crate::analysis::Head;
use crate::analysis::blocking::{Action, Blockers, Root, RootKind, Tree, TreeLine, TreeWaiter};
use crate::model::{BackendType, Millis, Pid, count};
use crate::view::console::Style;
use crate::view::prometheus::{Metric, gauge, gauges, number};
use crate::view::sanitize::{clean, cut, width};
use crate::view::sheet::{Col, Sheet, col, more};

impl Table for Blockers {
    fn table(&self, head: &Head, style: Style) -> String {
        let mut out = sentence(&self.summary(head), style);
        for (number, (root, tree)) in self.roots.iter().zip(&self.trees).enumerate() {
            out.push('\n');
            describe(&mut out, number + 1, root, tree, style);
        }
        let more = self.roots.len() - self.trees.len();
        if more > 0 {
            out.push_str(&format!(
                "\nand {} that free fewer (--json lists them all)\n",
                count(more, "root")
            ));
        }
        out
    }

    fn sentences(&self, head: &Head) -> Vec<String> {
        vec![self.summary(head)]
    }

    fn sheets(&self) -> Vec<Sheet> {
        const ROOTS: [Col; 31] = [
            col("kind", "kind"),
            col("pid", "pid"),
            more("backend_start"),
            more("backend_type"),
            col("gid", "gid"),
            more("members"),
            col("user", "user"),
            more("database"),
            col("application_name", "application"),
            more("client_addr"),
            col("state", "state"),
            more("hidden"),
            more("wait_event_type"),
            more("wait_event"),
            more("xact_start"),
            col("xact_age_ms", "xact age"),
            more("state_age_ms"),
            col("blocked_total", "blocks"),
            more("blocked_direct"),
            more("freed"),
            col("longest_wait_ms", "longest wait"),
            more("shared_rows"),
            more("query_truncated"),
            col("query", "query"),
            col("remedy.action", "do"),
            more("remedy.pid"),
            more("remedy.backend_start"),
            col("remedy.lost", "lost by it"),
            col("remedy.why", "why"),
            col("remedy.command", "command"),
            col("remedy.or_command", "or"),
        ];
        const EDGES: [Col; 10] = [
            col("waiter", "waits"),
            col("blocker", "for"),
            col("gid", "gid"),
            col("soft", "queued behind"),
            col("source", "told by"),
            col("lock.locktype", "lock"),
            col("lock.mode", "mode"),
            col("lock.relation", "relation"),
            more("lock.database"),
            col("wait_ms", "wait"),
        ];
        const CYCLES: [Col; 1] = [col("pids", "pids")];
        #[derive(serde::Serialize)]
        struct Cycle<'c> {
            pids: &'c [Pid],
        }
        let cycles: Vec<Cycle<'_>> = self.cycles.iter().map(|pids| Cycle { pids }).collect();
        vec![
            Sheet::of("roots", &ROOTS, &self.roots),
            Sheet::of("edges", &EDGES, &self.edges),
            Sheet::of("cycles", &CYCLES, &cycles),
        ]
    }

    fn metrics(&self, head: &Head) -> Vec<Metric> {
        let seconds = |ms: Option<Millis>| ms.map(Millis::seconds);
        let kinds = self.roots.iter().map(|root| match root.kind {
            RootKind::Session => "session",
            RootKind::Prepared => "prepared",
            RootKind::Cycle => "cycle",
            RootKind::Startup => "startup",
        });
        let mut roots: BTreeMap<&str, usize> = BTreeMap::new();
        for kind in kinds {
            *roots.entry(kind).or_default() += 1;
        }
        let roots = roots
            .into_iter()
            .map(|(kind, of)| (vec![("kind", kind.to_owned())], number(of)))
            .collect();
        let read = head.coverage.has_read("locks").then_some(());
        vec![
            gauge(
                "stanch_blocked_sessions",
                "Sessions that wait for a lock.",
                read.map(|()| number(self.blocked)),
            ),
            gauge(
                "stanch_lock_wait_longest_seconds",
                "The longest wait for a lock.",
                seconds(self.longest_wait_ms),
            ),
            gauges(
                "stanch_blocking_roots",
                "Roots of the blocking forest, by what they are.",
                roots,
            ),
            gauge(
                "stanch_blocking_edges",
                "Pairs of waiter and blocker.",
                read.map(|()| number(self.edges_total)),
            ),
            gauge(
                "stanch_blocked_by_one_root",
                "The most sessions that wait behind one root.",
                read.map(|()| {
                    number(
                        self.roots
                            .iter()
                            .map(|r| r.blocked_total)
                            .max()
                            .unwrap_or(0),
                    )
                }),
            ),
            gauge(
                "stanch_lock_cycles",
                "Circles of sessions that wait for one another.",
                read.map(|()| number(self.cycles.len())),
            ),
        ]
    }
}

impl Blockers {
    fn summary(&self, head: &Head) -> String {
        if self.blocked == 0 {
            let seen = head
                .coverage
                .failed()
                .all(|(section, _)| section != "locks");
            return if seen {
                "nobody is blocked"
            } else {
                "who is blocked can't be told: the locks weren't read"
            }
            .into();
        }
        let longest = self
            .longest_wait_ms
            .map_or(String::new(), |wait| format!(", the longest for {wait}"));
        format!(
            "{} blocked{longest}; {}",
            count(self.blocked, "session"),
            count(self.roots.len(), "root")
        )
    }
}

fn describe(out: &mut String, number: usize, root: &Root, tree: &Tree, style: Style) {
    let title = cut(
        &format!("{number}. {}", root_words(root)),
        style.width.unwrap_or(usize::MAX),
    );
    out.push_str(&format!("{}\n", style.strong(&title)));
    let mut line = |text: &str| push(out, text, style);
    let freed = match root.freed {
        None => "some of them can go on, or all".into(),
        Some(freed) if freed == root.blocked_total => "all of them can go on".into(),
        Some(freed) => format!("{freed} of them can go on, the others wait under other roots too"),
    };
    line(&format!(
        "   blocks {} ({} directly); if it ends, {freed}",
        root.blocked_total, root.blocked_direct
    ));
    if root.shared_rows {
        line(
            "   it holds shared row locks: others may hold the same rows, the server names one at a time",
        );
    }
    if !root.members.is_empty() {
        let pids: Vec<String> = root
            .members
            .iter()
            .take(12)
            .map(ToString::to_string)
            .collect();
        line(&format!("   circle: {}", pids.join(", ")));
    }
    if let Some(query) = root.query.as_deref() {
        let word = if root.state.as_ref().is_some_and(|s| s.as_str() == "active") {
            "runs"
        } else {
            "last ran"
        };
        line(&format!(
            "   {word}: {}",
            statement(Some(query), root.query_truncated)
        ));
    }
    for waiter in &tree.lines {
        line(&tree_line(waiter));
    }
    let remedy = &root.remedy;
    let action = match remedy.action {
        Action::Cancel => "cancel",
        Action::Terminate => "terminate",
        Action::ResolvePrepared => "commit or roll back",
        Action::Wait => "wait",
        Action::Grant => "see more first",
    };
    let pid = remedy.pid.map_or(String::new(), |pid| format!(" {pid}"));
    // Advice is wrapped, commands are never cut: what is pasted must be whole.
    let advice = format!("{action}{pid}: {}", clean(&remedy.why));
    out.push_str(&hanging(
        &format!("   {} ", style.strong("do:")),
        "   do: ",
        &advice,
        style,
    ));
    if let Some(lost) = &remedy.lost {
        out.push_str(&hanging("   lost: ", "   lost: ", &clean(lost), style));
    }
    for (word, command) in [("  ", &remedy.command), ("or", &remedy.or_command)] {
        if let Some(command) = command {
            out.push_str(&format!("   {word} {}\n", clean(command)));
        }
    }
}

fn push(out: &mut String, text: &str, style: Style) {
    out.push_str(&cut(text, style.width.unwrap_or(usize::MAX)));
    out.push('\n');
}

/// Text behind a word, its further lines indented to below itself.
fn hanging(first: &str, plain: &str, text: &str, style: Style) -> String {
    let indent = width(plain);
    let wrapped = wrap(text, style.width.unwrap_or(usize::MAX), indent);
    format!("{first}{}", wrapped.trim_start())
}

fn root_words(root: &Root) -> String {
    let who = [root.user.as_deref(), root.application_name.as_deref()];
    let who: Vec<String> = who.into_iter().flatten().map(clean).collect();
    let database = root
        .database
        .as_deref()
        .map_or(String::new(), |d| format!(" in {}", clean(d)));
    let age = root
        .xact_age_ms
        .map_or(String::new(), |age| format!(", transaction of {age}"));
    match root.kind {
        RootKind::Prepared => {
            let gid = root.gid.as_deref().map_or("(gid unknown)".into(), clean);
            let prepared = root
                .xact_age_ms
                .map_or(String::new(), |age| format!(", prepared {age} ago"));
            format!(
                "prepared transaction {gid}{database}, {}{prepared}",
                who.join(", ")
            )
        }
        RootKind::Cycle => "deadlock: sessions wait for each other".into(),
        RootKind::Startup | RootKind::Session => {
            let pid = root.pid.map_or_else(|| "?".into(), |pid| pid.to_string());
            let state = match (&root.state, root.hidden, &root.backend_type) {
                (Some(state), _, _) => {
                    let idle = state.as_str() != "active";
                    let since = root
                        .state_age_ms
                        .filter(|_| idle)
                        .map_or(String::new(), |age| format!(" for {age}"));
                    format!("{}{since}", clean(state.as_str()))
                }
                (None, true, _) => "state hidden".into(),
                (None, false, Some(kind)) => clean(kind.as_str()),
                (None, false, None) => "not seen".into(),
            };
            let from = root
                .client_addr
                .as_deref()
                .map_or(String::new(), |addr| format!(" from {}", clean(addr)));
            let who = match (who.is_empty(), &root.backend_type) {
                (true, Some(kind)) => clean(kind.as_str()),
                (true, None) => "?".into(),
                (false, _) => who.join(", "),
            };
            format!("pid {pid} {who}{database}{from}: {state}{age}")
        }
    }
}

fn tree_line(line: &TreeLine) -> String {
    match line {
        TreeLine::Waiter(w) => waiter_line(w),
        TreeLine::More {
            depth,
            count,
            longest_wait_ms,
        } => {
            let longest =
                longest_wait_ms.map_or(String::new(), |wait| format!(", the longest for {wait}"));
            format!("{}└ and {count} more{longest}", indent(*depth))
        }
    }
}

fn indent(depth: usize) -> String {
    "  ".repeat(depth + 2)
}

fn waiter_line(w: &TreeWaiter) -> String {
    let who: Vec<String> = [w.user.as_deref(), w.application_name.as_deref()]
        .into_iter()
        .flatten()
        .map(clean)
        .collect();
    let who = match (who.is_empty(), &w.backend_type) {
        (true, Some(BackendType::Startup)) => "WAL replay".into(),
        (true, Some(kind)) => clean(kind.as_str()),
        (true, None) => "?".into(),
        (false, _) => who.join(", "),
    };
    let wait = w
        .wait_ms
        .map_or("waits".into(), |wait| format!("waits {wait}"));
    let soft = if w.soft { "queued behind it, " } else { "" };
    let roots = if w.roots > 1 {
        format!(" (under {} roots)", w.roots)
    } else {
        String::new()
    };
    let query = statement(w.query.as_deref(), w.query_truncated);
    let query = if query.is_empty() {
        query
    } else {
        format!(": {query}")
    };
    format!(
        "{}└ {} {who}: {soft}{wait}{roots} for {}{query}",
        indent(w.depth),
        w.pid,
        clean(&w.wanted)
    )
}
