//! `stanch drill`: sets an incident on a throwaway server, shows its triage, and holds it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::Context;
use crate::analysis::{Report, shell_word, triage};
use clap::Parser as _;

use crate::cli::args::{Args, Command, DrillArgs, IncidentArg};
use crate::cli::fault::Fault;
use crate::cli::stop::Stop;
use crate::drill::{
    self, CacheIncident, CacheScene, DrillError, Incident, Scene, Server, ServerOptions,
};
use crate::model::{ExitCode, RedactionLevel, Thresholds};
use crate::source::postgres::{KnockOptions, Parts, RoundOptions, get_in, round};
use crate::view::{self, Names};

pub async fn run(ctx: &mut Context<'_>, args: &DrillArgs) -> Result<ExitCode, Fault> {
    let Some(incident) = args.incident else {
        return list(ctx);
    };
    let mut stop = Stop::new()?;
    tokio::select! {
        () = stop.asked() => Ok(ExitCode::Ok),
        done = async {
            match incident {
                IncidentArg::Database(incident) => hold(ctx, args, incident).await,
                IncidentArg::Cache(incident) => hold_cache(ctx, args, incident).await,
            }
        } => done,
    }
}

fn list(ctx: &mut Context<'_>) -> Result<ExitCode, Fault> {
    let all: Vec<(&str, &str)> = Incident::ALL
        .iter()
        .map(|i| (i.name(), i.summary()))
        .chain(CacheIncident::ALL.iter().map(|i| (i.name(), i.summary())))
        .collect();
    let names = Names {
        list: "drills",
        columns: ["name", "what"],
        titles: ["drill", "what happens"],
    };
    view::show_names(ctx.console, &names, &all)?;
    Ok(ExitCode::Ok)
}

async fn hold(
    ctx: &mut Context<'_>,
    args: &DrillArgs,
    incident: Incident,
) -> Result<ExitCode, Fault> {
    let path = ctx.env.get("PATH").map_or("", String::as_str);
    let bin_dir = drill::bin_dirs(path)
        .into_iter()
        .next()
        .ok_or(DrillError::NoServer)?;
    ctx.console.note(&format!(
        "drill {}: starting a throwaway PostgreSQL",
        incident.name()
    ));
    let server = Server::start(&ServerOptions {
        bin_dir,
        ..incident.server_options()
    })
    .await?;
    let scene = Scene::set(&server, incident).await?;
    ctx.console.note(&format!(
        "drill {}: {}",
        scene.incident().name(),
        incident.summary()
    ));
    let report = ripen(ctx, &server, incident).await?;
    let place = format!(
        "-h {} -p {} -U {} -d {}",
        server.folder().display(),
        server.port(),
        server.superuser(),
        Scene::database()
    );
    let url = server.url(server.superuser(), Scene::database());
    ctx.console.warn(&format!(
        "server: \"{url}\"
    or: {place}"
    ));
    view::show(ctx.console, &report)?;
    stay(ctx, args).await
}

/// An incident in front of the database, shown by the command for it.
async fn hold_cache(
    ctx: &mut Context<'_>,
    args: &DrillArgs,
    incident: CacheIncident,
) -> Result<ExitCode, Fault> {
    let path = ctx.env.get("PATH").map_or("", String::as_str);
    let redis = ["redis-server", "valkey-server"]
        .iter()
        .find_map(|name| drill::find_tool(path, name))
        .ok_or(DrillError::NoRedis)?;
    let postgres = match incident {
        CacheIncident::Stampede => drill::bin_dirs(path)
            .into_iter()
            .next()
            .ok_or(DrillError::NoServer)?,
        CacheIncident::HotKey | CacheIncident::QueueBacklog => PathBuf::new(),
    };
    ctx.console.note(&format!(
        "drill {}: starting a throwaway Redis",
        incident.name()
    ));
    let scene = CacheScene::set(incident, &redis, &postgres).await?;
    ctx.console.note(&format!(
        "drill {}: {}",
        incident.name(),
        incident.summary()
    ));
    let url = scene.redis_url();
    ctx.console.warn(&format!("redis: {url}"));
    let mut line = vec!["stanch"];
    line.extend(incident.shown_by());
    line.extend(["--redis", &url]);
    let database = scene
        .database()
        .map(|server| server.url(server.superuser(), Scene::database()));
    if let Some(database) = &database {
        ctx.console.warn(&format!("server: \"{database}\""));
        line.extend(["-d", database]);
    }
    ctx.console.warn(&format!(
        "shown by: {}",
        line.iter()
            .map(|word| shell_word(word))
            .collect::<Vec<_>>()
            .join(" ")
    ));
    let parsed = Args::try_parse_from(&line).map_err(|error| Fault::Usage(error.to_string()))?;
    if let Some(Command::Redis(command)) = parsed.command {
        super::redis::run(ctx, command).await?;
    }
    stay(ctx, args).await
}

/// As long as the person wants.
async fn stay(ctx: &mut Context<'_>, args: &DrillArgs) -> Result<ExitCode, Fault> {
    if !args.once {
        match args.hold {
            Some(time) => {
                ctx.console
                    .note(&format!("holding for {}", crate::model::Millis::from(time)));
                tokio::time::sleep(time).await;
            }
            None => {
                ctx.console
                    .note("holding until Ctrl-C; nothing is left behind");
                std::future::pending::<()>().await;
            }
        }
    }
    Ok(ExitCode::Ok)
}

/// The triage, once it says what this incident is.
async fn ripen(
    ctx: &mut Context<'_>,
    server: &Server,
    incident: Incident,
) -> Result<Report<triage::Triage>, Fault> {
    let spec = server.spec(server.superuser(), Scene::database());
    let knock = KnockOptions {
        connect_timeout: Duration::from_secs(10),
        wait_slot: Duration::from_secs(10),
    };
    let options = RoundOptions {
        statement_timeout: Duration::from_secs(5),
        deadline: Duration::from_secs(15),
        redaction: RedactionLevel::Redacted,
    };
    let connected = get_in(&spec.into(), None, knock, &mut |_| {}).await?;
    let within = incident.ripe_within();
    let give_up = Instant::now() + within;
    let mut told = false;
    loop {
        let report = triage::report(
            &round(&connected, Parts::ALL, options).await?,
            &Thresholds::default(),
        );
        if report
            .data
            .findings
            .iter()
            .any(|f| f.id == incident.finding())
        {
            return Ok(report);
        }
        if Instant::now() > give_up {
            let what = format!("{} isn't found", incident.finding());
            return Err(DrillError::NotRipe {
                what,
                seconds: within.as_secs(),
            }
            .into());
        }
        if !std::mem::replace(&mut told, true) {
            ctx.console.note("waiting until it counts as an incident");
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}
