//! What captures say of a time before them.

use super::course::{Course, Forest};
use super::server::ChangeOf;
use super::timeline::{Entry, Known, Source, entry};
use crate::analysis::blocking::TreeLine;
use crate::model::{Timestamp, count};

/// What the server says of an earlier time.
pub(super) fn reconstructed(course: &Course, all: &mut Vec<Entry>) {
    for change in &course.server.changes {
        // A limit was set at some time between two captures.
        let (at, until) = match &change.what {
            ChangeOf::Restart(at) => (*at, None),
            _ => (change.after, Some(change.at)),
        };
        all.push(Entry {
            known: Known::Reconstructed,
            until,
            ..entry(at, Source::Capture, change.what.words())
        });
    }
    if let Some((_, last)) = course.span() {
        course.vanished.told(last, all);
    }
    let mut push = |at, what| {
        all.push(Entry {
            known: Known::Reconstructed,
            ..entry(at, Source::Capture, what)
        });
    };
    let forest = course.forest.as_ref().map(|forest| &forest.report.data);
    let root = forest.and_then(|forest| forest.roots.first());
    if let (Some(root), Some(began)) = (root, root.and_then(|root| root.xact_start)) {
        let who = match (root.pid, &root.gid) {
            (Some(pid), _) => {
                let names = [root.user.as_deref(), root.application_name.as_deref()];
                let names: Vec<&str> = names
                    .into_iter()
                    .flatten()
                    .filter(|n| !n.is_empty())
                    .collect();
                format!("pid {pid} ({})", names.join(", "))
            }
            (None, Some(gid)) => format!("prepared transaction {gid}"),
            (None, None) => "a session".into(),
        };
        push(
            began,
            format!(
                "the transaction of {who} began, which later blocked {}",
                count(root.blocked_total, "session")
            ),
        );
    }
    if let Some(oldest) = &course.oldest
        && root.and_then(|root| root.xact_start) != Some(oldest.began)
        && oldest.age.0 >= 30_000
    {
        push(
            oldest.began,
            format!(
                "a transaction began ({}) that became the oldest, {} old at its last sight",
                oldest.who, oldest.age
            ),
        );
    }
    if let Some((began, what)) = course.forest.as_ref().and_then(wait) {
        push(began, what);
    }
}

/// When the worst wait began, by its age.
fn wait(forest: &Forest) -> Option<(Timestamp, String)> {
    let data = &forest.report.data;
    let root = data.roots.first()?;
    let waiters = || {
        let lines = data.trees.first().into_iter().flat_map(|tree| &tree.lines);
        lines.filter_map(|line| match line {
            TreeLine::Waiter(waiter) => Some(waiter),
            TreeLine::More { .. } => None,
        })
    };
    let ddl = root.remedy.behind.zip(root.remedy.pid);
    let ddl = ddl.and_then(|(behind, pid)| Some((waiters().find(|w| w.pid == pid)?, behind)));
    let (waiter, what) = match ddl {
        Some((waiter, behind)) => {
            // `ALTER TABLE`
            let words: Vec<&str> = waiter
                .query
                .iter()
                .flat_map(|q| q.split_whitespace())
                .collect();
            let statement = match words.as_slice() {
                [] => "the statement".to_owned(),
                words => words[..words.len().min(2)].join(" "),
            };
            let queued = format!("{behind} queued behind it");
            (
                waiter,
                format!("{statement} of pid {} began to wait; {queued}", waiter.pid),
            )
        }
        None => {
            let first = waiters().max_by_key(|waiter| waiter.wait_ms)?;
            let of = match data.blocked {
                1 => String::new(),
                n => format!(", the first of {n}"),
            };
            (first, format!("pid {} began to wait{of}", first.pid))
        }
    };
    Some((forest.report.head.taken_at.before(waiter.wait_ms?), what))
}
