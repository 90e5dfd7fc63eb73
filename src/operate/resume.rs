//! On from where a run was interrupted: what was done isn't done again, what isn't known is asked about, and what was read
//! is read anew.

use super::act::ActError;
use super::book::{Run, Said};
use super::past::{Past, PastEffect, PastStep};
use super::steps::of_command;
use crate::journal::{Effect, Event};
use crate::model::{Signal, Snapshot};
use crate::runbook::Kind;
use crate::runbook::walk::{Came, Ended, Next};

impl Run<'_> {
    /// The step that it goes on with; or how it has ended by now.
    pub(super) async fn resume(&mut self, past: &Past) -> Result<Result<usize, Ended>, ActError> {
        let mut steps = past.steps.clone();
        for effect in past.unknown() {
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
                return Ok(Err(Ended::Failed(format!(
                    "the book has no step {:?} any more",
                    step.id
                ))));
            };
            let Some(came) = step.came.clone() else {
                self.before = Some(step);
                return Ok(Ok(at));
            };
            next = match self.again(at, &step, &came).await? {
                Ok(next) => Some(next),
                Err(why) => return Ok(Err(Ended::Failed(why))),
            };
        }
        Ok(match next {
            None => Ok(0),
            Some(Ok(Next::Step(at))) => Ok(at),
            Some(Ok(Next::End(end))) => Err(Ended::At(end)),
            Some(Err(why)) => Err(Ended::Failed(why)),
        })
    }

    /// A step that had ended: what it found is read anew, what was answered stands, and nothing of it is done.
    async fn again(
        &mut self,
        at: usize,
        past: &PastStep,
        came: &str,
    ) -> Result<Result<Result<Next, String>, String>, ActError> {
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
                    let exit = past.exit().unwrap_or(None);
                    if let Err(why) = self.walk.learn(step, of_command(exit, "", 0)) {
                        return Ok(Err(why));
                    }
                }
                _ if step.is_read() => {
                    self.walker.note(&format!("read again: {}", step.id.text));
                    if let Err(unread) = self.find(step, false).await? {
                        return Ok(Err(unread.why));
                    }
                }
                _ => {}
            }
        }
        Ok(Ok(self.walk.next(at, &came)))
    }

    /// An effect that was begun: what the server says of it, and what the person makes of that.
    async fn settle(
        &mut self,
        effect: &PastEffect,
    ) -> Result<Result<super::past::Known, Ended>, ActError> {
        let seen = match &effect.effect {
            Effect::Signal(signal) => {
                let snapshot = self.world.snapshot(self.request.round).await?;
                now(&snapshot, signal)
            }
            _ => "whether it was done can't be told from here".to_owned(),
        };
        let question = format!(
            "{} was begun, and the run ended before its outcome was written. Now: {seen}",
            effect.told()
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
        let answer = match self.walker.choose(&question, &choices)? {
            Said::Text(answer) => answer,
            Said::Nobody => return Ok(Err(Ended::NeedsHuman(question))),
            Said::Skip(_) | Said::Stop => return Ok(Err(Ended::Stopped)),
        };
        self.write(Event::EffectSeen {
            n: effect.n,
            seen,
            answer: answer.clone(),
        })?;
        Ok(Ok(match answer.as_str() {
            "again" => super::past::Known::MayBeDoneAgain,
            _ => super::past::Known::CountedAsDone,
        }))
    }
}

/// The session as the server shows it now.
fn now(snapshot: &Snapshot, signal: &Signal) -> String {
    let Some(all) = snapshot.activity.get() else {
        return "the server doesn't show its sessions".into();
    };
    let Some(session) = all.iter().find(|s| s.pid() == signal.id.pid) else {
        return "the server has no such session any more".into();
    };
    if session.hidden || session.id.backend_start.is_none() {
        return "a session of this pid is there, and who it is is hidden from this login".into();
    }
    if session.id != signal.id {
        return "the pid is another session's by now".into();
    }
    if signal.xact_start.is_some() && session.xact_start != signal.xact_start {
        return "the session is there, and its transaction has ended".into();
    }
    let state = session
        .state
        .as_ref()
        .map_or("in a state that isn't shown", |s| s.as_str());
    format!("the session is still there, {state}")
}
