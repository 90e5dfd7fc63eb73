//! The settings and limits as they were live, against what the budget's file declares.

use super::course::Course;
use super::server::Settings;
use crate::analysis::settings::{Judged, Verdict, duration_ms};
use crate::budget::{Budget, Report, Server, ServerReport, WorkloadRow};
use crate::model::Timestamp;

/// A design that applies, and what is otherwise.
#[derive(Clone, Debug, Default)]
pub struct Drift {
    /// Whose design it is; `None`: there is none for this server, and why.
    pub design: Option<String>,
    pub no_design: Option<String>,
    pub rows: Vec<DriftRow>,
    pub workloads: Vec<WorkloadDrift>,
    /// What the server itself would be advised, whatever the design says.
    pub advice: Vec<Judged>,
    /// Of which capture the live values are.
    pub at: Option<Timestamp>,
}

#[derive(Clone, Debug)]
pub struct DriftRow {
    pub what: String,
    pub declared: Option<String>,
    /// Where it is declared: `budget.yaml:3`.
    pub from: Option<String>,
    pub live: Option<String>,
    /// In the first capture, where that is another.
    pub was: Option<String>,
    pub verdict: Match,
    /// A limit on connections that is below its design.
    pub is_lower_limit: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    AsDesigned,
    Differs,
    Unknown,
}

impl Match {
    pub fn word(self) -> &'static str {
        match self {
            Self::AsDesigned => "as designed",
            Self::Differs => "differs",
            Self::Unknown => "unknown",
        }
    }
}

/// Connections of a workload, against its design.
#[derive(Clone, Debug)]
pub struct WorkloadDrift {
    pub name: String,
    /// `None`: not known to the end.
    pub designed: Option<u64>,
    pub most: Option<usize>,
    pub at: Option<Timestamp>,
    pub verdict: Match,
}

impl DriftRow {
    pub fn live_words(&self) -> &str {
        self.live.as_deref().unwrap_or("not known")
    }

    pub fn declared_words(&self) -> &str {
        self.declared.as_deref().unwrap_or("not declared")
    }
}

/// A live value; one that switches its setting off is told as that.
pub fn shown(one: &Judged) -> String {
    let is_time = matches!(one.unit.as_deref(), Some("ms" | "s" | "min"));
    match (one.name.as_str(), one.value.trim()) {
        (_, "-1") if is_time && one.name.starts_with("log_") => "off".into(),
        ("client_connection_check_interval", "0") => "off".into(),
        _ => one.words(),
    }
}

/// The server of the design that the captures are of: the only one, or the one of the target's name.
///
/// # Errors
/// Why there is none.
pub(super) fn server_of<'r>(
    report: &'r Report,
    name: Option<&str>,
) -> Result<&'r ServerReport, String> {
    match report.servers.as_slice() {
        [] => Err("the budget declares no server".into()),
        [one] => Ok(one),
        several => several
            .iter()
            .find(|server| Some(server.name.as_str()) == name)
            .ok_or_else(|| {
                let known: Vec<&str> = several.iter().map(|server| server.name.as_str()).collect();
                format!(
                    "the budget has several servers ({}), and the captures' target is named like none of them",
                    known.join(", ")
                )
            }),
    }
}

/// The application names by which each workload of a server is known: its own, and behind a pooler its clients'.
pub(super) fn names(budget: &Budget, server: &ServerReport) -> Vec<(String, Vec<String>)> {
    let of = |row: &WorkloadRow| {
        let behind = budget
            .workloads
            .iter()
            .filter(|workload| workload.target.as_deref() == Some(row.name.as_str()))
            .map(|workload| workload.name.clone());
        std::iter::once(row.name.clone()).chain(behind).collect()
    };
    server
        .workloads
        .iter()
        .map(|row| (row.name.clone(), of(row)))
        .collect()
}

