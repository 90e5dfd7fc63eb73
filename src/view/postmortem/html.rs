//! One HTML file: no script, no request to anywhere, readable in light, in dark, on a telephone and on paper.

use minijinja::value::Value;
use minijinja::{Environment, context};

use super::charts::charts;
use super::prose::{heading, html_of, plain};
use super::svg::{Mark, MarkKind, escape, figure};
use crate::postmortem::{Damage, Gap, ORIGIN, Piece, Postmortem, TODO, parse};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");

/// The same document as its Markdown, with pictures.
///
/// # Errors
/// Where the markers of the Markdown are damaged.
pub fn html(postmortem: &Postmortem, markdown: &str) -> Result<String, Damage> {
    let mut parts = Vec::new();
    let mut contents = Vec::new();
    let mut title = String::new();
    for (n, piece) in parse(markdown)?.into_iter().enumerate() {
        let (name, body, is_people) = match piece {
            Piece::Generated { name, body, .. } => (name.to_owned(), body, false),
            Piece::People { name, body, .. } => (name.to_owned(), body, true),
            Piece::Outside { text, .. } => (format!("outside-{n}"), text, true),
        };
        if body.trim().is_empty() || (name == ORIGIN && !is_people) {
            continue;
        }
        if name == "title" {
            title = plain(body);
        }
        let id = if is_people {
            format!("people-{name}")
        } else {
            name.clone()
        };
        if let Some(text) = heading(body).filter(|_| !is_people) {
            contents.push(context! { id => id.clone(), title => plain(&text) });
        }
        let html = match (name.as_str(), is_people) {
            ("charts", false) => drawn(postmortem, body, &id),
            _ => html_of(body, &id),
        };
        let is_open = is_people && body.contains(TODO);
        parts.push(context! { name => name, is_people => is_people, is_open => is_open, html => Value::from_safe_string(html) });
    }
    let page = context! {
        title => title,
        style => Value::from_safe_string(STYLE.to_owned()),
        parts => parts,
        contents => contents,
    };
    let mut environment = Environment::new();
    // By its ending everything is escaped that isn't said to be safe.
    let rendered = environment
        .add_template("page.html", PAGE)
        .and_then(|()| environment.get_template("page.html"))
        .and_then(|template| template.render(page));
    // The template is part of the program and a test renders it: what can go wrong is told in the page's place.
    Ok(rendered.unwrap_or_else(|error| {
        format!("<!doctype html>\n<p>{}</p>\n", escape(&error.to_string()))
    }))
}

/// The pictures, and the same as numbers below them.
fn drawn(postmortem: &Postmortem, body: &str, id: &str) -> String {
    let servers = postmortem.servers();
    let [_, _, ..] = servers.as_slice() else {
        let (head, rest) = body.split_once("\n\n").unwrap_or((body, ""));
        let drawn = drawn_of(postmortem, 0, rest);
        return format!("{}{drawn}", html_of(head, id));
    };
    // A heading of its own for each server.
    let mut parts = body.split("\n### ");
    let mut html = html_of(parts.next().unwrap_or_default(), id);
    for (n, part) in parts.enumerate() {
        let (name, rest) = part.split_once("\n\n").unwrap_or((part, ""));
        html.push_str(&html_of(
            &format!("### {name}\n"),
            &format!("{id}-{}", n + 1),
        ));
        html.push_str(&drawn_of(postmortem, n, rest));
    }
    html
}

/// Of one server: its pictures, without what wasn't read of another.
fn drawn_of(postmortem: &Postmortem, server: usize, rest: &str) -> String {
    let servers = postmortem.servers();
    let Some(of) = servers.get(server) else {
        return String::new();
    };
    let name = of.name();
    let is_here = |gap: &&Gap| gap.server.is_none() || gap.server == name;
    let gaps = postmortem.gaps.iter().filter(is_here);
    let gaps = gaps.filter(|gap| gap.is_capture());
    let marks: Vec<Mark> = postmortem
        .runs
        .iter()
        .filter(|run| !run.dry_run)
        .flat_map(|run| &run.acts)
        .map(|act| Mark {
            at: act.at,
            kind: MarkKind::Effect,
        })
        .chain(of.course.changed_at().map(|at| Mark {
            at,
            kind: MarkKind::Effect,
        }))
        .chain(gaps.map(|gap| Mark {
            at: gap.at,
            kind: MarkKind::Gap,
        }))
        .collect();
    let figures: String = match of.course.frames.len() {
        0 | 1 => String::new(),
        _ => charts(postmortem, server)
            .iter()
            .map(|chart| figure(chart, &marks))
            .collect(),
    };
    // The lines of blocks say the same as the pictures.
    let numbers = rest.find("\n| ").map_or(rest, |at| &rest[at + 1..]);
    let table = html_of(numbers, "");
    match figures.is_empty() {
        true => table,
        false => {
            format!(
                "{figures}<details><summary>The captures as numbers</summary>\n{table}</details>\n"
            )
        }
    }
}
