//! What can be proved of a book before it is walked: every name is known, every way ends, and nothing is done to a server
//! without a yes and evidence before it.

use std::collections::BTreeSet;

use super::book::{Ask, Book, InputKind, Kind, Named, Operand, Step, Value};
use super::cond::{Expression, ROOTS};
use super::fault::{Fault, Place, meant};
use super::graph::{self, before, ways};
use super::text::Text;

/// What a person may say at any question instead of an answer.
const KEYS: [&str; 3] = ["skip", "show", "stop"];

/// Of a book that couldn't be read in full only what each step shows by itself: its ways would be others. Steps of included
/// books have been proved in their own.
pub fn check(book: &Book, faults: &mut Vec<Fault>) {
    let whole = faults.is_empty();
    for step in &book.steps {
        if step.book.is_empty() {
            alone(step, faults);
        }
        allowed(book, step, faults);
    }
    if whole {
        through(book, faults);
    }
}

/// What the book's limits say of an effect.
fn allowed(book: &Book, step: &Step, faults: &mut Vec<Fault>) {
    let key = match &step.kind {
        Kind::Act(act) if book.effects.of(act.verb) == 0 => format!("pg.{}", act.verb.word()),
        Kind::Command(command) if command.writes && book.effects.run == 0 => "run".to_owned(),
        _ => return,
    };
    let including = step
        .id
        .text
        .split('.')
        .next()
        .and_then(|name| book.step(name));
    let place = including.map_or(step.id.place, |n| book.steps[n].id.place);
    let fault = Fault::new(place, "an act that limits.effects doesn't allow");
    faults.push(fault.hint(format!("{key}: its number")));
}

/// What each step must say itself.
fn alone(step: &Step, faults: &mut Vec<Fault>) {
    let (what, hint) = match &step.kind {
        Kind::Act(_) if step.confirm.is_none() => (
            "an act without confirm",
            "confirm: {} asks; confirm: { reason: required } asks why too",
        ),
        Kind::Command(command) if command.writes && step.confirm.is_none() => (
            "a run that writes, without confirm",
            "confirm: {} asks; writes: false where it only looks",
        ),
        Kind::Include(_) if step.on_error.iter().any(|error| error.code.is_some()) => (
            "an include's error has no code",
            "on_error: the step to go on with",
        ),
        Kind::Poll(_) if step.on_timeout.is_none() => (
            "a poll without on_timeout",
            "on_timeout: the step for when it doesn't come about",
        ),
        _ => return,
    };
    faults.push(Fault::new(step.id.place, what).hint(hint));
}

