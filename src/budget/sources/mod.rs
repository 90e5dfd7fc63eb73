//! Readers: texts in, what they say about connections out. One file a format; each number with its place.

mod compose;
mod ecs;
mod kubernetes;
pub mod pgbouncer;
mod postgres_conf;
pub mod rails;
mod spec_file;

use std::collections::BTreeMap;

use super::count::{At, Count, Source};
use super::spec::Unknown;
use crate::yaml::{self, Kind, Node, Place};

pub use pgbouncer::PgBouncer;
pub use postgres_conf::Conf;
pub use spec_file::{POOL, ServerSpec, SpecFile, Suppression, WorkloadSpec};

/// A file of the input.
#[derive(Clone, Debug)]
pub struct Input {
    /// As it is shown: relative, with `/`.
    pub path: String,
    pub text: String,
}

/// Files that a file of the input names, by their paths.
pub type Files<'f> = &'f dyn Fn(&str) -> Option<String>;

/// What is wrong with the input, where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub file: String,
    pub place: Place,
    pub what: String,
}

impl Fault {
    pub fn new(file: &str, place: Place, what: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            place,
            what: what.into(),
        }
    }
}

/// What one file says.
#[derive(Clone, Debug)]
pub enum Found {
    Spec(SpecFile),
    Manifest(Box<Manifest>),
    Scaler(Scaler),
    ConfigMap(ConfigMap),
    /// An ECS task definition, which services name.
    Task {
        family: String,
        containers: Vec<Container>,
    },
    PgBouncer(PgBouncer),
    Conf(Conf),
    Sidekiq(rails::Sidekiq),
    Database(rails::Database),
}

/// An object that runs pods.
#[derive(Clone, Debug)]
pub struct Manifest {
    pub kind: String,
    pub name: String,
    pub namespace: String,
    pub at: At,
    pub target: Option<(String, At)>,
    /// By annotation: of one process.
    pub connections: Option<(u64, At)>,
    pub processes: Option<(u64, At)>,
    pub pods: Pods,
    pub containers: Vec<Container>,
    /// The family of an ECS task definition that holds its containers.
    pub task: Option<String>,
}

