//! `pgbouncer.ini`, as PgBouncer itself reads it: `%include` goes on in the section it stands in, comments only begin a line,
//! the last of a name wins, and what it wouldn't start with is a fault.

use std::collections::{BTreeMap, BTreeSet};

use super::super::count::{At, Count, Source};
use super::super::flow;
use super::{Fault, Files, Input, beside};
use crate::yaml::Place;

/// One instance's settings, pools and users.
#[derive(Clone, Debug)]
pub struct PgBouncer {
    pub file: String,
    /// The ConfigMap that holds it.
    pub map: Option<String>,
    pub settings: BTreeMap<String, (String, At)>,
    pub databases: Vec<Database>,
    pub users: BTreeMap<String, BTreeMap<String, String>>,
    /// Of `auth_file`; `None`: it can't be read, or there is none.
    pub logins: Option<BTreeSet<String>>,
    /// Files that it includes: none of them is a pooler of its own.
    pub parts: BTreeSet<String>,
    /// Processes that share the port, as `[peers]` lists them.
    pub peers: Vec<At>,
}

#[derive(Clone, Debug)]
pub struct Database {
    pub name: String,
    pub values: BTreeMap<String, String>,
    pub at: At,
}

const SECTIONS: [&str; 4] = ["databases", "users", "pgbouncer", "peers"];
const DEEPEST: usize = 10;

/// # Errors
/// What PgBouncer wouldn't start with. `None`: it is another program's file.
pub fn read(input: &Input, files: Files<'_>) -> Result<Option<PgBouncer>, Fault> {
    let ours = |line: &str| matches!(line.trim(), "[databases]" | "[pgbouncer]");
    let first = input
        .text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with([';', '#']));
    // What begins in the middle of a section is a part that another file includes.
    let is_part = first.is_none_or(|line| !line.starts_with(['[', '%']));
    if is_part || !input.text.lines().any(ours) {
        return Ok(None);
    }
    let mut read = PgBouncer {
        file: input.path.clone(),
        map: None,
        settings: BTreeMap::new(),
        databases: Vec::new(),
        users: BTreeMap::new(),
        logins: None,
        peers: Vec::new(),
        parts: BTreeSet::new(),
    };
    let mut section = None;
    lines(input, files, 0, &mut section, &mut read)?;
    if let Some((file, _)) = read.settings.get("auth_file") {
        let path = beside(&input.path, file);
        read.logins = files(&path).and_then(|text| logins(&text));
    }
    Ok(Some(read))
}

fn lines(
    input: &Input,
    files: Files<'_>,
    depth: usize,
    section: &mut Option<String>,
    read: &mut PgBouncer,
) -> Result<(), Fault> {
    for (n, line) in input.text.lines().enumerate() {
        let place = Place {
            line: n + 1,
            column: 1 + line.len() - line.trim_start().len(),
        };
        let fault = |what: String| Err(Fault::new(&input.path, place, what));
        let line = line.trim();
        if line.is_empty() || line.starts_with([';', '#']) {
            continue;
        }
        if let Some(path) = line.strip_prefix("%include") {
            let path = beside(&input.path, path.trim());
            match files(&path) {
                Some(_) if depth >= DEEPEST => return fault("files within files: too deep".into()),
                Some(text) => {
                    read.parts.insert(path.clone());
                    lines(&Input { path, text }, files, depth + 1, section, read)?;
                }
                None => return fault(format!("{path} isn't there")),
            }
            continue;
        }
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            if !SECTIONS.contains(&name) {
                return fault(format!("unknown section [{name}]"));
            }
            *section = Some(name.to_owned());
            continue;
        }
        let Some((name, value)) = line.split_once('=') else {
            return fault("a line without =".into());
        };
        let (name, value) = (name.trim(), value.trim());
        match section.as_deref() {
            Some("pgbouncer") => {
                let at = At::new(&input.path, place);
                read.settings
                    .insert(name.to_owned(), (value.to_owned(), at));
            }
            Some("databases") => {
                if name.contains(char::is_whitespace) {
                    return fault(format!("a database name with a blank: {name:?}"));
                }
                let Some(values) = pairs(value) else {
                    return fault("key=value is expected here".into());
                };
                read.databases.retain(|known| known.name != name);
                read.databases.push(Database {
                    name: name.trim_matches('"').to_owned(),
                    values,
                    at: At::new(&input.path, place),
                });
            }
            Some("users") => {
                let Some(values) = pairs(value) else {
                    return fault("key=value is expected here".into());
                };
                read.users.insert(name.trim_matches('"').to_owned(), values);
            }
            Some(_) => read.peers.push(At::new(&input.path, place)),
            None => return fault("a line before any section".into()),
        }
    }
    Ok(())
}

