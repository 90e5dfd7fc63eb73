//! What can be known of books without a server: their faults, their cases, a page for the wiki.

use std::path::{Path, PathBuf};

use super::shelf::{self, FoundBook};
use crate::cli::commands::Context;
use crate::cli::fault::Fault;
use crate::journal::hash;
use crate::model::{ExitCode, count};
use crate::runbook::{builtin, fixture, render};
use crate::view::{self, Format};

/// The books of files and folders; without any, the built-in ones.
fn books(paths: &[PathBuf]) -> Result<Vec<FoundBook>, Fault> {
    let mut books: Vec<FoundBook> = Vec::new();
    for path in paths {
        let files = if path.is_dir() {
            shelf::books_in(path)
        } else {
            vec![path.clone()]
        };
        if files.is_empty() {
            return Err(Fault::Book(format!("{}: no runbook in it", path.display())));
        }
        for file in files {
            books.push(shelf::read(&of_cases(file))?);
        }
    }
    if paths.is_empty() {
        books.extend(builtin::BOOKS.iter().map(|book| FoundBook {
            name: book.id.to_owned(),
            text: book.text.to_owned(),
            built_in: true,
        }));
    }
    Ok(books)
}

/// Whoever names the cases means their book.
fn of_cases(file: PathBuf) -> PathBuf {
    let name = file.to_string_lossy();
    let book = name
        .strip_suffix(".test.yaml")
        .map(|name| PathBuf::from(format!("{name}.yaml")));
    book.filter(|book| book.is_file()).unwrap_or(file)
}

/// Every fault of every book.
pub fn lint(ctx: &mut Context<'_>, paths: &[PathBuf]) -> Result<ExitCode, Fault> {
    let books = books(paths)?;
    let mut wrong = 0;
    let mut out = String::new();
    for found in &books {
        match shelf::load(ctx, found) {
            Ok(book) => out.push_str(&format!(
                "{}: {}, nothing wrong\n",
                found.name,
                count(book.steps.len(), "step")
            )),
            Err(faults) => {
                wrong += faults.len();
                for fault in &faults {
                    out.push_str(&fault.show(&found.name, &found.text));
                    out.push('\n');
                }
            }
        }
    }
    if wrong > 0 {
        out.push_str(&format!(
            "{} in {}\n",
            count(wrong, "fault"),
            count(books.len(), "book")
        ));
    }
    ctx.console.result(&out)?;
    Ok(if wrong > 0 {
        ExitCode::Input
    } else {
        ExitCode::Ok
    })
}

/// The cases beside a book, with their file's name; of a built-in one, those that came with it.
fn cases_of(found: &FoundBook) -> Result<Option<(String, String)>, Fault> {
    if let Some(book) = builtin::named(&found.name) {
        return Ok(Some((
            format!("{}.test.yaml", book.id),
            book.cases.to_owned(),
        )));
    }
    let path = Path::new(&found.name).with_extension("test.yaml");
    if !path.exists() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(&path)
        .map_err(|error| Fault::Book(format!("{}: {error}", path.display())))?;
    Ok(Some((path.display().to_string(), text)))
}

/// Every case of every book: the way that it takes and the end that it comes to, and the ways that no case takes.
pub fn test(ctx: &mut Context<'_>, paths: &[PathBuf], strict: bool) -> Result<ExitCode, Fault> {
    let books = books(paths)?;
    let (mut cases_run, mut failed, mut unreached) = (0, 0, 0);
    let mut out = String::new();
    let mut results = Vec::new();
    for found in &books {
        let book = shelf::sound(ctx, found)?;
        let Some((file, text)) = cases_of(found)? else {
            out.push_str(&format!("{}: no cases beside it\n", found.name));
            unreached += 1;
            continue;
        };
        let cases = fixture::cases(&text).map_err(|faults| {
            let shown: Vec<String> = faults
                .iter()
                .map(|fault| fault.show(&file, &text))
                .collect();
            Fault::Book(shown.join("\n"))
        })?;
        let outcome = fixture::run(&book, &cases);
        cases_run += cases.len();
        failed += outcome.failed.len();
        unreached += outcome.unreached.len();
        out.push_str(&format!(
            "{}: {} of {} as written",
            book.id.text,
            outcome.passed.len(),
            count(cases.len(), "case")
        ));
        out.push_str(match outcome.unreached.len() {
            0 => ", every way taken\n",
            _ => ", these ways taken by none:\n",
        });
        for way in &outcome.unreached {
            out.push_str(&format!("  {}\n", view::clean(way)));
        }
        for fault in &outcome.failed {
            out.push_str(&fault.show(&file, &text));
        }
        results.push(serde_json::json!({
            "runbook": book.id.text,
            "passed": outcome.passed,
            "failed": outcome.failed.iter().map(|f| serde_json::json!({
                "file": file, "line": f.place.line, "column": f.place.column, "what": f.what })).collect::<Vec<_>>(),
            "unreached": outcome.unreached,
        }));
    }
    if cases_run == 0 {
        return Err(Fault::Book(
            "there is no case to test by: BOOK.test.yaml".into(),
        ));
    }
    match ctx.console.format {
        Format::Json => {
            let result = serde_json::json!({ "schema": "stanch.runbook_test/1", "books": results });
            view::show_json(ctx.console, &result)?;
        }
        _ => ctx.console.result(&out)?,
    }
    Ok(if failed > 0 || strict && unreached > 0 {
        ExitCode::Critical
    } else {
        ExitCode::Ok
    })
}

/// A book as Markdown.
pub fn render(ctx: &mut Context<'_>, found: &FoundBook) -> Result<ExitCode, Fault> {
    let book = shelf::sound(ctx, found)?;
    let page = render::markdown(&book, &hash(&found.text));
    ctx.console.result(&cleaned(&page))?;
    Ok(ExitCode::Ok)
}

/// The text of a book: as it is, but at a terminal without what would steer it.
pub fn show(ctx: &mut Context<'_>, found: &FoundBook) -> Result<ExitCode, Fault> {
    let text = match ctx.stdout_is_terminal {
        true => cleaned(&found.text),
        false => found.text.clone(),
    };
    ctx.console.result(&text)?;
    Ok(ExitCode::Ok)
}

fn cleaned(text: &str) -> String {
    let lines = text.lines().map(|line| view::clean(line) + "\n");
    lines.collect()
}
