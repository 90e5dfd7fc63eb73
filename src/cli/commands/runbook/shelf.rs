//! Where books are found: `--file`, `./runbooks`, the person's own folder, built in.

use std::path::{Path, PathBuf};

use crate::cli::commands::Context;
use crate::cli::fault::Fault;
use crate::cli::settings;
use crate::model::{ExitCode, count};
use crate::runbook::{self, Book, builtin};
use crate::view::{self, Names};

/// A book's text, and where it is from.
pub struct FoundBook {
    /// A file, or the id of a built-in one.
    pub name: String,
    pub text: String,
    pub built_in: bool,
}

/// Where books are looked for, nearest first.
pub fn folders(ctx: &Context<'_>) -> Vec<PathBuf> {
    let mut folders = vec![PathBuf::from("runbooks")];
    folders.extend(settings::config_folder(ctx.env).map(|folder| folder.join("stanch/runbooks")));
    folders
}

/// The books of a folder, without their cases.
pub fn books_in(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = folder
        .read_dir()
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            (name.ends_with(".yaml") || name.ends_with(".yml")) && !name.contains(".test.y")
        })
        .collect();
    all.sort();
    all
}

pub fn read(path: &Path) -> Result<FoundBook, Fault> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Fault::Book(format!("{}: {error}", path.display())))?;
    Ok(FoundBook {
        name: path.display().to_string(),
        // A copy of a built-in book is that book.
        built_in: builtin::BOOKS.iter().any(|book| book.text == text),
        text,
    })
}

/// The text of another book, as an include names it: from beside the book, then as for every book.
pub fn included(ctx: &Context<'_>, beside: Option<&Path>, id: &str) -> Option<String> {
    let beside = beside.and_then(Path::parent).map(Path::to_path_buf);
    let mut folders: Vec<PathBuf> = beside.into_iter().collect();
    folders.extend(self::folders(ctx));
    let texts = folders.iter().flat_map(|folder| books_in(folder));
    let in_folders = texts
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .find(|text| runbook::is_named(text, id));
    in_folders.or_else(|| builtin::text(id))
}

/// Reads a book with what it includes.
pub fn load(ctx: &Context<'_>, found: &FoundBook) -> Result<Book, Vec<runbook::Fault>> {
    let beside = Path::new(&found.name);
    let beside = beside.is_file().then_some(beside);
    runbook::load(&found.text, &|id| included(ctx, beside, id))
}

/// # Errors
/// Every fault of it, shown.
pub fn sound(ctx: &Context<'_>, found: &FoundBook) -> Result<Book, Fault> {
    load(ctx, found).map_err(|faults| {
        let shown: Vec<String> = faults
            .iter()
            .map(|fault| fault.show(&found.name, &found.text))
            .collect();
        let count = count(faults.len(), "fault");
        Fault::Book(format!("{}: {count}\n{}", found.name, shown.join("\n")))
    })
}

pub fn list(ctx: &mut Context<'_>) -> Result<ExitCode, Fault> {
    let mut all: Vec<(String, String)> = Vec::new();
    let files: Vec<PathBuf> = folders(ctx)
        .iter()
        .flat_map(|folder| books_in(folder))
        .collect();
    for file in files {
        let named = match read(&file) {
            Ok(found) => match load(ctx, &found) {
                Ok(book) => (book.id.text, book.title),
                Err(faults) => (
                    found.name,
                    format!("{} (stanch runbook lint)", count(faults.len(), "fault")),
                ),
            },
            Err(fault) => (file.display().to_string(), fault.to_string()),
        };
        // One of the same id that lies nearer is the one that is walked.
        if !all.iter().any(|(id, _)| *id == named.0) {
            all.push(named);
        }
    }
    for book in builtin::BOOKS {
        if !all.iter().any(|(id, _)| id == book.id) {
            let title = runbook::load(book.text, &builtin::text)
                .map_or_else(|_| String::new(), |book| book.title);
            all.push((book.id.to_owned(), title));
        }
    }
    let names = Names {
        list: "runbooks",
        columns: ["id", "title"],
        titles: ["runbook", "for"],
    };
    let all: Vec<(&str, &str)> = all
        .iter()
        .map(|(id, title)| (id.as_str(), title.as_str()))
        .collect();
    view::show_names(ctx.console, &names, &all)?;
    Ok(ExitCode::Ok)
}

/// A book by its id, or the one of a file.
pub fn find(ctx: &Context<'_>, id: Option<&str>, file: Option<&Path>) -> Result<FoundBook, Fault> {
    if let Some(file) = file {
        return read(file);
    }
    let id = id.ok_or_else(|| {
        Fault::Usage("which runbook? an id (stanch runbook list), or --file".into())
    })?;
    for folder in folders(ctx) {
        for path in books_in(&folder) {
            // By its id, as `list` shows it; a faulty one by its file's name, so that its faults are told.
            let stem = path.file_stem().is_some_and(|stem| stem == id);
            let Ok(found) = read(&path) else { continue };
            if load(ctx, &found).map_or(stem, |book| book.id.text == id) {
                return Ok(found);
            }
        }
    }
    builtin::named(id)
        .map(|book| FoundBook {
            name: book.id.to_owned(),
            text: book.text.to_owned(),
            built_in: true,
        })
        .ok_or_else(|| {
            let known: Vec<&str> = builtin::BOOKS.iter().map(|book| book.id).collect();
            Fault::Usage(format!("no runbook {id:?}; built in: {}", known.join(", ")))
        })
}
