//! What the lines of its own wait tell of a process in a circle: the report itself has a place only for the victim.

use std::collections::BTreeMap;

use crate::model::{LogEdge, LogEvent, LogLockWait, LogWaitStage, LogWhat, Pid};

/// So many waits are remembered at a time.
const OPEN: usize = 10_000;

/// Waits that go on, by process.
#[derive(Debug, Default)]
pub struct Waiting {
    open: BTreeMap<Pid, LogLockWait>,
}

impl Waiting {
    /// Takes events in the order of the log; a deadlock is given what its members' lines told before.
    pub fn meet(&mut self, event: &mut LogEvent) {
        match &mut event.what {
            LogWhat::LockWait(wait) => match wait.stage {
                LogWaitStage::StillWaiting | LogWaitStage::Avoided | LogWaitStage::Deadlock => {
                    if self.open.len() >= OPEN {
                        self.open.pop_first();
                    }
                    self.open.insert(wait.pid, wait.clone());
                }
                LogWaitStage::Acquired | LogWaitStage::Failed => {
                    self.open.remove(&wait.pid);
                }
            },
            LogWhat::Deadlock(deadlock) => {
                for edge in &mut deadlock.edges {
                    if let Some(wait) = self.open.get(&edge.pid).filter(|wait| is_of(wait, edge)) {
                        fill(edge, wait);
                    }
                }
            }
            LogWhat::Canceled { .. } | LogWhat::Terminated { .. } => {
                if let Some(pid) = event.pid {
                    self.open.remove(&pid);
                }
            }
            _ => {}
        }
    }
}

/// The same wait: a number of a process, and a lock, may come again.
fn is_of(wait: &LogLockWait, edge: &LogEdge) -> bool {
    let same_text = match (&wait.statement, &edge.statement) {
        // The report's is cut by track_activity_query_size, the line's by nothing.
        (Some(line), Some(report)) => line.starts_with(report.as_str()),
        _ => true,
    };
    wait.on == edge.on && wait.mode == edge.mode && same_text
}

fn fill(edge: &mut LogEdge, wait: &LogLockWait) {
    edge.place = edge.place.take().or_else(|| wait.place.clone());
    edge.inner = edge.inner.take().or_else(|| wait.inner.clone());
    if let Some(whole) = &wait.statement {
        edge.statement = Some(whole.clone());
    }
}
