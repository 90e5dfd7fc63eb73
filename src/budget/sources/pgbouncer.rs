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
    pub settings: BTreeMap<String, (String, At)>,
    pub databases: Vec<Database>,
    pub users: BTreeMap<String, BTreeMap<String, String>>,
    /// Of `auth_file`; `None`: it can't be read, or there is none.
    pub logins: Option<BTreeSet<String>>,
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
        settings: BTreeMap::new(),
        databases: Vec::new(),
        users: BTreeMap::new(),
        logins: None,
    };
    let mut section = None;
    lines(input, files, 0, &mut section, &mut read)?;
    if let Some((file, _)) = read.settings.get("auth_file") {
        let path = beside(&input.path, file);
        read.logins = files(&path).map(|text| logins(&text));
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
                Some(text) => lines(&Input { path, text }, files, depth + 1, section, read)?,
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
            Some(_) => {}
            None => return fault("a line before any section".into()),
        }
    }
    Ok(())
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
fn logins(text: &str) -> BTreeSet<String> {
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with(';'));
    lines
        .filter_map(|line| {
            let inside = line.strip_prefix('"')?;
            let (name, _) = inside.split_once('"')?;
            Some(name.to_owned())
        })
        .collect()
}

impl PgBouncer {
    /// A whole number of `[pgbouncer]`.
    ///
    /// # Errors
    /// A value that PgBouncer wouldn't take.
    pub fn number(&self, name: &str, default: u64) -> Result<u64, Fault> {
        match self.settings.get(name) {
            None => Ok(default),
            Some((text, at)) => text.parse().map_err(|_| {
                Fault::new(
                    &at.file,
                    at.place,
                    format!("{name} is a whole number, not {text:?}"),
                )
            }),
        }
    }

    pub fn word(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(|(text, _)| text.as_str())
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
        let waits = self.word("reserve_pool_timeout").unwrap_or("5");
        let no_reserve = waits.parse::<f64>().is_ok_and(|seconds| seconds == 0.0);
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
        let mut unknown = None;
        let fixed = self
            .databases
            .iter()
            .filter_map(|db| db.values.get("user").cloned());
        let mut users: Vec<String> = self.logins.iter().flatten().cloned().chain(fixed).collect();
        users.sort();
        users.dedup();
        let anonymous = self.logins.is_none();
        if anonymous
            && self
                .databases
                .iter()
                .any(|db| !db.values.contains_key("user"))
        {
            unknown = Some("who connects: there is no auth_file to be read".to_owned());
            // At least one user has a pool in each database.
            users.push(String::new());
        }
        let number = |values: &BTreeMap<String, String>, names: &[&str]| -> Option<u64> {
            names
                .iter()
                .find_map(|name| values.get(*name)?.parse().ok())
        };
        let limit = |number: u64| (number > 0).then_some(number);
        let mut pools: Vec<Vec<u64>> = Vec::new();
        let mut rows: Vec<Option<u64>> = Vec::new();
        for database in &self.databases {
            if database.name == "*" {
                unknown = Some("how many databases there are: [databases] has a *".to_owned());
            }
            let only = database.values.get("user");
            let pool = |user: &String| -> u64 {
                let joins = match only {
                    Some(only) => only == user,
                    None => {
                        !anonymous && self.logins.as_ref().is_some_and(|all| all.contains(user))
                            || anonymous && user.is_empty()
                    }
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
            let own = number(&database.values, &["max_db_connections"]);
            rows.push(limit(own.unwrap_or(per_database)));
        }
        let columns: Vec<Option<u64>> = users
            .iter()
            .map(|user| {
                let own = self
                    .users
                    .get(user)
                    .and_then(|v| number(v, &["max_user_connections"]));
                limit(own.unwrap_or(per_user))
            })
            .collect();
        let most = flow::most(&pools, &rows, &columns);
        let pairs = pools.iter().flatten().filter(|size| **size > 0).count();
        from.push(Source::assumed("pools (database, user)", pairs, None));
        let cap = Count {
            at_least: most,
            exact: unknown.is_none(),
        };
        Ok((cap, from, unknown))
    }
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
