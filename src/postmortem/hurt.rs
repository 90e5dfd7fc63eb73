//! Who was hurt: whose sessions waited for another's lock.

use std::collections::{BTreeMap, BTreeSet};

use crate::analysis::blocking::Edge;
use crate::analysis::connections;
use crate::model::{Pid, Snapshot};

/// The sessions of an application and a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hurt {
    pub application: String,
    pub user: String,
    pub waited: usize,
    pub of: usize,
}

impl Hurt {
    /// `web (app_rw): all its 8 sessions waited`
    pub fn words(&self) -> String {
        let who = match (self.application.as_str(), self.user.as_str()) {
            ("", "") => "(no name)".to_owned(),
            (name, "") | ("", name) => name.to_owned(),
            (application, user) => format!("{application} ({user})"),
        };
        match (self.waited, self.of) {
            (1, 1) => format!("{who}: its only session waited"),
            (waited, of) if waited == of => format!("{who}: all its {of} sessions waited"),
            (waited, of) => format!("{who}: {waited} of its {of} sessions waited"),
        }
    }
}

/// Of one capture, most first.
pub(super) fn hurt(snapshot: &Snapshot, edges: &[Edge]) -> Vec<Hurt> {
    let waiters: BTreeSet<Pid> = edges.iter().map(|edge| edge.waiter).collect();
    let mut groups: BTreeMap<(&str, &str), (usize, usize)> = BTreeMap::new();
    for session in connections::clients(snapshot) {
        let key = (
            session.application_name.as_deref().unwrap_or_default(),
            session.user.as_deref().unwrap_or_default(),
        );
        let (waited, of) = groups.entry(key).or_default();
        *waited += usize::from(waiters.contains(&session.pid()));
        *of += 1;
    }
    let mut all: Vec<Hurt> = groups
        .into_iter()
        .filter(|(_, (waited, _))| *waited > 0)
        .map(|((application, user), (waited, of))| Hurt {
            application: application.to_owned(),
            user: user.to_owned(),
            waited,
            of,
        })
        .collect();
    all.sort_by_key(|hurt| std::cmp::Reverse(hurt.waited));
    all
}
