//! `stanch redis hotkeys` by the server's own count: one that is there, or one that is asked for by name.

use std::time::{Duration, Instant};

use crate::action::{ApprovedSession, OptIn, SettingChange, end_session, start_session};
use crate::cli::args::redis::HotkeysArgs;
use crate::cli::commands::Context;
use crate::cli::fault::Fault;
use crate::cli::redis::place::Looker;
use crate::cli::settings::ActSettings;
use crate::journal::{Effect, Event, JournalError};
use crate::model::{HotMethod, Outcome};
use crate::operate::change_settings;
use crate::source::redis::{
    Fleet, HotOptions, HotPass, NO_HOTKEYS, Refused, ServerCount, Watch as _, ranked_by_servers,
    server_count, setting,
};

/// What is counted already on all nodes; `None`: nothing, or not on all.
pub async fn there(fleet: &mut Fleet) -> Result<Option<(HotMethod, Vec<ServerCount>)>, Refused> {
    let mut counts = Vec::new();
    for node in &mut fleet.nodes {
        match server_count(node).await {
            Ok(Some(count)) if !count.keys.is_empty() => counts.push(count),
            Err(lost @ Refused::Lost(_)) => return Err(lost),
            _ => return Ok(None),
        }
    }
    let windows = counts.iter().any(|count| count.window.is_some());
    let method = if windows {
        HotMethod::HotkeysSession
    } else {
        HotMethod::HotkeysTopK
    };
    Ok((!counts.is_empty()).then_some((method, counts)))
}

/// Has the servers count for a while.
pub async fn asked_for(
    ctx: &mut Context<'_>,
    args: &HotkeysArgs,
    fleet: &mut Fleet,
    options: HotOptions<'_>,
) -> Result<Result<HotPass, Refused>, Fault> {
    if let Some((method, counts)) = there(fleet)
        .await
        .map_err(|lost| lost.at(&fleet.target.label()))?
    {
        ctx.console
            .note("the server counts already: what it has is shown, and left as it is");
        return Ok(ranked_by_servers(fleet, options, method, counts).await);
    }
    let valkey = fleet.target.product.as_deref() == Some("valkey");
    let counted = if valkey {
        by_list(ctx, args, fleet).await?
    } else {
        by_session(ctx, args, fleet).await?
    };
    Ok(match counted {
        Ok((method, counts)) => ranked_by_servers(fleet, options, method, counts).await,
        Err(refused) => Err(refused),
    })
}

type Counted = Result<(HotMethod, Vec<ServerCount>), Refused>;

fn no_journal(error: JournalError) -> Fault {
    Fault::Save(error.to_string())
}

async fn by_session(
    ctx: &mut Context<'_>,
    args: &HotkeysArgs,
    fleet: &mut Fleet,
) -> Result<Counted, Fault> {
    let acting = ActSettings::of(ctx.env)?;
    let mut journal = super::changed::journal(&acting, fleet)?;
    let looker = Looker::new(ctx, "the server counts", "keys")?;
    let approved = ApprovedSession::asked_by_name(OptIn::ServerHotkeys, args.top, args.server_for);
    let mut started = Vec::new();
    let mut failed = None;
    for (n, node) in fleet.nodes.iter_mut().enumerate() {
        let effect = Effect::RedisSession {
            node: node.name.clone(),
            seconds: args.server_for.as_secs().max(1),
        };
        journal
            .write(Event::EffectIntent { n, effect })
            .map_err(no_journal)?;
        let outcome = start_session(node, &approved).await;
        journal
            .write(Event::EffectResult {
                n,
                outcome: outcome.clone(),
                waited_ms: 0,
            })
            .map_err(no_journal)?;
        match outcome {
            Outcome::Set => started.push(n),
            other => {
                failed = Some(Refused::Other(format!(
                    "HOTKEYS START on {}: {}",
                    node.name,
                    other.reason().unwrap_or_else(|| other.word())
                )));
                break;
            }
        }
    }
    if failed.is_none() {
        wait(&looker, args.server_for).await;
    }
    let mut counts = Vec::new();
    for n in started {
        let Some(node) = fleet.nodes.get_mut(n) else {
            continue;
        };
        match server_count(node).await {
            Ok(count) => counts.push(count.unwrap_or_default()),
            Err(refused) => failed = Some(refused),
        }
        if let Outcome::Failed(why) = end_session(node, &approved).await {
            ctx.console.error(
                &format!("HOTKEYS RESET on {}: {why}; it ends by itself", node.name),
                None,
            );
        }
    }
    journal
        .write(Event::RunEnd { code: 0 })
        .map_err(no_journal)?;
    Ok(match failed {
        Some(refused) => Err(refused),
        None => Ok((HotMethod::HotkeysStarted, counts)),
    })
}

/// Under either name that the setting has had.
const NAMES: [&str; 2] = ["hotkeys-top-k", "hotkey-top-k"];

async fn by_list(
    ctx: &mut Context<'_>,
    args: &HotkeysArgs,
    fleet: &mut Fleet,
) -> Result<Counted, Fault> {
    let mut changes = Vec::new();
    for node in &mut fleet.nodes {
        let mut found = None;
        for name in NAMES {
            match setting(node, name).await {
                Ok(Some(before)) => found = Some((name, before)),
                Ok(None) => {}
                Err(refused) => return Ok(Err(refused)),
            }
        }
        let Some((name, before)) = found else {
            return Ok(Err(Refused::Unknown(format!(
                "{}: this Valkey {NO_HOTKEYS} (9.2 does)",
                node.name
            ))));
        };
        changes.push(SettingChange {
            node: node.name.clone(),
            run_id: None,
            name: name.to_owned(),
            before,
            after: args.top.clamp(1, 1000).to_string(),
        });
    }
    let acting = ActSettings::of(ctx.env)?;
    let mut journal = super::changed::journal(&acting, fleet)?;
    let looker = Looker::new(ctx, "the server counts", "keys")?;
    let made = change_settings(fleet, &mut journal, changes, OptIn::ServerHotkeys, 0)
        .await
        .map_err(no_journal)?;
    let failed = made.iter().find(|(_, outcome)| *outcome != Outcome::Set);
    let counted = match failed {
        None => {
            wait(&looker, args.server_for).await;
            match there(fleet).await {
                Ok(Some((_, counts))) => Ok((HotMethod::HotkeysTopK, counts)),
                Ok(None) => Err(Refused::Other(
                    "the server has counted nothing in that time".into(),
                )),
                Err(lost) => Err(lost),
            }
        }
        Some((change, outcome)) => Err(Refused::Other(format!(
            "{} isn't set on {}: {}",
            change.name,
            change.node,
            outcome.reason().unwrap_or_else(|| outcome.word())
        ))),
    };
    super::changed::put_back(ctx, fleet, &mut journal, &made).await?;
    drop(looker);
    Ok(counted)
}

async fn wait(looker: &Looker, time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end && !looker.is_stopped() {
        let left = end.saturating_duration_since(Instant::now());
        tokio::time::sleep(left.min(Duration::from_millis(100))).await;
    }
}
