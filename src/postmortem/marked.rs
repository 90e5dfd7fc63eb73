//! Markers in the Markdown: which parts are generated, and which are people's; with the hash of what was written there, that
//! what people have made of it can be told.

use crate::journal::hash;

/// A part of a document that was read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'t> {
    Generated {
        name: &'t str,
        /// As it is when nobody has edited it since.
        is_whole: bool,
        body: &'t str,
        /// Of its opening marker.
        line: usize,
    },
    People {
        name: &'t str,
        offer: Offer<'t>,
        body: &'t str,
        line: usize,
    },
    /// Between the marked parts, blank or not.
    Outside { text: &'t str, line: usize },
}

/// What was written into a people's part for them, as its marker keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offer<'t> {
    hash: &'t str,
    told: &'t str,
}

impl<'t> Offer<'t> {
    /// Nobody has changed it since.
    pub fn is_untouched(self, body: &str) -> bool {
        self.hash == digest(body)
    }

    /// What was written down during the runs and stood there, each by its key.
    pub fn told(self) -> impl Iterator<Item = &'t str> {
        self.told.split(',').filter(|key| !key.is_empty())
    }

    fn read(words: &[&'t str]) -> Option<Self> {
        let (hash, told) = match words {
            [] => return Some(Self::default()),
            [hash] => (hash, ""),
            [hash, told] => (hash, told.strip_prefix("told=")?),
            _ => return None,
        };
        let hash = hash.strip_prefix("sha256=")?;
        Some(Self { hash, told })
    }
}

/// Markers that aren't as they were written: nothing can be told apart safely.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct Damage {
    pub line: usize,
    pub what: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Generated,
    People,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Generated => "generated",
            Self::People => "people",
        }
    }
}

enum Mark<'t> {
    Open(Kind, &'t str, Offer<'t>),
    Close(Kind, &'t str),
}

/// What a line says, where it means to be a marker.
fn mark(line: &str) -> Option<Result<Mark<'_>, ()>> {
    let inner = line
        .trim_start_matches('\u{feff}')
        .trim()
        .strip_prefix("<!--")?;
    let inner = inner.trim_start();
    let (closes, rest) = match inner.strip_prefix('/') {
        Some(rest) => (true, rest.trim_start()),
        None => (false, inner),
    };
    let (kind, rest) = [Kind::Generated, Kind::People]
        .into_iter()
        .find_map(|kind| {
            let rest = rest.strip_prefix(kind.word())?.trim_start();
            Some((kind, rest.strip_prefix(':')?))
        })?;
    let read = || {
        let words: Vec<&str> = rest.strip_suffix("-->")?.split_whitespace().collect();
        let (name, words) = words.split_first().filter(|(name, _)| is_name(name))?;
        if closes {
            return words.is_empty().then_some(Mark::Close(kind, name));
        }
        // Without its hash what is generated counts as edited.
        let offer = Offer::read(words)?;
        let fits = kind == Kind::People || offer.told.is_empty();
        fits.then_some(Mark::Open(kind, name, offer))
    };
    Some(read().ok_or(()))
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// Reads a document back, every byte of it in one of the pieces or in a marker.
///
/// # Errors
/// The first marker that is damaged, doesn't fit to the one before, or stands there twice.
pub fn parse(text: &str) -> Result<Vec<Piece<'_>>, Damage> {
    let damage = |line: usize, what: String| Damage { line, what };
    let mut pieces = Vec::new();
    let mut names: Vec<(Kind, &str, usize)> = Vec::new();
    let mut open: Option<(Kind, &str, Offer<'_>, usize)> = None;
    let (mut from, mut from_line, mut at) = (0, 1, 0);
    for (n, whole) in text.split_inclusive('\n').enumerate() {
        let line = n + 1;
        let start = at;
        at += whole.len();
        let Some(mark) = mark(whole) else { continue };
        let mark =
            mark.map_err(|()| damage(line, format!("a damaged marker: {}", whole.trim())))?;
        match (mark, open) {
            (Mark::Open(kind, name, offer), None) => {
                if let Some((.., before)) = names.iter().find(|(k, n, _)| (*k, *n) == (kind, name))
                {
                    let what = format!(
                        "{}: {name} begins a second time (first in line {before})",
                        kind.word()
                    );
                    return Err(damage(line, what));
                }
                names.push((kind, name, line));
                if start > from {
                    pieces.push(Piece::Outside {
                        text: &text[from..start],
                        line: from_line,
                    });
                }
                open = Some((kind, name, offer, line));
                from = at;
            }
            (Mark::Open(kind, name, _), Some((in_kind, within, _, since))) => {
                let what = format!(
                    "{}: {name} begins, and {}: {within} (line {since}) hasn't ended",
                    kind.word(),
                    in_kind.word()
                );
                return Err(damage(line, what));
            }
            (Mark::Close(kind, name), Some((in_kind, within, offer, since)))
                if (kind, name) == (in_kind, within) =>
            {
                let body = &text[from..start];
                pieces.push(match kind {
                    Kind::Generated => Piece::Generated {
                        name,
                        is_whole: offer.is_untouched(body),
                        body,
                        line: since,
                    },
                    Kind::People => Piece::People {
                        name,
                        offer,
                        body,
                        line: since,
                    },
                });
                open = None;
                from = at;
                from_line = line + 1;
            }
            (Mark::Close(kind, name), _) => {
                let what = format!("{}: {name} ends here, and didn't begin", kind.word());
                return Err(damage(line, what));
            }
        }
    }
    if let Some((kind, name, _, since)) = open {
        let what = format!("{}: {name} begins, and never ends", kind.word());
        return Err(damage(since, what));
    }
    if at > from {
        pieces.push(Piece::Outside {
            text: &text[from..],
            line: from_line,
        });
    }
    Ok(pieces)
}

