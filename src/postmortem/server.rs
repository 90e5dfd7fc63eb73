//! The server itself over the captures: its settings, and what of it isn't as it was.

use crate::analysis::connections::{self, Limit};
use crate::analysis::settings::{Judged, judge_all};
use crate::model::{Server, ServerRole, Snapshot, Timestamp};

/// Settings and limits of a capture that had them.
#[derive(Clone, Debug)]
pub struct Settings {
    pub at: Timestamp,
    pub server: Server,
    pub judged: Vec<Judged>,
    pub limits: Vec<Limit>,
}

/// Something about the server itself that isn't as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub after: Timestamp,
    pub at: Timestamp,
    pub what: ChangeOf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeOf {
    MaxConnections(u32, u32),
    /// Whose limit: `role app_rw`; `None`: it had or has none.
    Limit(String, Option<u32>, Option<u32>),
    Role(ServerRole, ServerRole),
    Restart(Timestamp),
}

impl ChangeOf {
    /// Fewer connections than before.
    pub fn is_lower(&self) -> bool {
        match self {
            Self::MaxConnections(was, is) => is < was,
            Self::Limit(_, was, Some(is)) => was.is_none_or(|was| *is < was),
            _ => false,
        }
    }

    /// Of the same thing a later change: both as one.
    fn then(&mut self, later: &Self) -> Option<()> {
        match (self, later) {
            (Self::MaxConnections(_, is), Self::MaxConnections(_, now)) => *is = *now,
            (Self::Limit(of, _, is), Self::Limit(same, _, now)) if of == same => *is = *now,
            (Self::Role(_, is), Self::Role(_, now)) => *is = *now,
            _ => return None,
        }
        Some(())
    }

    /// It is as it was.
    fn is_none(&self) -> bool {
        match self {
            Self::MaxConnections(was, is) => was == is,
            Self::Limit(_, was, is) => was == is,
            Self::Role(was, is) => was == is,
            Self::Restart(_) => false,
        }
    }

    /// As it is, and as it was.
    pub fn words(&self) -> String {
        let limit = |limit: &Option<u32>| limit.map_or("none".to_owned(), |n| n.to_string());
        match self {
            Self::MaxConnections(was, is) => {
                format!("max_connections is {is}, before it was {was}")
            }
            Self::Limit(of, was, is) => format!(
                "CONNECTION LIMIT of {of} is {}, before it was {}",
                limit(is),
                limit(was)
            ),
            Self::Role(was, is) => format!(
                "the server is a {} now, before it was a {}",
                role(*is),
                role(*was)
            ),
            Self::Restart(_) => "the server started anew".into(),
        }
    }
}

pub(super) fn role(role: ServerRole) -> &'static str {
    match role {
        ServerRole::Primary => "primary",
        ServerRole::Standby => "standby",
    }
}

/// What is watched of a server.
#[derive(Debug, Default)]
pub(super) struct Watch {
    last: Option<(Timestamp, u32, Option<Timestamp>, Option<ServerRole>)>,
    limits: Option<(Timestamp, Vec<Limit>)>,
    /// The first and the last that were read.
    pub settings: Option<(Settings, Settings)>,
    pub changes: Vec<Change>,
}

impl Watch {
    pub fn add(&mut self, snapshot: &Snapshot) {
        let at = snapshot.taken_at;
        let Some(server) = snapshot.server.get() else {
            return;
        };
        let role = snapshot.target.role;
        if let Some((after, max, started, was)) = self.last {
            let mut change = |what| self.changes.push(Change { after, at, what });
            if max != server.max_connections {
                change(ChangeOf::MaxConnections(max, server.max_connections));
            }
            if let (Some(was), Some(is)) = (was, role)
                && was != is
            {
                change(ChangeOf::Role(was, is));
            }
            if let (Some(was), Some(is)) = (started, server.started_at)
                && was != is
            {
                change(ChangeOf::Restart(is));
            }
        }
        self.last = Some((at, server.max_connections, server.started_at, role));
        let now = connections::limits(snapshot);
        // Limits are those of roles and databases: where these weren't read, nothing has changed.
        if snapshot.roles.get().is_some() && snapshot.databases.get().is_some() {
            if let Some((after, before)) = &self.limits {
                self.changes
                    .extend(changed(before, &now).map(|what| Change {
                        after: *after,
                        at,
                        what,
                    }));
            }
            self.limits = Some((at, now.clone()));
        }
        if snapshot.settings.get().is_some() {
            let settings = Settings {
                at,
                server: server.clone(),
                judged: judge_all(snapshot),
                limits: now,
            };
            self.settings = match self.settings.take() {
                None => Some((settings.clone(), settings)),
                Some((first, _)) => Some((first, settings)),
            };
        }
    }
}

impl Watch {
    /// What was changed over the captures and isn't back, as it is and as it was at first.
    pub fn standing(&self) -> Vec<String> {
        let mut all: Vec<ChangeOf> = Vec::new();
        for change in &self.changes {
            let known = all.iter_mut().find_map(|known| known.then(&change.what));
            match (known, &change.what) {
                (Some(()), _) => {}
                // That it started anew is nothing that could be set back.
                (None, ChangeOf::Restart(_)) => {}
                (None, what) => all.push(what.clone()),
            }
        }
        all.retain(|change| !change.is_none());
        all.iter().map(ChangeOf::words).collect()
    }
}

/// Limits that came, went or moved.
fn changed(before: &[Limit], now: &[Limit]) -> impl Iterator<Item = ChangeOf> {
    let find = |all: &[Limit], one: &Limit| {
        let same = |known: &&Limit| known.kind == one.kind && known.name == one.name;
        all.iter().find(same).map(|limit| limit.limit)
    };
    let mut changes = Vec::new();
    for limit in now {
        let was = find(before, limit);
        if was != Some(limit.limit) {
            let of = format!("{} {}", limit.kind.word(), limit.name);
            changes.push(ChangeOf::Limit(of, was, Some(limit.limit)));
        }
    }
    for limit in before.iter().filter(|limit| find(now, limit).is_none()) {
        let of = format!("{} {}", limit.kind.word(), limit.name);
        changes.push(ChangeOf::Limit(of, Some(limit.limit), None));
    }
    changes.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;

    #[test]
    fn what_was_set_back_doesnt_stand() {
        let at = Timestamp::new(chrono::DateTime::UNIX_EPOCH);
        let limit = |of: &str, was, is| ChangeOf::Limit(of.into(), was, is);
        let watch = |all: &[ChangeOf]| Watch {
            changes: all
                .iter()
                .map(|what| Change {
                    after: at,
                    at,
                    what: what.clone(),
                })
                .collect(),
            ..Watch::default()
        };
        let all = [
            limit("role app", None, Some(8)),
            limit("role etl", Some(3), Some(1)),
            ChangeOf::Restart(at),
            limit("role app", Some(8), Some(12)),
            limit("role etl", Some(1), Some(3)),
            ChangeOf::MaxConnections(100, 200),
        ];
        assert_eq!(
            watch(&all).standing(),
            [
                "CONNECTION LIMIT of role app is 12, before it was none",
                "max_connections is 200, before it was 100"
            ]
        );
        assert!(
            watch(&all[1..5])
                .standing()
                .iter()
                .all(|told| told.contains("role app"))
        );
        assert!(watch(&[]).standing().is_empty());
    }
}
