//! A book against cases that are written down: what each step finds, which way is taken then, how it ends; and which ways no
//! case takes. Nothing is asked of a server, a person or a machine.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::book::{Book, Kind, Named, Step};
use super::fault::{Fault, Place};
use super::graph::{Goal, When, ways};
use super::node;
use super::read;
use super::walk::{Came, Ended, Next, Walk};

/// One case of a `<book>.test.yaml`.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    pub set: BTreeMap<String, String>,
    /// What each step comes to, in the order in which it is asked.
    pub steps: Vec<(Named, Vec<Given>)>,
    pub path: Option<Vec<Named>>,
    pub end: Named,
}

/// What a step comes to once.
#[derive(Clone, Debug)]
pub struct Given {
    pub place: Place,
    pub value: Json,
}

/// What came of the cases of one book.
#[derive(Debug, Default)]
pub struct Outcome {
    pub passed: Vec<String>,
    /// The place in the file of cases, the case, and what was otherwise.
    pub failed: Vec<Fault>,
    /// Ways that no case takes.
    pub unreached: Vec<String>,
}

/// Reads the cases of a book.
///
/// # Errors
/// Every fault of the file.
pub fn cases(text: &str) -> Result<Vec<Case>, Vec<Fault>> {
    let mut faults = Vec::new();
    let cases = node::parse(text, &mut faults).map(|node| read::cases(&node, &mut faults));
    match cases {
        Some(cases) if faults.is_empty() => Ok(cases),
        _ => Err(faults),
    }
}

/// Walks the book once for each case.
pub fn run(book: &Book, cases: &[Case]) -> Outcome {
    let mut outcome = Outcome::default();
    let mut taken: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut seen: BTreeSet<usize> = BTreeSet::new();
    for case in cases {
        let mut play = Play {
            walk: Walk::new(book, &case.set),
            case,
            asked: BTreeMap::new(),
            taken: &mut taken,
            seen: &mut seen,
        };
        match play.all() {
            Ok(()) => outcome.passed.push(case.name.clone()),
            Err(fault) => outcome.failed.push(fault),
        }
    }
    outcome.unreached = unreached(book, &taken, &seen);
    outcome
}

fn unreached(book: &Book, taken: &BTreeSet<(usize, usize)>, seen: &BTreeSet<usize>) -> Vec<String> {
    let mut all = Vec::new();
    for (n, step) in book.steps.iter().enumerate() {
        // The steps of an included book have the cases of their own.
        if !step.book.is_empty() || matches!(step.kind, Kind::Back) {
            continue;
        }
        if !seen.contains(&n) {
            all.push(format!("{}: no case comes here", step.id.text));
            continue;
        }
        for (w, way) in ways(book, n).iter().enumerate() {
            if taken.contains(&(n, w)) {
                continue;
            }
            let to = match way.to {
                Goal::Step(to) => book.steps[to].id.text.as_str(),
                Goal::End(end) => end.word(),
            };
            let when = match way.when.words() {
                words if words.is_empty() => String::new(),
                words => format!(" ({words})"),
            };
            all.push(format!("{} > {to}{when}", step.id.text));
        }
    }
    all
}

struct Play<'p> {
    walk: Walk<'p>,
    case: &'p Case,
    asked: BTreeMap<String, usize>,
    taken: &'p mut BTreeSet<(usize, usize)>,
    seen: &'p mut BTreeSet<usize>,
}

/// A step has come to something, or the run has ended there.
type Step1 = Result<Came, Ended>;

