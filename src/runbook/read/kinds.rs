//! What a step does, by its kind.

use std::time::Duration;

use super::{REPORTS, Reader};
use crate::model::{FindingId, Verb};
use crate::runbook::book::{Act, ActionItem, Ask, Branch, Kind, Named, Note, Poll, Select, Value};
use crate::runbook::fault::Fault;
use crate::runbook::node::{self, Node};

impl Reader<'_> {
    pub(super) fn kind(&mut self, kind: &str, node: &Node) -> Option<Kind> {
        Some(match kind {
            "ask" => Kind::Ask(self.ask(node)?),
            "query" => {
                let map = self.map(node, &["report"])?;
                let report = self.must(&map, "report").and_then(|n| self.text(n))?;
                if !REPORTS.contains(&report.text.as_str()) {
                    self.unknown(report.place, "report", &report.text, &REPORTS);
                }
                Kind::Query(report)
            }
            "check" => {
                let id = self.text(node)?;
                let names: Vec<&str> = FindingId::ALL.iter().map(|id| id.name()).collect();
                let Some(found) = FindingId::parse(&id.text) else {
                    self.unknown(id.place, "finding", &id.text, &names);
                    return None;
                };
                Kind::Check(found)
            }
            "decide" => Kind::Decide(self.decide(node)),
            "capture" => {
                let map = self.map(node, &["include"])?;
                // Everything is kept, always; a book may say what matters to it.
                let include = map.get("include").map(|n| self.texts(n));
                for part in include.unwrap_or_default() {
                    if !REPORTS.contains(&part.text.as_str()) {
                        self.unknown(part.place, "report", &part.text, &REPORTS);
                    }
                }
                Kind::Capture
            }
            "act" => Kind::Act(self.act(node)?),
            "poll" => Kind::Poll(self.poll(node)?),
            "wait" => Kind::Wait(self.time(node)?),
            _ => Kind::Note(self.note(node)?),
        })
    }

    fn ask(&mut self, node: &Node) -> Option<Ask> {
        let map = self.map(node, &["text", "choices"])?;
        let text = self.must(&map, "text").and_then(|n| self.text(n));
        let mut choices = Vec::new();
        if let Some(node) = self.must(&map, "choices") {
            let node::Kind::Map(pairs) = &node.kind else {
                self.not(node, "a map of choices");
                return None;
            };
            for (key, label) in pairs {
                if let (Some(key), Some(label)) = (self.text(key), self.text(label)) {
                    self.name(&key);
                    choices.push((key, label.text));
                }
            }
            if choices.len() < 2 {
                self.fault(node.place, "a question has at least two answers");
            }
        }
        Some(Ask {
            text: text?.text,
            choices,
        })
    }

    fn decide(&mut self, node: &Node) -> Vec<Branch> {
        let mut branches: Vec<Branch> = Vec::new();
        let all = self.list(node);
        for (n, node) in all.iter().enumerate() {
            let Some(map) = self.map(node, &["if", "goto", "else"]) else {
                continue;
            };
            let last = n + 1 == all.len();
            if let (Some(_), Some(goto)) = (map.get("else"), map.get("goto")) {
                self.fault(goto.place, "an else names its step itself");
            }
            match (map.get("if"), map.get("else")) {
                (Some(condition), None) => {
                    let condition = self.condition(condition);
                    let to = self.must(&map, "goto").and_then(|n| self.text(n));
                    if let (Some(condition), Some(to)) = (condition, to) {
                        branches.push(Branch {
                            condition: Some(condition),
                            to,
                        });
                    }
                    if last {
                        let fault = Fault::new(map.place, "a decide without an else");
                        self.faults
                            .push(fault.hint("a last line such as `- { else: STEP }`"));
                    }
                }
                (None, Some(to)) => {
                    if !last {
                        self.fault(map.place, "what stands below the else is never reached");
                    }
                    let to = self.text(to);
                    branches.extend(to.map(|to| Branch {
                        condition: None,
                        to,
                    }));
                }
                _ => self.fault(
                    map.place,
                    "a line of a decide is `if` with `goto`, or `else`",
                ),
            }
        }
        if all.is_empty() {
            self.fault(node.place, "a decide without an else");
        }
        branches
    }

    fn act(&mut self, node: &Node) -> Option<Act> {
        let map = self.map(node, &["terminate", "cancel"])?;
        let (verb, node) = match (map.get("terminate"), map.get("cancel")) {
            (Some(node), None) => (Verb::Terminate, node),
            (None, Some(node)) => (Verb::Cancel, node),
            _ => {
                self.fault(map.place, "an act is one of terminate and cancel");
                return None;
            }
        };
        let keys = [
            "state",
            "roots",
            "longer_than",
            "user",
            "application",
            "max",
            "batch",
        ];
        let map = self.map(node, &keys)?;
        let mut select = Select::default();
        if let Some(state) = map.get("state").and_then(|n| self.text(n)) {
            select.idle_in_transaction = state.text == "idle in transaction";
            if !select.idle_in_transaction {
                self.fault(
                    state.place,
                    "the state to select by is `idle in transaction`",
                );
            }
        }
        if let Some(roots) = map.get("roots") {
            match roots.kind {
                node::Kind::Bool(true) => select.roots = true,
                _ => self.not(roots, "true"),
            }
        }
        select.longer_than = map.get("longer_than").and_then(|n| self.value(n));
        let names = |r: &mut Self, name| {
            let Some(node) = map.get(name) else {
                return Vec::new();
            };
            let all = r.texts(node);
            if all.is_empty() {
                r.fault(node.place, "a list of nobody");
            }
            all.into_iter().map(|named| named.text).collect()
        };
        if select.idle_in_transaction && verb == Verb::Cancel {
            let fault = Fault::new(
                map.place,
                "a cancel does nothing to a session idle in transaction",
            );
            self.faults.push(fault.hint("terminate"));
        }
        select.users = names(self, "user");
        select.applications = names(self, "application");
        if !select.idle_in_transaction && !select.roots {
            let fault = Fault::new(map.place, "an act that selects nothing");
            self.faults.push(
                fault.hint("`state: idle in transaction` with longer_than, or `roots: true`"),
            );
        }
        if select.idle_in_transaction && map.get("longer_than").is_none() {
            self.fault(map.place, "idle in transaction needs longer_than: every session is that between two statements");
        }
        let (batch, pause) = map
            .get("batch")
            .map_or((3, Duration::from_secs(2)), |n| self.batch(n));
        Some(Act {
            verb,
            select,
            max: map.get("max").and_then(|n| self.number(n)).unwrap_or(10),
            batch,
            pause,
        })
    }

    /// `60s`, or `inputs.NAME`.
    fn value(&mut self, node: &Node) -> Option<Value> {
        let text = self.text(node)?;
        match text.text.strip_prefix("inputs.") {
            Some(name) => Some(Value::Input(Named {
                text: name.to_owned(),
                place: text.place,
            })),
            None => self.time(node).map(Value::Time),
        }
    }

    fn batch(&mut self, node: &Node) -> (usize, Duration) {
        let Some(map) = self.map(node, &["size", "pause"]) else {
            return (3, Duration::ZERO);
        };
        let size = map.get("size").and_then(|n| self.number(n)).unwrap_or(3);
        let pause = map.get("pause").and_then(|n| self.time(n));
        (size, pause.unwrap_or(Duration::from_secs(2)))
    }

    fn poll(&mut self, node: &Node) -> Option<Poll> {
        let map = self.map(node, &["repeat", "until", "every", "timeout"])?;
        let repeat = self.must(&map, "repeat").and_then(|n| self.text(n));
        let until = self.must(&map, "until").and_then(|n| self.condition(n));
        let every = map
            .get("every")
            .map_or(Some(Duration::from_secs(10)), |n| self.time(n));
        let timeout = self.must(&map, "timeout").and_then(|n| self.time(n));
        Some(Poll {
            repeat: repeat?,
            until: until?,
            every: every?,
            timeout: timeout?,
        })
    }

    fn note(&mut self, node: &Node) -> Option<Note> {
        let map = self.map(node, &["ask", "actions"])?;
        let ask = map.get("ask").map(|n| self.texts(n)).unwrap_or_default();
        let mut actions = Vec::new();
        if let Some(node) = map.get("actions") {
            for node in self.list(node) {
                let Some(map) = self.map(node, &["title", "owner", "due"]) else {
                    continue;
                };
                let mut field = |name| {
                    self.must(&map, name)
                        .and_then(|n| self.text(n))
                        .map(|t| t.text)
                };
                if let (Some(title), Some(owner), Some(due)) =
                    (field("title"), field("owner"), field("due"))
                {
                    actions.push(ActionItem { title, owner, due });
                }
            }
        }
        Some(Note {
            ask: ask.into_iter().map(|named| named.text).collect(),
            actions,
        })
    }
}
