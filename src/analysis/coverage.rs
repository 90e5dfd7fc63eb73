//! How much of the truth a report could see: stated with every report, so that a part is never taken for the whole.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::{Part, Snapshot};
use crate::sql;

/// What was seen, what wasn't, and the grant that would show it.
#[derive(Clone, Debug, Serialize)]
pub struct Coverage {
    /// Sessions that take a connection slot, our own left out; `null`: not read for this report.
    pub sessions_total: Option<usize>,
    pub sessions_hidden: Option<usize>,
    /// The sections that this report needs.
    pub sections: BTreeMap<&'static str, SectionStatus>,
    pub missing_grants: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct SectionStatus {
    pub status: &'static str,
    pub why: Option<String>,
}

impl Coverage {
    pub fn of(snapshot: &Snapshot, parts: &[Part]) -> Self {
        let sections = parts
            .iter()
            .map(|part| {
                let (status, why) = snapshot.status(*part);
                (part.name(), SectionStatus { status, why })
            })
            .collect();
        let sessions = snapshot
            .activity
            .get()
            .filter(|_| parts.contains(&Part::Activity));
        let hidden = sessions.map(|all| all.iter().filter(|s| s.takes_slot() && s.hidden).count());
        Self {
            sessions_total: sessions.map(|all| all.iter().filter(|s| s.takes_slot()).count()),
            sessions_hidden: hidden,
            sections,
            missing_grants: missing_grants(snapshot, hidden),
        }
    }

    /// That section was read.
    pub fn has_read(&self, section: &str) -> bool {
        self.sections
            .get(section)
            .is_some_and(|section| section.status == "collected")
    }

    /// Sections that were asked for and refused, with the reason.
    pub fn failed(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.sections
            .iter()
            .filter(|(_, section)| section.status != "collected")
            .map(|(name, section)| (*name, section.why.as_deref().unwrap_or("")))
    }

    /// Every section was read. Hidden rows don't count against it: see `sees_all`.
    pub fn is_complete(&self) -> bool {
        self.failed().next().is_none()
    }

    /// Every section was read, and no session is hidden from this login.
    pub fn sees_all(&self) -> bool {
        self.is_complete() && self.sessions_hidden.unwrap_or(0) == 0
    }
}

fn missing_grants(snapshot: &Snapshot, hidden: Option<usize>) -> Vec<String> {
    if hidden.unwrap_or(0) == 0 {
        return Vec::new();
    }
    vec![grant("pg_read_all_stats", &snapshot.target.user)]
}

/// `GRANT role TO user`, as it can be pasted into psql.
pub fn grant(role: &str, user: &str) -> String {
    format!("GRANT {role} TO {};", sql::identifier(user))
}
