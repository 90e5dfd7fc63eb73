//! A book for the wiki: Markdown with a table of decisions and a flow chart, made from the book and nothing else.

use super::book::{Book, Kind, Step, Value};
use super::graph::{Goal, ways};

/// The whole page; `digest` says of which text it was made.
pub fn markdown(book: &Book, digest: &str) -> String {
    let mut out = format!("# {}\n\n", line(&book.title));
    out.push_str(&format!("Runbook `{}`", book.id.text));
    if let Some(owner) = &book.owner {
        out.push_str(&format!(", owned by {}", line(owner)));
    }
    out.push_str(&format!(
        ". Walk it with `stanch runbook run {}`. Generated from the book with SHA-256 `{digest}`: change the book, not this page.\n",
        book.id.text
    ));
    inputs(book, &mut out);
    limits(book, &mut out);
    out.push_str("\n## Flow\n\n```mermaid\nflowchart TD\n");
    flow(book, &mut out);
    out.push_str("```\n\n## Steps\n");
    for (n, step) in book.steps.iter().enumerate() {
        if !matches!(step.kind, Kind::Back) {
            self::step(book, n, step, &mut out);
        }
    }
    out.push_str("\n## Decisions\n\n| at | when | goes on with |\n|---|---|---|\n");
    for (n, step) in book.steps.iter().enumerate() {
        let ways = ways(book, n);
        let more = ways.len() > 1 || matches!(step.kind, Kind::Decide(_));
        for way in ways.iter().filter(|_| more) {
            let when = match way.when.words() {
                words if words.is_empty() => "all is well".to_owned(),
                words => format!("`{}`", cell(&words)),
            };
            out.push_str(&format!(
                "| {} | {when} | {} |\n",
                step.id.text,
                goal(book, way.to)
            ));
        }
    }
    out
}

fn inputs(book: &Book, out: &mut String) {
    if book.inputs.is_empty() {
        return;
    }
    out.push_str("\n## Inputs\n\n| input | default | what it is |\n|---|---|---|\n");
    for input in &book.inputs {
        out.push_str(&format!(
            "| `{}` | {} | {} |\n",
            input.name.text,
            input
                .default
                .as_deref()
                .map_or("must be given".to_owned(), |d| format!("`{}`", cell(d))),
            cell(input.help.as_deref().unwrap_or_default())
        ));
    }
}

fn limits(book: &Book, out: &mut String) {
    if !book.steps.iter().any(Step::is_effect) {
        out.push_str("\nIt changes nothing.\n");
        return;
    }
    let wall = book.wall.map_or(String::new(), |wall| {
        format!(", of {} at most", humantime::format_duration(wall))
    });
    let most: Vec<String> = [
        (book.effects.terminate, "sessions ended"),
        (book.effects.cancel, "statements cancelled"),
        (book.effects.run, "commands that change something"),
    ]
    .into_iter()
    .filter(|(most, _)| *most > 0)
    .map(|(most, what)| format!("{what}: {most}"))
    .collect();
    out.push_str(&format!(
        "\nAt most in one run{wall}: {}.\n",
        most.join(", ")
    ));
}

fn step(book: &Book, n: usize, step: &Step, out: &mut String) {
    let title = step
        .title
        .as_ref()
        .map_or(step.id.text.as_str(), |t| &t.text);
    out.push_str(&format!(
        "\n### {}. {}\n\n`{}` ({})",
        n + 1,
        line(title),
        step.id.text,
        step.kind_word()
    ));
    if let Some(why) = &step.why {
        out.push_str(&format!(": {}", line(&why.text)));
    }
    out.push('\n');
    let lines = what(step);
    if !lines.is_empty() {
        out.push('\n');
    }
    for text in lines {
        out.push_str(&format!("- {text}\n"));
    }
    let next: Vec<String> = ways(book, n).iter().map(|way| goal(book, way.to)).collect();
    if let ([one], false) = (next.as_slice(), matches!(step.kind, Kind::Decide(_))) {
        out.push_str(&format!("\nThen {one}.\n"));
    }
}

