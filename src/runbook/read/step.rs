//! A step: its common fields, and which of them mean something to its kind.

use super::{Fields, Reader};
use crate::runbook::book::{Confirm, End, Expect, Kind, Named, OnError, Step};
use crate::runbook::cond::Expression;
use crate::runbook::fault::Fault;
use crate::runbook::node::{self, Node};

const KINDS: [&str; 12] = [
    "ask", "query", "check", "redis", "decide", "capture", "act", "run", "poll", "wait", "note",
    "include",
];
const COMMON: [&str; 13] = [
    "id",
    "title",
    "why",
    "expect",
    "set",
    "needs",
    "confirm",
    "unattended",
    "timeout",
    "on_error",
    "on_timeout",
    "goto",
    "end",
];

impl Reader<'_> {
    pub(super) fn steps(&mut self, node: &Node) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        for node in self.list(node) {
            let Some(step) = self.step(node) else {
                continue;
            };
            if let Some(first) = steps.iter().find(|s| s.id.text == step.id.text) {
                let line = first.id.place.line;
                self.fault(
                    step.id.place,
                    format!("step {:?} is there already, in line {line}", step.id.text),
                );
            }
            steps.push(step);
        }
        steps
    }

    fn step(&mut self, node: &Node) -> Option<Step> {
        let known: Vec<&str> = COMMON.iter().chain(&KINDS).copied().collect();
        let map = self.map(node, &known)?;
        let id = self.must(&map, "id").and_then(|n| self.text(n));
        if let Some(id) = &id {
            self.name_in_conditions(id);
        }
        let kinds: Vec<&str> = KINDS
            .iter()
            .filter(|kind| map.get(kind).is_some())
            .copied()
            .collect();
        if let [_, second, ..] = kinds.as_slice() {
            let place = map.place_of(second).unwrap_or(map.place);
            self.fault(
                place,
                format!(
                    "a step is of one kind, and this one is {}",
                    kinds.join(" and ")
                ),
            );
        }
        let end = map.get("end").and_then(|n| self.end(n));
        let goto = map.get("goto").and_then(|n| self.text(n));
        if let (Some(_), Some(goto)) = (end, &goto) {
            self.fault(goto.place, "a step that ends the book jumps nowhere");
        }
        let kind = match kinds.first() {
            Some(kind) => self.kind(kind, map.get(kind)?),
            None if map.get("end").is_some() || map.get("goto").is_some() => Some(Kind::Nothing),
            None => {
                let fault = Fault::new(map.place, "a step without a kind");
                self.faults
                    .push(fault.hint(format!("one of: {}, or an end", KINDS.join(", "))));
                None
            }
        };
        let expect = map
            .get("expect")
            .map(|n| self.expects(n))
            .unwrap_or_default();
        let step = Step {
            id: id?,
            book: String::new(),
            title: map.get("title").and_then(|n| self.shown(n)),
            why: map.get("why").and_then(|n| self.shown(n)),
            kind: kind?,
            expect,
            set: map.get("set").map(|n| self.sets(n)).unwrap_or_default(),
            needs: map.get("needs").map(|n| self.texts(n)).unwrap_or_default(),
            confirm: map.get("confirm").and_then(|n| self.confirm(n)),
            unattended: map.get("unattended").and_then(|n| self.text(n)),
            timeout: map.get("timeout").and_then(|n| self.time(n)),
            on_error: map
                .get("on_error")
                .map(|n| self.on_error(n))
                .unwrap_or_default(),
            on_timeout: map.get("on_timeout").and_then(|n| self.text(n)),
            goto,
            end,
            leaves: None,
        };
        self.fits(&step, &map);
        Some(step)
    }

    /// A field that means nothing to its kind was meant to mean something.
    fn fits(&mut self, step: &Step, map: &Fields<'_>) {
        let finds = step.finds();
        for (name, fits) in [
            ("unattended", matches!(step.kind, Kind::Ask(_))),
            ("on_timeout", matches!(step.kind, Kind::Poll(_))),
            ("confirm", step.is_effect()),
            ("expect", finds),
            ("set", finds),
            ("timeout", finds),
            (
                "on_error",
                finds || step.is_effect() || matches!(step.kind, Kind::Include(_)),
            ),
        ] {
            if let (Some(place), false) = (map.place_of(name), fits) {
                self.fault(
                    place,
                    format!(
                        "{name:?} means nothing to a step of kind {}",
                        step.kind_word()
                    ),
                );
            }
        }
        if matches!(step.kind, Kind::Decide(_)) && (step.goto.is_some() || step.end.is_some()) {
            self.fault(map.place, "a decide says itself where it goes on");
        }
    }

    /// Names for what is computed of what was found.
    fn sets(&mut self, node: &Node) -> Vec<(Named, Expression)> {
        self.pairs(node, |r, node| r.expression(node))
    }

    /// Names with a value each.
    pub(super) fn pairs<T>(
        &mut self,
        node: &Node,
        mut one: impl FnMut(&mut Self, &Node) -> Option<T>,
    ) -> Vec<(Named, T)> {
        let node::Kind::Map(pairs) = &node.kind else {
            self.not(node, "a map of names");
            return Vec::new();
        };
        let mut all: Vec<(Named, T)> = Vec::new();
        for (key, value) in pairs {
            let Some(name) = self.text(key) else { continue };
            self.name_in_conditions(&name);
            if let Some(value) = one(self, value) {
                all.push((name, value));
            }
        }
        all
    }

    /// A step, or a map from SQLSTATEs to steps with `*` for whatever else.
    fn on_error(&mut self, node: &Node) -> Vec<OnError> {
        let node::Kind::Map(pairs) = &node.kind else {
            let to = self.text(node);
            return to
                .map(|to| OnError { code: None, to })
                .into_iter()
                .collect();
        };
        let mut all: Vec<OnError> = Vec::new();
        for (key, value) in pairs {
            let Some(code) = self.scalar(key) else {
                continue;
            };
            let known = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
            let is_code = code.text.len() == 5 && code.text.chars().all(known);
            if !is_code && code.text != "*" {
                self.fault(
                    code.place,
                    format!("{:?} is no SQLSTATE such as 57014, nor *", code.text),
                );
            }
            if let Some(to) = self.text(value) {
                all.push(OnError {
                    code: is_code.then_some(code.text),
                    to,
                });
            }
        }
        // Whatever else comes last, wherever it stands.
        all.sort_by_key(|one| one.code.is_none());
        all
    }

    fn end(&mut self, node: &Node) -> Option<End> {
        let word = self.text(node)?;
        let found = End::ALL.into_iter().find(|end| end.word() == word.text);
        if found.is_none() {
            self.unknown(word.place, "end", &word.text, &End::ALL.map(End::word));
        }
        found
    }

    fn confirm(&mut self, node: &Node) -> Option<Confirm> {
        let map = self.map(node, &["reason"])?;
        let reason = match map.get("reason").and_then(|n| self.text(n)) {
            Some(word) if word.text == "required" => true,
            Some(word) => {
                self.fault(word.place, "`reason: required`, or no reason at all");
                false
            }
            None => false,
        };
        Some(Confirm { reason })
    }

    fn expects(&mut self, node: &Node) -> Vec<Expect> {
        let mut all = Vec::new();
        for node in self.list(node) {
            let Some(map) = self.map(node, &["that", "else", "say"]) else {
                continue;
            };
            let that = self.must(&map, "that").and_then(|n| self.condition(n));
            let warn = match map.get("else").and_then(|n| self.text(n)) {
                Some(word) if word.text == "warn" => true,
                Some(word) if word.text == "stop" => false,
                Some(word) => {
                    self.unknown(word.place, "answer", &word.text, &["warn", "stop"]);
                    false
                }
                None => false,
            };
            let say = map.get("say").and_then(|n| self.shown(n));
            all.extend(that.map(|that| Expect { that, warn, say }));
        }
        all
    }
}
