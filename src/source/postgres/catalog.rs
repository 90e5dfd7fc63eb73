//! The built-in queries: the only `include_str!` of `queries/`. The newest version not above the server's wins.

/// One query with its versions, oldest first: (from this major on, text).
pub struct Topic {
    pub name: &'static str,
    versions: &'static [(u32, &'static str)],
    /// The type of `$1`, where the query takes one.
    pub param: Option<Param>,
}

/// What a query's one parameter is; NULL always stands for a sensible default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Param {
    Int4Array,
    OidArray,
    TextArray,
}

macro_rules! topic {
    ($name:literal, [$($major:literal),+]) => { topic!($name, [$($major),+], None) };
    ($name:literal, [$($major:literal),+], $param:expr) => {
        Topic {
            name: $name,
            versions: &[$((
                $major,
                include_str!(concat!(
                    env!("CARGO_MANIFEST_DIR"), "/queries/postgres/", $name, "/from_", $major, ".sql"
                )),
            )),+],
            param: $param,
        }
    };
}

pub static SERVER: Topic = topic!("server", [12]);
pub static LOGIN: Topic = topic!("login", [12, 15]);
pub static ACTIVITY: Topic = topic!("activity", [12, 13]);
pub static DATABASES: Topic = topic!("databases", [12]);
pub static ROLES: Topic = topic!("roles", [12]);
pub static LOCKS: Topic = topic!("locks", [12, 14]);
pub static BLOCKING: Topic = topic!("blocking", [12], Some(Param::Int4Array));
pub static RELATIONS: Topic = topic!("relations", [12], Some(Param::OidArray));
pub static PREPARED: Topic = topic!("prepared", [12]);
pub static SETTINGS: Topic = topic!("settings", [12], Some(Param::TextArray));
pub static OVERRIDES: Topic = topic!("overrides", [12]);
pub static SLOTS: Topic = topic!("slots", [12]);
pub static WAITS: Topic = topic!("waits", [12]);
pub static PROGRESS: Topic = topic!("progress", [12]);
pub static REPLICATION: Topic = topic!("replication", [12]);

/// Every query, in the order that `query list` shows.
pub fn all() -> [&'static Topic; 15] {
    [
        &ACTIVITY,
        &BLOCKING,
        &LOCKS,
        &PREPARED,
        &RELATIONS,
        &WAITS,
        &SERVER,
        &LOGIN,
        &DATABASES,
        &ROLES,
        &SETTINGS,
        &OVERRIDES,
        &SLOTS,
        &REPLICATION,
        &PROGRESS,
    ]
}

impl Topic {
    pub fn named(name: &str) -> Option<&'static Self> {
        all().into_iter().find(|topic| topic.name == name)
    }

    /// The text for a server of this major; the oldest text for one that is older still.
    pub fn sql(&self, major: u32) -> &'static str {
        self.versions
            .iter()
            .rev()
            .find(|(from, _)| *from <= major)
            .unwrap_or(&self.versions[0])
            .1
    }

    /// From which majors on there is a text of its own.
    pub fn majors(&self) -> impl Iterator<Item = u32> + '_ {
        self.versions.iter().map(|(from, _)| *from)
    }

    /// The first line of the file, without the name.
    pub fn summary(&self) -> &'static str {
        let line = self.versions[0].1.lines().next().unwrap_or("");
        line.split_once(": ").map_or("", |(_, text)| text)
    }

    /// Its columns, in order, as the file says them: a server tells them only with a row.
    pub fn columns(&self) -> impl Iterator<Item = &'static str> {
        let lines = self.versions[0].1.lines();
        let said = lines.filter_map(|line| line.strip_prefix("-- columns: "));
        said.flat_map(|names| names.split(','))
            .map(str::trim)
            .filter(|name| !name.is_empty())
    }

    /// The text with its parameter as NULL: what can be pasted into psql.
    pub fn pastable(&self, major: u32) -> String {
        self.sql(major).replace("$1::", "NULL::")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_not_above_the_server_wins() {
        assert!(
            LOCKS
                .sql(13)
                .contains("NULL::pg_catalog.timestamptz AS waitstart")
        );
        assert!(LOCKS.sql(14).contains("l.waitstart"));
        assert_eq!(LOCKS.sql(18), LOCKS.sql(14));
        assert_eq!(LOCKS.sql(9), LOCKS.sql(12));
    }

    #[test]
    fn each_query_says_what_it_is_for() {
        for topic in all() {
            for major in topic.majors() {
                let head = format!("-- {}: ", topic.name);
                assert!(
                    topic.sql(major).starts_with(&head),
                    "{} {major}",
                    topic.name
                );
            }
            assert!(!topic.summary().is_empty(), "{}", topic.name);
        }
    }
}