/// A place of a text that begins at another.
pub fn inside(place: Place, start: Place) -> Place {
    Place {
        line: place.line + start.line - 1,
        column: place.column + start.column - 1,
    }
}

/// `key=value key='a b'`, with `''` inside.
fn pairs(text: &str) -> Option<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (key, after) = rest.split_once('=')?;
        let key = key.trim();
        if key.is_empty() || key.contains(char::is_whitespace) || key.contains(';') {
            return None;
        }
        let after = after.trim_start();
        let (value, left) = match after.strip_prefix('\'') {
            Some(inside) => quoted(inside)?,
            None => {
                let end = after.find(char::is_whitespace).unwrap_or(after.len());
                (after[..end].to_owned(), &after[end..])
            }
        };
        all.insert(key.to_owned(), value);
        rest = left.trim_start();
    }
    Some(all)
}

fn quoted(inside: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = inside.char_indices().peekable();
    while let Some((i, c)) = chars.next() {
        match c {
            '\'' if chars.peek().is_some_and(|(_, next)| *next == '\'') => {
                chars.next();
                value.push('\'');
            }
            '\'' => return Some((value, &inside[i + 1..])),
            c => value.push(c),
        }
    }
    None
}

/// The names of an `auth_file`: `"name" "password"` a line. Passwords are left where they are.
fn logins(text: &str) -> Option<BTreeSet<String>> {
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with(';'));
    let names: BTreeSet<String> = lines
        .filter_map(|line| {
            let inside = line.strip_prefix('"')?;
            let (name, _) = inside.split_once('"')?;
            Some(name.to_owned())
        })
        .collect();
    // Nobody in it: it isn't one.
    (!names.is_empty()).then_some(names)
}

impl PgBouncer {
    /// Read out of a larger file, in which it begins here.
    pub fn within(mut self, start: Place, map: &str) -> Self {
        let settings = self.settings.values_mut().map(|(_, at)| at);
        let databases = self.databases.iter_mut().map(|database| &mut database.at);
        for at in settings.chain(databases).chain(&mut self.peers) {
            at.place = inside(at.place, start);
        }
        self.map = Some(map.to_owned());
        self
    }

    /// The names under which a Deployment may run it.
    pub fn programs(&self) -> Vec<&str> {
        let file = self.file.rsplit('/').next().unwrap_or(&self.file);
        match &self.map {
            None => vec![file.trim_end_matches(".ini")],
            Some(map) => {
                let ends = ["-config", "-conf", "-cfg", "-ini", "-configmap"];
                let without = ends.iter().filter_map(|end| map.strip_suffix(end));
                std::iter::once(map.as_str()).chain(without).collect()
            }
        }
    }

    /// A whole number of `[pgbouncer]`.
    ///
    /// # Errors
    /// A value that PgBouncer wouldn't take.
    pub fn number(&self, name: &str, default: u64) -> Result<u64, Fault> {
        match self.settings.get(name) {
            None => Ok(default),
            Some((text, at)) => match text.parse() {
                Ok(number) if number <= 1_000_000_000 => Ok(number),
                _ => Err(Fault::new(
                    &at.file,
                    at.place,
                    format!("{name} is a whole number, not {text:?}"),
                )),
            },
        }
    }

    pub fn word(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(|(text, _)| text.as_str())
    }

    /// The pool mode that keeps the least of a session, over databases and users of their own.
    pub fn loosest_mode(&self) -> &str {
        let of = |values: &'_ BTreeMap<String, String>| values.get("pool_mode").cloned();
        let own = self
            .databases
            .iter()
            .filter_map(|database| of(&database.values));
        let own: Vec<String> = own.chain(self.users.values().filter_map(of)).collect();
        let whole = self.word("pool_mode").unwrap_or("session");
        ["statement", "transaction"]
            .into_iter()
            .find(|mode| whole == *mode || own.iter().any(|one| one == mode))
            .unwrap_or("session")
    }

    pub fn at(&self, name: &str) -> Option<At> {
        self.settings.get(name).map(|(_, at)| at.clone())
    }

