//! Settings of a Redis that are changed for a while: an intent in the journal before each, the way back at the end, and
//! after a crash.

use std::path::{Path, PathBuf};

use crate::action::{OptIn, SettingChange, set};
use crate::journal::{self, Effect, Event, Journal, JournalError};
use crate::model::Outcome;
use crate::source::redis::{Fleet, Node, event_classes};

/// A change with its outcome.
pub type Told = (SettingChange, Outcome);

/// Two spellings of one value: of event classes the order doesn't matter.
pub fn same(a: &str, b: &str) -> bool {
    a == b || event_classes(a) == event_classes(b)
}

/// Makes these changes one after the other, each with its intent on disk before. Ends at the first that fails; what was
/// done until then is for the way back.
///
/// # Errors
/// When the journal can't be written.
pub async fn change(
    fleet: &mut Fleet,
    journal: &mut Journal,
    changes: Vec<SettingChange>,
    asked: OptIn,
    first: usize,
) -> Result<Vec<Told>, JournalError> {
    let mut told = Vec::new();
    for (n, mut change) in changes.into_iter().enumerate() {
        let n = first + n;
        let Some(node) = node_of(fleet, &change).await else {
            told.push((
                change,
                Outcome::Failed("that node isn't there any more".into()),
            ));
            continue;
        };
        // The way back is written as the way there was.
        if asked != OptIn::Restore {
            change.run_id = node.run_id().await;
        }
        journal.write(Event::EffectIntent {
            n,
            effect: Effect::RedisSetting {
                node: change.node.clone(),
                run_id: change.run_id.clone(),
                name: change.name.clone(),
                before: change.before.clone(),
                after: change.after.clone(),
            },
        })?;
        let approved = change.clone().asked_by_name(asked);
        let outcome = set(node, &approved, same).await;
        journal.write(Event::EffectResult {
            n,
            outcome: outcome.clone(),
            waited_ms: 0,
        })?;
        let failed = outcome != Outcome::Set;
        told.push((change, outcome));
        if failed && asked != OptIn::Restore {
            break;
        }
    }
    Ok(told)
}

/// The server that it was, by whatever address it is reached now; else the one of that address.
async fn node_of<'f>(fleet: &'f mut Fleet, change: &SettingChange) -> Option<&'f mut Node> {
    let mut found = None;
    if change.run_id.is_some() {
        for (n, node) in fleet.nodes.iter_mut().enumerate() {
            if node.run_id().await == change.run_id {
                found = Some(n);
                break;
            }
        }
    }
    let by_name = |fleet: &Fleet| fleet.nodes.iter().position(|node| node.name == change.node);
    let n = found.or_else(|| by_name(fleet))?;
    fleet.nodes.get_mut(n)
}

/// What a journal changed and didn't put back: the first change of each setting, whose way back hasn't been seen.
pub fn left_changed(journal: &Path) -> Result<Vec<SettingChange>, JournalError> {
    let mut open: Vec<(usize, SettingChange)> = Vec::new();
    let mut intents: Vec<(usize, SettingChange)> = Vec::new();
    for record in journal::read(journal)? {
        match record.event {
            Event::EffectIntent {
                n,
                effect:
                    Effect::RedisSetting {
                        node,
                        run_id,
                        name,
                        before,
                        after,
                    },
            } => {
                let change = SettingChange {
                    node,
                    run_id,
                    name,
                    before,
                    after,
                };
                let is_way_back = open.iter().any(|(_, other)| other.back() == change);
                if !is_way_back {
                    open.push((n, change.clone()));
                }
                intents.push((n, change));
            }
            Event::EffectResult { n, outcome, .. } => {
                let Some((_, change)) = intents.iter().find(|(m, _)| *m == n) else {
                    continue;
                };
                match outcome {
                    // Put back, or found to be somebody else's by now.
                    Outcome::Set | Outcome::Changed(_) => {
                        open.retain(|(_, other)| other.back() != *change);
                    }
                    _ => {}
                }
                // It was never made.
                if matches!(outcome, Outcome::Changed(_) | Outcome::Refused(_)) {
                    open.retain(|(m, _)| *m != n);
                }
            }
            _ => {}
        }
    }
    Ok(open.into_iter().map(|(_, change)| change).collect())
}

/// Every journal of the folder that left something changed, oldest first; one that is being written is left alone.
///
/// # Errors
/// When a journal can't be read.
pub fn unrestored(folder: &Path) -> Result<Vec<(PathBuf, Vec<SettingChange>)>, JournalError> {
    let mut found = Vec::new();
    for path in journal::all(folder) {
        if journal::is_written(&path) {
            continue;
        }
        // A journal of another kind that is damaged is no reason to leave a server changed.
        let Ok(left) = left_changed(&path) else {
            continue;
        };
        if !left.is_empty() {
            found.push((path, left));
        }
    }
    Ok(found)
}
