//! Keys that guard the rebuild of others, told by their names.

/// Words that such keys have among the parts of their names.
const WORDS: [&str; 9] = [
    "lock",
    "locks",
    "locked",
    "lck",
    "mutex",
    "semaphore",
    "singleflight",
    "redlock",
    "dogpile",
];

fn is_delimiter(c: char) -> bool {
    matches!(
        c,
        ':' | '/' | '|' | '.' | '#' | ',' | ';' | '-' | '_' | '@' | ' ' | '{' | '}'
    )
}

/// A group of lock keys, whatever they guard.
pub fn is_lock(group: &str) -> bool {
    group
        .split(is_delimiter)
        .any(|word| WORDS.contains(&word.to_lowercase().as_str()))
}

/// For the group of lock keys: what is left of its name without the word, `catalog:product:*` of
/// `lock:catalog:product:*`. `None`: no such word is in it.
pub fn guarded(group: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    let mut found = false;
    let mut rest = group;
    loop {
        let end = rest.find(is_delimiter).unwrap_or(rest.len());
        let word = &rest[..end];
        let delimiter = &rest[end..(end + rest[end..].chars().next().map_or(0, char::len_utf8))];
        if !found && WORDS.contains(&word.to_lowercase().as_str()) {
            found = true;
            // At the end of a name the delimiter before the word goes with it.
            if delimiter.is_empty()
                && let Some(last) = parts.last_mut()
            {
                *last = last.trim_end_matches(is_delimiter);
            }
        } else {
            parts.push(&rest[..end + delimiter.len()]);
        }
        if delimiter.is_empty() {
            break;
        }
        rest = &rest[end + delimiter.len()..];
    }
    let left: String = parts.concat();
    (found && left.chars().any(char::is_alphanumeric)).then_some(left)
}

/// Whether keys of one group are what the keys of another guard: the same name, or one goes on where the other ends
/// (`lock:catalog:product:*` guards `catalog:product:*:v1`).
pub fn guards(left: &str, group: &str) -> bool {
    let continues = |short: &str, long: &str| {
        long.strip_prefix(short)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(is_delimiter))
    };
    continues(left, group) || continues(group, left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_lock_is_of() {
        for (lock, of) in [
            ("lock:catalog:product:*", Some("catalog:product:*")),
            ("catalog:product:*:lock", Some("catalog:product:*")),
            ("catalog:product:*.lock", Some("catalog:product:*")),
            ("catalog:product:*_lock", Some("catalog:product:*")),
            ("cache:mutex:page:*", Some("cache:page:*")),
            ("Lock-home", Some("home")),
            ("catalog:product:*", None),
            ("clock:time", None),
            ("lock", None),
            ("lock:*", None),
        ] {
            assert_eq!(guarded(lock).as_deref(), of, "{lock}");
        }
        assert!(guards("catalog:product:*", "catalog:product:*:v1"));
        assert!(guards("catalog:product:*:v1", "catalog:product:*"));
        assert!(guards("home", "home"));
        assert!(!guards("catalog:prod", "catalog:product:*"));
        assert!(!guards("user:*", "catalog:product:*"));
    }
}