/// Compares; without a design only the advice.
pub(super) fn drift(course: &Course, design: Option<(&Budget, &Report)>) -> Drift {
    let mut all = Drift::default();
    let live = course.server.settings.as_ref();
    if let Some((_, last)) = live {
        all.at = Some(last.at);
        all.advice = last
            .judged
            .iter()
            .filter(|one| one.verdict == Verdict::Change)
            .cloned()
            .collect();
    }
    let Some((budget, report)) = design else {
        all.no_design = Some("no budget was given (--budget)".into());
        return all;
    };
    let name = course
        .target
        .as_ref()
        .and_then(|target| target.name.as_deref());
    let server = match server_of(report, name) {
        Ok(server) => server,
        Err(why) => {
            all.no_design = Some(why);
            return all;
        }
    };
    all.design = Some(server.name.clone());
    let declared = budget.servers.iter().find(|one| one.name == server.name);
    if let Some(declared) = declared {
        rows(declared, live, &mut all.rows);
    }
    for (n, row) in server.workloads.iter().enumerate() {
        let seen = course.workloads.get(n).copied().flatten();
        let designed = row.steady();
        let designed = designed.exact.then_some(designed.at_least);
        let verdict = match (seen, designed) {
            (Some((most, _)), Some(designed)) if most as u64 > designed => Match::Differs,
            (Some(_), Some(_)) => Match::AsDesigned,
            _ => Match::Unknown,
        };
        all.workloads.push(WorkloadDrift {
            name: row.name.clone(),
            designed,
            most: seen.map(|(most, _)| most),
            at: seen.map(|(_, at)| at),
            verdict,
        });
    }
    // What is otherwise comes first.
    all.rows.sort_by_key(|row| match row.verdict {
        Match::Differs => 0,
        Match::Unknown => 1,
        Match::AsDesigned => 2,
    });
    all
}

type Live = (Settings, Settings);

fn rows(server: &Server, live: Option<&Live>, all: &mut Vec<DriftRow>) {
    let from = server
        .from
        .iter()
        .find_map(|source| Some(source.at.as_ref()?.words()));
    let max = server.max_connections;
    let numbers = [
        (
            "max_connections",
            max.exact.then_some(max.at_least),
            live.map(|(first, last)| (first.server.max_connections, last.server.max_connections)),
        ),
        (
            "superuser_reserved_connections",
            Some(server.superuser_reserved),
            live.map(|(first, last)| {
                (
                    first.server.superuser_reserved,
                    last.server.superuser_reserved,
                )
            }),
        ),
        (
            "reserved_connections",
            Some(server.reserved),
            live.map(|(first, last)| (first.server.reserved, last.server.reserved)),
        ),
    ];
    for (what, declared, now) in numbers {
        let verdict = match (declared, now) {
            (Some(declared), Some((_, now))) if declared == u64::from(now) => Match::AsDesigned,
            (Some(_), Some(_)) => Match::Differs,
            _ => Match::Unknown,
        };
        let lower = what == "max_connections"
            && declared
                .zip(now)
                .is_some_and(|(declared, (_, now))| u64::from(now) < declared);
        all.push(DriftRow {
            what: what.into(),
            declared: declared.map(|number| number.to_string()),
            from: from.clone(),
            live: now.map(|(_, now)| now.to_string()),
            was: now
                .filter(|(first, now)| first != now)
                .map(|(first, _)| first.to_string()),
            verdict,
            is_lower_limit: lower,
        });
    }
    use crate::analysis::connections::LimitKind;
    for (kind, list) in [
        (LimitKind::Role, &server.roles),
        (LimitKind::Database, &server.databases),
    ] {
        for (name, limit, at) in list {
            let now = live.map(|(_, last)| {
                let of = last
                    .limits
                    .iter()
                    .find(|now| now.kind == kind && now.name == *name);
                of.map(|now| now.limit)
            });
            all.push(DriftRow {
                what: format!("CONNECTION LIMIT of {} {name}", kind.word()),
                declared: Some(limit.to_string()),
                from: Some(at.words()),
                live: now.map(|now| now.map_or("no limit".into(), |now| now.to_string())),
                was: None,
                verdict: match now {
                    None => Match::Unknown,
                    Some(now) if now.map(u64::from) == Some(*limit) => Match::AsDesigned,
                    Some(_) => Match::Differs,
                },
                is_lower_limit: now.flatten().is_some_and(|now| u64::from(now) < *limit),
            });
        }
    }
    for (name, (value, at)) in &server.settings {
        let of = |settings: &Settings| {
            settings
                .judged
                .iter()
                .find(|one| one.name == *name)
                .cloned()
        };
        let now = live.and_then(|(_, last)| of(last));
        let before = live.and_then(|(first, _)| of(first)).map(|one| shown(&one));
        let known = now.as_ref().filter(|now| now.verdict != Verdict::Unknown);
        let verdict = known.map_or(Match::Unknown, |now| match is_same(value, now) {
            true => Match::AsDesigned,
            false => Match::Differs,
        });
        let live_words = known.map(shown);
        all.push(DriftRow {
            what: name.clone(),
            declared: Some(value.clone()),
            from: Some(at.words()),
            was: before.filter(|before| live_words.as_ref().is_some_and(|now| now != before)),
            live: live_words,
            verdict,
            is_lower_limit: false,
        });
    }
}

