//! Lines of MONITOR, and which words of a command are keys. Only keys are taken: values are never kept.

/// One command that went by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub database: u32,
    /// The keys that it names, in its order.
    pub keys: Vec<Vec<u8>>,
}

/// `1700000000.123456 [0 127.0.0.1:5000] "GET" "key"`, from a TCP client, a socket (`unix:/path`) or a script (`lua`).
/// `None`: no such line.
pub fn read(line: &str) -> Option<Seen> {
    let (_, rest) = line.split_once(" [")?;
    // A socket's path may hold a bracket; the first word of a command is quoted.
    let (origin, command) = rest.split_once("] \"")?;
    let (database, _) = origin.split_once(' ')?;
    let words = words(command)?;
    Some(Seen {
        database: database.parse().ok()?,
        keys: keys_of(words),
    })
}

/// The quoted words; the first quote is taken already.
fn words(text: &str) -> Option<Vec<Vec<u8>>> {
    let mut bytes = text.bytes();
    let mut words = Vec::new();
    loop {
        let mut word = Vec::new();
        loop {
            match bytes.next()? {
                b'"' => break,
                b'\\' => word.push(match bytes.next()? {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'a' => 7,
                    b'b' => 8,
                    b'x' => {
                        let digit = |byte: u8| char::from(byte).to_digit(16).map(|n| n as u8);
                        digit(bytes.next()?)? << 4 | digit(bytes.next()?)?
                    }
                    other => other,
                }),
                byte => word.push(byte),
            }
        }
        words.push(word);
        match (bytes.next(), bytes.next()) {
            (None, _) => return Some(words),
            (Some(b' '), Some(b'"')) => {}
            _ => return None,
        }
    }
}

/// Where the keys of a command stand among its words.
enum Place {
    None,
    /// The word after the command's name.
    First,
    /// The first two words.
    Two,
    /// The word after the subcommand.
    Second,
    /// All words.
    All,
    /// All but the last.
    AllButLast,
    /// All but the first.
    AllButFirst,
    /// Every other word.
    Pairs,
    /// A number of keys stands there, the keys follow.
    Counted(usize),
    /// A number of keys, each with its value behind it.
    CountedPairs,
    /// The destination first, then a number of keys.
    StoredCounted,
    /// The first half of what follows the word STREAMS.
    Streams,
}

fn place(command: &str) -> Place {
    match command {
        // A script's own accesses go by as lines of their own.
        "EVAL" | "EVALSHA" | "EVAL_RO" | "EVALSHA_RO" | "FCALL" | "FCALL_RO" | "SCRIPT"
        | "FUNCTION" | "PING" | "ECHO" | "AUTH" | "HELLO" | "SELECT" | "QUIT" | "RESET"
        | "INFO" | "TIME" | "ROLE" | "DBSIZE" | "SCAN" | "KEYS" | "RANDOMKEY" | "CLIENT"
        | "CONFIG" | "COMMAND" | "CLUSTER" | "ACL" | "LATENCY" | "SLOWLOG" | "COMMANDLOG"
        | "MODULE" | "MONITOR" | "SYNC" | "PSYNC" | "REPLCONF" | "REPLICAOF" | "SLAVEOF"
        | "FAILOVER" | "WAIT" | "WAITAOF" | "SAVE" | "BGSAVE" | "BGREWRITEAOF" | "LASTSAVE"
        | "SHUTDOWN" | "FLUSHALL" | "FLUSHDB" | "SWAPDB" | "MULTI" | "EXEC" | "DISCARD"
        | "UNWATCH" | "SUBSCRIBE" | "UNSUBSCRIBE" | "PSUBSCRIBE" | "PUNSUBSCRIBE"
        | "SSUBSCRIBE" | "SUNSUBSCRIBE" | "PUBLISH" | "SPUBLISH" | "PUBSUB" | "READONLY"
        | "READWRITE" | "ASKING" | "DEBUG" | "HOTKEYS" | "LOLWUT" | "SENTINEL" | "MIGRATE" => {
            Place::None
        }
        "MGET" | "DEL" | "UNLINK" | "EXISTS" | "TOUCH" | "WATCH" | "SINTER" | "SUNION"
        | "SDIFF" | "SINTERSTORE" | "SUNIONSTORE" | "SDIFFSTORE" | "PFCOUNT" | "PFMERGE" => {
            Place::All
        }
        "MSET" | "MSETNX" => Place::Pairs,
        "BLPOP" | "BRPOP" | "BZPOPMIN" | "BZPOPMAX" => Place::AllButLast,
        "BITOP" => Place::AllButFirst,
        "RENAME" | "RENAMENX" | "COPY" | "SMOVE" | "LMOVE" | "BLMOVE" | "RPOPLPUSH"
        | "BRPOPLPUSH" | "GEOSEARCHSTORE" | "ZRANGESTORE" | "LCS" => Place::Two,
        "OBJECT" | "MEMORY" | "XINFO" | "XGROUP" => Place::Second,
        "ZUNION" | "ZINTER" | "ZDIFF" | "ZINTERCARD" | "SINTERCARD" | "LMPOP" | "ZMPOP" => {
            Place::Counted(0)
        }
        "MSETEX" => Place::CountedPairs,
        "BLMPOP" | "BZMPOP" => Place::Counted(1),
        "ZUNIONSTORE" | "ZINTERSTORE" | "ZDIFFSTORE" => Place::StoredCounted,
        "XREAD" | "XREADGROUP" => Place::Streams,
        _ => Place::First,
    }
}

