//! A person who walks a book at a terminal, or nobody: what each step looks like, and what may be said at a question.

use crate::analysis::{
    activity, blocking, connections, horizon, locks, settings, transactions, triage,
};
use crate::cli::commands::act::Asking;
use crate::model::{Done, Snapshot, Thresholds};
use crate::operate::{Ask, Begins, Operator, Plan, Said, Seen, Walker, Yes};
use crate::sql;
use crate::view;

/// Said at any question instead of an answer.
const KEYS: &str = "(or skip, show, stop)";

/// What that means, said once.
const KEYS_TOLD: &str = "At any question: skip leaves the step out, with a reason; show brings back what was found last; stop \
ends the run here. Where the target's name is asked for, anything else is a no. Ctrl-C stops after what goes on, twice at once.";

/// Lines of a command are shown up to here.
const MOST_LINES: usize = 40;

pub struct AtTerminal<'a> {
    asking: Asking<'a>,
    thresholds: Thresholds,
    /// What was found last, for `show`.
    evidence: String,
}

impl<'a> AtTerminal<'a> {
    pub fn new(mut asking: Asking<'a>, thresholds: Thresholds) -> Self {
        asking.person.twice = true;
        Self {
            asking,
            thresholds,
            evidence: String::new(),
        }
    }

    /// What there is beside answers, before the first question.
    pub fn welcome(&mut self) {
        if self.asking.person.is_there() {
            self.say(KEYS_TOLD, 0);
        }
    }

    /// The person again, once there is nothing more to ask.
    pub fn into_person(self) -> crate::cli::person::Person {
        self.asking.person
    }

    fn wrapped(&self, text: &str, indent: usize) -> String {
        let width = self.asking.console.style.width.unwrap_or(usize::MAX);
        view::wrap(text, width, indent).trim_end().to_owned()
    }

    /// A question, in lines that fit.
    fn say(&mut self, text: &str, indent: usize) {
        let text = self.wrapped(&view::clean(text), indent);
        self.asking.console.warn(&text);
    }

    /// An answer, or one of the keys; `ask` puts the question, again where something else was shown in between.
    fn answer(&mut self, ask: &dyn Fn(&mut Self)) -> std::io::Result<Said> {
        ask(self);
        loop {
            let text = self.asking.person.line()?;
            match text.as_deref().map(str::trim) {
                None | Some("stop") => return Ok(Said::Stop),
                Some("show") => {
                    let evidence = match self.evidence.is_empty() {
                        true => "nothing was found yet".to_owned(),
                        false => self.evidence.clone(),
                    };
                    self.asking.console.rendered(&evidence);
                    ask(self);
                }
                Some("skip") => match self.reason()? {
                    Some(said) => return Ok(said),
                    None => ask(self),
                },
                Some(text) => return Ok(Said::Text(text.to_owned())),
            }
        }
    }

    /// Why a step is left out; nothing, where it isn't.
    fn reason(&mut self) -> std::io::Result<Option<Said>> {
        self.asking
            .console
            .warn("why is it left out? (kept in the journal; empty: it isn't)");
        let reason = self.asking.person.line()?;
        Ok(match reason.as_deref().map(str::trim) {
            None => Some(Said::Stop),
            Some("") => None,
            Some(reason) => Some(Said::Skip(reason.to_owned())),
        })
    }

    fn report(&self, report: &str, snapshot: &Snapshot) -> String {
        let style = self.asking.console.style;
        match report {
            "activity" => view::text(
                &activity::report(snapshot, &activity::Filter::default()),
                style,
            ),
            "blockers" => view::text(&blocking::report(snapshot), style),
            "locks" => view::text(&locks::report(snapshot, false), style),
            "transactions" => view::text(&transactions::report(snapshot, None), style),
            "connections" => view::text(&connections::report(snapshot), style),
            "settings" => view::text(&settings::report(snapshot), style),
            "horizon" => view::text(&horizon::report(snapshot), style),
            _ => view::text(&triage::report(snapshot, &self.thresholds), style),
        }
    }
}

/// Rows as a table, with the columns of the first.
fn table(rows: &[serde_json::Value], style: view::Style) -> String {
    let columns: Vec<String> = rows
        .first()
        .and_then(serde_json::Value::as_object)
        .map(|row| row.keys().cloned().collect())
        .unwrap_or_default();
    let cells: Vec<Vec<serde_json::Value>> = rows
        .iter()
        .map(|row| columns.iter().map(|column| shown(&row[column])).collect())
        .collect();
    view::query::rows(&columns, &cells, style)
}

/// A cell without what is secret in it.
fn shown(cell: &serde_json::Value) -> serde_json::Value {
    match cell {
        serde_json::Value::String(text) => sql::without_credentials(text).into(),
        other => other.clone(),
    }
}

