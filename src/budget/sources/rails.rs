//! `sidekiq.yml` and `database.yml`: YAML with Ruby in it, of which only `ENV.fetch` with a default is understood.

use std::collections::BTreeMap;

use super::super::count::At;
use super::{Fault, Input};
use crate::yaml::{self, Kind, Node, Place};

/// A value that may come from the environment.
#[derive(Clone, Debug)]
pub enum Value {
    Number(u64, At),
    /// `ENV.fetch("NAME") { default }`
    Env {
        name: String,
        default: Option<u64>,
        at: At,
    },
    /// Nothing says it.
    Default(u64, At),
    /// Ruby that isn't understood.
    Ruby(At),
}

impl Value {
    /// With this environment; `None`: it can't be told.
    pub fn with(&self, env: &BTreeMap<String, Option<String>>) -> Option<u64> {
        match self {
            Self::Number(number, _) | Self::Default(number, _) => Some(*number),
            Self::Env { name, default, .. } => match env.get(name) {
                Some(Some(text)) => text.trim().parse().ok(),
                Some(None) => None,
                None => *default,
            },
            Self::Ruby(_) => None,
        }
    }

    pub fn at(&self) -> &At {
        match self {
            Self::Number(_, at) | Self::Default(_, at) | Self::Env { at, .. } | Self::Ruby(at) => {
                at
            }
        }
    }
}

#[derive(Clone, Debug)]
pub struct Sidekiq {
    pub file: String,
    pub concurrency: Option<Value>,
    /// Each has threads of its own.
    pub capsules: Vec<Value>,
}

/// The pool of the production environment, or of the only one.
#[derive(Clone, Debug)]
pub struct Database {
    pub file: String,
    /// One for each database of it: each has a pool of its own.
    pub pools: Vec<Value>,
}

pub fn is_sidekiq(name: &str) -> bool {
    name.starts_with("sidekiq") && (name.ends_with(".yml") || name.ends_with(".yaml"))
}

pub fn is_database(name: &str) -> bool {
    matches!(name, "database.yml" | "database.yaml")
}

/// # Errors
/// Where it is no YAML, even with its Ruby left out.
pub fn sidekiq(input: &Input) -> Result<Sidekiq, Fault> {
    let (node, ruby) = parse(input)?;
    let field = |node: &Node| {
        let plain = node.get("concurrency").or_else(|| node.get(":concurrency"));
        plain.map(|node| value(&input.path, node, &ruby))
    };
    let of_environment = ["production", ":production"]
        .iter()
        .find_map(|name| node.get(name).and_then(&field));
    Ok(Sidekiq {
        file: input.path.clone(),
        concurrency: of_environment.or_else(|| field(&node)),
        capsules: ["capsules", ":capsules"]
            .iter()
            .filter_map(|name| node.get(name))
            .flat_map(|capsules| capsules.map().iter().filter_map(|(_, one)| field(one)))
            .collect(),
    })
}

/// # Errors
/// As `sidekiq`.
pub fn database(input: &Input) -> Result<Database, Fault> {
    let top = At::new(&input.path, Place { line: 1, column: 1 });
    // Ruby that chooses between lines can't be read without running it.
    let chooses = input.text.split("<%").skip(1).any(|code| {
        let word = code.trim_start_matches(['-', ' ']);
        ["if ", "unless ", "else", "case "]
            .iter()
            .any(|start| word.starts_with(start))
    });
    if chooses {
        return Ok(Database {
            file: input.path.clone(),
            pools: vec![Value::Ruby(top)],
        });
    }
    let (node, ruby) = parse(input)?;
    // ActiveRecord's own is 5 where an entry doesn't say it.
    let pool = |node: &Node| {
        let said = node.get("pool").or_else(|| node.get("max_connections"));
        match said {
            Some(said) => value(&input.path, said, &ruby),
            None => Value::Default(5, At::new(&input.path, node.place)),
        }
    };
    let is_one = |node: &Node| {
        ["adapter", "database", "url", "pool", "host"]
            .iter()
            .any(|key| node.get(key).is_some())
    };
    let writes =
        |one: &Node| !matches!(one.get("replica").map(|n| &n.kind), Some(Kind::Bool(true)));
    let pools = match node.get("production").or_else(|| node.get("default")) {
        Some(one) if is_one(one) => vec![pool(one)],
        // Each database of the application has a pool of its own.
        Some(several) => {
            let all = several.map().iter().map(|(_, one)| one);
            all.filter(|one| is_one(one) && writes(one))
                .map(pool)
                .collect()
        }
        None => Vec::new(),
    };
    Ok(Database {
        file: input.path.clone(),
        pools,
    })
}

