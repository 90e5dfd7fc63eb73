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
use crate::operate::{change_settings, unrestored};

pub async fn run(ctx: &mut Context<'_>, args: &RedisOnly) -> Result<ExitCode, Fault> {
    let no_journal = |error: JournalError| Fault::Save(error.to_string());
    let acting = ActSettings::of(ctx.env)?;
    let mut fleet = redis_place::open(ctx, args).await?;
    let names: Vec<String> = fleet.nodes.iter().map(|node| node.name.clone()).collect();
    let mut worst = ExitCode::Ok;
    let mut found = 0;
    for (path, left) in unrestored(&acting.runs()).map_err(no_journal)? {
        let (here, elsewhere): (Vec<SettingChange>, Vec<SettingChange>) = left
            .into_iter()
            .partition(|change| names.contains(&change.node));
        for change in &elsewhere {
            ctx.console.note(&format!(
                "{}: {} on {} is for another Redis than this one",
                path.display(),
                change.name,
                change.node
            ));
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
    if found == 0 {
        ctx.console
            .result("nothing of ours is left changed on this Redis\n")?;
    }
    Ok(worst)
}
