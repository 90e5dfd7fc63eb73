//! `stanch redis restore`: puts back what a run had changed that was killed.

use crate::action::{OptIn, SettingChange};
use crate::cli::args::redis::RedisOnly;
use crate::cli::commands::Context;
use crate::cli::fault::Fault;
use crate::cli::redis::place as redis_place;
use crate::cli::rounds;
use crate::cli::settings::ActSettings;
use crate::journal::{Event, Journal, JournalError};
use crate::model::{ExitCode, Outcome};
use crate::operate::{change_settings, same_setting, unrestored};
use crate::source::redis::{Fleet, setting};

/// Where a server stands that a journal has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Here,
    /// At this address, but it was started since, or is another.
    Anew,
    Elsewhere,
    Unknown,
}

/// `nodes`: the name and the run_id of each that was reached.
fn place_of(change: &SettingChange, nodes: &[(String, Option<String>)]) -> Place {
    let by_name = nodes.iter().find(|(name, _)| *name == change.node);
    let Some(id) = &change.run_id else {
        return by_name.map_or(Place::Unknown, |_| Place::Here);
    };
    if nodes.iter().any(|(_, known)| known.as_ref() == Some(id)) {
        return Place::Here;
    }
    match by_name {
        Some((_, None)) => Place::Here,
        Some((_, Some(_))) => Place::Anew,
        None if nodes.iter().any(|(_, known)| known.is_none()) => Place::Unknown,
        None => Place::Elsewhere,
    }
}

/// The setting has the value that it was given. What is set at run time ends with the server, unless it was written down.
async fn is_still(fleet: &mut Fleet, change: &SettingChange) -> bool {
    let mut nodes = fleet.nodes.iter_mut();
    let Some(node) = nodes.find(|node| node.name == change.node) else {
        return false;
    };
    let now = setting(node, &change.name).await.ok().flatten();
    now.is_some_and(|now| same_setting(&now, &change.after))
}

/// The address of a journal as a URL.
fn url_of(node: &str) -> String {
    let scheme = if node.starts_with('/') {
        "unix"
    } else {
        "redis"
    };
    format!("{scheme}://{node}")
}

pub async fn run(ctx: &mut Context<'_>, args: &RedisOnly) -> Result<ExitCode, Fault> {
    let no_journal = |error: JournalError| Fault::Save(error.to_string());
    let acting = ActSettings::of(ctx.env)?;
    let mut fleet = redis_place::open(ctx, args).await?;
    let mut nodes = Vec::new();
    for node in &mut fleet.nodes {
        nodes.push((node.name.clone(), node.run_id().await));
    }
    let mut worst = ExitCode::Ok;
    let mut found = 0;
    for (path, left) in unrestored(&acting.runs()).map_err(no_journal)? {
        let mut here = Vec::new();
        for change in left {
            let what = format!("{}: {} on {}", path.display(), change.name, change.node);
            match place_of(&change, &nodes) {
                Place::Here => here.push(change),
                Place::Elsewhere => {
                    ctx.console
                        .note(&format!("{what} is for another Redis than this one"));
                }
                Place::Anew if !is_still(&mut fleet, &change).await => here.push(change),
                Place::Anew => {
                    worst = ExitCode::Unknown;
                    let text = format!(
                        "{what} is still {:?}, but the server there was started since: whether that is ours can't be told",
                        change.after
                    );
                    let hint = format!("was {:?} before: CONFIG SET by hand", change.before);
                    ctx.console.error(&text, Some(&hint));
                }
                Place::Unknown => {
                    worst = ExitCode::Unknown;
                    let text = format!(
                        "{what} is left changed, and whether that is this Redis can't be told (old journal, or INFO isn't permitted)"
                    );
                    let retry = format!("stanch redis restore --redis {}", url_of(&change.node));
                    ctx.console.error(&text, Some(&retry));
                }
            }
        }
        if here.is_empty() {
            continue;
        }
        // The way back is written where the change stands: it is settled there.
        let (mut journal, records) =
            Journal::reopen(&path, rounds::local_now).map_err(no_journal)?;
        let first = records
            .iter()
            .filter(|record| matches!(record.event, Event::EffectIntent { .. }))
            .count();
        let back = here.iter().map(SettingChange::back).collect();
        for (change, outcome) in
            change_settings(&mut fleet, &mut journal, back, OptIn::Restore, first)
                .await
                .map_err(no_journal)?
        {
            found += 1;
            let what = format!("{} on {}", change.name, change.node);
            match &outcome {
                Outcome::Set => ctx
                    .console
                    .result(&format!("{what} is {:?} again\n", change.after))?,
                Outcome::Changed(why) => ctx
                    .console
                    .result(&format!("{what} is left alone: {why}\n"))?,
                other => {
                    worst = ExitCode::Critical;
                    let why = other.reason().unwrap_or_else(|| other.word());
                    ctx.console.error(
                        &format!("{what} is not put back to {:?}: {why}", change.after),
                        None,
                    );
                }
            }
        }
    }
    if found == 0 && worst == ExitCode::Ok {
        ctx.console
            .result("nothing of ours is left changed on this Redis\n")?;
    }
    Ok(worst)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_known_by_its_run_id() {
        let change = |run_id: Option<&str>| SettingChange {
            node: "127.0.0.1:6379".into(),
            run_id: run_id.map(Into::into),
            name: "notify-keyspace-events".into(),
            before: String::new(),
            after: "Em".into(),
        };
        let at = |name: &str, id: Option<&str>| vec![(name.to_owned(), id.map(str::to_owned))];
        let (same, other) = ("127.0.0.1:6379", "localhost:6379");
        let cases = [
            (Some("a"), at(same, Some("a")), Place::Here),
            (Some("a"), at(other, Some("a")), Place::Here),
            (Some("a"), at(same, Some("b")), Place::Anew),
            (Some("a"), at(other, Some("b")), Place::Elsewhere),
            (Some("a"), at(same, None), Place::Here),
            (Some("a"), at(other, None), Place::Unknown),
            (None, at(same, Some("a")), Place::Here),
            (None, at(other, Some("a")), Place::Unknown),
        ];
        for (n, (id, nodes, want)) in cases.into_iter().enumerate() {
            assert_eq!(place_of(&change(id), &nodes), want, "{n}");
        }
        assert_eq!(url_of("/run/redis.sock"), "unix:///run/redis.sock");
        assert_eq!(url_of("[::1]:6379"), "redis://[::1]:6379");
    }
}
