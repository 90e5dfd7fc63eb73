//! What can be proved of a book before it is walked: every name is known, every way ends, and nothing is done to a server
//! without a yes and evidence before it.

use std::collections::BTreeSet;

use super::book::{Book, InputKind, Kind, Named, Step, Value};
use super::cond::Condition;
use super::fault::{Fault, Place, meant};
use super::graph::{before, followers};

/// Of a book that couldn't be read in full only what each step shows by itself: its ways would be others.
pub fn check(book: &Book, faults: &mut Vec<Fault>) {
    let whole = faults.is_empty();
    for step in &book.steps {
        alone(step, faults);
        if let Kind::Act(act) = &step.kind
            && book.effects.of(act.verb) == 0
        {
            let fault = Fault::new(step.id.place, "an act that limits.effects doesn't allow");
            faults.push(fault.hint(format!("pg.{}: its number", act.verb.word())));
        }
    }
    if whole {
        ways(book, faults);
    }
}

/// What each step must say itself.
fn alone(step: &Step, faults: &mut Vec<Fault>) {
    let (what, hint) = match &step.kind {
        Kind::Act(_) if step.confirm.is_none() => (
            "an act without confirm",
            "confirm: {} asks; confirm: { reason: required } asks why too",
        ),
        Kind::Poll(_) if step.on_timeout.is_none() => (
            "a poll without on_timeout",
            "on_timeout: the step for when it doesn't come about",
        ),
        _ => return,
    };
    faults.push(Fault::new(step.id.place, what).hint(hint));
}

fn ways(book: &Book, faults: &mut Vec<Fault>) {
    let followers = followers(book);
    let before = before(&followers);
    let mut lint = Lint {
        book,
        faults,
        before: &before,
    };
    for (n, step) in book.steps.iter().enumerate() {
        lint.jumps(n);
        lint.step(n);
        if before[n].is_none() {
            lint.fault(
                step.id.place,
                format!("no way leads to step {:?}", step.id.text),
            );
        }
        let ends = step.end.is_some() || !followers[n].is_empty();
        if !ends {
            let fault = Fault::new(
                step.id.place,
                format!("the way over {:?} doesn't end", step.id.text),
            );
            lint.faults
                .push(fault.hint("end: resolved, false_alarm, escalated or failed"));
        }
    }
}

struct Lint<'l> {
    book: &'l Book,
    faults: &'l mut Vec<Fault>,
    before: &'l [Option<BTreeSet<usize>>],
}

