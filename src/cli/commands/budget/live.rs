//! `--live`, `--from`: the design against what is: the server's limits, and what each application really has open.

use serde_json::{Value, json};

use crate::analysis::connections::{self, LimitKind};
use crate::analysis::glance;
use crate::budget::{Breach, Budget, Level, Report, ServerReport, WorkloadRow};
use crate::cli::args::budget::BudgetCheck;
use crate::cli::commands::Context;
use crate::cli::fault::Fault;
use crate::cli::rounds;
use crate::cli::settings::ConnectSettings;
use crate::model::Snapshot;
use crate::source::postgres::{Parts, round};
use crate::source::saved;
use crate::view;

/// What is otherwise than designed.
pub struct Drift {
    pub breaches: Vec<Breach>,
    pub text: String,
    pub json: Value,
}

/// Reads the server, where that is asked for.
pub async fn drift(
    ctx: &mut Context<'_>,
    args: &BudgetCheck,
    budget: &Budget,
    report: &Report,
) -> Result<Option<Drift>, Fault> {
    let snapshot = match (&args.from, args.live) {
        (Some(file), _) => {
            let loaded = saved::load(file, args.at.at.unwrap_or_default(), glance::weight)?;
            rounds::tell_of(ctx, file, &loaded);
            loaded.snapshot
        }
        (None, true) => {
            let settings = ConnectSettings::resolve(&args.connect, ctx.env)?;
            let connected = rounds::connect(ctx, &settings).await?;
            let snapshot = match &args.save {
                Some(_) => rounds::round_to_keep(&connected, &settings).await,
                None => round(&connected, Parts::ALL, settings.round).await,
            };
            connected.close().await;
            let snapshot = snapshot?;
            // What can't be saved is compared all the same, and the fault is told.
            if let Err(fault) = rounds::save(args.save.as_deref(), &snapshot) {
                ctx.console.error(&fault.to_string(), None);
            }
            snapshot
        }
        (None, false) => return Ok(None),
    };
    let server = match report.servers.as_slice() {
        [one] => one,
        several => {
            // By the name of the target, where the design calls it so.
            let name = snapshot.target.name.as_deref().unwrap_or_default();
            several.iter().find(|server| server.name == name).ok_or_else(|| {
                let known: Vec<&str> = several.iter().map(|server| server.name.as_str()).collect();
                Fault::Usage(format!(
                    "which server of the budget is it? a target of stanch.yaml that is named like one of: {}",
                    known.join(", ")
                ))
            })?
        }
    };
    compare(budget, server, &snapshot, ctx.console.style.width).map(Some)
}

/// The names by which what a row opens is known at the server: its own, and behind a pooler its clients'.
fn names<'b>(budget: &'b Budget, row: &'b WorkloadRow) -> Vec<&'b str> {
    let behind = budget
        .workloads
        .iter()
        .filter(|workload| workload.target.as_deref() == Some(row.name.as_str()));
    let behind = behind.map(|workload| workload.name.as_str());
    std::iter::once(row.name.as_str()).chain(behind).collect()
}

fn compare(
    budget: &Budget,
    server: &ServerReport,
    snapshot: &Snapshot,
    width: Option<usize>,
) -> Result<Drift, Fault> {
    let is = connections::report(snapshot).data;
    let capacity = is
        .capacity
        .ok_or_else(|| Fault::Save("the server's limits can't be read".into()))?;
    let mut breaches = Vec::new();
    let mut say = |message: String| {
        breaches.push(Breach::new("drift", Level::Warning, message, None));
    };
    let max = u64::from(capacity.max_connections);
    if server.max_connections.exact && server.max_connections.at_least != max {
        say(format!(
            "{}: max_connections is {max}, designed {}",
            server.name, server.max_connections.at_least
        ));
    }
    let usable = u64::from(capacity.usable);
    if server.usable.exact
        && server.max_connections.at_least == max
        && server.usable.at_least != usable
    {
        say(format!(
            "{}: {usable} slots are usable, designed {} (a reserve differs)",
            server.name, server.usable.at_least
        ));
    }
    let designed = budget.servers.iter().find(|one| one.name == server.name);
    let mut limits = Vec::new();
    for (kind, word, all) in designed.into_iter().flat_map(|one| {
        [
            (LimitKind::Role, "role", &one.roles),
            (LimitKind::Database, "database", &one.databases),
        ]
    }) {
        for (name, limit, _) in all {
            let now = is
                .limits
                .iter()
                .find(|now| now.kind == kind && now.name == *name);
            let now = now.map(|now| now.limit);
            if now.map(u64::from) != Some(*limit) {
                let now = now.map_or("no limit".to_owned(), |now| format!("the limit {now}"));
                say(format!(
                    "{}: {word} {name} has {now}, designed {limit}",
                    server.name
                ));
            }
            limits.push(json!({ "kind": word, "name": name, "limit": now, "designed": limit }));
        }
    }
    let mut rows = Vec::new();
    let mut text = format!(
        "live: {} at {}: {} of {usable} usable slots taken\n",
        view::clean(&snapshot.target.label()),
        snapshot.taken_at,
        capacity.used
    );
    let mut counted: u64 = 0;
    for workload in &server.workloads {
        let of = is.groups.iter().filter(|group| {
            let application = group.application_name.as_deref();
            application.is_some_and(|name| names(budget, workload).contains(&name))
        });
        let now: u64 = of.map(|group| group.total as u64).sum();
        counted += now;
        let designed = workload.steady();
        if designed.exact && now > designed.at_least {
            say(format!(
                "{}: {} has {now} connections, designed at most {}",
                server.name, workload.name, designed.at_least
            ));
        }
        text.push_str(&view::wrap(
            &format!(
                "{}: {now} connected, designed at most {}",
                workload.name,
                designed.words()
            ),
            width.unwrap_or(usize::MAX),
            2,
        ));
        rows.push(json!({
            "workload": workload.name,
            "connected": now,
            "designed": designed.exact.then_some(designed.at_least),
        }));
    }
    let all: u64 = is.groups.iter().map(|group| group.total as u64).sum();
    let others = all.saturating_sub(counted);
    let headroom: u64 = server.headroom.iter().map(|(_, number)| number).sum();
    text.push_str(&format!(
        "  others: {others} connected, headroom {headroom}\n"
    ));
    if others > headroom {
        let names: Vec<String> = is
            .groups
            .iter()
            .filter(|group| {
                let application = group.application_name.as_deref();
                let is_of =
                    |row| application.is_some_and(|name| names(budget, row).contains(&name));
                !server.workloads.iter().any(is_of)
            })
            .map(|group| {
                group
                    .application_name
                    .clone()
                    .unwrap_or_else(|| "(no name)".into())
            })
            .collect();
        let mut names = names;
        names.sort();
        names.dedup();
        say(format!(
            "{}: {others} connections are nobody's of the budget ({}), and the headroom is {headroom}",
            server.name,
            names.join(", ")
        ));
    }
    Ok(Drift {
        json: json!({
            "taken_at": snapshot.taken_at,
            "target": snapshot.target,
            "max_connections": max,
            "usable": usable,
            "used": capacity.used,
            "limits": limits,
            "workloads": rows,
            "others": others,
        }),
        breaches,
        text,
    })
}
