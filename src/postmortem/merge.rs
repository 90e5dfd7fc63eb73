//! A new rendering into an earlier file: generated parts are written anew, what people wrote stays, byte for byte.

use super::marked::{Damage, Offer, Piece, frame, frame_with, offer, parse, seal};
use super::people::{NO_ACTIONS, TODO};
use crate::journal::hash;
use crate::model::count;

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
        notes: Notes,
    },
}

/// What was written down during the runs and belongs into a people's part. Where they have written themselves, what they don't
/// have stands below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// `action item`
    pub noun: &'static str,
    /// What stands above them, below the people's part.
    pub head: String,
    pub all: Vec<Note>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// As it was written down.
    pub text: String,
    /// As it is shown.
    pub line: String,
}

impl Note {
    /// Stands for it in the part's marker.
    fn key(&self) -> String {
        let mut key = hash(&bare(&self.text));
        key.truncate(8);
        key
    }
}

impl Block {
    pub fn generated(name: &str, text: impl Into<String>) -> Self {
        Self::Generated {
            name: name.into(),
            text: text.into(),
        }
    }

    pub fn people(name: &str, text: impl Into<String>) -> Self {
        Self::noted(name, text, Notes::default())
    }

    /// A people's part with what was written down of it during the runs, which the text has.
    pub fn noted(name: &str, text: impl Into<String>, notes: Notes) -> Self {
        Self::People {
            name: name.into(),
            text: text.into(),
            notes,
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
            Block::People { name, text, notes } => merge.people(name, text, notes),
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
        let body = format!("Edited by hand in an earlier version:\n\n{}", lowered(body));
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

    fn people(&mut self, name: &str, text: &str, notes: &Notes) {
        let at = self
            .pieces
            .iter()
            .position(|piece| matches!(piece, Piece::People { name: n, .. } if *n == name));
        let theirs = at.and_then(|at| match self.pieces[at] {
            Piece::People { offer, body, .. } => {
                (!is_ours(offer, body, notes)).then_some((offer, body))
            }
            _ => None,
        });
        self.text.push_str(&match theirs {
            Some((offer, body)) => frame_with(name, offer, body),
            None if is_open(text) => frame(name, text),
            None => {
                let keys: Vec<String> = notes.all.iter().map(Note::key).collect();
                offer(name, text, &keys)
            }
        });
        if let Some(at) = at {
            self.used[at] = true;
        }
        self.after(at);
        if let Some((offer, body)) = theirs {
            self.later(name, offer, body, notes);
        }
    }

    /// What was written down and neither stood in the part when people began with it nor stands in it now.
    fn later(&mut self, name: &str, offer: Offer<'_>, body: &str, notes: &Notes) {
        let body = bare(body);
        let mut lines: Vec<&str> = Vec::new();
        for note in &notes.all {
            let is_known = offer.told().any(|key| key == note.key());
            let is_there = body.contains(&bare(&note.text));
            if !is_known && !is_there && !lines.contains(&note.line.as_str()) {
                lines.push(&note.line);
            }
        }
        if lines.is_empty() {
            return;
        }
        self.warnings.push(format!(
            "{name}: {} of the journals not in it, listed below it",
            count(lines.len(), notes.noun)
        ));
        let text = format!("{}{}\n", notes.head, lines.join("\n"));
        self.generated(&format!("{name}-later"), &text);
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
        for &at in &left {
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
                    self.text.push('\n');
                    if Some(&at) != left.last() {
                        self.text.push('\n');
                    }
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

/// Nobody has written there yet, and nothing gets lost when it is written anew.
fn is_ours(offer: Offer<'_>, body: &str, notes: &Notes) -> bool {
    let has = |key: &str| notes.all.iter().any(|note| note.key() == key);
    is_open(body) || offer.is_untouched(body) && offer.told().all(has)
}

fn is_open(body: &str) -> bool {
    [TODO, NO_ACTIONS].contains(&body.trim())
}

/// However it is marked up: letters and digits alone.
fn bare(text: &str) -> String {
    let text = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    let kept = text.chars().filter(|c| c.is_alphanumeric());
    kept.flat_map(char::to_lowercase).collect()
}

/// With its headings one level lower: the same ones stand above it.
fn lowered(body: &str) -> String {
    let mut out = String::with_capacity(body.len() + 8);
    let mut in_code = false;
    for line in body.split_inclusive('\n') {
        let text = line.trim_start_matches(' ');
        in_code ^= text.starts_with("```") || text.starts_with("~~~");
        let level = text.len() - text.trim_start_matches('#').len();
        let is_heading = text[level..].starts_with(char::is_whitespace);
        if !in_code && (1..6).contains(&level) && is_heading {
            out.push_str(&line[..line.len() - text.len()]);
            out.push('#');
            out.push_str(text);
        } else {
            out.push_str(line);
        }
    }
    out
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn blocks(version: &str) -> Vec<Block> {
        vec![
            Block::people("title", "# T\n"),
            Block::generated("summary", format!("## Summary\n\n{version}\n")),
            Block::people("impact", "TODO\n"),
            Block::generated("done", format!("## Done\n\n{version}\n")),
            Block::people("book", "TODO\n"),
        ]
    }

    fn first() -> String {
        merge(&blocks("v1"), None).expect("sound").text
    }

    #[test]
    fn what_people_wrote_stays_byte_for_byte() {
        let theirs = "  odd \t\r\n\n<b>é</b>\n";
        let text = first().replace(
            "<!-- people: impact -->\nTODO\n",
            &format!("<!-- people: impact -->\n{theirs}"),
        );
        let again = merge(&blocks("v2"), Some(&text)).expect("sound");
        assert_eq!(again.warnings, Vec::<String>::new());
        assert!(
            again.text.contains(&format!(
                "<!-- people: impact -->\n{theirs}<!-- /people: impact -->"
            )),
            "{}",
            again.text
        );
        assert!(again.text.contains("v2") && !again.text.contains("v1"));
        let third = merge(&blocks("v2"), Some(&again.text)).expect("sound");
        assert_eq!(third.text, again.text);
    }

    #[test]
    fn nobody_has_written_yet() {
        let mut new = blocks("v1");
        new[2] = Block::people("impact", "an answer of the run\n");
        let text = merge(&new, Some(&first())).expect("sound").text;
        assert!(
            text.contains(" -->\nan answer of the run\n<!-- /people: impact -->"),
            "{text}"
        );
    }

    #[test]
    fn an_edit_of_what_is_generated_is_kept_below_and_said() {
        let edited = first().replace("## Summary\n\nv1", "## Summary\n\nv1, and more");
        let again = merge(&blocks("v2"), Some(&edited)).expect("sound");
        assert_eq!(
            again.warnings,
            [
                "line 5: summary was edited by hand; the edited text is kept below the new one, as edited-by-hand-summary"
            ]
        );
        let at = |text: &str| {
            again
                .text
                .find(text)
                .unwrap_or_else(|| panic!("{text}: {}", again.text))
        };
        assert!(at("v2") < at("<!-- people: edited-by-hand-summary -->"));
        assert!(at("v1, and more") < at("<!-- people: impact -->"));
        // Once kept it is people's.
        let third = merge(&blocks("v2"), Some(&again.text)).expect("sound");
        assert_eq!(
            (third.text.as_str(), third.warnings.len()),
            (again.text.as_str(), 0)
        );
        // And a second edit is kept beside the first.
        let twice = again
            .text
            .replace("## Summary\n\nv2", "## Summary\n\nagain");
        let fourth = merge(&blocks("v3"), Some(&twice)).expect("sound");
        assert!(
            fourth
                .text
                .contains("<!-- people: edited-by-hand-summary-2 -->"),
            "{}",
            fourth.text
        );
        assert!(fourth.text.contains("v1, and more") && fourth.text.contains("again"));
    }

    /// The impact with what the runs say of it.
    fn noted(answers: &[&str]) -> Vec<Block> {
        let mut new = blocks("v1");
        let all = answers.iter().map(|answer| Note {
            text: (*answer).to_owned(),
            line: format!("- {answer}"),
        });
        let notes = Notes {
            noun: "answer",
            head: "Not above:\n\n".into(),
            all: all.collect(),
        };
        let text = match answers {
            [] => "TODO\n".to_owned(),
            all => all.join("\n") + "\n",
        };
        new[2] = Block::noted("impact", text, notes);
        new
    }

    fn again(answers: &[&str], earlier: &str) -> Merged {
        merge(&noted(answers), Some(earlier)).expect("sound")
    }

    #[test]
    fn what_nobody_has_touched_is_written_anew() {
        let first = merge(&noted(&["it hung"]), None).expect("sound").text;
        let second = again(&["it hung", "a second wave"], &first);
        assert!(second.text.contains("it hung\na second wave\n<!-- /people"));
        assert!(!second.text.contains("Not above") && second.warnings.is_empty());
        let fresh = merge(&noted(&["it hung", "a second wave"]), None).expect("sound");
        assert_eq!(second.text, fresh.text);
        // Nothing is taken away with a journal that isn't given.
        for fewer in [&[][..], &["a second wave"], &["it hung"]] {
            assert_eq!(again(fewer, &second.text), second, "{fewer:?}");
        }
        // Of what people may call otherwise nothing was written down.
        let mut new = blocks("v1");
        new[0] = Block::people("title", "# Another\n");
        let text = merge(&new, Some(&first)).expect("sound").text;
        assert!(
            text.contains("\n# Another\n") && !text.contains("\n# T\n"),
            "{text}"
        );
        let theirs = first.replace("# T\n", "# Ours\n");
        let text = merge(&new, Some(&theirs)).expect("sound").text;
        assert!(
            text.contains("\n# Ours\n") && !text.contains("# Another"),
            "{text}"
        );
    }

    #[test]
    fn what_came_later_stands_below_what_people_wrote() {
        let first = merge(&noted(&["it hung"]), None).expect("sound").text;
        // They say it in other words: it isn't told once more.
        let theirs = first.replace("it hung", "The checkout stood still.");
        assert_eq!(again(&["it hung"], &theirs).text, theirs);
        let second = again(&["it hung", "a second wave"], &theirs);
        let later = "The checkout stood still.\n<!-- /people: impact -->\n\n";
        let (_, below) = second.text.split_once(later).expect("theirs");
        assert!(
            below.starts_with("<!-- generated: impact-later "),
            "{below}"
        );
        assert!(
            below.contains("\nNot above:\n\n- a second wave\n<!-- /generated"),
            "{below}"
        );
        assert_eq!(
            second.warnings,
            ["impact: 1 answer of the journals not in it, listed below it"]
        );
        assert_eq!(again(&["it hung", "a second wave"], &second.text), second);
        // Once they have taken it over it is told no more.
        let taken = second
            .text
            .replace("stood still.", "stood still, then *a second* wave.");
        let third = again(&["it hung", "a second wave"], &taken);
        assert!(!third.text.contains("Not above") && third.warnings.is_empty());
        // What people wrote before anything was written down.
        let before = merge(&noted(&[]), None).expect("sound").text;
        let before = before.replace("TODO\n<!-- /people: impact", "Ours.\n<!-- /people: impact");
        assert!(
            again(&["it hung"], &before)
                .text
                .contains("Not above:\n\n- it hung\n")
        );
    }

    #[test]
    fn headings_of_what_was_edited_are_lower() {
        assert_eq!(
            lowered("## Timeline\n\n#1\n```\n# no heading\n```\n  ### Next\n###### Least\n"),
            "### Timeline\n\n#1\n```\n# no heading\n```\n  #### Next\n###### Least\n"
        );
    }

    #[test]
    fn parts_that_are_no_more_stand_at_the_end() {
        let text = first().replace("<!-- people: book -->\nTODO", "<!-- people: book -->\nours")
            + "\na last word";
        let fewer = &blocks("v2")[..3];
        let again = merge(fewer, Some(&text)).expect("sound");
        let kept = again
            .text
            .find("## Kept from an earlier version")
            .expect("its heading");
        assert!(
            again.text.find("ours").expect("kept") > kept,
            "{}",
            again.text
        );
        assert!(again.text.ends_with("a last word\n"), "{}", again.text);
        let third = merge(fewer, Some(&again.text)).expect("sound");
        assert_eq!(third.text, again.text);
        // They go back to their place once there is one again.
        let back = merge(&blocks("v2"), Some(&third.text)).expect("sound");
        assert!(
            back.text.contains("<!-- people: book -->\nours\n"),
            "{}",
            back.text
        );
    }

    #[test]
    fn text_beside_the_markers_stays_where_it_is() {
        let text = format!("---\nteam: db\n---\n{}", first()).replace(
            "<!-- /generated: summary -->\n",
            "<!-- /generated: summary -->\n\nA word between.\n",
        );
        let again = merge(&blocks("v2"), Some(&text)).expect("sound").text;
        assert!(
            again.starts_with("---\nteam: db\n---\n<!-- people: title "),
            "{again}"
        );
        assert!(
            again.contains(
                "<!-- /generated: summary -->\n\nA word between.\n\n<!-- people: impact -->"
            ),
            "{again}"
        );
    }

    #[test]
    fn damage_is_never_written_over() {
        let text = first().replace("<!-- /people: impact -->\n", "");
        let damage = merge(&blocks("v2"), Some(&text)).expect_err("damaged");
        assert_eq!(
            damage.to_string(),
            "line 14: generated: done begins, and people: impact (line 11) hasn't ended"
        );
    }

    /// Lines of any text that are no markers.
    fn line() -> impl Strategy<Value = String> {
        "[ -~é日\\t]{0,12}[a-z#|<>`]".prop_filter("no marker", |line| !line.contains("<!--"))
    }

    fn body() -> impl Strategy<Value = String> {
        proptest::collection::vec(line(), 0..4)
            .prop_map(|lines| lines.iter().map(|line| format!("{line}\n")).collect())
    }

    #[derive(Clone, Debug)]
    enum Part {
        People(usize, String),
        Generated(usize, String),
        Outside(String),
    }

    fn part() -> impl Strategy<Value = Part> {
        prop_oneof![
            (0..6_usize, body()).prop_map(|(n, body)| Part::People(n, body)),
            (0..4_usize, body()).prop_map(|(n, body)| Part::Generated(n, body)),
            body().prop_map(Part::Outside),
        ]
    }

    const PEOPLE: [&str; 6] = [
        "title",
        "impact",
        "book",
        "gone",
        "edited-by-hand-summary",
        "edited-by-hand-done-3",
    ];
    const GENERATED: [&str; 4] = ["summary", "done", "kept", "gone"];

    proptest! {
        /// Whatever stands in a file that can be read, in whatever order: nothing that people wrote is lost, and a second
        /// rendering changes nothing more.
        #[test]
        fn no_text_is_ever_lost(parts in proptest::collection::vec(part(), 0..12)) {
            let mut text = String::new();
            let mut written: Vec<String> = Vec::new();
            let (mut people, mut generated) = (Vec::new(), Vec::new());
            for part in parts {
                match part {
                    Part::People(n, body) if !people.contains(&n) => {
                        people.push(n);
                        text.push_str(&frame(PEOPLE[n], &body));
                        written.push(body);
                    }
                    Part::Generated(n, body) if !generated.contains(&n) => {
                        generated.push(n);
                        // Edited: of another hash.
                        text.push_str(&format!(
                            "<!-- generated: {} sha256=0 -->\n{body}<!-- /generated: {} -->\n",
                            GENERATED[n], GENERATED[n]
                        ));
                        if ["summary", "done"].contains(&GENERATED[n]) {
                            written.push(lowered(&body));
                        } else if GENERATED[n] != KEPT {
                            written.push(body);
                        }
                    }
                    Part::Outside(body) => {
                        text.push_str(&body);
                        written.push(body);
                    }
                    _ => {}
                }
            }
            let once = merge(&blocks("v2"), Some(&text)).expect("sound");
            for body in written {
                if !body.trim().is_empty() && body.trim() != TODO {
                    prop_assert!(once.text.contains(body.trim_matches('\n')), "{body:?} of {text:?} isn't in {:?}", once.text);
                }
            }
            let twice = merge(&blocks("v2"), Some(&once.text)).expect("sound");
            prop_assert_eq!(&twice.text, &once.text);
            prop_assert_eq!(twice.warnings.iter().filter(|w| w.contains("by hand")).count(), 0);
        }
    }
}