    /// Server connections of one instance at most, how that is derived, and what isn't known of it.
    ///
    /// # Errors
    /// A value that PgBouncer wouldn't take.
    pub fn cap(&self) -> Result<(Count, Vec<Source>, Option<String>), Fault> {
        let size = self.number("default_pool_size", 20)?;
        let reserve = self.number("reserve_pool_size", 0)?;
        let per_database = self.number("max_db_connections", 0)?;
        let per_user = self.number("max_user_connections", 0)?;
        let mut from = Vec::new();
        let say = |name: &str, value: u64, from: &mut Vec<Source>| {
            from.push(match self.at(name) {
                Some(at) => Source::said(name, value, at),
                None => Source::assumed(name, value, None),
            });
        };
        say("default_pool_size", size, &mut from);
        if reserve > 0 {
            say("reserve_pool_size", reserve, &mut from);
        }
        for (name, limit) in [
            ("max_db_connections", per_database),
            ("max_user_connections", per_user),
        ] {
            if limit > 0 {
                say(name, limit, &mut from);
            }
        }
        let table = self.table()?;
        let most = flow::most(&table.pools, &table.rows, &table.columns);
        let pairs = table.pools.iter().flatten().filter(|size| **size > 0);
        from.push(Source::assumed(
            "pools (database, user)",
            pairs.count(),
            None,
        ));
        let cap = Count {
            at_least: most,
            exact: table.unknown.is_none(),
        };
        Ok((cap, from, table.unknown))
    }

    /// The most that each role, and each database of the server, can have open of it.
    ///
    /// # Errors
    /// A value that PgBouncer wouldn't take.
    pub fn shares(&self) -> Result<(Shares, Shares), Fault> {
        let table = self.table()?;
        let only = |keep: &dyn Fn(usize, usize) -> bool| {
            let mut pools = table.pools.clone();
            for (d, row) in pools.iter_mut().enumerate() {
                for (u, size) in row.iter_mut().enumerate() {
                    *size *= u64::from(keep(d, u));
                }
            }
            flow::most(&pools, &table.rows, &table.columns)
        };
        let roles = table.users.iter().enumerate();
        let by_role = roles
            .filter(|(_, user)| !user.is_empty())
            .map(|(n, user)| (user.clone(), only(&|_, u| u == n)))
            .collect();
        let real = |database: &Database| {
            let of = database.values.get("dbname");
            of.unwrap_or(&database.name).clone()
        };
        let mut names: Vec<String> = self.databases.iter().map(real).collect();
        names.sort();
        names.dedup();
        let by_database = names
            .into_iter()
            .map(|name| {
                let most = only(&|d, _| real(&self.databases[d]) == name);
                (name, most)
            })
            .collect();
        Ok((by_role, by_database))
    }

