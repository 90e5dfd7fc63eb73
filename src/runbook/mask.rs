//! Command lines as they may be written down and shown: without what looks like a password.

use crate::sql;

const SECRETS: [&str; 8] = [
    "password",
    "passwd",
    "passphrase",
    "token",
    "secret",
    "api-key",
    "apikey",
    "api_key",
];
const NOT_SHOWN: &str = "(not shown)";

/// Each argument of a command line, or that it isn't shown.
pub fn masked(argv: &[String]) -> Vec<String> {
    let mut after_flag = false;
    let mut line = String::new();
    argv.iter()
        .map(|arg| {
            let after = std::mem::replace(&mut after_flag, is_secret_flag(arg));
            line.push_str(arg);
            // What a whole command line tells: `redis-cli -a …`, `curl -u …`.
            let told = !sql::without_credentials(&line).ends_with(arg.as_str());
            line.push(' ');
            match after || told && one(arg) == *arg {
                true => NOT_SHOWN.to_owned(),
                false => one(arg),
            }
        })
        .collect()
}

/// `--password`: what comes next is one.
fn is_secret_flag(arg: &str) -> bool {
    arg.starts_with('-') && !arg.contains('=') && names_a_secret(arg)
}

fn names_a_secret(text: &str) -> bool {
    let lower = text.to_lowercase();
    SECRETS.iter().any(|word| lower.contains(word))
}

fn one(arg: &str) -> String {
    if let Some((name, _)) = arg.split_once('=')
        && names_a_secret(name)
    {
        return format!("{name}={NOT_SHOWN}");
    }
    if let Some((name, _)) = arg.split_once(':')
        && (names_a_secret(name) || name.eq_ignore_ascii_case("authorization"))
    {
        return format!("{name}: {NOT_SHOWN}");
    }
    let in_url = arg.split_once("://").is_some_and(|(_, rest)| {
        let place = rest.split('/').next().unwrap_or_default();
        place
            .rsplit_once('@')
            .is_some_and(|(login, _)| login.contains(':'))
    });
    let lower = arg.to_lowercase();
    let inside = SECRETS
        .iter()
        .any(|word| lower.contains(&format!("{word}=")));
    if in_url || inside || lower.contains("bearer ") {
        return format!("{NOT_SHOWN}: it holds a password");
    }
    arg.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_written_down() {
        for line in [
            &["x", "--password=hunter2"][..],
            &["x", "--password", "hunter2"],
            &["x", "--api-key", "hunter2", "y"],
            &["x", "postgresql://a:hunter2@h/d"],
            &["x", "host=h password=hunter2"],
            &["curl", "-H", "Authorization: Bearer hunter2"],
            &["curl", "-H", "X-Token: hunter2"],
            &["x", "DB_PASSWORD=hunter2"],
            &["x", "postgres://a:b/hunter2@h/d"],
            &["curl", "-u", "bob:b\"hunter2", "https://h"],
            &["redis-cli", "-h", "h", "-a", "hunter2", "ping"],
            &["mysql", "-phunter2"],
            &[
                "x",
                "\u{130}\u{130}\u{130}\u{130}\u{130}\u{130}://a:hunter2@h",
            ],
        ] {
            let argv: Vec<String> = line.iter().map(|arg| (*arg).to_owned()).collect();
            let shown = masked(&argv).join(" ");
            assert!(!shown.contains("hunter2"), "{shown}");
            assert!(shown.starts_with(line[0]), "{shown}");
        }
        let plain = [
            "kubectl",
            "scale",
            "--replicas=3",
            "postgresql://a@h/d",
            "-p",
            "5432",
        ];
        let argv: Vec<String> = plain.iter().map(|arg| (*arg).to_owned()).collect();
        assert_eq!(masked(&argv), argv);
    }
}