impl Play<'_> {
    /// # Errors
    /// What was otherwise than the case says.
    fn all(&mut self) -> Result<(), Fault> {
        let end = &self.case.end;
        let fault = |place: Place, what: String| {
            Err(Fault::new(place, format!("{}: {what}", self.case.name)))
        };
        for (name, _) in &self.case.steps {
            if self.walk.book.step(&name.text).is_none() {
                return fault(name.place, format!("there is no step {:?}", name.text));
            }
        }
        let ended = self.walked()?;
        let way = || format!("the way was {}", self.walk.path.join(" > "));
        if ended.word() != end.text {
            return fault(
                end.place,
                format!("it ended {}, not {}; {}", ended.told(), end.text, way()),
            );
        }
        if let Some(path) = &self.case.path {
            let other = (0..path.len().max(self.walk.path.len()))
                .find(|n| path.get(*n).map(|p| &p.text) != self.walk.path.get(*n));
            if let Some(n) = other {
                let place = path.get(n).map_or(end.place, |step| step.place);
                return fault(place, format!("another way: {}", way()));
            }
        }
        for (name, given) in &self.case.steps {
            let used = self.asked.get(&name.text).copied().unwrap_or(0);
            if let Some(left) = given.get(used) {
                let what = format!("{:?} wasn't asked so often", name.text);
                return fault(left.place, format!("{what}; {}", way()));
            }
        }
        Ok(())
    }

    fn walked(&mut self) -> Result<Ended, Fault> {
        let mut at = 0;
        loop {
            self.seen.insert(at);
            if let Err(why) = self.walk.enter(at) {
                return Ok(Ended::Failed(why));
            }
            let came = match self.step(at)? {
                Ok(came) => came,
                Err(ended) => return Ok(ended),
            };
            let branch = match self.walk.branch(at) {
                Ok(branch) => branch,
                Err(why) => return Ok(Ended::Failed(why)),
            };
            let next = self.walk.next(at, &came);
            for (w, way) in ways(self.walk.book, at).iter().enumerate() {
                let goes = match (&way.when, &came) {
                    (When::Branch(n, _), _) => branch == Some(*n),
                    (When::Usual, Came::Well) | (When::OutOfTime, Came::TimedOut) => true,
                    (When::Error(None), Came::Error { .. }) => true,
                    (When::Error(Some(wanted)), Came::Error { code, .. }) => wanted == code,
                    _ => false,
                };
                if goes {
                    self.taken.insert((at, w));
                    break;
                }
            }
            if let Ok(Next::Step(to)) = next {
                self.left(at, to);
            }
            match next {
                Ok(Next::Step(to)) => at = to,
                Ok(Next::End(end)) => return Ok(Ended::At(end)),
                Err(why) => return Ok(Ended::Failed(why)),
            }
        }
    }

    /// An included book has come to nothing: the one around it goes its own way for that.
    fn left(&mut self, from: usize, to: usize) {
        let book = self.walk.book;
        let (from, to) = (&book.steps[from], &book.steps[to]);
        let including = from.book.trim_end_matches('.');
        let out = from.book != to.book && !to.id.text.starts_with(&from.book);
        let Some(n) = book
            .step(including)
            .filter(|_| out && !matches!(to.kind, Kind::Back))
        else {
            return;
        };
        let way = ways(book, n).iter().position(|way| way.is_after_error());
        self.taken.extend(way.map(|way| (n, way)));
    }

    /// The next that the case says of a step.
    fn given(&mut self, step: &Step) -> Option<Given> {
        let (_, all) = self
            .case
            .steps
            .iter()
            .find(|(name, _)| name.text == step.id.text)?;
        let used = self.asked.entry(step.id.text.clone()).or_default();
        let given = all.get(*used).cloned();
        *used += usize::from(given.is_some());
        given
    }

    fn wrong(&self, given: &Given, wanted: &str) -> Fault {
        Fault::new(
            given.place,
            format!("{}: {wanted} is expected here", self.case.name),
        )
    }

    fn step(&mut self, at: usize) -> Result<Step1, Fault> {
        let book = self.walk.book;
        let step = &book.steps[at];
        Ok(match &step.kind {
            Kind::Ask(ask) => {
                let answer = match self.given(step) {
                    Some(given) => {
                        let known = |a: &&str| ask.choices.iter().any(|(key, _)| key.text == **a);
                        let answer = given.value.as_str().filter(known).map(str::to_owned);
                        Some(answer.ok_or_else(|| self.wrong(&given, "one of the choices"))?)
                    }
                    None => step.unattended.as_ref().map(|answer| answer.text.clone()),
                };
                match answer {
                    Some(answer) => {
                        self.walk.answered(step, &answer);
                        Ok(Came::Well)
                    }
                    None => Err(Ended::NeedsHuman(self.walk.told(step, &ask.text))),
                }
            }
            Kind::Act(_) => match self.given(step) {
                None => Ok(Came::Well),
                Some(given) => match given.value.as_str() {
                    Some("gone" | "nobody") => Ok(Came::Well),
                    Some("declined") => Err(Ended::Stopped),
                    Some(word @ ("refused" | "still_alive" | "failed")) => Ok(Came::Error {
                        code: word.into(),
                        why: format!("{}: {word}", step.id.text),
                    }),
                    _ => {
                        return Err(self.wrong(
                            &given,
                            "gone, nobody, declined, refused, still_alive or failed",
                        ));
                    }
                },
            },
            Kind::Poll(poll) => {
                let repeated = book.step(&poll.repeat.text).map(|n| &book.steps[n]);
                let Some(repeated) = repeated else {
                    return Ok(Err(Ended::Failed("it repeats nothing".into())));
                };
                loop {
                    let Some(given) = self.given(repeated) else {
                        break Ok(Came::TimedOut);
                    };
                    let exit = given
                        .value
                        .get("exit")
                        .filter(|_| repeated.expect.is_empty());
                    if given.value.get("error").is_some() || exit.is_some_and(|exit| *exit != 0) {
                        continue;
                    }
                    if self.walk.learn(repeated, given.value).is_ok()
                        && poll.until.holds(self.walk.scope(step)) == Ok(true)
                    {
                        break Ok(Came::Well);
                    }
                }
            }
            _ if step.finds() => {
                let Some(given) = self.given(step) else {
                    let what = format!(
                        "{}: nothing says what {:?} finds",
                        self.case.name, step.id.text
                    );
                    return Err(Fault::new(self.case.end.place, what));
                };
                self.found(step, given)?
            }
            _ => Ok(Came::Well),
        })
    }

    fn found(&mut self, step: &Step, given: Given) -> Result<Step1, Fault> {
        if let Some(code) = given.value.get("error").and_then(Json::as_str) {
            let why = format!("{}: {code}", step.id.text);
            return Ok(Ok(Came::Error {
                code: code.into(),
                why,
            }));
        }
        let Some(fields) = given.value.as_object() else {
            return Err(self.wrong(&given, "what is found: a map, or { error: CODE }"));
        };
        let mut found = fields.clone();
        if matches!(step.kind, Kind::Command(_)) {
            let stdout = found
                .get("stdout")
                .and_then(Json::as_str)
                .unwrap_or_default();
            let json = serde_json::from_str(stdout).unwrap_or(Json::Null);
            let stdout = json!(stdout);
            found.insert("stdout".into(), stdout);
            found.insert("json".into(), json);
            if step.expect.is_empty() && found.get("exit") != Some(&json!(0)) {
                let why = format!("{}: it ended with {:?}", step.id.text, found.get("exit"));
                return Ok(Ok(Came::Error {
                    code: "exit".into(),
                    why,
                }));
            }
        }
        if let (Kind::Sql(_), Some(rows)) = (&step.kind, found.get("rows").and_then(Json::as_array))
        {
            let count = rows.len();
            found.insert("row_count".into(), count.into());
        }
        if let Err(why) = self.walk.learn(step, Json::Object(found)) {
            let code = "unknown".to_owned();
            return Ok(Ok(Came::Error { code, why }));
        }
        for held in self.walk.expectations(step) {
            match held.held {
                Ok(true) => {}
                _ if held.warn => {}
                Ok(false) => return Ok(Err(Ended::Failed(held.say))),
                Err(why) => return Ok(Err(Ended::Failed(why))),
            }
        }
        Ok(Ok(Came::Well))
    }
}