    /// Anybody may connect, not only who is in the `auth_file`.
    fn lets_in_anybody(&self, database: &Database) -> Option<&'static str> {
        if database.values.contains_key("user") {
            return None;
        }
        if self.settings.contains_key("auth_user") || database.values.contains_key("auth_user") {
            return Some("who connects: auth_query lets in whoever the server knows");
        }
        let outside = matches!(self.word("auth_type"), Some("pam" | "ldap"));
        if outside {
            return Some("who connects: auth_type asks another service");
        }
        let none = self.logins.is_none();
        none.then_some("who connects: there is no auth_file to be read")
    }

    /// Each database with each user.
    fn table(&self) -> Result<Table, Fault> {
        let size = self.number("default_pool_size", 20)?;
        let reserve = self.number("reserve_pool_size", 0)?;
        let per_database = self.number("max_db_connections", 0)?;
        let per_user = self.number("max_user_connections", 0)?;
        let waits = self.word("reserve_pool_timeout").unwrap_or("5");
        let no_reserve = waits.parse::<f64>().is_ok_and(|seconds| seconds == 0.0);
        let fixed = self
            .databases
            .iter()
            .filter_map(|db| db.values.get("user").cloned());
        let mut users: Vec<String> = self.logins.iter().flatten().cloned().chain(fixed).collect();
        users.sort();
        users.dedup();
        // Whoever else comes.
        users.push(String::new());
        let number = |values: &BTreeMap<String, String>, names: &[&str]| -> Option<u64> {
            names
                .iter()
                .find_map(|name| values.get(*name)?.parse().ok())
                .filter(|number| *number <= 1_000_000_000)
        };
        let limit = |number: u64| (number > 0).then_some(number);
        let (mut pools, mut rows) = (Vec::new(), Vec::new());
        let mut unknown = None;
        for database in &self.databases {
            if database.name == "*" {
                unknown = Some("how many databases there are: [databases] has a *".to_owned());
            }
            let own = number(&database.values, &["max_db_connections"]);
            let row = limit(own.unwrap_or(per_database));
            let anybody = self.lets_in_anybody(database);
            if let (Some(why), None, None) = (anybody, row, &unknown) {
                unknown = Some(why.to_owned());
            }
            let only = database.values.get("user");
            let pool = |user: &String| -> u64 {
                // As many as the limit of the database lets in; without one at least the first of them.
                let others = anybody.is_some() && user.is_empty();
                if let (true, Some(row)) = (others, row) {
                    return row;
                }
                let joins = match only {
                    Some(only) => only == user,
                    None => match &self.logins {
                        Some(all) => all.contains(user),
                        None => others,
                    },
                };
                if !joins {
                    return 0;
                }
                let of_user = self.users.get(user);
                let own = |names: &[&str]| {
                    of_user
                        .and_then(|values| number(values, names))
                        .or_else(|| number(&database.values, names))
                };
                let size = own(&["pool_size"]).unwrap_or(size);
                let reserve = own(&["reserve_pool_size", "reserve_pool"]).unwrap_or(reserve);
                size + if no_reserve { 0 } else { reserve }
            };
            pools.push(users.iter().map(pool).collect());
            rows.push(row);
        }
        let column = |user: &String| {
            let of_user = self.users.get(user);
            let own = of_user.and_then(|values| number(values, &["max_user_connections"]));
            // What anybody has of it is many users', each with a limit of its own.
            let per_user = if user.is_empty() { 0 } else { per_user };
            limit(own.unwrap_or(per_user))
        };
        Ok(Table {
            columns: users.iter().map(column).collect(),
            users,
            pools,
            rows,
            unknown,
        })
    }
}

/// Connections by name.
type Shares = Vec<(String, u64)>;

/// Pools of each database (rows) for each user (columns), with their limits.
struct Table {
    users: Vec<String>,
    pools: Vec<Vec<u64>>,
    rows: Vec<Option<u64>>,
    columns: Vec<Option<u64>>,
    unknown: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, more: &[(&str, &str)]) -> Result<PgBouncer, Fault> {
        let input = Input {
            path: "deploy/pgbouncer.ini".into(),
            text: text.into(),
        };
        let files = |path: &str| {
            let found = more
                .iter()
                .find(|(name, _)| format!("deploy/{name}") == path);
            found.map(|(_, text)| (*text).to_owned())
        };
        read(&input, &files).map(|found| found.expect("it is PgBouncer's"))
    }

    #[test]
    fn as_pgbouncer_reads_it() {
        let users = ("users.txt", "\"a\" \"x\"\n\"b\" \"y\"\n");
        let text = "; why\n[databases]\napp = host=h dbname='a b;c'\nlogs = pool_size=5 user=c\n[pgbouncer]\nauth_file = users.txt\n\
                    default_pool_size = 5\ndefault_pool_size = 10\n%include more.ini\n";
        let more = (
            "more.ini",
            "reserve_pool_size = 2\n[users]\na = pool_size=3\n",
        );
        let read = of(text, &[users, more]).expect("read");
        // app: a 3 + 2, b 10 + 2; logs: c 5 + 2.
        assert_eq!(read.cap().expect("a cap").0, Count::known(5 + 12 + 7));
        assert_eq!(read.databases[0].values["dbname"], "a b;c");
        for (text, line) in [
            ("[databases]\napp = host=h ; c\n", 2),
            ("[pgbouncer]\n[other]\n", 2),
            ("[pgbouncer]\nx\n", 2),
            ("[databases]\na b = host=h\n", 2),
            ("[pgbouncer]\n%include nowhere\n", 2),
        ] {
            assert_eq!(of(text, &[]).expect_err(text).place.line, line, "{text}");
        }
        let bad = of(
            "[pgbouncer]\ndefault_pool_size = 5 ; c\n[databases]\na = host=h\n",
            &[],
        );
        assert!(bad.expect("read").cap().is_err());
        let anybody = of("[databases]\na = host=h\n* = host=h\n[pgbouncer]\n", &[]).expect("read");
        assert_eq!(anybody.cap().expect("a cap").0, Count::at_least(40));
    }
}
