//! A book within a book: its steps are put in the place of the including one, under its name. From then on there is one book.

use super::book::{Book, Effects, End, Include, Kind, Named, Step};
use super::fault::Fault;
use super::load_within;

/// Deeper is nobody's runbook any more.
const DEEPEST: usize = 4;

/// Where other books are found, by their ids.
pub type Shelf<'s> = &'s dyn Fn(&str) -> Option<String>;

/// Whether a text is the book of this id, without reading it as one: it may include others, or have faults.
pub fn is_named(text: &str, id: &str) -> bool {
    let named = |line: &str| {
        line.strip_prefix("id:")
            .map(|name| name.trim().trim_matches(['"', '\'']).to_owned())
    };
    text.lines().find_map(named).is_some_and(|name| name == id)
}

/// Puts every included book in its place; `within` are the books around it.
pub fn flatten(book: &mut Book, shelf: Shelf<'_>, within: &[String], faults: &mut Vec<Fault>) {
    let mut steps: Vec<Step> = Vec::new();
    for step in std::mem::take(&mut book.steps) {
        let Kind::Include(include) = step.kind.clone() else {
            steps.push(step);
            continue;
        };
        let inner = inner(&include, &book.id.text, shelf, within, faults);
        let mut including = step;
        let Some(inner) = inner else {
            steps.push(including);
            continue;
        };
        check(&include, &inner, faults);
        book.texts.extend(inner.texts);
        let back = Step {
            id: Named {
                text: format!("{}.end", including.id.text),
                place: including.id.place,
            },
            kind: Kind::Back,
            title: None,
            why: None,
            needs: Vec::new(),
            goto: including.goto.take(),
            end: including.end.take(),
            on_error: Vec::new(),
            confirm: None,
            ..including.clone()
        };
        let failed = including.on_error.first().map(|error| error.to.clone());
        if let Kind::Include(include) = &mut including.kind {
            include.inputs = inner.inputs;
        }
        let name = including.id.text.clone();
        steps.push(including);
        let limits = inner.effects;
        steps.extend(
            inner
                .steps
                .into_iter()
                .map(|step| placed(kept_within(step, limits), &name, failed.as_ref())),
        );
        steps.push(back);
    }
    book.steps = steps;
}

fn inner(
    include: &Include,
    own: &str,
    shelf: Shelf<'_>,
    within: &[String],
    faults: &mut Vec<Fault>,
) -> Option<Book> {
    let id = &include.book;
    let mut fault = |what: String| {
        faults.push(Fault::new(id.place, what));
        None
    };
    if id.text == own || within.contains(&id.text) {
        return fault(format!("{:?} would include itself", id.text));
    }
    if within.len() >= DEEPEST {
        return fault("books within books within books: too deep".into());
    }
    let Some(text) = shelf(&id.text) else {
        return fault(format!("there is no book {:?}", id.text));
    };
    let mut around = within.to_vec();
    around.push(own.to_owned());
    match load_within(&text, shelf, &around) {
        Ok(book) => Some(book),
        Err(inside) => {
            let count = crate::model::count(inside.len(), "fault");
            faults.push(
                Fault::new(id.place, format!("{:?} has {count}", id.text))
                    .hint("stanch runbook lint shows them"),
            );
            None
        }
    }
}

/// Its inputs are given, and no others.
fn check(include: &Include, inner: &Book, faults: &mut Vec<Fault>) {
    for (name, _) in &include.set {
        if !inner.inputs.iter().any(|i| i.name.text == name.text) {
            let what = format!("{:?} has no input {:?}", inner.id.text, name.text);
            faults.push(Fault::new(name.place, what));
        }
    }
    for input in &inner.inputs {
        let given = include
            .set
            .iter()
            .any(|(name, _)| name.text == input.name.text);
        if input.default.is_none() && !given {
            let what = format!("{:?} needs its input {:?}", inner.id.text, input.name.text);
            faults.push(Fault::new(include.book.place, what));
        }
    }
}

/// An act of the inner book keeps to what that book allows.
fn kept_within(mut step: Step, limits: Effects) -> Step {
    if let Kind::Act(act) = &mut step.kind {
        act.max = act.max.min(limits.of(act.verb));
    }
    step
}

/// A step of the inner book under the including one's name. Its ends lead back, a failed one out.
fn placed(mut step: Step, name: &str, failed: Option<&Named>) -> Step {
    let place = |named: &mut Named| named.text = format!("{name}.{}", named.text);
    place(&mut step.id);
    step.book = format!("{name}.{}", step.book);
    step.needs.iter_mut().for_each(place);
    step.on_timeout.iter_mut().for_each(place);
    step.goto.iter_mut().for_each(place);
    step.on_error
        .iter_mut()
        .for_each(|error| place(&mut error.to));
    match &mut step.kind {
        Kind::Decide(branches) => branches.iter_mut().for_each(|branch| place(&mut branch.to)),
        Kind::Poll(poll) => place(&mut poll.repeat),
        _ => {}
    }
    let back = match (step.end, failed) {
        (Some(End::Failed), Some(failed)) => Some(failed.clone()),
        (Some(End::Failed) | None, _) => None,
        (Some(_), _) => Some(Named {
            text: format!("{name}.end"),
            place: step.id.place,
        }),
    };
    if let Some(back) = back {
        step.leaves = step.end.take();
        step.goto = Some(back);
    }
    step
}
