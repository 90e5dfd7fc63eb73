//! The first lines of every report: which server, when, and how much of it could be seen.

use super::console::Style;
use super::prometheus::{self, Metric};
use super::reports::wrap;
use super::sanitize::{clean, width};
use crate::analysis::Head;
use crate::model::{ServerRole, Target, Timestamp};

/// `app@db1:5432 as oncall · PostgreSQL 15.18 primary`
pub fn identity(target: &Target) -> String {
    let mut text = clean(&format!("{} as {}", target.label(), target.user));
    if let Some(version) = &target.server_version {
        // Distributions add their own name in brackets.
        let version = version.split_whitespace().next().unwrap_or(version);
        text.push_str(&format!(" · PostgreSQL {version}"));
    }
    match target.role {
        Some(ServerRole::Primary) => text.push_str(" primary"),
        Some(ServerRole::Standby) => text.push_str(" standby"),
        None => {}
    }
    if target.via_pooler == Some(true) {
        text.push_str(", through a pooler");
    }
    text
}

/// What stands at the head of a report.
pub trait Heading {
    /// Which server, as whom, and what it is.
    fn who(&self) -> String;

    fn taken_at(&self) -> Timestamp;

    /// What couldn't be seen, a line each.
    fn unseen(&self) -> Vec<String>;

    /// Numbers with this head's own, in Prometheus' format.
    fn prometheus(&self, metrics: Vec<Metric>) -> String;
}

impl Heading for Head {
    fn who(&self) -> String {
        identity(&self.target)
    }

    fn taken_at(&self) -> Timestamp {
        self.taken_at
    }

    fn unseen(&self) -> Vec<String> {
        unseen(self)
    }

    fn prometheus(&self, metrics: Vec<Metric>) -> String {
        prometheus::document(self, metrics)
    }
}

fn time(head: &impl Heading) -> String {
    head.taken_at()
        .utc()
        .format("%Y-%m-%d %H:%M:%S UTC")
        .to_string()
}

/// Which server and when, and a line for each thing that couldn't be seen.
pub fn lines(head: &impl Heading) -> Vec<String> {
    let mut lines = vec![format!("{} · {}", head.who(), time(head))];
    lines.extend(head.unseen());
    lines
}

pub fn header(head: &impl Heading, style: Style) -> String {
    let (at, who) = (time(head), head.who());
    let fits = style
        .width
        .is_none_or(|most| width(&who) + width(&at) + 3 <= most);
    let most = style.width.unwrap_or(usize::MAX);
    let mut text = if fits {
        format!("{} · {at}\n", style.strong(&who))
    } else if width(&who) <= most {
        format!("{}\n{at}\n", style.strong(&who))
    } else {
        format!("{}{at}\n", wrap(&who, most, 0))
    };
    for line in head.unseen() {
        text.push_str(&wrap(&line, most, 0));
    }
    text
}

/// What of the server couldn't be seen, a line each.
fn unseen(head: &Head) -> Vec<String> {
    let mut lines = Vec::new();
    let coverage = &head.coverage;
    if let (Some(hidden @ 1..), Some(total)) = (coverage.sessions_hidden, coverage.sessions_total) {
        let grants = match coverage.missing_grants.as_slice() {
            [] => String::new(),
            grants => format!(": {}", clean(&grants.join(" "))),
        };
        lines.push(format!(
            "coverage: {hidden} of {total} sessions hidden{grants}"
        ));
    }
    let failed: Vec<(&str, &str)> = coverage.failed().collect();
    match failed.as_slice() {
        // Nothing at all was read, for one reason.
        [(_, why), rest @ ..]
            if failed.len() == coverage.sections.len() && rest.iter().all(|(_, w)| w == why) =>
        {
            lines.push(format!("nothing was read: {}", clean(why)));
        }
        _ => {
            for (section, why) in failed {
                lines.push(format!("not seen: {section}: {}", clean(why)));
            }
        }
    }
    lines
}