fn through(book: &Book, faults: &mut Vec<Fault>) {
    let all: Vec<_> = (0..book.steps.len()).map(|n| ways(book, n)).collect();
    let before = before(&all);
    let mut lint = Lint {
        book,
        faults,
        before: &before,
    };
    for (n, step) in book.steps.iter().enumerate() {
        if !step.book.is_empty() || matches!(step.kind, Kind::Back) {
            continue;
        }
        lint.jumps(n);
        lint.step(n);
        if before[n].is_none() {
            lint.fault(
                step.id.place,
                format!("no way leads to step {:?}", step.id.text),
            );
        }
        // One that includes goes on in the included book, and back from there.
        let last = match step.kind {
            Kind::Include(_) => book.step(&format!("{}.end", step.id.text)).unwrap_or(n),
            _ => n,
        };
        if all[last].iter().all(graph::Way::is_after_error) {
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
        targets.extend(step.on_error.iter().map(|error| &error.to));
        if let Kind::Decide(branches) = &step.kind {
            targets.extend(branches.iter().map(|branch| &branch.to));
        }
        if let Kind::Include(_) = step.kind
            && let Some(back) = self.book.step(&format!("{}.end", step.id.text))
        {
            targets.extend(self.book.steps[back].goto.iter());
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
        let own = |step: &&Step| step.book.is_empty() && !matches!(step.kind, Kind::Back);
        let found = self.book.step(&name.text);
        if found.is_none() {
            let known: Vec<&str> = self
                .book
                .steps
                .iter()
                .filter(own)
                .map(|s| s.id.text.as_str())
                .collect();
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
            self.expression(n, &expect.that, true);
            if let Some(say) = &expect.say {
                self.text(n, say, true);
            }
        }
        for (_, expression) in &step.set {
            self.expression(n, expression, true);
        }
        for text in step.title.iter().chain(&step.why) {
            self.text(n, text, false);
        }
        if step.is_effect() {
            let evidence =
                self.book.steps.iter().enumerate().any(|(earlier, s)| {
                    matches!(s.kind, Kind::Capture) && self.has_run(n, earlier)
                });
            if !evidence {
                let what = match step.kind {
                    Kind::Act(_) => "an act without evidence before it",
                    _ => "a run that writes, without evidence before it",
                };
                let fault = Fault::new(step.id.place, what);
                self.faults
                    .push(fault.hint("a step with `capture: {}` on every way to it"));
            }
        }
        self.kind(n, step);
    }

    fn kind(&mut self, n: usize, step: &Step) {
        match &step.kind {
            Kind::Decide(branches) => {
                for condition in branches
                    .iter()
                    .filter_map(|branch| branch.condition.as_ref())
                {
                    self.expression(n, condition, false);
                }
            }
            Kind::Poll(poll) => {
                if let Some(earlier) = self.step_of(&poll.repeat) {
                    if !self.book.steps[earlier].is_read() {
                        self.fault(
                            poll.repeat.place,
                            format!(
                                "{:?} is no query: only what reads is asked again",
                                poll.repeat.text
                            ),
                        );
                    } else {
                        self.must_have_run(n, &poll.repeat, earlier, "hasn't run");
                    }
                }
                self.expression(n, &poll.until, false);
            }
            Kind::Act(act) => {
                if let Some(Value::Input(name)) = &act.select.longer_than {
                    self.input(name, Some(InputKind::Duration));
                }
                let select = &act.select;
                let named = select.users.iter().chain(&select.applications);
                for operand in named.chain(&select.pids) {
                    self.operand(n, operand);
                }
            }
            Kind::Sql(sql) => sql.args.iter().for_each(|arg| self.operand(n, arg)),
            Kind::Command(command) => command.argv.iter().for_each(|arg| self.operand(n, arg)),
            Kind::Include(include) => include
                .set
                .iter()
                .for_each(|(_, value)| self.operand(n, value)),
            Kind::Note(note) => note
                .ask
                .iter()
                .for_each(|ask| self.text(n, &ask.text, false)),
            Kind::Ask(ask) => self.ask(n, step, ask),
            _ => {}
        }
    }

    fn ask(&mut self, n: usize, step: &Step, ask: &Ask) {
        self.text(n, &ask.text, false);
        for (key, label) in &ask.choices {
            if KEYS.contains(&key.text.as_str()) {
                self.fault(
                    key.place,
                    format!("{:?} is a key of the walk itself", key.text),
                );
            }
            self.text(n, label, false);
        }
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

    fn operand(&mut self, n: usize, operand: &Operand) {
        if let Operand::Looked(expression) = operand {
            self.expression(n, expression, false);
        }
    }

    /// What a condition names has run, was asked, was given.
    fn expression(&mut self, n: usize, expression: &Expression, of_itself: bool) {
        for root in ROOTS {
            for text in expression.names(root) {
                let name = Named {
                    text,
                    place: expression.place,
                };
                self.name(n, root, &name, of_itself);
            }
        }
    }

    /// What a text says, likewise.
    fn text(&mut self, n: usize, text: &Text, of_itself: bool) {
        self.faults.extend(text.stranger(of_itself));
        for (root, name) in text.names() {
            let (Some(root), Some(name)) = (ROOTS.into_iter().find(|r| *r == root), name) else {
                continue;
            };
            let name = Named {
                text: name,
                place: text.place,
            };
            self.name(n, root, &name, of_itself);
        }
    }

    fn name(&mut self, n: usize, root: &str, name: &Named, of_itself: bool) {
        match root {
            "steps" => {
                let Some(earlier) = self.step_of(name) else {
                    return;
                };
                let step = &self.book.steps[earlier];
                if let Kind::Include(_) = step.kind {
                    let back = self.book.step(&format!("{}.end", name.text));
                    self.must_have_run(n, name, back.unwrap_or(earlier), "hasn't run");
                } else if !step.finds() {
                    self.fault(
                        name.place,
                        format!("{:?} finds nothing: a query or a check does", name.text),
                    );
                } else if !(of_itself && earlier == n) {
                    self.must_have_run(n, name, earlier, "hasn't run");
                }
            }
            "answers" => {
                let Some(earlier) = self.step_of(name) else {
                    return;
                };
                if !matches!(self.book.steps[earlier].kind, Kind::Ask(_)) {
                    self.fault(name.place, format!("{:?} asks nothing", name.text));
                } else {
                    self.must_have_run(n, name, earlier, "wasn't asked");
                }
            }
            "vars" => self.var(n, name, of_itself),
            _ => self.input(name, None),
        }
    }

    /// What was computed, by a step that has run.
    fn var(&mut self, n: usize, name: &Named, of_itself: bool) {
        let mut known: Vec<(usize, &str)> = Vec::new();
        for (at, step) in self.book.steps.iter().enumerate() {
            if step.book.is_empty() {
                known.extend(step.set.iter().map(|(name, _)| (at, name.text.as_str())));
            }
        }
        let setters: Vec<usize> = known
            .iter()
            .filter(|(_, known)| *known == name.text)
            .map(|(at, _)| *at)
            .collect();
        if setters.is_empty() {
            let known: Vec<&str> = known.into_iter().map(|(_, name)| name).collect();
            let fault = Fault::new(name.place, format!("nothing sets {:?}", name.text));
            self.meant(fault, &name.text, &known);
        } else if !setters
            .iter()
            .any(|at| self.has_run(n, *at) || of_itself && *at == n)
        {
            self.must_have_run(n, name, setters[0], "isn't set");
        }
    }
}
