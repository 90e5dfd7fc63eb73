//! Which reader a file is for, by its name and by what stands in it.

use super::{
    Fault, Files, Found, Input, compose, ecs, kubernetes, pgbouncer, postgres_conf, rails,
    spec_file,
};
use crate::yaml::{self, Node, Place};

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
        let what = format!(
            "a kustomization is no manifest: kustomize build {} | stanch budget check /dev/stdin (or --exclude {name})",
            folder(&input.path, name)
        );
        return Err(Fault::new(&input.path, top, what));
    }
    let ending = name.rsplit('.').next().unwrap_or_default();
    match ending {
        "ini" => pgbouncer::read(input, files)
            .map(|found| found.map(Found::PgBouncer).into_iter().collect()),
        // Other programs' files end like this as well; a part of one is read where the whole names it.
        "conf" if name.starts_with("postgresql") && name != "postgresql.auto.conf" => {
            Ok(vec![Found::Conf(postgres_conf::read(input, files)?)])
        }
        "conf" => Ok(postgres_conf::read(input, files)
            .map(Found::Part)
            .into_iter()
            .collect()),
        "yaml" | "yml" => read_yaml(input, name),
        "json" => read_yaml(input, name),
        _ => Ok(Vec::new()),
    }
}

fn read_yaml(input: &Input, name: &str) -> Result<Vec<Found>, Fault> {
    if rails::is_sidekiq(name) && !input.text.contains("apiVersion:") {
        return Ok(vec![Found::Sidekiq(rails::sidekiq(input)?)]);
    }
    if rails::is_database(name) {
        return Ok(vec![Found::Database(rails::database(input)?)]);
    }
    if let Some(place) = helm(&input.text) {
        let chart = folder(&input.path, "templates/");
        let what = format!(
            "an unrendered Helm template: helm template {chart} | stanch budget check /dev/stdin (or --exclude {chart})"
        );
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
        } else if is_spec(name, doc) {
            found.push(Found::Spec(spec_file::read(&input.path, doc)?));
        } else {
            ecs::read(&input.path, doc, &mut found)?;
        }
    }
    Ok(found)
}

/// The part of a path before a name in it.
fn folder<'p>(path: &'p str, name: &str) -> &'p str {
    match path.split_once(name) {
        Some((before, _)) if before.len() > 1 => before.trim_end_matches('/'),
        _ => ".",
    }
}

/// Where a text is a template that has to be rendered first.
fn helm(text: &str) -> Option<Place> {
    const SIGNS: [&str; 5] = [".Values", ".Release", ".Chart", "include \"", "toYaml"];
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

/// A budget by its name or its keys; descriptions of interfaces and of test clusters have `servers` of another kind.
fn is_spec(name: &str, doc: &Node) -> bool {
    let has = |keys: &[&str]| keys.iter().any(|key| doc.get(key).is_some());
    let named = matches!(name, "budget.yaml" | "budget.yml");
    has(&["servers", "workloads", "poolers"])
        && (named || !has(&["openapi", "swagger", "asyncapi", "info", "paths", "kind"]))
}