/// The keys among the words of a command.
pub fn keys_of(mut words: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    if words.is_empty() {
        return words;
    }
    let command = String::from_utf8_lossy(&words.remove(0)).to_uppercase();
    let from_count = |words: Vec<Vec<u8>>, at: usize, width: usize| -> Vec<Vec<u8>> {
        let count = words
            .get(at)
            .and_then(|word| std::str::from_utf8(word).ok()?.parse().ok());
        words
            .into_iter()
            .skip(at + 1)
            .take(count.unwrap_or(0_usize).saturating_mul(width))
            .collect()
    };
    match place(&command) {
        Place::None => Vec::new(),
        Place::First => words.into_iter().take(1).collect(),
        Place::Two => words.into_iter().take(2).collect(),
        Place::Second => words.into_iter().skip(1).take(1).collect(),
        Place::All => words,
        Place::AllButLast => {
            words.pop();
            words
        }
        Place::AllButFirst => words.into_iter().skip(1).collect(),
        Place::Pairs => words.into_iter().step_by(2).collect(),
        Place::Counted(at) => from_count(words, at, 1),
        Place::CountedPairs => {
            let pairs = from_count(words, 0, 2);
            pairs.into_iter().step_by(2).collect()
        }
        Place::StoredCounted => {
            let stored = words.first().cloned();
            stored.into_iter().chain(from_count(words, 1, 1)).collect()
        }
        Place::Streams => {
            let after = words
                .iter()
                .position(|word| word.eq_ignore_ascii_case(b"STREAMS"))
                .map_or(words.len(), |at| at + 1);
            let many = (words.len() - after) / 2;
            words.into_iter().skip(after).take(many).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(line: &str) -> Vec<String> {
        let line = format!("1700000000.123456 [0 127.0.0.1:5000] {line}");
        let seen = read(&line).unwrap_or_else(|| panic!("{line}"));
        seen.keys
            .iter()
            .map(|key| String::from_utf8_lossy(key).into_owned())
            .collect()
    }

    #[test]
    fn from_every_kind_of_client() {
        for from in [
            "3 127.0.0.1:5000",
            "3 [::1]:5000",
            "3 unix:/run/re]dis.sock",
            "3 lua",
        ] {
            let seen = read(&format!("1.5 [{from}] \"get\" \"a\"")).expect(from);
            assert_eq!(
                seen,
                Seen {
                    database: 3,
                    keys: vec![b"a".to_vec()]
                },
                "{from}"
            );
        }
        for none in [
            "",
            "OK",
            "1.5 [0 lua] get a",
            "1.5 [x lua] \"get\" \"a\"",
            "1.5 [0 lua] \"get\" \"a",
        ] {
            assert_eq!(read(none), None, "{none}");
        }
    }

    #[test]
    fn names_of_any_bytes() {
        let line = r#"1.5 [0 lua] "get" "\x00\xff\"\\\n\r\t a""#;
        assert_eq!(
            read(line).expect("a line").keys,
            [b"\x00\xff\"\\\n\r\t a".to_vec()]
        );
    }

    #[test]
    fn keys_and_never_values() {
        for (line, want) in [
            (r#""SET" "k" "4111 1111""#, "k"),
            (r#""mget" "a" "b" "c""#, "a b c"),
            (r#""MSET" "a" "1" "b" "2""#, "a b"),
            (r#""BLPOP" "a" "b" "0""#, "a b"),
            (r#""HSET" "h" "f" "v""#, "h"),
            (r#""EVAL" "return 1" "1" "k""#, ""),
            (
                r#""ZUNIONSTORE" "d" "2" "a" "b" "WEIGHTS" "1" "2""#,
                "d a b",
            ),
            (r#""ZINTER" "2" "a" "b" "WITHSCORES""#, "a b"),
            (r#""BLMPOP" "0" "1" "a" "LEFT""#, "a"),
            (
                r#""XREADGROUP" "GROUP" "g" "c" "COUNT" "5" "STREAMS" "s1" "s2" ">" ">""#,
                "s1 s2",
            ),
            (r#""XGROUP" "CREATE" "s" "g" "$""#, "s"),
            (r#""OBJECT" "FREQ" "k""#, "k"),
            (r#""MSETEX" "2" "a" "1" "b" "2" "EX" "9""#, "a b"),
            (r#""BITOP" "AND" "d" "a" "b""#, "d a b"),
            (r#""RENAME" "a" "b""#, "a b"),
            (r#""AUTH" "(redacted)""#, ""),
            (r#""PING""#, ""),
            (r#""GET""#, ""),
            (r#""LMPOP" "x" "a""#, ""),
        ] {
            assert_eq!(keys(line).join(" "), want, "{line}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_line_makes_it_panic(line in ".*") {
            read(&line);
            read(&format!("1.5 [0 lua] \"{line}"));
        }
    }
}