impl Lint<'_> {
    fn fault(&mut self, place: Place, what: impl Into<String>) {
        self.faults.push(Fault::new(place, what));
    }

    /// Every jump leads to a step further down.
    fn jumps(&mut self, n: usize) {
        let step = &self.book.steps[n];
        let mut targets: Vec<&Named> = step.goto.iter().chain(&step.on_timeout).collect();
        if let Kind::Decide(branches) = &step.kind {
            targets.extend(branches.iter().map(|branch| &branch.to));
        }
        for target in targets {
            match self.step_of(target) {
                Some(to) if to <= n => self.fault(
                    target.place,
                    format!("{:?} stands above: only a poll goes back", target.text),
                ),
                _ => {}
            }
        }
    }

    /// The number of a step by its name; where there is none it is told.
    fn step_of(&mut self, name: &Named) -> Option<usize> {
        let found = self.book.step(&name.text);
        if found.is_none() {
            let known: Vec<&str> = self.book.steps.iter().map(|s| s.id.text.as_str()).collect();
            let fault = Fault::new(name.place, format!("there is no step {:?}", name.text));
            self.meant(fault, &name.text, &known);
        }
        found
    }

    /// A name that isn't there, with the one that may have been meant.
    fn meant(&mut self, fault: Fault, name: &str, known: &[&str]) {
        self.faults.push(match meant(name, known) {
            Some(meant) => fault.hint(format!("did you mean {meant:?}?")),
            None => fault,
        });
    }

    /// Told where `earlier` may not have run before step `n`.
    fn must_have_run(&mut self, n: usize, name: &Named, earlier: usize, verb: &str) {
        if !self.has_run(n, earlier) {
            let to = &self.book.steps[n].id.text;
            self.fault(
                name.place,
                format!("{:?} {verb} on every way to {to:?}", name.text),
            );
        }
    }

    /// The step has run whichever way was taken.
    fn has_run(&self, n: usize, earlier: usize) -> bool {
        earlier != n
            && self.before[n]
                .as_ref()
                .is_none_or(|passed| passed.contains(&earlier))
    }

    fn step(&mut self, n: usize) {
        let step = &self.book.steps[n];
        for need in &step.needs {
            if let Some(earlier) = self.step_of(need) {
                self.must_have_run(n, need, earlier, "hasn't run");
            }
        }
        for expect in &step.expect {
            self.condition(n, &expect.that, true);
        }
        match &step.kind {
            Kind::Decide(branches) => {
                for condition in branches
                    .iter()
                    .filter_map(|branch| branch.condition.as_ref())
                {
                    self.condition(n, condition, false);
                }
            }
            Kind::Poll(poll) => {
                if let Some(earlier) = self.step_of(&poll.repeat) {
                    if !matches!(self.book.steps[earlier].kind, Kind::Query(_)) {
                        self.fault(
                            poll.repeat.place,
                            format!(
                                "{:?} is no query: only a query is asked again",
                                poll.repeat.text
                            ),
                        );
                    } else {
                        self.must_have_run(n, &poll.repeat, earlier, "hasn't run");
                    }
                }
                self.condition(n, &poll.until, false);
            }
            Kind::Act(act) => {
                if let Some(Value::Input(name)) = &act.select.longer_than {
                    self.input(name, Some(InputKind::Duration));
                }
                let evidence = self.book.steps.iter().enumerate().any(|(earlier, s)| {
                    matches!(s.kind, Kind::Capture) && self.has_run(n, earlier)
                });
                if !evidence {
                    let fault = Fault::new(step.id.place, "an act without evidence before it");
                    self.faults
                        .push(fault.hint("a step with `capture: {}` on every way to it"));
                }
            }
            Kind::Ask(ask) => {
                let known: Vec<&str> = ask
                    .choices
                    .iter()
                    .map(|(key, _)| key.text.as_str())
                    .collect();
                if let Some(answer) = &step.unattended
                    && !known.contains(&answer.text.as_str())
                {
                    let fault = Fault::new(
                        answer.place,
                        format!("{:?} is none of the answers", answer.text),
                    );
                    self.faults.push(fault.hint(known.join(", ")));
                }
            }
            _ => {}
        }
    }

    fn input(&mut self, name: &Named, kind: Option<InputKind>) {
        let found = self
            .book
            .inputs
            .iter()
            .find(|input| input.name.text == name.text);
        match found {
            None => {
                let known: Vec<&str> = self
                    .book
                    .inputs
                    .iter()
                    .map(|i| i.name.text.as_str())
                    .collect();
                let fault = Fault::new(name.place, format!("there is no input {:?}", name.text));
                self.meant(fault, &name.text, &known);
            }
            Some(input) if kind.is_some_and(|kind| kind != input.kind) => {
                self.fault(
                    name.place,
                    format!(
                        "input {:?} is of another type than is needed here",
                        name.text
                    ),
                );
            }
            Some(_) => {}
        }
    }

    /// What a condition names has run, was asked, was given.
    fn condition(&mut self, n: usize, condition: &Condition, of_itself: bool) {
        let named = |text: String| Named {
            text,
            place: condition.place,
        };
        for name in condition.names("steps") {
            let name = named(name);
            let Some(earlier) = self.step_of(&name) else {
                continue;
            };
            let kind = &self.book.steps[earlier].kind;
            if !matches!(kind, Kind::Query(_) | Kind::Check(_)) {
                self.fault(
                    name.place,
                    format!("{:?} finds nothing: a query or a check does", name.text),
                );
            } else if !(of_itself && earlier == n) {
                self.must_have_run(n, &name, earlier, "hasn't run");
            }
        }
        for name in condition.names("answers") {
            let name = named(name);
            let Some(earlier) = self.step_of(&name) else {
                continue;
            };
            if !matches!(self.book.steps[earlier].kind, Kind::Ask(_)) {
                self.fault(name.place, format!("{:?} asks nothing", name.text));
            } else {
                self.must_have_run(n, &name, earlier, "wasn't asked");
            }
        }
        for name in condition.names("inputs") {
            self.input(&named(name), None);
        }
    }
}
