//! The tree → a book: known keys, right types, every fault at its place.

mod cases;
mod kinds;
mod step;

pub use cases::cases;

use std::time::Duration;

use super::book::{Book, Effects, Input, InputKind, Named, Operand};
use super::cond::{Condition, Expression, ROOTS};
use super::fault::{Fault, Place, meant};
use super::node::{self, Node};
use super::text::Text;

/// The reports that a `query` may name.
pub const REPORTS: [&str; 8] = [
    "activity",
    "blockers",
    "locks",
    "transactions",
    "connections",
    "settings",
    "horizon",
    "triage",
];
/// The reports that a `redis` may name.
pub const REDIS_REPORTS: [&str; 5] = ["info", "hotkeys", "expiry", "stampede", "queues"];

/// Reads one book; what can't be read is left out of it and told.
pub fn book(node: &Node, faults: &mut Vec<Fault>) -> Option<Book> {
    let mut r = Reader { faults };
    let map = r.map(
        node,
        &[
            "runbook", "id", "title", "owner", "inputs", "limits", "steps",
        ],
    )?;
    if let Some(version) = r.must(&map, "runbook").and_then(|n| r.text(n))
        && version.text != "v1"
    {
        r.fault(version.place, "this version reads `runbook: v1`");
    }
    let id = r.must(&map, "id").and_then(|n| r.text(n));
    if let Some(id) = &id {
        r.name(id);
    }
    let title = r.must(&map, "title").and_then(|n| r.text(n));
    let owner = map.get("owner").and_then(|n| r.text(n));
    let inputs = map.get("inputs").map(|n| r.inputs(n)).unwrap_or_default();
    let (wall, effects) = map
        .get("limits")
        .map_or((None, Effects::DEFAULT), |n| r.limits(n));
    let steps = r
        .must(&map, "steps")
        .map(|n| r.steps(n))
        .unwrap_or_default();
    if steps.is_empty() {
        r.fault(node.place, "a book has at least one step");
    }
    Some(Book {
        id: id?,
        title: title?.text,
        owner: owner.map(|owner| owner.text),
        inputs,
        wall,
        effects,
        steps,
        texts: Vec::new(),
    })
}

/// The fields of a map, each once.
struct Fields<'n> {
    place: Place,
    fields: Vec<(&'n str, Place, &'n Node)>,
}

impl<'n> Fields<'n> {
    fn get(&self, name: &str) -> Option<&'n Node> {
        self.fields
            .iter()
            .find(|(n, ..)| *n == name)
            .map(|(.., node)| *node)
    }

    fn place_of(&self, name: &str) -> Option<Place> {
        self.fields
            .iter()
            .find(|(n, ..)| *n == name)
            .map(|(_, place, _)| *place)
    }
}

struct Reader<'f> {
    faults: &'f mut Vec<Fault>,
}

