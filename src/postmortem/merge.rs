//! A new rendering into an earlier file: generated parts are written anew, what people wrote stays, byte for byte.

use super::marked::{Damage, Piece, disarmed, frame, parse, seal};
use super::people::{NO_ACTIONS, TODO};

/// A part of a new rendering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    Generated {
        name: String,
        text: String,
    },
    /// With what stands there until people have written.
    People {
        name: String,
        text: String,
    },
}

impl Block {
    pub fn generated(name: &str, text: impl Into<String>) -> Self {
        Self::Generated {
            name: name.into(),
            text: text.into(),
        }
    }

    pub fn people(name: &str, text: impl Into<String>) -> Self {
        Self::People {
            name: name.into(),
            text: text.into(),
        }
    }
}

/// The file, and what has to be said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    pub text: String,
    pub warnings: Vec<String>,
}

/// Under this stands what this version has no place for.
const KEPT: &str = "kept";
const KEPT_HEADING: &str = "## Kept from an earlier version\n";
const EDITED: &str = "edited-by-hand-";

/// Puts a new rendering over an earlier file.
///
/// # Errors
/// Where the markers of the earlier file are damaged: then nothing may be overwritten.
pub fn merge(blocks: &[Block], earlier: Option<&str>) -> Result<Merged, Damage> {
    let pieces = earlier.map_or(Ok(Vec::new()), parse)?;
    let mut merge = Merge {
        used: vec![false; pieces.len()],
        pieces,
        text: String::new(),
        warnings: Vec::new(),
    };
    if let Some(Piece::Outside { text, .. }) = merge.pieces.first()
        && !is_blank(text)
    {
        merge.outside(0);
    }
    for block in blocks {
        match block {
            Block::Generated { name, text } => merge.generated(name, text),
            Block::People { name, text } => merge.people(name, text),
        }
    }
    merge.rest();
    // Nothing but blank lines follows the last part.
    while merge.text.ends_with("-->\n\n") {
        merge.text.pop();
    }
    Ok(Merged {
        text: merge.text,
        warnings: merge.warnings,
    })
}

struct Merge<'t> {
    pieces: Vec<Piece<'t>>,
    used: Vec<bool>,
    text: String,
    warnings: Vec<String>,
}