/// How many pods, and how many more while they are replaced.
#[derive(Clone, Debug)]
pub struct Pods {
    pub count: Count,
    pub from: Vec<Source>,
    pub surge: Surge,
    pub surge_from: Option<Source>,
    /// Old ones end while new ones run already.
    pub drains: bool,
    pub unknown: Option<Unknown>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Surge {
    None,
    /// Rounded up.
    Percent(f64),
    Number(u64),
    /// As many as there are.
    All,
}

impl Surge {
    pub fn of(self, pods: Count) -> Count {
        let more = match self {
            Self::None => return Count::ZERO,
            Self::Percent(percent) => (pods.at_least as f64 * percent / 100.0 - 1e-9).ceil() as u64,
            Self::Number(number) => number,
            Self::All => pods.at_least,
        };
        Count {
            at_least: more,
            exact: pods.exact || matches!(self, Self::Number(_)),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Container {
    pub name: String,
    pub role: Role,
    pub env: Env,
    /// Command and arguments.
    pub command: Vec<(String, At)>,
    pub at: At,
    /// A readiness probe that runs a database client.
    pub probe: Option<At>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    App,
    /// Runs to its end before the others.
    Init,
    /// An init container that goes on.
    Sidecar,
}

/// The environment of a container: values, and names whose value isn't known.
#[derive(Clone, Debug, Default)]
pub struct Env {
    pub values: BTreeMap<String, EnvValue>,
    /// Whole maps that are taken over: name and place.
    pub maps: Vec<(String, At)>,
}

#[derive(Clone, Debug)]
pub enum EnvValue {
    Literal(String, At),
    /// A key of a ConfigMap.
    OfMap {
        map: String,
        key: String,
        at: At,
    },
    /// A secret, or something of the running pod.
    Hidden(At),
}

/// Who sets the number of pods of another object.
#[derive(Clone, Debug)]
pub struct Scaler {
    pub kind: String,
    pub name: String,
    pub namespace: String,
    pub target_kind: String,
    pub target: String,
    /// The most that it makes.
    pub most: u64,
    pub fixed: bool,
    pub source: Source,
    pub at: At,
}

#[derive(Clone, Debug)]
pub struct ConfigMap {
    pub name: String,
    pub namespace: String,
    pub data: BTreeMap<String, (String, At)>,
}

/// Reads one file. What isn't any of ours is nothing.
///
/// # Errors
/// What is wrong with it.
pub fn read(input: &Input, files: Files<'_>) -> Result<Vec<Found>, Fault> {
    let name = input.path.rsplit('/').next().unwrap_or(&input.path);
    let top = Place { line: 1, column: 1 };
    if matches!(
        name,
        "kustomization.yaml" | "kustomization.yml" | "Kustomization"
    ) {
        let what =
            "a kustomization is no manifest: kustomize build … | stanch budget check /dev/stdin";
        return Err(Fault::new(&input.path, top, what));
    }
    let ending = name.rsplit('.').next().unwrap_or_default();
    match ending {
        "ini" => pgbouncer::read(input, files)
            .map(|found| found.map(Found::PgBouncer).into_iter().collect()),
        "conf" => Ok(vec![Found::Conf(postgres_conf::read(input, files)?)]),
        "yaml" | "yml" => read_yaml(input, name),
        "json" => read_yaml(input, name),
        _ => Ok(Vec::new()),
    }
}

fn read_yaml(input: &Input, name: &str) -> Result<Vec<Found>, Fault> {
    if rails::is_sidekiq(name) {
        return Ok(vec![Found::Sidekiq(rails::sidekiq(input)?)]);
    }
    if rails::is_database(name) {
        return Ok(vec![Found::Database(rails::database(input)?)]);
    }
    if let Some(place) = helm(&input.text) {
        let what = "an unrendered Helm template: helm template … | stanch budget check /dev/stdin";
        return Err(Fault::new(&input.path, place, what));
    }
    let docs = yaml::parse_all(&input.text)
        .map_err(|wrong| Fault::new(&input.path, wrong.place, wrong.what))?;
    let mut found = Vec::new();
    for doc in &docs {
        if doc.get("apiVersion").is_some() && doc.get("kind").is_some() {
            kubernetes::read(&input.path, doc, &mut found)?;
        } else if doc
            .get("services")
            .is_some_and(|services| !services.map().is_empty())
        {
            compose::read(&input.path, doc, &mut found)?;
        } else if ["servers", "workloads", "poolers"]
            .iter()
            .any(|key| doc.get(key).is_some())
        {
            found.push(Found::Spec(spec_file::read(&input.path, doc)?));
        } else {
            ecs::read(&input.path, doc, &mut found)?;
        }
    }
    Ok(found)
}

/// Where a text is a template that has to be rendered first.
fn helm(text: &str) -> Option<Place> {
    const SIGNS: [&str; 6] = [
        ".Values",
        ".Release",
        ".Chart",
        "include ",
        "template ",
        "toYaml",
    ];
    text.lines().enumerate().find_map(|(n, line)| {
        let at = line.find("{{")?;
        let inside = &line[at..];
        SIGNS
            .iter()
            .any(|sign| inside.contains(sign))
            .then_some(Place {
                line: n + 1,
                column: at + 1,
            })
    })
}

/// A path as a file beside `base` names it.
pub fn beside(base: &str, path: &str) -> String {
    if path.starts_with('/') {
        return path.to_owned();
    }
    let mut parts: Vec<&str> = base.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// A whole number that isn't negative.
fn number(file: &str, node: &Node, what: &str) -> Result<u64, Fault> {
    match &node.kind {
        Kind::Int(number) if *number >= 0 => Ok(u64::try_from(*number).unwrap_or(0)),
        other => Err(Fault::new(
            file,
            node.place,
            format!(
                "{what} is a whole number from 0, and here is {}",
                shown(other)
            ),
        )),
    }
}

fn shown(kind: &Kind) -> String {
    match kind {
        Kind::Text(text) => format!("the text {text:?}"),
        Kind::Int(number) => number.to_string(),
        other => other.word().to_owned(),
    }
}

/// `25%` or a number.
fn surge(file: &str, node: &Node, what: &str) -> Result<Surge, Fault> {
    match &node.kind {
        Kind::Text(text) => {
            let percent = text
                .trim()
                .strip_suffix('%')
                .and_then(|text| text.parse::<f64>().ok());
            let percent = percent.filter(|percent| (0.0..=10_000.0).contains(percent));
            percent.map(Surge::Percent).ok_or_else(|| {
                Fault::new(
                    file,
                    node.place,
                    format!("{what} is a number or a percentage, not {text:?}"),
                )
            })
        }
        _ => number(file, node, what).map(Surge::Number),
    }
}

/// A name.
fn text(file: &str, node: &Node, what: &str) -> Result<String, Fault> {
    let text = node.text().filter(|text| !text.is_empty());
    text.map(str::to_owned).ok_or_else(|| {
        Fault::new(
            file,
            node.place,
            format!("{what} is a text, and here is {}", shown(&node.kind)),
        )
    })
}

/// A plain value as a text: numbers and truths are written without quotes.
fn plain(node: &Node) -> Option<String> {
    Some(match &node.kind {
        Kind::Text(text) => text.clone(),
        Kind::Int(number) => number.to_string(),
        Kind::Float(number) => number.to_string(),
        Kind::Bool(value) => value.to_string(),
        _ => return None,
    })
}

/// A map with known keys only.
fn known(file: &str, node: &Node, keys: &[&str]) -> Result<(), Fault> {
    let Kind::Map(fields) = &node.kind else {
        let what = format!("a map is expected here, not {}", node.kind.word());
        return Err(Fault::new(file, node.place, what));
    };
    for (key, _) in fields {
        let name = key.text().unwrap_or_default();
        if !keys.contains(&name) {
            let what = format!("unknown key {name:?}; there are: {}", keys.join(", "));
            return Err(Fault::new(file, key.place, what));
        }
    }
    Ok(())
}