/// As the server takes both: `60s` is `60000` in ms, `on` is `true`.
fn is_same(declared: &str, live: &Judged) -> bool {
    let declared = declared.trim().trim_matches('\'');
    let unit = live.unit.as_deref();
    if unit.is_some()
        && let (Some(a), Some(b)) = (amount(declared, unit), amount(&live.value, unit))
    {
        return a == b;
    }
    let truth = |text: &str| match text.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" => Some(true),
        "off" | "false" | "no" => Some(false),
        _ => None,
    };
    match (truth(declared), truth(&live.value)) {
        (Some(a), Some(b)) => a == b,
        _ => declared.eq_ignore_ascii_case(&live.value),
    }
}

/// A time in ms, or a size in bytes.
fn amount(text: &str, unit: Option<&str>) -> Option<u64> {
    if let Some(ms) = duration_ms(text, unit) {
        return Some(ms.0);
    }
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    // PostgreSQL's blocks come as a unit of `8kB`.
    let given = text[digits..].trim();
    let (times, unit) = match (given, unit?) {
        ("", unit) => {
            let digits = unit.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
            (unit[..digits].parse().unwrap_or(1), &unit[digits..])
        }
        (given, _) => (1, given),
    };
    let shift = match unit {
        "B" => 0,
        "kB" => 10,
        "MB" => 20,
        "GB" => 30,
        "TB" => 40,
        _ => return None,
    };
    number.checked_mul(times)?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(value: &str, unit: Option<&str>) -> Judged {
        Judged {
            name: "x".into(),
            value: value.into(),
            unit: unit.map(Into::into),
            source: None,
            recommended: None,
            verdict: Verdict::Ok,
            why: String::new(),
            pending_restart: false,
            overrides: Vec::new(),
        }
    }

    #[test]
    fn what_is_off_is_told_as_off() {
        let of = |name: &str, value| {
            shown(&Judged {
                name: name.into(),
                ..live(value, Some("ms"))
            })
        };
        assert_eq!(of("log_min_duration_statement", "-1"), "off");
        assert_eq!(of("client_connection_check_interval", "0"), "off");
        // Nought of this one is everything.
        assert_eq!(of("log_min_duration_statement", "0"), "0 ms");
    }

    #[test]
    fn a_setting_is_the_same_however_it_is_spelled() {
        for (declared, value, unit) in [
            ("60s", "60000", Some("ms")),
            ("1min", "60", Some("s")),
            ("'30 s'", "30000", Some("ms")),
            ("0", "0", Some("ms")),
            ("10GB", "10240", Some("MB")),
            ("128MB", "16384", Some("8kB")),
            ("on", "on", None),
            ("true", "on", None),
            ("SCRAM-sha-256", "scram-sha-256", None),
            ("320", "320", None),
        ] {
            assert!(
                is_same(declared, &live(value, unit)),
                "{declared} {value} {unit:?}"
            );
        }
        for (declared, value, unit) in [
            ("60s", "0", Some("ms")),
            ("off", "on", None),
            ("10GB", "10", Some("MB")),
            ("320", "200", None),
        ] {
            assert!(
                !is_same(declared, &live(value, unit)),
                "{declared} {value} {unit:?}"
            );
        }
    }
}
