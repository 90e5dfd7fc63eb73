//! What this login may do, found out by the cheapest harmless form of each command, or by asking the server's own rules.

use super::error::Refused;
use super::fleet::Node;
use super::value;
use crate::keys::monitor;
use crate::model::{Allowed, Right, SlowCommand, Timestamp};

/// A command, what it is for, the form that does no harm (none: only the rules can be asked), and what grants it.
const COMMANDS: [(&str, &str, Option<&str>, &str); 11] = [
    (
        "SCAN",
        "every walk over the keys",
        Some("SCAN 0 COUNT 1"),
        "+scan",
    ),
    ("OBJECT FREQ", "hot keys by counters", None, "+object|freq"),
    ("MEMORY USAGE", "sizes", None, "+memory|usage"),
    ("PTTL", "expiry", None, "+pttl +pexpiretime"),
    (
        "INFO",
        "version, memory, hit ratio",
        Some("INFO server"),
        "+info",
    ),
    ("TIME", "the server's clock", Some("TIME"), "+time"),
    ("SLOWLOG", "the slow log", Some("SLOWLOG LEN"), "+slowlog"),
    (
        "CONFIG GET",
        "keyspace events",
        Some("CONFIG GET maxmemory-policy"),
        "+config|get",
    ),
    ("CONFIG SET", "--enable-keymiss", None, "+config|set"),
    ("MONITOR", "--monitor", None, "+monitor"),
    ("PSUBSCRIBE", "misses of single keys", None, "+psubscribe"),
];

/// Asks for each. The user's name is read first, for the rules are asked by it; where it may not be read, it is that of the
/// address.
///
/// # Errors
/// When the connection is lost.
pub async fn rights(node: &mut Node) -> Result<Vec<Right>, Refused> {
    let user = match node.say("ACL WHOAMI").await {
        Ok(name) => value::text(&name),
        Err(lost @ Refused::Lost(_)) => return Err(lost),
        Err(_) => None,
    };
    let user = user.unwrap_or_else(|| node.user().to_owned());
    let mut rights = Vec::new();
    for (command, for_what, harmless, grant) in COMMANDS {
        let events = super::keymiss::events_of(node.database());
        // A pattern may be listened to where the same pattern is granted, word for word.
        let grant = match command {
            "PSUBSCRIBE" => format!("{grant} '&{events}'"),
            _ => grant.to_owned(),
        };
        let allowed = match harmless {
            Some(line) => tried(node, line).await?,
            None => by_rules(node, &user, command, &events).await?,
        };
        rights.push(Right {
            command: command.into(),
            allowed,
            for_what: for_what.into(),
            grant: (allowed == Allowed::No).then(|| format!("ACL SETUSER {user} {grant}")),
        });
    }
    Ok(rights)
}

async fn tried(node: &mut Node, line: &str) -> Result<Allowed, Refused> {
    match node.say(line).await {
        Ok(_) => Ok(Allowed::Yes),
        Err(lost @ Refused::Lost(_)) => Err(lost),
        Err(Refused::NotPermitted(_)) => Ok(Allowed::No),
        Err(Refused::Unknown(_)) => Ok(Allowed::Absent),
        Err(_) => Ok(Allowed::Unknown),
    }
}

/// `ACL DRYRUN` (7.0) carries nothing out; only an administrator may ask it.
async fn by_rules(
    node: &mut Node,
    user: &str,
    command: &str,
    events: &str,
) -> Result<Allowed, Refused> {
    let name = command.split(' ').next().unwrap_or(command);
    match node.ask(&[b"COMMAND", b"INFO", name.as_bytes()]).await {
        Err(lost @ Refused::Lost(_)) => return Err(lost),
        Ok(found) => {
            if matches!(value::list(found).first(), None | Some(redis::Value::Nil)) {
                return Ok(Allowed::Absent);
            }
        }
        Err(_) => {}
    }
    let mut words: Vec<&[u8]> = vec![b"ACL", b"DRYRUN", user.as_bytes()];
    words.extend(command.split(' ').map(str::as_bytes));
    match command {
        "CONFIG SET" => words.extend([b"maxmemory".as_slice(), b"0"]),
        "OBJECT FREQ" | "MEMORY USAGE" | "PTTL" => words.push(b"x"),
        "PSUBSCRIBE" => words.push(events.as_bytes()),
        _ => {}
    }
    match node.ask(&words).await {
        // Redis answers a denial as a text, not as an error.
        Ok(said) if value::text(&said).as_deref() == Some("OK") => Ok(Allowed::Yes),
        Ok(said) => Ok(match value::text(&said) {
            // The command is allowed; the key that was named isn't.
            Some(text) if text.contains("to access") && text.contains(" key") => Allowed::Yes,
            Some(text) if text.contains("can't run") || text.contains("no permissions") => {
                Allowed::No
            }
            _ => Allowed::Unknown,
        }),
        Err(lost @ Refused::Lost(_)) => Err(lost),
        Err(_) => Ok(Allowed::Unknown),
    }
}

/// The newest entries of the slow log.
///
/// # Errors
/// What it is refused for.
pub async fn slow_log(node: &mut Node, most: usize) -> Result<Vec<SlowCommand>, Refused> {
    let most = most.to_string();
    let entries = value::list(node.ask(&[b"SLOWLOG", b"GET", most.as_bytes()]).await?);
    Ok(entries.into_iter().filter_map(entry).collect())
}

/// `[id, seconds, microseconds, [words…], client, name]`; the words are cut by the server.
fn entry(value: redis::Value) -> Option<SlowCommand> {
    let mut parts = value::list(value).into_iter().skip(1);
    let at = value::int(&parts.next()?)?;
    let took_us = value::uint(&parts.next()?)?;
    let words: Vec<Vec<u8>> = value::list(parts.next()?)
        .into_iter()
        .filter_map(value::bytes)
        .collect();
    let command = String::from_utf8_lossy(words.first()?).to_uppercase();
    let keys = monitor::keys_of(words);
    Some(SlowCommand {
        at: Timestamp::new(chrono::DateTime::from_timestamp(at, 0)?),
        took_us,
        command,
        keys: keys
            .into_iter()
            .take(3)
            .map(|key| crate::model::KeyName(key).text())
            .collect(),
    })
}
