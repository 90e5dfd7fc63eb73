//! The files of the input: walked in order of their names, so that the order of the arguments never changes the verdict.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::budget::{self, Budget, Found, Input, Options};
use crate::cli::args::budget::BudgetInput;
use crate::cli::fault::Fault;
use crate::cli::rounds;
use crate::yaml::Place;

/// Larger ones are nobody's manifest.
const MOST_BYTES: u64 = 64 << 20;
const ENDINGS: [&str; 5] = ["yaml", "yml", "json", "ini", "conf"];

/// What is looked into: those with an ending of ours, and those that are named.
fn found(paths: &[PathBuf], exclude: &[String]) -> Result<Vec<Found>, Fault> {
    let mut walk = Walk {
        roots: paths.iter().map(|path| real(path)).collect(),
        exclude,
        linked: BTreeSet::new(),
        files: BTreeMap::new(),
    };
    for path in paths {
        walk.at(path, true, 0)?;
    }
    // By their names: the order of the arguments means nothing.
    let files: BTreeMap<&String, &PathBuf> = walk
        .files
        .iter()
        .map(|(path, shown)| (shown, path))
        .collect();
    let mut all = Vec::new();
    for (shown, path) in files {
        let Some(text) = text(shown, path)? else {
            continue;
        };
        let input = Input {
            path: name_of(shown, &text),
            text,
        };
        // What a file names beside it is read only where it is a plain file of a sane size.
        let beside = |path: &str| {
            let small = std::fs::metadata(path)
                .is_ok_and(|meta| meta.is_file() && meta.len() <= MOST_BYTES);
            small.then(|| std::fs::read_to_string(path).ok()).flatten()
        };
        let found = budget::read(&input, &beside);
        all.extend(found.map_err(|fault| shown_fault(&fault, Some(&input.text)))?);
    }
    Ok(all)
}

/// Read, put together, and with what the command line says.
pub fn budget(input: &BudgetInput) -> Result<Budget, Fault> {
    of_paths(&input.paths, input)
}

pub fn of_paths(paths: &[PathBuf], input: &BudgetInput) -> Result<Budget, Fault> {
    let mut set = Vec::new();
    for text in &input.set {
        let parsed = text.split_once('=').and_then(|(name, value)| {
            let (name, field) = name.rsplit_once('.')?;
            Some((
                name.to_owned(),
                field.to_owned(),
                value.parse::<u64>().ok()?,
            ))
        });
        set.push(parsed.ok_or_else(|| Fault::Usage(format!("--set {text}: NAME.FIELD=NUMBER")))?);
    }
    for name in &input.fail_on {
        if !budget::SCENARIOS.contains(&name.as_str()) {
            let known = budget::SCENARIOS.join(", ");
            return Err(Fault::Usage(format!(
                "--fail-on {name}: there are: {known}"
            )));
        }
    }
    let options = Options {
        max_connections: input.max_connections,
        nodes: input.nodes,
        set,
        today: Some(rounds::local_now().utc().date_naive()),
    };
    budget::join(found(paths, &input.exclude)?, &options).map_err(|fault| {
        let text = std::fs::read_to_string(&fault.file).ok();
        shown_fault(&fault, text.as_deref())
    })
}

/// With its line and a caret, where the text is at hand.
fn shown_fault(fault: &budget::Fault, text: Option<&str>) -> Fault {
    if fault.file == "--set" {
        return Fault::Usage(format!("--set {}", fault.what));
    }
    let shown = match text.filter(|text| !text.is_empty()) {
        Some(text) => {
            let place = Place { ..fault.place };
            let fault_shown =
                crate::runbook::Fault::new(place, &fault.what).show(&fault.file, text);
            // Its own first line says the same without the place.
            let snippet = fault_shown.split_once('\n').map_or("", |(_, rest)| rest);
            format!(
                "{}:{}:{}: {}\n{snippet}",
                fault.file, fault.place.line, fault.place.column, fault.what
            )
        }
        None => format!("{}: {}", fault.file, fault.what),
    };
    Fault::Book(shown.trim_end().to_owned())
}