impl Reader<'_> {
    fn fault(&mut self, place: Place, what: impl Into<String>) {
        self.faults.push(Fault::new(place, what));
    }

    fn not(&mut self, node: &Node, wanted: &str) {
        self.fault(
            node.place,
            format!("{wanted} is expected here, not {}", node.kind.word()),
        );
    }

    fn unknown(&mut self, place: Place, what: &str, word: &str, known: &[&str]) {
        let fault = Fault::new(place, format!("unknown {what} {word:?}"));
        let fault = match meant(word, known) {
            Some(meant) => fault.hint(format!("did you mean {meant:?}?")),
            None => fault.hint(format!("there are: {}", known.join(", "))),
        };
        self.faults.push(fault);
    }

    fn map<'n>(&mut self, node: &'n Node, known: &[&str]) -> Option<Fields<'n>> {
        let node::Kind::Map(pairs) = &node.kind else {
            self.not(node, "a map");
            return None;
        };
        let mut fields: Vec<(&str, Place, &Node)> = Vec::new();
        for (key, value) in pairs {
            let node::Kind::Text(name) = &key.kind else {
                self.not(key, "a name");
                continue;
            };
            if !known.contains(&name.as_str()) {
                self.unknown(key.place, "key", name, known);
            } else if fields.iter().any(|(n, ..)| n == name) {
                self.fault(key.place, format!("{name:?} stands here twice"));
            } else {
                fields.push((name, key.place, value));
            }
        }
        Some(Fields {
            place: node.place,
            fields,
        })
    }

    fn must<'n>(&mut self, map: &Fields<'n>, name: &str) -> Option<&'n Node> {
        let found = map.get(name);
        if found.is_none() {
            self.fault(map.place, format!("{name:?} is missing here"));
        }
        found
    }

    fn list<'n>(&mut self, node: &'n Node) -> &'n [Node] {
        match &node.kind {
            node::Kind::List(all) => all,
            _ => {
                self.not(node, "a list");
                &[]
            }
        }
    }

    fn text(&mut self, node: &Node) -> Option<Named> {
        match &node.kind {
            node::Kind::Text(text) if !text.trim().is_empty() => Some(Named {
                text: text.clone(),
                place: node.place,
            }),
            _ => {
                self.not(node, "a text");
                None
            }
        }
    }

    fn texts(&mut self, node: &Node) -> Vec<Named> {
        match &node.kind {
            node::Kind::Text(_) => self.text(node).into_iter().collect(),
            _ => self
                .list(node)
                .iter()
                .filter_map(|n| self.text(n))
                .collect(),
        }
    }

    /// A name that conditions can say: letters, digits, `_`.
    fn name_in_conditions(&mut self, named: &Named) {
        if named.text.contains('-') {
            let fault = Fault::new(
                named.place,
                format!("{:?}: a condition would read the - as minus", named.text),
            );
            let hint = named.text.replace('-', "_");
            self.faults.push(fault.hint(hint));
        } else {
            self.name(named);
        }
    }

    fn name(&mut self, named: &Named) {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
        if !named.text.starts_with(|c: char| c.is_ascii_lowercase())
            || !named.text.chars().all(fits)
        {
            self.fault(
                named.place,
                format!(
                    "{:?}: a name is lower case letters, digits, _ and -",
                    named.text
                ),
            );
        }
    }

    fn number(&mut self, node: &Node) -> Option<usize> {
        match &node.kind {
            node::Kind::Int(number) if *number > 0 => usize::try_from(*number).ok(),
            _ => {
                self.not(node, "a whole number above 0");
                None
            }
        }
    }

    fn time(&mut self, node: &Node) -> Option<Duration> {
        let text = self.text(node)?;
        let time = time(&text.text);
        if time.is_none() {
            self.fault(
                text.place,
                format!("{:?} is no time such as 10s or 5m", text.text),
            );
        }
        time
    }

    fn condition(&mut self, node: &Node) -> Option<Condition> {
        let text = self.text(node)?;
        self.told(Condition::read(&text.text, text.place))
    }

    fn expression(&mut self, node: &Node) -> Option<Expression> {
        let text = self.text(node)?;
        self.told(Expression::read(&text.text, text.place))
    }

    /// A text for people, which may be a template.
    fn shown(&mut self, node: &Node) -> Option<Text> {
        let text = self.text(node)?;
        self.told(Text::read(&text.text, text.place))
    }

    fn told<T>(&mut self, read: Result<T, Fault>) -> Option<T> {
        read.map_err(|fault| self.faults.push(fault)).ok()
    }

    /// A plain value, or one that is looked up: `inputs.NAME`, `answers.NAME`, `vars.NAME`, `steps.NAME.FIELD`. Never a
    /// template: it is handed over whole.
    fn operand(&mut self, node: &Node) -> Option<Operand> {
        let text = self.scalar(node)?;
        if text.text.contains("{{") {
            let fault = Fault::new(text.place, "no template here: a value is bound whole");
            self.faults.push(fault.hint("inputs.NAME, by itself"));
            return None;
        }
        let name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '.';
        let looked = ROOTS.iter().any(|root| {
            text.text
                .strip_prefix(root)
                .is_some_and(|rest| rest.starts_with('.'))
        });
        if looked && text.text.chars().all(name) {
            return self
                .told(Expression::read(&text.text, text.place))
                .map(Operand::Looked);
        }
        Some(Operand::Fixed(text.text))
    }

    fn inputs(&mut self, node: &Node) -> Vec<Input> {
        let node::Kind::Map(pairs) = &node.kind else {
            self.not(node, "a map of names");
            return Vec::new();
        };
        let mut inputs: Vec<Input> = Vec::new();
        for (key, value) in pairs {
            let Some(name) = self.text(key) else { continue };
            self.name_in_conditions(&name);
            if inputs.iter().any(|input| input.name.text == name.text) {
                self.fault(name.place, format!("{:?} stands here twice", name.text));
            }
            let Some(map) = self.map(value, &["type", "default", "help"]) else {
                continue;
            };
            let Some(kind) = self.must(&map, "type").and_then(|n| self.text(n)) else {
                continue;
            };
            let known = ["duration", "number", "string", "bool"];
            let kind = match kind.text.as_str() {
                "duration" => InputKind::Duration,
                "number" => InputKind::Number,
                "string" => InputKind::Text,
                "bool" => InputKind::Bool,
                other => {
                    self.unknown(kind.place, "type", other, &known);
                    continue;
                }
            };
            let default = map.get("default").and_then(|n| self.scalar(n));
            if let Some(default) = &default
                && let Err(what) = kind.check(&default.text)
            {
                self.fault(default.place, what);
            }
            inputs.push(Input {
                name,
                kind,
                default: default.map(|default| default.text),
                help: map
                    .get("help")
                    .and_then(|n| self.text(n))
                    .map(|help| help.text),
            });
        }
        inputs
    }

    /// A number, a text, true or false: as it would be given on the command line.
    fn scalar(&mut self, node: &Node) -> Option<Named> {
        let text = match &node.kind {
            node::Kind::Text(text) => text.clone(),
            node::Kind::Int(number) => number.to_string(),
            node::Kind::Float(number) => number.to_string(),
            node::Kind::Bool(value) => value.to_string(),
            _ => {
                self.not(node, "a plain value");
                return None;
            }
        };
        Some(Named {
            text,
            place: node.place,
        })
    }

    fn limits(&mut self, node: &Node) -> (Option<Duration>, Effects) {
        let Some(map) = self.map(node, &["wall", "effects"]) else {
            return (None, Effects::DEFAULT);
        };
        let wall = map.get("wall").and_then(|n| self.time(n));
        let mut limits = Effects::DEFAULT;
        if let Some(effects) = map.get("effects")
            && let Some(effects) = self.map(effects, &["pg.terminate", "pg.cancel", "run"])
        {
            let of = |r: &mut Self, name| effects.get(name).and_then(|n| r.number(n)).unwrap_or(0);
            limits = Effects {
                terminate: of(self, "pg.terminate"),
                cancel: of(self, "pg.cancel"),
                run: of(self, "run"),
            };
        }
        (wall, limits)
    }
}

/// What a clock can be moved by: above zero, at most a year.
pub fn time(text: &str) -> Option<Duration> {
    const MOST: Duration = Duration::from_secs(366 * 24 * 60 * 60);
    humantime::parse_duration(text)
        .ok()
        .filter(|time| !time.is_zero() && *time <= MOST)
}

impl InputKind {
    /// # Errors
    /// What the value should be.
    pub fn check(self, text: &str) -> Result<(), String> {
        let fits = match self {
            Self::Duration => time(text).is_some(),
            Self::Number => text.parse::<f64>().is_ok_and(f64::is_finite),
            Self::Text => true,
            Self::Bool => matches!(text, "true" | "false"),
        };
        let what = match self {
            Self::Duration => "a time such as 60s",
            Self::Number => "a number",
            Self::Text => "a text",
            Self::Bool => "true or false",
        };
        if fits {
            Ok(())
        } else {
            Err(format!("{text:?} is not {what}"))
        }
    }
}