/// Editors change line ends and blanks at them: that alone is no edit.
fn digest(body: &str) -> String {
    let lines: Vec<&str> = body.lines().map(str::trim_end).collect();
    hash(lines.join("\n").trim_matches('\n'))
}

/// A generated part between its markers.
pub fn seal(name: &str, body: &str) -> String {
    let body = disarmed(body);
    format!(
        "<!-- generated: {name} sha256={} -->\n{body}<!-- /generated: {name} -->\n",
        digest(&body)
    )
}

/// A people's part between its markers; the text as it is.
pub(super) fn frame(name: &str, body: &str) -> String {
    marked(name, "", body)
}

/// The same with what was once written there for them.
pub(super) fn frame_with(name: &str, offer: Offer<'_>, body: &str) -> String {
    match offer.hash {
        "" => frame(name, body),
        hash => marked(name, &offered(hash, offer.told), body),
    }
}

/// A people's part with what is written there for them.
pub(super) fn offer(name: &str, body: &str, told: &[String]) -> String {
    let body = disarmed(body);
    marked(name, &offered(&digest(&body), &told.join(",")), &body)
}

fn offered(hash: &str, told: &str) -> String {
    match told {
        "" => format!(" sha256={hash}"),
        told => format!(" sha256={hash} told={told}"),
    }
}

fn marked(name: &str, offered: &str, body: &str) -> String {
    let end = if body.is_empty() || body.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("<!-- people: {name}{offered} -->\n{body}{end}<!-- /people: {name} -->\n")
}