impl Operator for AtTerminal<'_> {
    fn confirm(&mut self, plan: &Plan<'_>) -> std::io::Result<Ask> {
        self.asking.confirm(plan)
    }

    fn done(&mut self, done: &Done) {
        self.asking.done(done);
    }

    fn note(&mut self, text: &str) {
        let lines = text.lines().map(|line| {
            let indent = line.len() - line.trim_start().len();
            self.wrapped(&view::clean(line.trim_start()), indent)
        });
        let text: Vec<String> = lines.collect();
        self.asking.note(&text.join("\n"));
    }

    fn stops(&self) -> usize {
        self.asking.stops()
    }
}

impl Walker for AtTerminal<'_> {
    fn step(&mut self, begins: &Begins<'_>) {
        let style = self.asking.console.style;
        let within = begins.step.book.trim_end_matches('.');
        let within = if within.is_empty() {
            String::new()
        } else {
            format!("{within} ")
        };
        let head = format!(
            "[{within}{}/{}] {}: {}",
            begins.number,
            begins.of,
            begins.step.kind_word(),
            view::clean(&begins.title)
        );
        let head = self.wrapped(&head, 0);
        self.asking.note("");
        self.asking.console.rendered(&style.strong(&head));
        if let Some(why) = &begins.why {
            let why = self.wrapped(&view::clean(why), 2);
            self.asking.note(&why);
        }
    }

    fn found(&mut self, found: &Seen<'_>) -> std::io::Result<()> {
        let text = match found {
            // A command's lines are a stranger's.
            Seen::Lines(text) => {
                let text = sql::without_credentials(text);
                let all: Vec<String> = text.lines().map(view::clean).collect();
                let mut text = all[..all.len().min(MOST_LINES)].join("\n");
                if all.len() > MOST_LINES {
                    text.push_str(&format!("\n… {} more lines", all.len() - MOST_LINES));
                }
                text
            }
            Seen::Report(report, snapshot) => self.report(report, snapshot),
            Seen::Rows(rows) => table(rows, self.asking.console.style),
        };
        text.trim_end().clone_into(&mut self.evidence);
        self.asking.console.rendered(text.trim_end());
        Ok(())
    }

    fn choose(&mut self, question: &str, choices: &[(String, String)]) -> std::io::Result<Said> {
        if !self.asking.person.is_there() {
            return Ok(Said::Nobody);
        }
        self.asking.person.forget();
        let ask = |this: &mut Self| {
            this.say(question, 0);
            for (n, (key, label)) in choices.iter().enumerate() {
                // What runs over is set in from the number.
                let text = format!("{} {key}: {label}", n + 1);
                let text = this.wrapped(&view::clean(&text), 4);
                let text = text.strip_prefix("  ").unwrap_or(&text);
                this.asking.console.warn(text);
            }
            this.say(&format!("number or name {KEYS}:"), 0);
        };
        let mut said = self.answer(&ask)?;
        loop {
            let Said::Text(text) = said else {
                return Ok(said);
            };
            let by_number = text
                .parse::<usize>()
                .ok()
                .and_then(|n| choices.get(n.wrapping_sub(1)));
            let by_name = choices
                .iter()
                .find(|(key, _)| key.eq_ignore_ascii_case(&text));
            if let Some((key, _)) = by_number.or(by_name) {
                return Ok(Said::Text(key.clone()));
            }
            let most = choices.len();
            said = self.answer(&|this: &mut Self| {
                this.say(
                    &format!("that is none of the answers: 1 to {most}, or a name {KEYS}:"),
                    0,
                );
            })?;
        }
    }

    fn write(&mut self, question: &str) -> std::io::Result<Said> {
        if !self.asking.person.is_there() {
            return Ok(Said::Nobody);
        }
        self.asking.person.forget();
        let mut said = self.answer(&|this: &mut Self| this.say(question, 0))?;
        while said == Said::Text(String::new()) {
            let again = |this: &mut Self| this.say(&format!("a line, please {KEYS}:"), 0);
            said = self.answer(&again)?;
        }
        Ok(said)
    }

    fn pause(&mut self, what: &str) -> std::io::Result<Said> {
        if !self.asking.person.is_there() {
            return Ok(Said::Nobody);
        }
        self.asking.person.forget();
        self.answer(&|this: &mut Self| {
            this.say(what, 0);
            this.say(&format!("Enter goes on {KEYS}:"), 0);
        })
    }

    fn yes(&mut self, question: &str, target_name: &str) -> std::io::Result<Yes> {
        let Asking { console, person } = &mut self.asking;
        let answer = match person.ask(console, question, target_name)? {
            Ask::DryRun => Yes::Nobody,
            Ask::No => Yes::No,
            Ask::Consent(consent) => match consent.check(target_name) {
                Ok(()) => Yes::Yes(consent.how().to_owned()),
                Err(why) => {
                    console.warn(&why);
                    Yes::No
                }
            },
        };
        Ok(answer)
    }

    fn meanwhile(&mut self) -> Option<Said> {
        let line = self.asking.person.line_so_far()?;
        match line.trim() {
            "stop" => Some(Said::Stop),
            "skip" => self.reason().ok().flatten(),
            _ => {
                self.asking.console.warn("while it waits: skip, or stop");
                None
            }
        }
    }
}
