//! `stanch capture`, `stanch bundle …`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};

use super::logs::LineArgs;
use super::redis::RedisArgs;
use super::{ConnectArgs, limit, when};
use crate::bundle;
use crate::source::saved::When;

#[derive(Debug, ClapArgs)]
pub struct CaptureArgs {
    /// A snapshot each so often; without it one
    #[arg(long, value_name = "TIME", value_parser = limit)]
    pub every: Option<Duration>,
    /// For so long (every 2 s where --every isn't given); without it until Ctrl-C
    #[arg(long = "for", value_name = "TIME", value_parser = limit)]
    pub time: Option<Duration>,
    /// What the server's log tells from an hour before on, by structure and never its whole text (may be given several times)
    #[arg(long, value_name = "FILE")]
    pub log: Vec<PathBuf>,
    #[command(flatten)]
    pub lines: LineArgs,
    /// The folder that the bundle is made in
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub out: PathBuf,
    /// The bundle ends before it becomes larger, unpacked: from 64KiB to 2GiB
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "512MiB")]
    pub max_size: u64,
    /// Leave it a folder
    #[arg(long)]
    pub no_seal: bool,
    /// Keep values in statements and names as they are: nothing but passwords is taken out, and the file is named so
    #[arg(long)]
    pub unredacted: bool,
    /// Addresses, logins, databases and applications as tokens: the same is the same, and which it was only the key tells, which
    /// is kept with the journals and not in the bundle
    #[arg(long, conflicts_with_all = ["unredacted", "log"])]
    pub tokens: bool,
    #[command(flatten)]
    pub redis: RedisArgs,
    #[command(flatten)]
    pub connect: ConnectArgs,
}

#[derive(Debug, Subcommand)]
pub enum BundleCommand {
    /// Is it what was sealed, can all of it be read, and is nothing secret in it?
    Verify {
        /// A bundle, sealed or not
        bundle: PathBuf,
    },
    /// What is in it: frames at a glance, reports of Redis, logs, gaps
    Show {
        /// A bundle, sealed or not
        bundle: PathBuf,
    },
    /// What is otherwise in a second bundle, or in another frame of the same
    Diff {
        /// A bundle or a saved snapshot
        before: PathBuf,
        /// Another; left out: the same, its first frame against its last
        after: Option<PathBuf>,
        /// The frame of the first: a time, first, last, worst, or a number
        #[arg(long, value_name = "TIME", value_parser = when)]
        at: Option<When>,
        /// The frame of the second
        #[arg(long, value_name = "TIME", value_parser = when)]
        to: Option<When>,
    },
    /// Which token a name has become, in a bundle that was captured with --tokens
    Names {
        /// A bundle, sealed or not
        bundle: PathBuf,
        /// Logins, databases, applications, hosts, addresses
        #[arg(required = true)]
        names: Vec<String>,
        /// The key of its tokens [default: where the capture left it]
        #[arg(long, value_name = "FILE")]
        key: Option<PathBuf>,
    },
    /// Make one file of a folder that a capture left (it was cut off, --no-seal, or something secret was in it)
    Seal {
        /// The folder
        folder: PathBuf,
        /// The file [default: the folder's name with .tar.zst]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Seal in spite of what this rule found, and why: both are told in the manifest (may be given several times)
        #[arg(long, value_name = "RULE=REASON", value_parser = allowance)]
        allow: Vec<(String, String)>,
    },
}

/// `512MiB`, `1GiB`, `4096`.
fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let number: u64 = digits
        .parse()
        .map_err(|_| format!("{text}: a size such as 512MiB"))?;
    let unit = match text[digits.len()..].trim() {
        "" | "B" => 1,
        "k" | "K" | "KiB" | "kB" => 1 << 10,
        "M" | "MiB" | "MB" => 1 << 20,
        "G" | "GiB" | "GB" => 1 << 30,
        _ => return Err(format!("{text}: a size such as 512MiB")),
    };
    let bytes = number.saturating_mul(unit);
    if (MIN_SIZE..=MAX_SIZE).contains(&bytes) {
        Ok(bytes)
    } else {
        Err(format!("{text}: from 64KiB to 2GiB"))
    }
}

const MIN_SIZE: u64 = 64 << 10;
/// What is read back in reasonable time.
const MAX_SIZE: u64 = 2 << 30;

fn allowance(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((rule, _)) if !bundle::rules().any(|known| known == rule) => {
            let known: Vec<&str> = bundle::rules().collect();
            Err(format!("no rule {rule:?}; there are: {}", known.join(", ")))
        }
        Some((rule, reason)) if !reason.trim().is_empty() => {
            Ok((rule.to_owned(), reason.trim().to_owned()))
        }
        _ => Err("RULE=REASON, such as email='a public mailing list'".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(size("1MiB"), Ok(1 << 20));
        assert_eq!(size("70000"), Ok(70_000));
        assert!(size("1").is_err() && size("3GiB").is_err() && size("x").is_err());
        assert!(size("9999999999999G").is_err());
    }

    #[test]
    fn an_allowance_has_a_reason() {
        assert!(allowance("email=").is_err() && allowance("email").is_err());
        let unknown = allowance("nope=x").expect_err("no such rule");
        assert!(unknown.contains("email, ") && unknown.contains("values-in-statement"));
        assert_eq!(
            allowance("email= public ").map(|(_, why)| why),
            Ok("public".into())
        );
    }
}
