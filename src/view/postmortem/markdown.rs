//! The document part by part, in the order in which it is read: generated ones and those that people write.

use super::escape::{cell, text};
use super::parts;
use crate::postmortem::{
    ActionItem, Answer, Block, NO_ACTIONS, Note, Notes, ORIGIN, Origin, Postmortem, QUESTIONS,
    TODO, TYPES, question,
};

/// All parts of a rendering.
pub fn blocks(postmortem: &Postmortem) -> Vec<Block> {
    let mut all = Writer {
        postmortem,
        blocks: Vec::new(),
    };
    all.people(
        "title",
        format!("# Postmortem: {}\n", text(&postmortem.title)),
    );
    all.generated(
        "status-label",
        "**Status** (draft, in review, reviewed, closed):\n".into(),
    );
    all.people("status", "draft\n".into());
    all.generated("authors-label", "**Authors**:\n".into());
    all.people("authors", format!("{TODO}\n"));
    all.generated("notices", parts::notices(postmortem));
    all.generated("summary", parts::summary(postmortem));
    all.ask("impact", 2);
    all.generated("found", parts::found(postmortem));
    all.generated("timeline", parts::timeline(postmortem));
    all.ask("before", 3);
    all.generated("charts", parts::charts(postmortem));
    all.generated("worst", parts::worst(postmortem));
    all.generated("causes", parts::causes(postmortem));
    all.ask("cause", 3);
    all.ask("factors", 3);
    all.ask("detection", 2);
    all.generated("drift", parts::drift(postmortem));
    all.ask("settings", 3);
    all.generated("done", parts::done(postmortem));
    all.ask("by-hand", 3);
    all.generated("lessons-label", "## Lessons\n".into());
    for name in ["well", "wrong", "lucky"] {
        all.ask(name, 3);
    }
    all.generated("actions-label", actions_label());
    all.blocks.push(actions(&postmortem.actions));
    all.generated("departures", parts::departures(postmortem));
    all.ask("book", 3);
    all.generated("sources", parts::sources(postmortem));
    all.generated(ORIGIN, Origin::of(postmortem).comment());
    all.blocks
}

struct Writer<'p> {
    postmortem: &'p Postmortem,
    blocks: Vec<Block>,
}

impl Writer<'_> {
    /// A part of which there is nothing to say isn't there.
    fn generated(&mut self, name: &str, text: String) {
        if !text.is_empty() {
            self.blocks.push(Block::generated(name, text));
        }
    }

    fn people(&mut self, name: &str, text: String) {
        self.blocks.push(Block::people(name, text));
    }

    /// A question, and its answer as far as it was written down during a run.
    fn ask(&mut self, name: &str, level: usize) {
        debug_assert!(QUESTIONS.iter().any(|question| question.name == name));
        let Some(question) = question(name) else {
            return;
        };
        let hashes = "#".repeat(level);
        let label = format!("{hashes} {}\n\n_{}_\n", question.heading, question.ask);
        self.generated(&format!("{name}-label"), label);
        let noted: Vec<Note> = self
            .postmortem
            .answers
            .to(question)
            .map(|answer| Note {
                text: answer.text.clone(),
                line: format!("- {}", with_question(answer)),
            })
            .collect();
        let body = match noted.is_empty() {
            true => format!("{TODO}\n"),
            false => answered(self.postmortem.answers.to(question)),
        };
        let notes = Notes {
            noun: "answer",
            head: "Written down during the run and not in the answer above:\n\n".into(),
            all: noted,
        };
        self.blocks.push(Block::noted(name, body, notes));
    }
}

fn answered<'a>(answers: impl Iterator<Item = &'a Answer>) -> String {
    let lines: Vec<String> = answers
        .map(|answer| format!("{} (written down during the run)\n", with_question(answer)))
        .collect();
    lines.join("\n")
}

/// It was asked in other words than here.
fn with_question(answer: &Answer) -> String {
    let asked = answer
        .asked()
        .map_or(String::new(), |asked| format!("_{}_ ", text(asked)));
    format!("{asked}{}", text(&answer.text))
}

fn actions_label() -> String {
    format!(
        "## Action items\n\n_Who mends what by when. Each has one owner and a date such as 2027-01-31; the type is one of {}. \
         What is done gets `[x]` before it. What a runbook proposes stands there already: strike what doesn't fit._\n",
        TYPES.join(", ")
    )
}

/// What the runbook said is to be done; its type only people know.
fn actions(items: &[ActionItem]) -> Block {
    let table = rows(items);
    let mut lines = table.lines();
    let head: Vec<&str> = lines.by_ref().take(2).collect();
    let notes = items.iter().zip(lines).map(|(item, line)| Note {
        text: item.what.clone(),
        line: line.to_owned(),
    });
    let notes = Notes {
        noun: "action item",
        head: format!(
            "Written down during the run and not in the table above:\n\n{}\n",
            head.join("\n")
        ),
        all: notes.collect(),
    };
    let text = match items.is_empty() {
        true => format!("{NO_ACTIONS}\n"),
        false => table,
    };
    Block::noted("actions", text, notes)
}

fn rows(items: &[ActionItem]) -> String {
    let rows: Vec<Vec<String>> = items
        .iter()
        .map(|item| {
            let due = item.due.map_or(String::new(), |due| due.to_string());
            vec![cell(&item.what), cell(&item.owner), due, String::new()]
        })
        .collect();
    let head = [
        ("what", false),
        ("owner", false),
        ("due", false),
        ("type", false),
    ];
    super::escape::table(&head, &rows)
}
