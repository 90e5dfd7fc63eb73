//! The steps of a book that change nothing: reads, questions, evidence, polls, notes.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value as Json, json};
use tokio::time::Instant;

use super::act::ActError;
use super::book::{Over, Run, Said, Seen};
use super::world::{Found, Unread};
use crate::bundle;
use crate::journal::{Event, shown};
use crate::model::Millis;
use crate::runbook::walk::{Came, Ended};
use crate::runbook::{Ask, Note, Poll, Step};
use crate::source::postgres::Parts;

/// Between two words on something that is awaited.
const TELL_EVERY: Duration = Duration::from_secs(15);

impl Run<'_> {
    pub(super) async fn read(&mut self, step: &Step) -> Result<Over, ActError> {
        match self.find_and_keep(step, true).await? {
            Ok(()) => self.expectations(step),
            Err(Unread { code, why }) => Ok(Over::error(code, why)),
        }
    }

    /// Reads what the step asks for, and what the book computes of it.
    ///
    /// # Errors
    /// Outside when nothing more can be read at all; inside what this read came to.
    pub(super) async fn find(
        &mut self,
        step: &Step,
        shown: bool,
    ) -> Result<Result<(), Unread>, ActError> {
        let walker = &*self.walker;
        let stop = || walker.stops() > 0;
        let found = self
            .world
            .find(step, &self.walk, self.request, &stop)
            .await?;
        let found = match found {
            Ok(found) => found,
            Err(unread) => return Ok(Err(unread)),
        };
        if shown {
            self.walker.found(&match &found {
                Found::Report { name, snapshot, .. } => Seen::Report(name, snapshot),
                Found::Rows(rows) => Seen::Rows(rows),
                Found::Lines { text, .. } => Seen::Lines(text),
            })?;
        }
        let value = match found {
            Found::Report { value, .. } => match value {
                Ok(value) => value,
                Err(why) => return Ok(Err(Unread::new("incomplete", why))),
            },
            Found::Rows(rows) => json!({ "row_count": rows.len(), "rows": rows }),
            Found::Lines { value, .. } => value,
        };
        if step.expect.is_empty()
            && let Some(exit) = value.get("exit")
            && exit != &json!(0)
        {
            let why = format!("{}: the command ended with {exit}", step.id.text);
            return Ok(Err(Unread::new("exit", why)));
        }
        if let Err(why) = self.walk.learn(step, value) {
            return Ok(Err(Unread::new("unknown", why)));
        }
        Ok(Ok(()))
    }

    /// The same, with what was computed in the journal.
    async fn find_and_keep(
        &mut self,
        step: &Step,
        shown: bool,
    ) -> Result<Result<(), Unread>, ActError> {
        let found = self.find(step, shown).await?;
        let vars = self.walk.vars(step);
        if found.is_ok() && !vars.is_empty() && self.computed.get(&step.id.text) != Some(&vars) {
            self.write(Event::Computed {
                step: step.id.text.clone(),
                vars: vars.clone(),
            })?;
            self.computed.insert(step.id.text.clone(), vars);
        }
        Ok(found)
    }

    /// Each is told; one that stops the run ends it, one that can't be told too.
    pub(super) fn expectations(&mut self, step: &Step) -> Result<Over, ActError> {
        for held in self.walk.expectations(step) {
            let holds = match held.held {
                Ok(holds) => holds,
                Err(why) if held.warn => {
                    self.walker.note(&format!("not known: {why}"));
                    continue;
                }
                Err(why) => return Ok(Over::End(Ended::Unknown(why))),
            };
            self.write(Event::Expectation {
                step: step.id.text.clone(),
                that: held.that,
                held: holds,
                say: (!holds).then(|| held.say.clone()),
            })?;
            match (holds, held.warn) {
                (true, _) => {}
                (false, true) => self.walker.note(&format!("warning: {}", held.say)),
                (false, false) => {
                    let why = format!("expected, and not so: {}", held.say);
                    return Ok(Over::End(Ended::Failed(why)));
                }
            }
        }
        Ok(Over::WELL)
    }

    pub(super) fn ask(&mut self, step: &Step, ask: &Ask) -> Result<Over, ActError> {
        let question = self.walk.told(step, &ask.text);
        let choices: Vec<(String, String)> = ask
            .choices
            .iter()
            .map(|(key, label)| (key.text.clone(), self.walk.told(step, label)))
            .collect();
        // Answered before the run was interrupted.
        if let Some(answer) = self
            .before
            .as_ref()
            .and_then(|before| before.answer.clone())
        {
            self.walker.note(&format!("answered before: {answer}"));
            self.walk.answered(step, &answer);
            return Ok(Over::WELL);
        }
        let (answer, attended) = match (self.walker.choose(&question, &choices)?, &step.unattended)
        {
            (Said::Text(answer), _) => (answer, true),
            (Said::Skip(reason), _) => return self.skipped(step, reason),
            (Said::Stop, _) => return Ok(Over::End(Ended::Stopped)),
            (Said::Nobody, Some(answer)) => {
                let text = format!("{question} (nobody is there: {})", answer.text);
                self.walker.note(&text);
                (answer.text.clone(), false)
            }
            (Said::Nobody, None) => return Ok(Over::End(Ended::NeedsHuman(question))),
        };
        self.write(Event::Answer {
            step: step.id.text.clone(),
            answer: answer.clone(),
            attended,
        })?;
        self.walk.answered(step, &answer);
        Ok(Over::WELL)
    }

    pub(super) async fn capture(&mut self, step: &Step) -> Result<Over, ActError> {
        let Some(file) = self
            .journal
            .as_ref()
            .map(|journal| journal.kept(&step.id.text))
        else {
            self.walker.note("kept already: this is a saved snapshot");
            return Ok(Over::WELL);
        };
        self.keep(&file).await?;
        self.walker.note(&format!("kept in {}", file.display()));
        self.write(Event::Captured {
            step: step.id.text.clone(),
            file: file.display().to_string(),
        })?;
        Ok(Over::WELL)
    }

    /// Everything, as it is now, into a file of this name.
    pub(super) async fn keep(&self, file: &Path) -> Result<(), ActError> {
        let snapshot = self
            .world
            .snapshot(Parts::TO_KEEP, self.request.round)
            .await?;
        bundle::write(file, &snapshot).map_err(|error| ActError::Evidence {
            path: file.to_path_buf(),
            error,
        })
    }

    pub(super) async fn poll(&mut self, step: &Step, poll: &Poll) -> Result<Over, ActError> {
        let Some(at) = self.book.step(&poll.repeat.text) else {
            return Ok(Over::End(Ended::Failed("it repeats nothing".into())));
        };
        let repeated = &self.book.steps[at];
        let end = Instant::now() + poll.timeout;
        let give_up = self.give_up.map_or(end, |wall| wall.min(end));
        let began = Instant::now();
        let mut told: Option<Instant> = None;
        self.walker.note(&format!(
            "for {} at most, until {} (skip leaves it out, stop ends the run)",
            Millis::from(poll.timeout),
            poll.until.text
        ));
        loop {
            // What can't be read or told yet may be later; a field that isn't there won't be.
            let holds = match self.find_and_keep(repeated, false).await? {
                Ok(()) => poll.until.holds(self.walk.scope(step)),
                Err(unread) => Err(unread.why),
            };
            match &holds {
                Ok(true) => self.walker.note("it holds"),
                // What was saved doesn't change either.
                Err(why) if why.contains("No such key") || self.world.is_saved() => {
                    return Ok(Over::End(Ended::Unknown(why.clone())));
                }
                // That it goes on is said now and then, not each time.
                _ if told.is_some_and(|at| at.elapsed() < TELL_EVERY) => {}
                Ok(false) => {
                    let so_far = Millis::from(began.elapsed());
                    self.walker.note(&format!("not yet, after {so_far}"));
                    told = Some(Instant::now());
                }
                Err(why) => {
                    self.walker.note(why);
                    told = Some(Instant::now());
                }
            }
            if holds == Ok(true) {
                return Ok(Over::WELL);
            }
            if self.request.dry_run || self.world.is_saved() {
                self.walker
                    .note("nothing was done, so nothing comes of it: it goes on as if it had");
                return Ok(Over::WELL);
            }
            if self.walker.stops() > 0 {
                return Ok(Over::End(Ended::Stopped));
            }
            if Instant::now() + poll.every > give_up {
                return Ok(Over::Came(Came::TimedOut));
            }
            if let Some(over) = self.pause(step, poll.every).await? {
                return Ok(over);
            }
        }
    }

    pub(super) fn note(&mut self, step: &Step, note: &Note) -> Result<Over, ActError> {
        let before = self
            .before
            .take()
            .map(|before| before.noted)
            .unwrap_or_default();
        let done: Vec<String> = before
            .iter()
            .filter(|(question, _)| question == "to do")
            .map(|(_, text)| text.clone())
            .collect();
        let mut skipped = None;
        for question in &note.ask {
            let question = self.walk.told(step, &question.text);
            if before.iter().any(|(asked, _)| *asked == question) {
                continue;
            }
            // Where nothing was done there is nothing to write down.
            let said = match self.request.dry_run {
                true => Said::Nobody,
                false => self.walker.write(&question)?,
            };
            match said {
                Said::Stop => return Ok(Over::End(Ended::Stopped)),
                Said::Skip(reason) => {
                    skipped = Some(reason);
                    break;
                }
                // What nobody wrote is for the postmortem to ask again.
                Said::Nobody => self.noted(step, &question, "(not answered)")?,
                Said::Text(text) => self.noted(step, &question, &text)?,
            }
        }
        for action in &note.actions {
            let text = format!(
                "{} (owner: {}, due: {})",
                action.title, action.owner, action.due
            );
            self.walker.note(&format!("to do: {text}"));
            if !done.contains(&shown(&text)) {
                self.noted(step, "to do", &text)?;
            }
        }
        // What has to be done is told all the same.
        match skipped {
            Some(reason) => self.skipped(step, reason),
            None => Ok(Over::WELL),
        }
    }
}

/// What a command found, as conditions look at it.
pub(super) fn of_command(exit: Option<i32>, stdout: &str, elapsed_ms: u128) -> Json {
    json!({
        "exit": exit,
        "stdout": stdout.trim_end(),
        "json": serde_json::from_str::<Json>(stdout).unwrap_or(Json::Null),
        "elapsed_ms": u64::try_from(elapsed_ms).unwrap_or(u64::MAX),
    })
}
