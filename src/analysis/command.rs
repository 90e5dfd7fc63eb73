//! The next command to type, for the server that the snapshot is of.

use crate::model::{RedisTarget, Target};

/// `stanch <what>` with the connection options of this target.
pub fn stanch_command(what: &str, target: &Target) -> String {
    match (&target.conninfo, &target.name) {
        (Some(conninfo), _) => format!("stanch {what} -d {}", shell_word(conninfo)),
        (None, Some(name)) => format!("stanch {what} -d {}", shell_word(name)),
        (None, None) => format!(
            "stanch {what} {} -d {}",
            place(target),
            shell_word(&target.database)
        ),
    }
}

/// `stanch redis <what>` for this Redis. A login stands in it without its password, which belongs into REDISCLI_AUTH.
pub fn redis_command(what: &str, target: &RedisTarget) -> String {
    match &target.name {
        Some(name) => format!("stanch redis {what} -d {}", shell_word(name)),
        None => format!(
            "stanch redis {what} --redis {}",
            shell_word(&redis_url(target))
        ),
    }
}

/// The URL of a Redis, without a password.
pub fn redis_url(target: &RedisTarget) -> String {
    let user = target
        .user
        .as_ref()
        .map_or_else(String::new, |user| format!("{user}@"));
    let tls = if target.tls { "rediss" } else { "redis" };
    match target.port {
        Some(port) => {
            let host = if target.host.contains(':') {
                format!("[{}]", target.host)
            } else {
                target.host.clone()
            };
            let database = if target.database == 0 {
                String::new()
            } else {
                format!("/{}", target.database)
            };
            format!("{tls}://{user}{host}:{port}{database}")
        }
        None if target.database == 0 => format!("unix://{}", target.host),
        None => format!("unix://{}?db={}", target.host, target.database),
    }
}

/// `psql … -c "…"` in a database of this server.
pub fn psql_command(sql: &str, target: &Target, database: &str) -> String {
    psql_commands(&[sql.to_owned()], target, database)
}

/// The same with several statements, each in a transaction of its own.
pub fn psql_commands(statements: &[String], target: &Target, database: &str) -> String {
    // psql takes a name with these in it for a connection string.
    let quoted = format!(
        "dbname='{}'",
        database.replace('\\', r"\\").replace('\'', r"\'")
    );
    let mut command = match &target.conninfo {
        // The last of two counts.
        Some(conninfo) if database != target.database => {
            format!("psql -d {}", shell_word(&format!("{conninfo} {quoted}")))
        }
        Some(conninfo) => format!("psql -d {}", shell_word(conninfo)),
        None => {
            let connection_string = database.contains('=') || database.contains("://");
            let database = if connection_string { &quoted } else { database };
            format!("psql {} -d {}", place(target), shell_word(database))
        }
    };
    for sql in statements {
        command.push_str(&format!(" -c {}", shell_word(sql)));
    }
    command
}

fn place(target: &Target) -> String {
    format!(
        "-h {} -p {} -U {}",
        shell_word(&target.host),
        target.port,
        shell_word(&target.user)
    )
}

/// One word for a POSIX shell.
pub fn shell_word(text: &str) -> String {
    let plain = !text.is_empty()
        && text.chars().all(|c| {
            c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':' | '@' | '%' | '+')
        });
    if plain {
        text.to_owned()
    } else if !text.contains(['"', '$', '`', '\\', '!']) {
        // SQL is full of single quotes, so double ones read better where they are safe.
        format!("\"{text}\"")
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_shell() {
        let shown = ["app", "", "a b", "it's", "a\"b'c", "$HOME"].map(shell_word);
        assert_eq!(
            shown,
            [
                "app",
                "\"\"",
                "\"a b\"",
                "\"it's\"",
                r#"'a"b'\''c'"#,
                "'$HOME'"
            ]
        );
    }
}
