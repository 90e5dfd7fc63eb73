//! Addresses and names as tokens, where that is asked for: the same name is the same token all through a bundle, and without
//! the key nobody can tell which name it was. The key stays outside.

use std::collections::BTreeSet;

use hmac::{Hmac, Mac as _};
use serde_json::Value;
use sha2::Sha256;

use super::columns::{Class, class};
use crate::model::{QueryRows, Section, Snapshot, Target};

/// Makes tokens of one incident.
pub struct Tokens {
    key: Vec<u8>,
}

/// What a token may stand for.
const KINDS: [&str; 7] = ["user", "db", "app", "ip", "host", "gid", "target"];
/// So many hexadecimal digits: enough to tell the names of one incident apart.
const DIGITS: usize = 10;

impl Tokens {
    pub fn new(key: impl Into<Vec<u8>>) -> Self {
        Self { key: key.into() }
    }

    /// `user_3fa1b2c4d5`: of this name and kind always the same, and one name also where it stands in a statement without
    /// quotes.
    pub fn of(&self, kind: &str, name: &str) -> String {
        let start = format!("{kind}_");
        // A token of a token tells nobody anything.
        if name.is_empty() || is_token(&start, name) {
            return name.to_owned();
        }
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.key) else {
            return format!("{start}?");
        };
        mac.update(kind.as_bytes());
        mac.update(&[0]);
        mac.update(name.as_bytes());
        let hex = super::seal::hex(&mac.finalize().into_bytes());
        format!("{start}{}", &hex[..DIGITS])
    }

    /// Every token that a name may have become, with its kind.
    pub fn all_of(&self, name: &str) -> Vec<(&'static str, String)> {
        KINDS
            .iter()
            .map(|kind| (*kind, self.of(kind, name)))
            .collect()
    }

    /// Names in a text, each where it stands as a word of its own, and addresses. The longest first, in whatever case:
    /// without quotes a statement's names have none.
    pub fn hide_words(&self, text: &str, names: &[(&'static str, String)]) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        'text: while !rest.is_empty() {
            let begins = out.chars().next_back().is_none_or(|c| !is_part(c));
            let mut found = names.iter().filter(|_| begins).filter_map(|(kind, name)| {
                let after = without(rest, name)?;
                (!name.is_empty() && !after.starts_with(is_part)).then_some((kind, name, after))
            });
            if let Some(first) = found.next() {
                // Of two that differ in case only the one that is spelt so.
                let spelt = |(_, name, _): &(_, &String, _)| rest.starts_with(name.as_str());
                let alike = found.take_while(|(_, name, _)| name.len() == first.1.len());
                let exact = std::iter::once(first).chain(alike).find(spelt);
                let (kind, name, after) = exact.unwrap_or(first);
                out.push_str(&self.of(kind, name));
                rest = after;
                continue 'text;
            }
            let address: String = rest
                .chars()
                .take_while(|c| c.is_ascii_hexdigit() || matches!(c, '.' | ':'))
                .collect();
            let bare = address.trim_end_matches(['.', ':']);
            // `127.0.0.1:5432` has its port behind it.
            let bare = match bare.rsplit_once(':') {
                Some((host, _)) if host.parse::<std::net::Ipv4Addr>().is_ok() => host,
                _ => bare,
            };
            if begins && bare.parse::<std::net::IpAddr>().is_ok() {
                out.push_str(&self.of("ip", bare));
                rest = &rest[bare.len()..];
                continue;
            }
            let mut chars = rest.chars();
            out.extend(chars.next());
            rest = chars.as_str();
        }
        out
    }

    /// Every address, login, database and application of a snapshot. Names of tables stay: nothing could be understood.
    pub fn hide(&self, snapshot: &mut Snapshot) {
        let names = names(snapshot);
        self.hide_target(&mut snapshot.target);
        snapshot.link = None;
        for refusal in &mut snapshot.refusals {
            self.name("user", &mut refusal.user);
            self.name("db", &mut refusal.database);
        }
        if let Some(login) = snapshot.login.get_mut() {
            self.name("user", &mut login.user);
        }
        for session in rows(&mut snapshot.activity) {
            self.maybe("ip", &mut session.client.addr);
            self.maybe("user", &mut session.user);
            self.maybe("db", &mut session.database);
            self.maybe("app", &mut session.application_name);
            if let Some(query) = &mut session.query {
                *query = self.hide_words(query, &names);
            }
        }
        for database in rows(&mut snapshot.databases) {
            self.name("db", &mut database.name);
        }
        for role in rows(&mut snapshot.roles) {
            self.name("user", &mut role.name);
        }
        for prepared in rows(&mut snapshot.prepared) {
            self.name("gid", &mut prepared.gid);
            self.maybe("user", &mut prepared.owner);
            self.maybe("db", &mut prepared.database);
        }
        match &mut snapshot.pooler {
            Some(Section::Collected(pooler)) => {
                self.name("host", &mut pooler.host);
                for pool in &mut pooler.pools {
                    self.name("db", &mut pool.database);
                    self.name("user", &mut pool.user);
                }
            }
            // What an error says of the way there would tell all of it.
            Some(Section::Failed { message, .. }) => *message = "no answer".into(),
            // It has the error before it.
            Some(Section::Skipped(why)) => *why = "not asked again so soon".into(),
            None => {}
        }
        for (query, rows) in &mut snapshot.queries {
            if let Some(rows) = rows.get_mut() {
                self.hide_rows(query, rows, &names);
            }
        }
    }

    /// The same in rows as they came.
    fn hide_rows(&self, query: &str, rows: &mut QueryRows, names: &[(&'static str, String)]) {
        for row in &mut rows.rows {
            for (column, cell) in rows.columns.iter().zip(row) {
                let Value::String(text) = cell else { continue };
                match class(query, column) {
                    Class::Login => self.name("user", text),
                    Class::Database => self.name("db", text),
                    Class::Application => self.name("app", text),
                    Class::Address => self.name("ip", text),
                    Class::Gid => self.name("gid", text),
                    Class::Statement | Class::Override => *text = self.hide_words(text, names),
                    Class::Name | Class::Fixed | Class::Unknown => {}
                }
            }
        }
    }

    /// Which server it is.
    pub fn hide_target(&self, target: &mut Target) {
        self.name("host", &mut target.host);
        self.name("db", &mut target.database);
        self.name("user", &mut target.user);
        self.maybe("target", &mut target.name);
        // The way there would tell all of it.
        target.conninfo = None;
    }

    /// Hosts and nodes of a report of Redis.
    pub fn hide_value(&self, value: &mut Value) {
        match value {
            Value::Array(all) => all.iter_mut().for_each(|value| self.hide_value(value)),
            Value::Object(fields) => {
                for (field, value) in fields.iter_mut() {
                    match (field.as_str(), &mut *value) {
                        ("host" | "node", Value::String(name)) => self.name("host", name),
                        ("user", Value::String(name)) => self.name("user", name),
                        ("nodes", Value::Array(names)) => {
                            for name in names {
                                match name {
                                    Value::String(name) => self.name("host", name),
                                    other => self.hide_value(other),
                                }
                            }
                        }
                        _ => self.hide_value(value),
                    }
                }
            }
            _ => {}
        }
    }

    fn name(&self, kind: &str, name: &mut String) {
        *name = self.of(kind, name);
    }

    fn maybe(&self, kind: &str, name: &mut Option<String>) {
        if let Some(name) = name {
            self.name(kind, name);
        }
    }
}

/// What may stand in a statement: logins, databases, applications and addresses, the longest first.
fn names(snapshot: &Snapshot) -> Vec<(&'static str, String)> {
    let mut names: BTreeSet<(&'static str, String)> = BTreeSet::new();
    for session in snapshot.activity.rows() {
        let of = [
            ("user", &session.user),
            ("db", &session.database),
            ("app", &session.application_name),
            ("ip", &session.client.addr),
        ];
        for (kind, name) in of {
            names.extend(name.iter().map(|name| (kind, name.clone())));
        }
    }
    let roles = snapshot.roles.rows().iter();
    names.extend(roles.map(|role| ("user", role.name.clone())));
    let databases = snapshot.databases.rows().iter();
    names.extend(databases.map(|database| ("db", database.name.clone())));
    let mut names: Vec<_> = names.into_iter().collect();
    names.retain(|(_, name)| !name.is_empty());
    names.sort_by_key(|(_, name)| std::cmp::Reverse(name.len()));
    names
}

/// What follows a name that a text begins with, in whatever case.
fn without<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let mut rest = text.chars();
    for c in name.chars() {
        let other = rest.next()?;
        if c != other && !c.to_lowercase().eq(other.to_lowercase()) {
            return None;
        }
    }
    Some(rest.as_str())
}

fn is_token(start: &str, name: &str) -> bool {
    name.strip_prefix(start)
        .is_some_and(|rest| rest.len() == DIGITS && rest.bytes().all(|b| b.is_ascii_hexdigit()))
}

fn rows<T>(section: &mut Section<Vec<T>>) -> impl Iterator<Item = &mut T> {
    section.get_mut().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_is_the_same_token_under_one_key() {
        let tokens = Tokens::new(*b"one");
        let token = tokens.of("user", "alice");
        assert!(token.starts_with("user_") && token.len() == 15, "{token}");
        assert_eq!(tokens.of("user", "alice"), token);
        assert_eq!(tokens.of("user", &token), token);
        assert_ne!(tokens.of("user", "bob"), token);
        assert_ne!(tokens.of("app", "alice")[4..], token[5..]);
        assert_ne!(Tokens::new(*b"two").of("user", "alice"), token);
        assert_eq!(tokens.of("app", ""), "");
    }

    #[test]
    fn names_are_found_as_words() {
        let tokens = Tokens::new(*b"one");
        let names = [("user", "alice".to_owned()), ("db", "on".to_owned())];
        let hidden = tokens.hide_words(
            "SET ROLE alice; malice on connection; 127.0.0.1:5432, ::1",
            &names,
        );
        let (user, db) = (tokens.of("user", "alice"), tokens.of("db", "on"));
        let (v4, v6) = (tokens.of("ip", "127.0.0.1"), tokens.of("ip", "::1"));
        assert_eq!(
            hidden,
            format!("SET ROLE {user}; malice {db} connection; {v4}:5432, {v6}")
        );
    }

    #[test]
    fn names_are_found_in_whatever_case() {
        let tokens = Tokens::new(*b"one");
        let names = [("user", "App".to_owned()), ("user", "app".to_owned())];
        let (exact, folded) = (tokens.of("user", "App"), tokens.of("user", "app"));
        assert_eq!(
            tokens.hide_words("select * from APP.orders, \"App\".t, app.u, apple", &names),
            format!("select * from {exact}.orders, \"{exact}\".t, {folded}.u, apple")
        );
        assert_eq!(
            tokens.hide_words("SET ROLE App", &names[1..]),
            format!("SET ROLE {folded}")
        );
    }

    /// Whatever the key: the gate looks at what was hidden as it looks at everything.
    #[test]
    fn a_statement_with_tokens_is_as_the_redactor_leaves_it() {
        let names: Vec<_> = KINDS
            .iter()
            .map(|kind| (*kind, (*kind).to_owned()))
            .collect();
        for key in 0..400_u32 {
            let tokens = Tokens::new(key.to_be_bytes());
            for kind in KINDS {
                let text =
                    format!("select count(*) from {kind}.orders join \"{kind}\".t using (id)");
                let hidden = tokens.hide_words(&text, &names);
                assert_eq!(crate::sql::shown(&hidden).text, hidden);
                let token = tokens.of(kind, kind);
                assert!(hidden.contains(&token), "{hidden}");
                assert_eq!(crate::sql::detect(&token), None, "{token}");
            }
        }
    }

    #[test]
    fn hosts_of_redis() {
        let tokens = Tokens::new(*b"one");
        let mut value = serde_json::json!({
            "target": {"host": "cache1", "nodes": ["cache1:6379"], "user": null},
            "coverage": {"nodes": [{"node": "cache1:6379", "keys_seen": 3}]},
        });
        tokens.hide_value(&mut value);
        let text = value.to_string();
        assert!(
            !text.contains("cache1") && text.contains("\"keys_seen\":3"),
            "{text}"
        );
        assert_eq!(
            value["target"]["nodes"][0],
            value["coverage"]["nodes"][0]["node"]
        );
    }
}
