//! Lines that another program put words of its own before: whose they are, and how to read them without.

use regex::Regex;

/// Lines of the beginning by which it is told.
const SAMPLE: usize = 40;

/// How a line begins, and what to do about it.
const WRAPPINGS: [(&str, &str); 6] = [
    (
        r#"^\{"log": ?""#,
        "docker's json-file: `jq -rj .log FILE | stanch pg deadlocks -`",
    ),
    (
        r"^\S+ (stdout|stderr) [FP] ",
        "a container's runtime: `cut -d' ' -f4- FILE | stanch pg deadlocks -`",
    ),
    (
        r"^\d{4}-\d\d-\d\dT\S+ \S*\d{4}-\d\d-\d\d ",
        "kubectl logs --timestamps or docker logs -t: leave that option out",
    ),
    (r"^\S+ +\| ", "docker compose logs: add --no-log-prefix"),
    (
        r"^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ \S+\[\d+\]: ",
        "syslog or journald: `journalctl -o cat` leaves it out",
    ),
    (r"^\d+[:-]\d{4}-\d\d-\d\d ", "grep -n: leave -n out"),
];

/// By most of the first lines.
pub fn by(sample: &[u8]) -> Option<&'static str> {
    let lines: Vec<String> = sample
        .split(|b| *b == b'\n')
        .filter(|line| !line.is_empty())
        .take(SAMPLE)
        .map(|line| String::from_utf8_lossy(&line[..line.len().min(400)]).into_owned())
        .collect();
    let most = |shape: &Regex| {
        let fit = lines.iter().filter(|line| shape.is_match(line)).count();
        fit > 0 && fit * 3 > lines.len() * 2
    };
    WRAPPINGS
        .iter()
        .find(|(shape, _)| Regex::new(shape).is_ok_and(|shape| most(&shape)))
        .map(|(_, what)| *what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wrapped_the_lines() {
        let line = "2026-12-01 01:16:29.457 UTC [7] LOG:  x";
        for (wrapped, by_whom) in [
            (
                format!("{{\"log\":\"{line}\\n\",\"stream\":\"stderr\"}}"),
                "json-file",
            ),
            (format!("2026-12-01T01:16:29.4Z stderr F {line}"), "runtime"),
            (format!("2026-12-01T01:16:29.457Z {line}"), "kubectl"),
            (format!("db-1  | {line}"), "compose"),
            (
                format!("Dec  1 01:16:29 host postgres[7]: {line}"),
                "journald",
            ),
            (format!("12:{line}"), "grep"),
        ] {
            let told = by(format!("{wrapped}\n{wrapped}\n").as_bytes());
            assert!(
                told.is_some_and(|told| told.contains(by_whom)),
                "{wrapped}: {told:?}"
            );
        }
        assert_eq!(by(line.as_bytes()), None);
        assert_eq!(by(b""), None);
    }
}
