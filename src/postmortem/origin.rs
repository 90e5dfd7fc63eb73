//! What a document was made of, kept in it for the next rendering: what isn't given any more would be gone without a word.

use serde::{Deserialize, Serialize};

use super::document::{Of, Postmortem};
use super::marked::{Piece, parse};
use crate::model::{Timestamp, count};

/// The part that keeps it; a comment, for nobody to read.
pub const ORIGIN: &str = "made-of";
const SCHEMA: &str = "stanch.postmortem_origin/1";

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    captures: Vec<Captures>,
    runs: Vec<Walked>,
    /// By their names, which may be others the next time.
    files: Vec<String>,
}

/// Of one server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Captures {
    server: String,
    first: Timestamp,
    last: Timestamp,
    count: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Walked {
    what: String,
    began: Timestamp,
    last: Timestamp,
}

/// What a document was made of and a new rendering isn't.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Nothing that it was made of is given: it may be of another incident.
    pub is_all: bool,
    /// Each in words.
    pub missing: Vec<String>,
    /// Files that aren't given by the same name.
    pub files: Vec<String>,
}

impl Origin {
    pub fn of(postmortem: &Postmortem) -> Self {
        let captures = |of: &Of<'_>| {
            let (first, last) = of.course.span()?;
            Some(Captures {
                server: of.course.place(),
                first,
                last,
                count: of.course.frames.len(),
            })
        };
        let runs = postmortem.runs.iter().map(|run| Walked {
            what: run.what.clone(),
            began: run.began,
            last: run.last,
        });
        let files = postmortem.supplies.iter().map(|s| s.name.clone());
        Self {
            captures: postmortem.servers().iter().filter_map(captures).collect(),
            runs: runs.collect(),
            files: files.collect(),
        }
    }

    /// Of a document; `None` where it doesn't say it, as those of earlier versions.
    pub fn read(markdown: &str) -> Option<Self> {
        let pieces = parse(markdown).ok()?;
        let body = pieces.iter().find_map(|piece| match piece {
            Piece::Generated { name, body, .. } if *name == ORIGIN => Some(*body),
            _ => None,
        })?;
        let json = body
            .trim()
            .strip_prefix("<!--")?
            .trim_start()
            .strip_prefix(SCHEMA)?
            .strip_suffix("-->")?;
        serde_json::from_str(json).ok()
    }

    /// As a comment, which no text in it can end.
    pub fn comment(&self) -> String {
        let json = serde_json::to_string(self).unwrap_or_default();
        let mut safe = String::with_capacity(json.len());
        for c in json.chars() {
            match c {
                ' '..='~' if c != '<' && c != '>' => safe.push(c),
                _ => {
                    let mut units = [0; 2];
                    for unit in c.encode_utf16(&mut units) {
                        safe.push_str(&format!("\\u{unit:04x}"));
                    }
                }
            }
        }
        format!("<!-- {SCHEMA} {safe} -->\n")
    }

    /// What a document that was made of this loses by a new rendering; `None`: nothing.
    pub fn lost(&self, new: &Postmortem) -> Option<Lost> {
        let now = Self::of(new);
        let mut missing = Vec::new();
        for old in &self.captures {
            let given = given(new, old);
            let covers = now.captures.iter().any(|c| {
                c.server == old.server
                    && c.first <= old.first
                    && c.last >= old.last
                    && c.count >= old.count
            });
            if given < old.count && !covers {
                let given = match given {
                    0 => "none".to_owned(),
                    given => given.to_string(),
                };
                missing.push(format!("{} ({given} given now)", old.words()));
            }
        }
        for old in &self.runs {
            if !now.runs.iter().any(|run| run.began == old.began) {
                let began = old.began.utc().format("%Y-%m-%d %H:%M:%S");
                missing.push(format!("the journal of {}, begun {began} UTC", old.what));
            }
        }
        let files = self.files.iter().filter(|file| !now.files.contains(file));
        (!missing.is_empty()).then(|| Lost {
            is_all: !self.is_of(&now),
            missing,
            files: files.cloned().collect(),
        })
    }

    /// Both are of one incident as far as can be told: captures of one server from the same time, the same run, or a run and
    /// captures from the same time.
    fn is_of(&self, now: &Self) -> bool {
        let captured = self.captures.iter().any(|old| {
            let same = |c: &Captures| c.server == old.server && meet(c.span(), old.span());
            now.captures.iter().any(same) || now.runs.iter().any(|r| meet(r.span(), old.span()))
        });
        let walked = self.runs.iter().any(|old| {
            now.runs.iter().any(|run| run.began == old.began)
                || now.captures.iter().any(|c| meet(c.span(), old.span()))
        });
        captured || walked
    }
}

impl Captures {
    fn span(&self) -> (Timestamp, Timestamp) {
        (self.first, self.last)
    }

    fn words(&self) -> String {
        let captures = count(self.count, "capture");
        let first = self.first.utc().format("%Y-%m-%d %H:%M:%S");
        let last = self.last.utc().format("%H:%M:%S");
        let until = match self.first == self.last {
            true => String::new(),
            false => format!(" to {last}"),
        };
        format!("{captures} of {}, {first}{until} UTC", self.server)
    }
}

impl Walked {
    fn span(&self) -> (Timestamp, Timestamp) {
        (self.began, self.last)
    }
}

fn meet(one: (Timestamp, Timestamp), other: (Timestamp, Timestamp)) -> bool {
    one.0 <= other.1 && other.0 <= one.1
}

/// Captures of the same server from the same time.
fn given(new: &Postmortem, old: &Captures) -> usize {
    let servers = new.servers();
    let of = servers.iter().filter(|of| of.course.place() == old.server);
    let frames = of.flat_map(|of| &of.course.frames);
    frames
        .filter(|frame| (old.first..=old.last).contains(&frame.at))
        .count()
}