impl Merge<'_> {
    fn generated(&mut self, name: &str, text: &str) {
        self.text.push_str(&seal(name, text));
        let at = self
            .pieces
            .iter()
            .position(|piece| matches!(piece, Piece::Generated { name: n, .. } if *n == name));
        let edited = at.and_then(|at| match self.pieces[at] {
            Piece::Generated {
                is_whole: false,
                body,
                line,
                ..
            } => Some((body, line)),
            _ => None,
        });
        self.after(at);
        self.edited_before(name);
        let Some((body, line)) = edited else { return };
        if body.trim().is_empty() {
            self.warnings.push(format!(
                "line {line}: {name} had been emptied; it is written anew"
            ));
            return;
        }
        let new = self.free_name(name);
        self.warnings.push(format!(
            "line {line}: {name} was edited by hand; the edited text is kept below the new one, as {new}"
        ));
        let body = format!("Edited by hand in an earlier version:\n\n{body}");
        self.text.push_str(&frame(&new, &body));
        self.text.push('\n');
    }

    /// What was edited by hand in it earlier still.
    fn edited_before(&mut self, name: &str) {
        for at in 0..self.pieces.len() {
            if let Piece::People { name: n, body, .. } = self.pieces[at]
                && is_edited_of(n, name)
                && !self.used[at]
            {
                self.used[at] = true;
                self.text.push_str(&frame(n, body));
                self.after(Some(at));
            }
        }
    }

    /// One that neither the earlier file nor the new one has.
    fn free_name(&self, name: &str) -> String {
        let first = format!("{EDITED}{name}");
        let mut new = first.clone();
        let mut n = 1;
        let taken = |new: &str| {
            let earlier =
                |piece: &Piece<'_>| matches!(piece, Piece::People { name, .. } if *name == new);
            self.pieces.iter().any(earlier)
                || self.text.contains(&format!("<!-- people: {new} -->"))
        };
        while taken(&new) {
            n += 1;
            new = format!("{first}-{n}");
        }
        new
    }

    fn people(&mut self, name: &str, text: &str) {
        let at = self
            .pieces
            .iter()
            .position(|piece| matches!(piece, Piece::People { name: n, .. } if *n == name));
        let theirs = at.and_then(|at| match self.pieces[at] {
            // Nobody has written there yet.
            Piece::People { body, .. } if [TODO, NO_ACTIONS].contains(&body.trim()) => None,
            Piece::People { body, .. } => Some(body),
            _ => None,
        });
        self.text.push_str(&match theirs {
            Some(body) => frame(name, body),
            None => frame(name, &disarmed(text)),
        });
        if let Some(at) = at {
            self.used[at] = true;
        }
        self.after(at);
    }

    /// What stands outside behind a part, or a blank line.
    fn after(&mut self, at: Option<usize>) {
        match at.map(|at| (at + 1, self.pieces.get(at + 1))) {
            Some((next, Some(Piece::Outside { .. }))) => self.outside(next),
            _ => self.text.push('\n'),
        }
    }

    fn outside(&mut self, at: usize) {
        let Piece::Outside { text, .. } = self.pieces[at] else {
            return;
        };
        self.used[at] = true;
        let end = if text.ends_with('\n') { "" } else { "\n" };
        match is_blank(text) {
            true => self.text.push('\n'),
            false => self.text.push_str(&format!("{text}{end}")),
        }
    }

    /// What has no place in this version.
    fn rest(&mut self) {
        let left: Vec<usize> = (0..self.pieces.len())
            .filter(|at| !self.used[*at])
            .filter(|at| match self.pieces[*at] {
                Piece::People { .. } => true,
                Piece::Outside { text, .. } => !is_blank(text),
                // Edited, and of no section that there is.
                Piece::Generated {
                    name,
                    is_whole,
                    body,
                    ..
                } => {
                    name != KEPT
                        && !is_whole
                        && !is_blank(body)
                        && !self.text.contains(&format!("<!-- generated: {name} "))
                }
            })
            .collect();
        if left.is_empty() {
            return;
        }
        self.text.push_str(&seal(KEPT, KEPT_HEADING));
        self.text.push('\n');
        for at in left {
            match self.pieces[at] {
                Piece::People { name, body, .. } => {
                    self.warnings.push(format!(
                        "{name}: this version has no such part; its text is kept at the end"
                    ));
                    self.text.push_str(&frame(name, body));
                    self.text.push('\n');
                }
                Piece::Outside { text, .. } => {
                    // Its blank lines would grow with every rendering.
                    self.text.push_str(text.trim_matches(['\r', '\n']));
                    self.text.push_str("\n\n");
                }
                Piece::Generated {
                    name, body, line, ..
                } => {
                    let new = self.free_name(name);
                    self.warnings.push(format!(
                        "line {line}: {name} was edited by hand, and this version has no such part; the text is kept at the end, as {new}"
                    ));
                    self.text.push_str(&frame(&new, body));
                    self.text.push('\n');
                }
            }
        }
    }
}

fn is_blank(text: &str) -> bool {
    text.trim_matches('\u{feff}').trim().is_empty()
}

/// `edited-by-hand-summary`, `edited-by-hand-summary-2`
fn is_edited_of(name: &str, of: &str) -> bool {
    let rest = name
        .strip_prefix(EDITED)
        .and_then(|rest| rest.strip_prefix(of));
    rest.is_some_and(|rest| {
        let number = rest.strip_prefix('-');
        rest.is_empty()
            || number.is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()))
    })
}
