//! The first lines of every report: which server, when, and how much of it could be seen.

use super::console::Style;
use super::sanitize::{clean, width};
use crate::analysis::Head;
use crate::model::{ServerRole, Target};

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

pub fn header(head: &Head, style: Style) -> String {
    let at = head
        .taken_at
        .utc()
        .format("%Y-%m-%d %H:%M:%S UTC")
        .to_string();
    let who = identity(&head.target);
    let fits = style
        .width
        .is_none_or(|most| width(&who) + width(&at) + 3 <= most);
    let mut text = format!(
        "{}{}{at}
",
        style.strong(&who),
        if fits {
            " · "
        } else {
            "
"
        }
    );
    let coverage = &head.coverage;
    if let (Some(hidden @ 1..), Some(total)) = (coverage.sessions_hidden, coverage.sessions_total) {
        text.push_str(&format!("coverage: {hidden} of {total} sessions hidden"));
        match coverage.missing_grants.as_slice() {
            [] => {}
            grants => text.push_str(&format!(": {}", clean(&grants.join(" ")))),
        }
        text.push('\n');
    }
    let failed: Vec<(&str, &str)> = coverage.failed().collect();
    match failed.as_slice() {
        // Nothing at all was read, for one reason.
        [(_, why), rest @ ..]
            if failed.len() == coverage.sections.len() && rest.iter().all(|(_, w)| w == why) =>
        {
            text.push_str(&format!("nothing was read: {}\n", clean(why)));
        }
        _ => {
            for (section, why) in failed {
                text.push_str(&format!("not seen: {section}: {}\n", clean(why)));
            }
        }
    }
    text
}
