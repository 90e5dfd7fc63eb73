//! On from where a run was interrupted: what was done isn't done again, what isn't known is asked about, and what was read
//! is read anew.

use serde_json::json;

use super::act::ActError;
use super::book::{Run, Said};
use super::past::{Known, Past, PastEffect, PastStep};
use crate::journal::{Effect, Event, is_hidden};
use crate::model::{Signal, Snapshot};
use crate::runbook::Kind;
use crate::runbook::walk::{Came, Ended, Next};
use crate::source::postgres::Parts;

impl Run<'_> {
    /// The step that it goes on with; or how it has ended by now.
    pub(super) async fn resume(&mut self, past: &Past) -> Result<Result<usize, Ended>, ActError> {
        let mut steps = past.steps.clone();
        for effect in past.open() {
            match self.settle(&effect).await? {
                Ok(known) => {
                    let all = steps.iter_mut().flat_map(|step| &mut step.effects);
                    for one in all.filter(|one| one.n == effect.n) {
                        one.came = known.clone();
                    }
                }
                Err(ended) => return Ok(Err(ended)),
            }
        }
        let mut next = None;
        for step in steps {
            let Some(at) = self.book.step(&step.id) else {
                let why = format!("the book has no step {:?} any more", step.id);
                return Ok(Err(Ended::Failed(why)));
            };
            let Some(came) = step.came.clone() else {
                self.before = Some(step);
                return Ok(Ok(at));
            };
            if self.walker.stops() > 0 {
                return Ok(Err(Ended::Stopped));
            }
            next = match self.again(at, &step, &came).await? {
                Ok(next) => Some(next),
                Err(why) => return Ok(Err(Ended::Failed(why))),
            };
        }
        Ok(match next {
            None => Ok(0),
            Some(Next::Step(at)) => Ok(at),
            Some(Next::End(end)) => Err(Ended::At(end)),
        })
    }

    /// A step that had ended: what it found is read anew, what was answered stands, nothing of it is done, and it goes on as
    /// it went on.
    async fn again(
        &mut self,
        at: usize,
        past: &PastStep,
        came: &str,
    ) -> Result<Result<Next, String>, ActError> {
        let step = &self.book.steps[at];
        if let Err(why) = self.walk.enter(at) {
            return Ok(Err(why));
        }
        let came = match came {
            "well" => Came::Well,
            "timed out" => Came::TimedOut,
            "skipped" => Came::Skipped,
            _ => Came::Error {
                code: String::new(),
                why: "it had come to an error".into(),
            },
        };
        if came == Came::Well {
            match &step.kind {
                Kind::Ask(_) => {
                    if let Some(answer) = &past.answer {
                        self.walk.answered(step, answer);
                    }
                }
                Kind::Command(command) if command.writes => {
                    // What it wrote isn't in the journal: conditions on it can't be told.
                    let exit = match past.ran() {
                        Some(Known::Exit(exit)) => *exit,
                        _ => None,
                    };
                    self.walk.learn_what_is_left(step, json!({ "exit": exit }));
                }
                _ if step.is_read() => {
                    self.walker.note(&format!("read again: {}", step.id.text));
                    // What can't be read now can't be told later: nothing is guessed.
                    if let Err(unread) = self.find(step, false).await? {
                        self.walker
                            .note(&format!("not known any more: {}", unread.why));
                    }
                }
                _ => {}
            }
            self.walk.recall(step, &past.vars, is_hidden);
            self.computed
                .insert(step.id.text.clone(), past.vars.clone());
        }
        let decided = self.walk.next(at, &came);
        let written = past.next.as_ref().and_then(|next| self.book.step(next));
        Ok(match written {
            Some(next) => Ok(Next::Step(next)),
            None => decided,
        })
    }

    /// An effect that is open: what the server says of it, and what the person makes of that.
    async fn settle(&mut self, effect: &PastEffect) -> Result<Result<Known, Ended>, ActError> {
        let seen = match &effect.effect {
            Effect::Signal(signal) => {
                let snapshot = self.world.snapshot(Parts::ALL, self.request.round).await?;
                now(&snapshot, signal)
            }
            _ => Now::Unseen("whether it was done can't be told from here".to_owned()),
        };
        // Known to have been sent, and seen to be gone by now: there is nothing to ask.
        let answer = match (&effect.came, &seen) {
            (Known::Outcome(_), Now::Gone(_)) => "done".to_owned(),
            _ => match self.asked(effect, seen.text())? {
                Ok(answer) => answer,
                Err(ended) => return Ok(Err(ended)),
            },
        };
        self.write(Event::EffectSeen {
            n: effect.n,
            seen: seen.text().to_owned(),
            answer: answer.clone(),
        })?;
        Ok(Ok(match answer.as_str() {
            "again" => Known::MayBeDoneAgain,
            _ => Known::CountedAsDone,
        }))
    }

    fn asked(
        &mut self,
        effect: &PastEffect,
        seen: &str,
    ) -> Result<Result<String, Ended>, ActError> {
        let question = format!(
            "{} was begun, and {}. Now: {seen}",
            effect.told(),
            effect.came_out()
        );
        let choices = [
            (
                "done".to_owned(),
                "count it as done: it isn't done again".to_owned(),
            ),
            (
                "again".to_owned(),
                "it may be done again, where it is still called for, and with a yes as always"
                    .to_owned(),
            ),
        ];
        Ok(match self.walker.choose(&question, &choices)? {
            Said::Text(answer) => Ok(answer),
            Said::Nobody => Err(Ended::NeedsHuman(question)),
            Said::Skip(_) | Said::Stop => Err(Ended::Stopped),
        })
    }
}

/// What is to be seen of a session that was signalled.
enum Now {
    Gone(String),
    Unseen(String),
}

impl Now {
    fn text(&self) -> &str {
        match self {
            Self::Gone(text) | Self::Unseen(text) => text,
        }
    }
}

/// The session as the server shows it now.
fn now(snapshot: &Snapshot, signal: &Signal) -> Now {
    let Some(all) = snapshot.activity.get() else {
        return Now::Unseen("the server doesn't show its sessions".into());
    };
    let Some(session) = all.iter().find(|s| s.pid() == signal.id.pid) else {
        return Now::Gone("the server has no such session any more".into());
    };
    if session.hidden || session.id.backend_start.is_none() {
        let text = "a session of this pid is there, and who it is is hidden from this login";
        return Now::Unseen(text.into());
    }
    if session.id != signal.id {
        return Now::Gone("the pid is another session's by now".into());
    }
    if signal.xact_start.is_some() && session.xact_start != signal.xact_start {
        return Now::Gone("the session is there, and its transaction has ended".into());
    }
    let state = session
        .state
        .as_ref()
        .map_or("in a state that isn't shown", |s| s.as_str());
    Now::Unseen(format!("the session is still there, {state}"))
}