/// Whole lines, none of which is taken for a marker.
pub(super) fn disarmed(body: &str) -> String {
    let mut out = String::with_capacity(body.len() + 1);
    for line in body.lines() {
        match mark(line) {
            Some(_) => out.push_str(&line.replacen("<!--", "<! --", 1)),
            None => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_read_back() {
        let text = format!(
            "front\n{}\n{}between\n",
            seal("a", "one\ntwo"),
            frame("b", "theirs")
        );
        let pieces = parse(&text).expect("sound");
        assert_eq!(
            pieces,
            [
                Piece::Outside {
                    text: "front\n",
                    line: 1
                },
                Piece::Generated {
                    name: "a",
                    is_whole: true,
                    body: "one\ntwo\n",
                    line: 2
                },
                Piece::Outside {
                    text: "\n",
                    line: 6
                },
                Piece::People {
                    name: "b",
                    offer: Offer::default(),
                    body: "theirs\n",
                    line: 7
                },
                Piece::Outside {
                    text: "between\n",
                    line: 10
                },
            ]
        );
    }

    #[test]
    fn line_ends_and_blanks_at_them_are_no_edit() {
        let sealed = seal("a", "one\n\n| x |\n");
        for changed in [sealed.replace('\n', "\r\n"), sealed.replace("one", "one  ")] {
            let pieces = parse(&changed).expect("sound");
            assert!(
                matches!(pieces[0], Piece::Generated { is_whole: true, .. }),
                "{changed:?}"
            );
        }
        let edited = sealed.replace("one", "none");
        assert!(matches!(
            parse(&edited).expect("sound")[0],
            Piece::Generated {
                is_whole: false,
                ..
            }
        ));
    }

    #[test]
    fn what_was_written_for_people_is_known_until_they_change_it() {
        let text = offer("impact", "it hung", &["ab".into(), "cd".into()]);
        let offer_of = |text: &str| match parse(text).expect("sound")[..] {
            [Piece::People { offer, body, .. }] => (
                offer.is_untouched(body),
                offer.told().map(str::to_owned).collect::<Vec<_>>(),
            ),
            _ => panic!("{text}"),
        };
        assert_eq!(offer_of(&text), (true, vec!["ab".into(), "cd".into()]));
        let changed = text.replace("hung", "was slow");
        assert_eq!(offer_of(&changed), (false, vec!["ab".into(), "cd".into()]));
        assert_eq!(offer_of(&frame("impact", "it hung")), (false, vec![]));
    }

    #[test]
    fn damage_is_told_with_its_line() {
        let of = |text: &str| parse(text).expect_err("damaged").to_string();
        assert_eq!(
            of("x\n<!-- people: a -->\ny\n"),
            "line 2: people: a begins, and never ends"
        );
        assert_eq!(
            of("<!-- /people: a -->\n"),
            "line 1: people: a ends here, and didn't begin"
        );
        assert_eq!(
            of("<!-- people: a -->\n<!-- people: b -->\n<!-- /people: b -->\n"),
            "line 2: people: b begins, and people: a (line 1) hasn't ended"
        );
        assert_eq!(
            of(
                "<!-- people: a -->\n<!-- /people: a -->\n<!-- people: a -->\n<!-- /people: a -->\n"
            ),
            "line 3: people: a begins a second time (first in line 1)"
        );
        assert_eq!(
            of("<!-- people: A b -->\n"),
            "line 1: a damaged marker: <!-- people: A b -->"
        );
        assert_eq!(
            of("<!--people:a\n"),
            "line 1: a damaged marker: <!--people:a"
        );
        assert_eq!(
            of("<!-- people: a sha256=1 told=2 3 -->\n"),
            "line 1: a damaged marker: <!-- people: a sha256=1 told=2 3 -->"
        );
        // A closing marker that was drawn up to the text before it.
        assert_eq!(
            of("<!-- people: a -->\ntext <!-- /people: a -->\n"),
            "line 1: people: a begins, and never ends"
        );
    }

    #[test]
    fn what_is_generated_holds_no_marker() {
        let sealed = seal(
            "a",
            "<!-- /generated: a -->\n<!-- people: x -->\n <!--/people:x-->\n",
        );
        let pieces = parse(&sealed).expect("sound");
        assert_eq!(pieces.len(), 1, "{sealed}");
        assert!(matches!(pieces[0], Piece::Generated { is_whole: true, .. }));
    }
}