/// Deeper is a circle, or nobody's folder of manifests.
const DEEPEST: usize = 32;

/// Folders of others' packages: what is in them isn't deployed from there.
const PACKAGES: [&str; 3] = ["node_modules", "venv", "__pycache__"];

struct Walk<'w> {
    /// What was named, as it really is.
    roots: Vec<PathBuf>,
    exclude: &'w [String],
    /// Folders outside of the roots that links led to.
    linked: BTreeSet<PathBuf>,
    /// Files as they really are, by the name under which they are shown: each once, however many ways lead to it.
    files: BTreeMap<PathBuf, String>,
}

impl Walk<'_> {
    fn at(&mut self, path: &Path, named: bool, depth: usize) -> Result<(), Fault> {
        let failed = |error: std::io::Error| Fault::Book(format!("{}: {error}", path.display()));
        let shown = shown(path);
        let is_link = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink());
        let meta = match std::fs::metadata(path) {
            Ok(meta) => meta,
            // A link that leads nowhere holds nothing.
            Err(_) if is_link && !named => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        if !named && self.is_excluded(&shown) {
            return Ok(());
        }
        let real = real(path);
        if !meta.is_dir() {
            let ending = path.extension().and_then(|ending| ending.to_str());
            let ours = ending.is_some_and(|ending| ENDINGS.contains(&ending)) && meta.is_file();
            if named || ours {
                let known = self.files.entry(real).or_insert_with(|| shown.clone());
                if shown < *known {
                    *known = shown;
                }
            }
            return Ok(());
        }
        if is_link && !named {
            let inside = self.roots.iter().any(|root| real.starts_with(root));
            if inside || !self.linked.insert(real) {
                return Ok(());
            }
        }
        if depth > DEEPEST {
            return Ok(());
        }
        for entry in std::fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?.path();
            let name = entry.file_name().unwrap_or_default().to_string_lossy();
            if !name.starts_with('.') && !PACKAGES.contains(&name.as_ref()) {
                // What can't be looked at in a folder isn't left out silently.
                self.at(&entry, false, depth + 1)?;
            }
        }
        Ok(())
    }

    /// By its path from here, or by the name of a file or folder anywhere.
    fn is_excluded(&self, shown: &str) -> bool {
        self.exclude.iter().any(|exclude| {
            let exclude = exclude.trim_start_matches("./").trim_end_matches('/');
            let under = shown
                .strip_prefix(exclude)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            under || shown.rsplit('/').next() == Some(exclude)
        })
    }
}

fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

/// A path from here, with `/`: what a code forge can find.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let relative = here.and_then(|here| path.strip_prefix(here).ok().map(Path::to_path_buf));
    let path = relative.unwrap_or_else(|| path.to_path_buf());
    let text = path.to_string_lossy().into_owned();
    text.strip_prefix("./").map_or(text.clone(), str::to_owned)
}

/// Standard input has no name of its own: what it holds tells.
fn name_of(shown: &str, text: &str) -> String {
    let no_name = ["/dev/stdin", "/proc/self/fd/0", "/dev/fd/0"].contains(&shown);
    let is_ini = text
        .lines()
        .any(|line| matches!(line.trim(), "[databases]" | "[pgbouncer]"));
    match (no_name, is_ini) {
        (true, true) => "stdin.ini".into(),
        (true, false) => "stdin.yaml".into(),
        _ => shown.to_owned(),
    }
}

/// The text of a file; one that isn't text is a fault only where it is named as YAML.
fn text(shown: &str, path: &Path) -> Result<Option<String>, Fault> {
    let failed = |error: std::io::Error| Fault::Book(format!("{shown}: {error}"));
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    let read = file
        .take(MOST_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if read as u64 > MOST_BYTES {
        let most = MOST_BYTES >> 20;
        return Err(Fault::Book(format!(
            "{shown}: larger than {most} MiB: that is no manifest"
        )));
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(Some(text)),
        _ => Err(Fault::Book(format!("{shown}:1:1: it isn't text"))),
    }
}