/// Ruby is put aside before YAML is read: each `<%= … %>` becomes a name.
fn parse(input: &Input) -> Result<(Node, Vec<String>), Fault> {
    let mut ruby = Vec::new();
    let mut text = String::new();
    let mut rest = input.text.as_str();
    while let Some(start) = rest.find("<%") {
        text.push_str(&rest[..start]);
        let Some(end) = rest[start..].find("%>") else {
            let line = input.text[..input.text.len() - rest.len() + start]
                .lines()
                .count()
                .max(1);
            let place = Place { line, column: 1 };
            return Err(Fault::new(&input.path, place, "<% without %>"));
        };
        let inside = &rest[start..start + end + 2];
        if inside.starts_with("<%=") {
            text.push_str(&format!("__ruby_{}_", ruby.len()));
            ruby.push(inside[3..inside.len() - 2].trim().to_owned());
        }
        // Lines stay where they are.
        text.extend(inside.chars().filter(|c| *c == '\n'));
        rest = &rest[start + end + 2..];
    }
    text.push_str(rest);
    let node =
        yaml::parse(&text).map_err(|wrong| Fault::new(&input.path, wrong.place, wrong.what))?;
    Ok((node, ruby))
}

fn value(file: &str, node: &Node, ruby: &[String]) -> Value {
    let at = At::new(file, node.place);
    match &node.kind {
        Kind::Int(number) if *number >= 0 => Value::Number(u64::try_from(*number).unwrap_or(0), at),
        Kind::Text(text) => {
            let code = text
                .strip_prefix("__ruby_")
                .and_then(|n| n.strip_suffix('_'))
                .and_then(|n| n.parse::<usize>().ok())
                .and_then(|n| ruby.get(n));
            match (code, text.parse::<u64>()) {
                (Some(code), _) => fetch(code, at),
                (None, Ok(number)) => Value::Number(number, at),
                _ => Value::Ruby(at),
            }
        }
        _ => Value::Ruby(at),
    }
}

/// `ENV.fetch("NAME") { 5 }`, `ENV.fetch("NAME", 5)`, `ENV["NAME"] || 5`, each with `.to_i` where it likes.
fn fetch(code: &str, at: At) -> Value {
    let code = code.replace(".to_i", "").replace(['(', ')'], " ");
    let code = code.trim();
    let rest = code
        .strip_prefix("ENV.fetch")
        .or_else(|| code.strip_prefix("ENV["));
    let Some(rest) = rest else {
        return Value::Ruby(at);
    };
    let quoted = rest.trim_start();
    let Some(quote) = quoted.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
        return Value::Ruby(at);
    };
    let Some((name, rest)) = quoted[1..].split_once(quote) else {
        return Value::Ruby(at);
    };
    let words: Vec<&str> = rest
        .split(|c: char| " {}|,\"']".contains(c))
        .filter(|word| !word.is_empty())
        .collect();
    let default = match words.as_slice() {
        [] => None,
        [number] => match number.parse() {
            Ok(number) => Some(number),
            Err(_) => return Value::Ruby(at),
        },
        _ => return Value::Ruby(at),
    };
    Value::Env {
        name: name.to_owned(),
        default,
        at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(path: &str, text: &str) -> Input {
        Input {
            path: path.into(),
            text: text.into(),
        }
    }

    #[test]
    fn the_ruby_that_is_understood() {
        let env = |pairs: &[(&str, &str)]| -> BTreeMap<String, Option<String>> {
            pairs
                .iter()
                .map(|(n, v)| ((*n).to_owned(), Some((*v).to_owned())))
                .collect()
        };
        for (text, without, with) in [
            ("10", Some(10), Some(10)),
            ("<%= ENV.fetch(\"N\") { 5 } %>", Some(5), Some(7)),
            ("<%= ENV.fetch('N', 5).to_i %>", Some(5), Some(7)),
            ("<%= ENV['N'] || 3 %>", Some(3), Some(7)),
            ("<%= ENV.fetch(\"N\", 1) { 5 } %>", None, None),
            ("<%= ENV.fetch('N', 2) %>0", None, None),
            ("<%= ENV.fetch(\"N\") %>", None, Some(7)),
            ("<%= Etc.nprocessors * 2 %>", None, None),
        ] {
            let read = sidekiq(&input(
                "sidekiq.yml",
                &format!(":concurrency: {text}\n:queues:\n  - default\n"),
            ));
            let value = read.expect("read").concurrency.expect("there");
            assert_eq!(value.with(&env(&[])), without, "{text}");
            assert_eq!(value.with(&env(&[("N", "7")])), with, "{text}");
        }
        let text = "default: &default\n  adapter: postgresql\n  pool: <%= ENV.fetch(\"RAILS_MAX_THREADS\") { 5 } %>\nproduction:\n  <<: *default\n  database: shop\n";
        let pool = database(&input("config/database.yml", text))
            .expect("read")
            .pools
            .remove(0);
        assert_eq!(pool.with(&env(&[])), Some(5));
        let several = "production:\n  primary:\n    pool: 5\n  reader:\n    pool: 9\n    replica: true\n  queue:\n    pool: 3\n";
        let pools = database(&input("database.yml", several))
            .expect("read")
            .pools;
        let pools: Vec<_> = pools.iter().map(|pool| pool.with(&env(&[]))).collect();
        assert_eq!(pools, [Some(5), Some(3)]);
        let over = "sidekiq: 1\nconcurrency: 5\nproduction:\n  concurrency: 20\n";
        let value = sidekiq(&input("sidekiq.yml", over))
            .expect("read")
            .concurrency;
        assert_eq!(value.and_then(|v| v.with(&env(&[]))), Some(20));
    }
}
