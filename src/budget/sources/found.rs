//! What one file of the input can say, whatever its format.

use std::collections::BTreeMap;

use super::super::count::{At, Count, Source};
use super::super::spec::Unknown;
use super::{Conf, PgBouncer, SpecFile, rails};
use crate::yaml::Place;

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
    Task(Task),
    PgBouncer(PgBouncer),
    Conf(Conf),
    /// Settings in a file of another name: for whoever names it.
    Part(Conf),
    Sidekiq(rails::Sidekiq),
    Database(rails::Database),
}

/// An ECS task definition, which services name.
#[derive(Clone, Debug)]
pub struct Task {
    pub family: String,
    pub revision: Option<u64>,
    pub containers: Vec<Container>,
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
    /// The library of its pool.
    pub library: Option<(String, At)>,
    pub pods: Pods,
    pub containers: Vec<Container>,
    /// The family, and the revision, of an ECS task definition that holds its containers.
    pub task: Option<(String, Option<u64>)>,
    /// The Deployment whose template it runs (a Rollout's workloadRef).
    pub template_of: Option<String>,
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
    /// So many percent of them altogether, rounded down (ECS's maximumPercent).
    Over(u64),
}

impl Surge {
    /// As it is written.
    pub fn words(self) -> String {
        match self {
            Self::None => "0".into(),
            Self::Percent(percent) => format!("{percent}%"),
            Self::Number(number) => number.to_string(),
            Self::All => "all".into(),
            Self::Over(percent) => format!("{percent}% altogether"),
        }
    }

    pub fn of(self, pods: Count) -> Count {
        let more = match self {
            Self::None => return Count::ZERO,
            Self::Percent(percent) => (pods.at_least as f64 * percent / 100.0 - 1e-9).ceil() as u64,
            Self::Number(number) => number,
            Self::All => pods.at_least,
            Self::Over(percent) => {
                (pods.at_least.saturating_mul(percent) / 100).saturating_sub(pods.at_least)
            }
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
    /// Whole maps that are taken over.
    pub maps: Vec<WholeMap>,
}

/// `envFrom`, `env_file`: everything of a map, each name with a prefix.
#[derive(Clone, Debug)]
pub struct WholeMap {
    /// A ConfigMap; `None`: a Secret, or a file that isn't read.
    pub name: Option<String>,
    pub prefix: String,
    pub at: At,
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
