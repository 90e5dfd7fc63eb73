//! The tree itself: imports run one way, nothing is forgotten, files stay readable.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a file")
}

/// The module below `src/` that a file belongs to.
fn module(path: &Path) -> String {
    let below = path.strip_prefix(root().join("src")).expect("below src");
    let first = below
        .components()
        .next()
        .expect("a part")
        .as_os_str()
        .to_string_lossy()
        .into_owned();
    first.trim_end_matches(".rs").to_owned()
}

/// Which of our modules each may import: the table in `src/lib.rs`.
fn allowed() -> BTreeMap<&'static str, &'static [&'static str]> {
    BTreeMap::from([
        ("model", &[][..]),
        ("sql", &["model"]),
        ("config", &["model"]),
        ("bundle", &["model", "sql"]),
        ("source", &["model", "bundle", "sql", "keys"]),
        ("analysis", &["model", "sql", "keys"]),
        ("keys", &["model"]),
        ("journal", &["model", "sql"]),
        ("action", &["model", "sql", "journal", "source"]),
        (
            "operate",
            &[
                "model", "source", "bundle", "analysis", "action", "journal", "config", "runbook",
                "keys",
            ],
        ),
        ("runbook", &["model", "sql", "yaml"]),
        ("yaml", &[]),
        ("logs", &["model", "sql"]),
        ("budget", &["model", "sql", "yaml"]),
        ("view", &["model", "analysis", "budget", "postmortem"]),
        (
            "postmortem",
            &["model", "analysis", "budget", "runbook", "journal"],
        ),
        ("drill", &["model", "source"]),
        (
            "cli",
            &[
                "model",
                "sql",
                "config",
                "bundle",
                "source",
                "analysis",
                "view",
                "drill",
                "journal",
                "action",
                "operate",
                "runbook",
                "budget",
                "yaml",
                "keys",
                "postmortem",
                "logs",
            ],
        ),
        ("lib", &[]),
        ("main", &["cli"]),
    ])
}

#[test]
fn imports_run_one_way() {
    let allowed = allowed();
    for path in files("src", "rs") {
        let module = module(&path);
        let may = allowed
            .get(module.as_str())
            .unwrap_or_else(|| panic!("{module} isn't in the table"));
        let text = text(&path);
        for (at, _) in text.match_indices("crate::") {
            let rest = &text[at + "crate::".len()..];
            let name: String = rest
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            if allowed.contains_key(name.as_str()) {
                assert!(
                    name == module || may.contains(&name.as_str()),
                    "{} imports {name}",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn outside_crates_stay_where_they_belong() {
    let homes: [(&str, &[&str]); 26] = [
        ("tokio_postgres", &["source", "drill", "action"]),
        ("serde_yaml", &["config", "yaml"]),
        ("cel", &["runbook"]),
        ("annotate_snippets", &["runbook"]),
        ("minijinja", &["runbook", "view"]),
        ("pulldown_cmark", &["view"]),
        ("redis::aio", &["source", "drill"]),
        ("tokio::process", &["operate"]),
        ("comfy_table", &["view"]),
        ("indicatif", &["view"]),
        ("owo_colors", &["view"]),
        ("clap", &["cli"]),
        ("terminal_size", &["cli"]),
        ("rustix", &["drill", "journal", "operate"]),
        ("nix::unistd", &["source", "cli"]),
        ("rustls", &["source"]),
        ("tokio_rustls", &["source"]),
        ("x509_cert", &["source"]),
        ("socket2", &["source"]),
        ("std::process::Command", &["drill"]),
        ("Utc::now", &["cli"]),
        (" tar", &["bundle"]),
        ("zstd", &["bundle", "logs"]),
        ("flate2", &["bundle", "logs"]),
        ("hmac", &["bundle"]),
        ("memchr", &["logs"]),
    ];
    for path in files("src", "rs") {
        let (module, text) = (module(&path), text(&path));
        for (name, modules) in homes {
            let used = text.contains(&format!("{name}::"))
                || text.contains(&format!("{name};"))
                || text.contains(&format!("{name}("));
            assert!(
                !used || modules.contains(&module.as_str()),
                "{} uses {name}",
                path.display()
            );
        }
    }
}

#[test]
fn every_query_file_is_used_and_none_is_missing() {
    let known: BTreeSet<PathBuf> = stanch::source::postgres::catalog::all()
        .iter()
        .flat_map(|topic| {
            topic
                .majors()
                .map(|major| format!("queries/postgres/{}/from_{major}.sql", topic.name))
        })
        .map(|path| root().join(path))
        .collect();
    let there: BTreeSet<PathBuf> = files("queries", "sql").into_iter().collect();
    assert_eq!(known, there);
}

/// Queries name everything in full, read no user tables, and do nothing.
#[test]
fn queries_keep_the_rules() {
    for path in files("queries", "sql") {
        let sql = text(&path);
        let lower = sql.to_lowercase();
        for never in [
            "regclass",
            "relation_size",
            "pg_cancel",
            "pg_terminate",
            " set ",
            "insert ",
            "update ",
            "delete ",
        ] {
            assert!(!lower.contains(never), "{}: {never}", path.display());
        }
        let code: Vec<&str> = sql
            .lines()
            .filter(|line| !line.trim_start().starts_with("--"))
            .collect();
        for word in code
            .join("\n")
            .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'))
        {
            let bare = word.starts_with("pg_") && !word.starts_with("pg_catalog");
            // Inside quotes stand names of roles.
            assert!(
                !bare || sql.contains(&format!("'{word}'")),
                "{}: {word} isn't qualified",
                path.display()
            );
        }
    }
}

#[test]
fn files_stay_readable() {
    for path in files("src", "rs") {
        let text = text(&path);
        let code = text
            .split("#[cfg(test)]")
            .next()
            .expect("a part")
            .lines()
            .count();
        let head = text.lines().next().unwrap_or_default();
        assert!(code <= 600, "{}: {code} lines", path.display());
        assert!(
            head.starts_with("//!"),
            "{}: what is it for?",
            path.display()
        );
        if path.ends_with("main.rs") {
            assert!(code <= 40, "{code}");
        }
        if path.ends_with("mod.rs") {
            assert!(code <= 60, "{}: {code} lines", path.display());
        }
    }
}

#[test]
fn no_test_file_is_forgotten() {
    for suite in ["it", "live"] {
        let main = text(&root().join(format!("tests/{suite}/main.rs")));
        for path in files(&format!("tests/{suite}"), "rs") {
            let name = path
                .file_stem()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            assert!(
                name == "main" || main.contains(&format!("mod {name};")),
                "{}",
                path.display()
            );
        }
    }
}
