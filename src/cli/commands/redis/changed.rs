//! Settings of a Redis that a command changes for a while: the journal that they stand in, and the way back.

use crate::action::{OptIn, SettingChange};
use crate::analysis::redis_command;
use crate::cli::commands::Context;
use crate::cli::fault::Fault;
use crate::cli::rounds;
use crate::cli::settings::ActSettings;
use crate::journal::{Event, Journal, JournalError};
use crate::model::Outcome;
use crate::operate::change_settings;
use crate::source::redis::Fleet;

fn no_journal(error: JournalError) -> Fault {
    Fault::Save(error.to_string())
}

/// A journal for this run; nothing is changed without one.
pub fn journal(acting: &ActSettings, fleet: &Fleet) -> Result<Journal, Fault> {
    let at = rounds::local_now().utc().format("%Y%m%dT%H%M%SZ");
    let name = format!("{at}-redis-setting");
    let mut journal =
        Journal::create(&acting.runs(), &name, rounds::local_now).map_err(no_journal)?;
    let start = Event::RunStart {
        what: "redis setting".into(),
        target: fleet.target.label(),
        login: fleet
            .target
            .user
            .clone()
            .unwrap_or_else(|| "default".into()),
        operator: acting.operator.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
        evidence: String::new(),
    };
    journal.write(start).map_err(no_journal)?;
    Ok(journal)
}

/// Puts settings back that were changed, and says how each of them is.
pub async fn put_back(
    ctx: &mut Context<'_>,
    fleet: &mut Fleet,
    journal: &mut Journal,
    made: &[(SettingChange, Outcome)],
) -> Result<(), Fault> {
    let back: Vec<SettingChange> = made
        .iter()
        .filter(|(_, outcome)| matches!(outcome, Outcome::Set | Outcome::Failed(_)))
        .map(|(change, _)| change.back())
        .collect();
    let restored = change_settings(fleet, journal, back, OptIn::Restore, made.len()).await;
    for (change, outcome) in restored.map_err(no_journal)? {
        let what = format!("{} on {}", change.name, change.node);
        match &outcome {
            Outcome::Set => ctx
                .console
                .note(&format!("{what} is {:?} again", change.after)),
            other => {
                let why = other.reason().unwrap_or_else(|| other.word());
                let text = format!("{what} is not put back to {:?}: {why}", change.after);
                ctx.console
                    .error(&text, Some(&redis_command("restore", &fleet.target)));
            }
        }
    }
    journal.write(Event::RunEnd { code: 0 }).map_err(no_journal)
}
