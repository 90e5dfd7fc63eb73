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
            text.contains("<!-- people: impact -->\nan answer of the run\n"),
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
            again.starts_with("---\nteam: db\n---\n<!-- people: title -->"),
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
                        if GENERATED[n] != KEPT {
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
