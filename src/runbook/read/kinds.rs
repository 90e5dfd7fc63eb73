//! What a step does, by its kind.

use std::time::Duration;

use super::{Fields, REDIS_REPORTS, REPORTS, Reader};
use crate::model::{FindingId, Verb};
use crate::runbook::book::{
    Act, ActionItem, Ask, Branch, Command, Include, Kind, Named, Note, Operand, PARTS, Poll,
    Question, Select, Sql, Value,
};
use crate::runbook::fault::Fault;
use crate::runbook::node::{self, Node};
use crate::sql;

impl Reader<'_> {
    pub(super) fn kind(&mut self, kind: &str, node: &Node) -> Option<Kind> {
        Some(match kind {
            "ask" => Kind::Ask(self.ask(node)?),
            "query" => self.query(node)?,
            "redis" => {
                let map = self.map(node, &["report"])?;
                let report = self.must(&map, "report").and_then(|n| self.text(n))?;
                if !REDIS_REPORTS.contains(&report.text.as_str()) {
                    self.unknown(report.place, "report", &report.text, &REDIS_REPORTS);
                }
                Kind::Redis(report)
            }
            "run" => Kind::Command(self.command(node)?),
            "include" => {
                let map = self.map(node, &["book", "set"])?;
                let book = self.must(&map, "book").and_then(|n| self.text(n))?;
                let set = map.get("set").map(|n| self.pairs(n, Self::operand));
                Kind::Include(Include {
                    book,
                    set: set.unwrap_or_default(),
                    inputs: Vec::new(),
                })
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

    fn query(&mut self, node: &Node) -> Option<Kind> {
        let map = self.map(node, &["report", "sql", "args"])?;
        match (map.get("report"), map.get("sql")) {
            (Some(report), None) => {
                let report = self.text(report)?;
                if !REPORTS.contains(&report.text.as_str()) {
                    self.unknown(report.place, "report", &report.text, &REPORTS);
                }
                if let Some(place) = map.place_of("args") {
                    self.fault(place, "\"args\" are a statement's");
                }
                Some(Kind::Query(report))
            }
            (None, Some(statement)) => {
                let text = self.text(statement)?;
                let args = map
                    .get("args")
                    .map(|n| self.operands(n))
                    .unwrap_or_default();
                if text.text.contains("{{") {
                    let fault = Fault::new(text.place, "no template in a statement");
                    self.faults.push(fault.hint("$1, with args: [inputs.NAME]"));
                } else if let Err(what) = sql::one_read(&text.text) {
                    self.fault(text.place, what);
                } else {
                    let bound = sql::params(&text.text);
                    if bound != args.len() {
                        let given = crate::model::count(args.len(), "value");
                        self.fault(
                            text.place,
                            format!(
                                "the statement binds up to ${bound}, and {given} stand in args"
                            ),
                        );
                    }
                }
                Some(Kind::Sql(Sql { text, args }))
            }
            _ => {
                self.fault(map.place, "a query is one of report and sql");
                None
            }
        }
    }

    fn command(&mut self, node: &Node) -> Option<Command> {
        let map = self.map(node, &["argv", "writes"])?;
        let list = self.must(&map, "argv")?;
        let argv = self.operands(list);
        match (argv.first(), &list.kind) {
            (None, node::Kind::List(all)) if all.is_empty() => {
                self.fault(map.place, "a command has a name");
            }
            (Some(Operand::Looked(name)), _) => {
                self.fault(name.place, "which command it is stands in the book");
            }
            _ => {}
        }
        let writes = match &self.must(&map, "writes")?.kind {
            node::Kind::Bool(writes) => *writes,
            _ => {
                self.not(map.get("writes").unwrap_or(node), "true or false");
                return None;
            }
        };
        Some(Command { argv, writes })
    }

    fn operands(&mut self, node: &Node) -> Vec<Operand> {
        self.list(node)
            .iter()
            .filter_map(|n| self.operand(n))
            .collect()
    }

    fn ask(&mut self, node: &Node) -> Option<Ask> {
        let map = self.map(node, &["text", "choices", "for"])?;
        let part = self.part(&map);
        let text = self.must(&map, "text").and_then(|n| self.shown(n));
        let mut choices = Vec::new();
        if let Some(node) = self.must(&map, "choices") {
            let node::Kind::Map(pairs) = &node.kind else {
                self.not(node, "a map of choices");
                return None;
            };
            for (key, label) in pairs {
                if let (Some(key), Some(label)) = (self.text(key), self.shown(label)) {
                    self.name(&key);
                    choices.push((key, label));
                }
            }
            if choices.len() < 2 {
                self.fault(node.place, "a question has at least two answers");
            }
        }
        Some(Ask {
            text: text?,
            choices,
            part,
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
            "active",
            "transaction",
            "roots",
            "longer_than",
            "user",
            "application",
            "pid",
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
        select.active = self.is_true(map.get("active"));
        select.transaction = self.is_true(map.get("transaction"));
        select.roots = self.is_true(map.get("roots"));
        select.longer_than = map.get("longer_than").and_then(|n| self.value(n));
        let names = |r: &mut Self, name| {
            let Some(node) = map.get(name) else {
                return Vec::new();
            };
            let all = match &node.kind {
                node::Kind::List(_) => r.operands(node),
                _ => r.operand(node).into_iter().collect(),
            };
            if all.is_empty() {
                r.fault(node.place, "a list of nobody");
            }
            all
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
        select.pids = names(self, "pid");
        let by = select.by();
        if by.is_empty() {
            let fault = Fault::new(map.place, "an act that selects nothing");
            self.faults.push(fault.hint(
                "`state: idle in transaction`, `active: true` or `transaction: true` with longer_than, or `roots: true`",
            ));
        }
        if map.get("longer_than").is_none() {
            if select.idle_in_transaction {
                self.fault(map.place, "idle in transaction needs longer_than: every session is that between two statements");
            } else if select.active || select.transaction {
                self.fault(
                    map.place,
                    format!("`{}` needs longer_than: it would be everybody", by[0]),
                );
            }
        }
        if select.active && verb == Verb::Terminate {
            let fault = Fault::new(
                map.place,
                "`active: true` is for a cancel: it names a statement",
            );
            self.faults.push(fault.hint("transaction: true"));
        }
        if by.len() > 1 {
            self.fault(
                map.place,
                format!("an act selects by one of: {}", by.join(", ")),
            );
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

    /// A flag that is there is on.
    fn is_true(&mut self, node: Option<&Node>) -> bool {
        match node.map(|node| (node, &node.kind)) {
            Some((_, node::Kind::Bool(true))) => true,
            Some((node, _)) => {
                self.not(node, "true");
                false
            }
            None => false,
        }
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
        let ask: Vec<Question> = match map.get("ask") {
            Some(node) if matches!(node.kind, node::Kind::List(_)) => self
                .list(node)
                .iter()
                .filter_map(|n| self.question(n))
                .collect(),
            Some(node) => self.question(node).into_iter().collect(),
            None => Vec::new(),
        };
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
                    if !is_due(&due) {
                        self.fault(
                            map.place,
                            format!("{due:?} is no day such as +14d or 2027-01-31"),
                        );
                    }
                    actions.push(ActionItem { title, owner, due });
                }
            }
        }
        Some(Note { ask, actions })
    }

    /// A question, alone or with the part of the postmortem that its answer belongs into.
    fn question(&mut self, node: &Node) -> Option<Question> {
        if !matches!(node.kind, node::Kind::Map(_)) {
            let text = self.shown(node)?;
            return Some(Question { text, part: None });
        }
        let map = self.map(node, &["text", "for"])?;
        let part = self.part(&map);
        let text = self.must(&map, "text").and_then(|n| self.shown(n))?;
        Some(Question { text, part })
    }

    fn part(&mut self, map: &Fields<'_>) -> Option<&'static str> {
        let word = map.get("for").and_then(|n| self.text(n))?;
        let known = PARTS.into_iter().find(|part| *part == word.text);
        if known.is_none() {
            self.unknown(word.place, "part of a postmortem", &word.text, &PARTS);
        }
        known
    }
}

/// So many days from the incident, or a day.
fn is_due(text: &str) -> bool {
    match text
        .strip_prefix('+')
        .and_then(|rest| rest.strip_suffix('d'))
    {
        Some(days) => days.parse::<u16>().is_ok(),
        None => chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok(),
    }
}
