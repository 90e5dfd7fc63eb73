//! Addresses and names as tokens, where that is asked for: the same name is the same token all through a bundle, and without
//! the key nobody can tell which name it was. The key stays outside.

use hmac::{Hmac, Mac as _};
use serde_json::Value;
use sha2::Sha256;

use crate::model::{Section, Snapshot, Target};

/// Makes tokens of one incident.
pub struct Tokens {
    key: Vec<u8>,
}

/// So many hexadecimal digits: enough to tell the names of one incident apart.
const DIGITS: usize = 10;

impl Tokens {
    pub fn new(key: impl Into<Vec<u8>>) -> Self {
        Self { key: key.into() }
    }

    /// `user-3fa1b2c4d5`: of this name and kind always the same.
    pub fn of(&self, kind: &str, name: &str) -> String {
        let start = format!("{kind}-");
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

    /// Every address, login, database and application of a snapshot. Names of tables stay: nothing could be understood.
    pub fn hide(&self, snapshot: &mut Snapshot) {
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
        assert!(token.starts_with("user-") && token.len() == 15, "{token}");
        assert_eq!(tokens.of("user", "alice"), token);
        assert_eq!(tokens.of("user", &token), token);
        assert_ne!(tokens.of("user", "bob"), token);
        assert_ne!(tokens.of("app", "alice")[4..], token[5..]);
        assert_ne!(Tokens::new(*b"two").of("user", "alice"), token);
        assert_eq!(tokens.of("app", ""), "");
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