/// What is done there, in words.
fn what(step: &Step) -> Vec<String> {
    let mut all: Vec<String> = match &step.kind {
        Kind::Ask(ask) => {
            let mut all = vec![line(&ask.text.text)];
            all.extend(
                ask.choices
                    .iter()
                    .map(|(key, label)| format!("`{}`: {}", key.text, line(&label.text))),
            );
            match &step.unattended {
                Some(answer) => all.push(format!("nobody there: `{}`", answer.text)),
                None => all.push("nobody there: the run ends here, with code 4".into()),
            }
            all
        }
        Kind::Query(report) => vec![format!("`stanch {}`", command_of(&report.text))],
        Kind::Sql(sql) => vec![format!("read-only: `{}`", line(&sql.text.text))],
        Kind::Check(id) => vec![format!(
            "finding `{}` (`stanch explain {}`)",
            id.name(),
            id.name()
        )],
        Kind::Redis(report) => vec![format!("Redis: {}", report.text)],
        Kind::Act(act) => {
            let mut select = act.select.by().join(", ");
            match &act.select.longer_than {
                Some(Value::Time(time)) => {
                    select.push_str(&format!(
                        ", longer_than: {}",
                        humantime::format_duration(*time)
                    ));
                }
                Some(Value::Input(name)) => {
                    select.push_str(&format!(", longer_than: inputs.{}", name.text));
                }
                None => {}
            }
            vec![format!(
                "{} by `{select}`, at most {}, {} at a time",
                act.verb.word(),
                act.max,
                act.batch
            )]
        }
        Kind::Command(command) => vec![format!(
            "`{}`{}",
            line(&command.shown()),
            if command.writes {
                ", which changes something"
            } else {
                ""
            }
        )],
        Kind::Poll(poll) => vec![format!(
            "`{}` again every {}, for at most {}, until `{}`",
            poll.repeat.text,
            humantime::format_duration(poll.every),
            humantime::format_duration(poll.timeout),
            line(&poll.until.text)
        )],
        Kind::Wait(time) => vec![format!("{}", humantime::format_duration(*time))],
        Kind::Note(note) => {
            let mut all: Vec<String> = note.ask.iter().map(|ask| line(&ask.text.text)).collect();
            all.extend(note.actions.iter().map(|action| {
                format!(
                    "to do: {} (owner: {}, due: {})",
                    line(&action.title),
                    line(&action.owner),
                    action.due
                )
            }));
            all
        }
        Kind::Include(include) => vec![format!("the steps of `{}`", include.book.text)],
        Kind::Capture => vec!["the snapshot of now is kept beside the journal".into()],
        Kind::Decide(_) | Kind::Back | Kind::Nothing => Vec::new(),
    };
    if step.confirm.is_some() {
        all.push("only with a yes: the target's name is typed".into());
    }
    for expect in &step.expect {
        let or = if expect.warn {
            "else a warning"
        } else {
            "else the run ends"
        };
        all.push(format!("expected: `{}`, {or}", line(&expect.that.text)));
    }
    all
}

fn command_of(report: &str) -> String {
    match report {
        "triage" => "triage".into(),
        report => format!("pg {report}"),
    }
}

fn flow(book: &Book, out: &mut String) {
    for (n, step) in book.steps.iter().enumerate() {
        let title = step
            .title
            .as_ref()
            .map_or(step.id.text.as_str(), |t| &t.text);
        let label = quoted(title);
        let shape = match &step.kind {
            Kind::Decide(_) => format!("{{{label}}}"),
            _ if step.is_effect() => format!("{{{{{label}}}}}"),
            Kind::Ask(_) | Kind::Note(_) => format!("[/{label}/]"),
            _ => format!("[{label}]"),
        };
        out.push_str(&format!("    s{n}{shape}\n"));
    }
    let mut ends = std::collections::BTreeSet::new();
    for n in 0..book.steps.len() {
        for way in ways(book, n) {
            let to = match way.to {
                Goal::Step(to) => format!("s{to}"),
                Goal::End(end) => {
                    ends.insert(end.word());
                    end.word().to_owned()
                }
            };
            match way.when.words() {
                words if words.is_empty() => out.push_str(&format!("    s{n} --> {to}\n")),
                words => out.push_str(&format!("    s{n} -->|{}| {to}\n", quoted(&words))),
            }
        }
    }
    for end in ends {
        out.push_str(&format!("    {end}([{}])\n", quoted(end)));
    }
}

fn goal(book: &Book, goal: Goal) -> String {
    match goal {
        Goal::Step(n) => format!("`{}`", book.steps[n].id.text),
        Goal::End(end) => format!("the end: {}", end.word()),
    }
}

/// A label of the chart: its own signs are written as entities.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in line(text).chars() {
        match c {
            '"' => out.push_str("#quot;"),
            '#' => out.push_str("#35;"),
            '<' => out.push_str("#lt;"),
            '>' => out.push_str("#gt;"),
            '`' => out.push('\''),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// In one line.
fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn cell(text: &str) -> String {
    line(text).replace('|', "\\|")
}
