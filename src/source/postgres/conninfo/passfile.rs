//! `~/.pgpass`: `host:port:database:user:password`, one login a line, `*` for any.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::{ConnSpec, Environment};
use crate::model::Secret;

/// The password file of this run, and whether it may be used.
#[derive(Debug)]
pub struct Passfile {
    path: PathBuf,
    text: String,
}

impl Passfile {
    /// The file that was named, else `~/.pgpass`. One that isn't there is no fault; one that others can read isn't used.
    ///
    /// The second part is a warning.
    pub fn load(named: Option<&str>, env: &Environment) -> (Option<Self>, Option<String>) {
        let path = match named {
            Some(path) => PathBuf::from(path),
            None => match env.home() {
                Some(home) => home.join(".pgpass"),
                None => return (None, None),
            },
        };
        let Ok(meta) = path.metadata() else {
            return (None, None);
        };
        let shown = path.display();
        if !meta.is_file() {
            let warning = format!("warning: password file {shown} is no plain file: not used");
            return (None, Some(warning));
        }
        if meta.permissions().mode() & 0o077 != 0 {
            let warning = format!(
                "warning: others may read password file {shown}: not used (chmod 600 makes it so)"
            );
            return (None, Some(warning));
        }
        match std::fs::read(&path) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                (Some(Self { path, text }), None)
            }
            Err(_) => (None, None),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The password of the first line that fits this place and login.
    pub fn password(&self, spec: &ConnSpec, default_socket: bool) -> Option<Secret> {
        let host = match spec.host.as_str() {
            _ if default_socket => "localhost",
            "" => spec.hostaddr.as_deref().unwrap_or("localhost"),
            host => host,
        };
        let port = spec.port.to_string();
        let wanted = [host, &port, &spec.database, &spec.user];
        self.text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .find_map(|line| fits(line, &wanted))
            .filter(|password| !password.is_empty())
            .map(Secret::new)
    }
}

/// The rest of the line after the fields that fit.
fn fits(line: &str, wanted: &[&str]) -> Option<String> {
    let mut rest = line;
    for want in wanted {
        let (field, after) = field(rest)?;
        if field.raw != "*" && field.value != *want {
            return None;
        }
        rest = after;
    }
    Some(unescaped(rest))
}

struct Field {
    raw: String,
    value: String,
}

/// Up to an unescaped ':'; a backslash takes the next character as it is.
fn field(text: &str) -> Option<(Field, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            ':' => {
                let raw = text[..at].to_owned();
                return Some((Field { raw, value }, &text[at + 1..]));
            }
            '\\' => value.extend(chars.next().map(|(_, c)| c)),
            c => value.push(c),
        }
    }
    None
}

/// A backslash takes the next character as it is; a ':' without one ends the password.
fn unescaped(text: &str) -> String {
    let mut value = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            ':' => break,
            '\\' => value.push(chars.next().unwrap_or('\\')),
            c => value.push(c),
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_in_all_their_spellings() {
        let spec = ["db1", "5432", "shop", "app"];
        for (line, want) in [
            ("db1:5432:shop:app:secret", Some("secret")),
            ("*:*:*:*:secret", Some("secret")),
            ("db1:*:shop:app:a\\:b\\\\c", Some("a:b\\c")),
            ("db1:5432:shop:app:with:colon", Some("with")),
            ("db1:5432:shop:app:", Some("")),
            ("db1:5432:shop:other:secret", None),
            ("db1:5432:shop", None),
            ("d\\b1:5432:shop:app:x", Some("x")),
            ("\\*:*:*:*:x", None),
            ("", None),
        ] {
            assert_eq!(fits(line, &spec).as_deref(), want, "{line}");
        }
    }
}
