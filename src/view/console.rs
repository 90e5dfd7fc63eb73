//! Where output goes: results to standard output, everything else to standard error.

use std::io::{self, Write};

use owo_colors::OwoColorize as _;

use super::sanitize::{clean, width};
use crate::model::Severity;

/// How a result is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Table,
    Json,
    Csv,
    Markdown,
    Prometheus,
    /// For CI: of the budget only.
    Sarif,
    Junit,
    Github,
}

impl Format {
    /// Only the budget has it.
    pub fn is_for_ci(self) -> bool {
        matches!(self, Self::Sarif | Self::Junit | Self::Github)
    }
}

/// What the output can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns; `None`: no limit, as in a pipe.
    pub width: Option<usize>,
    /// Lines of the terminal.
    pub height: Option<usize>,
    pub color: bool,
    /// More detail was asked for.
    pub verbose: bool,
}

impl Style {
    /// Colour is a second channel: the word says it all.
    pub fn severity(self, severity: Severity) -> String {
        let word = severity.word();
        match (self.color, severity) {
            (false, _) => word.to_owned(),
            (true, Severity::Critical) => word.red().bold().to_string(),
            (true, Severity::Warning) => word.yellow().bold().to_string(),
            (true, Severity::Info) => word.cyan().to_string(),
        }
    }

    /// As much of a text from its top as the terminal has lines: the worst stands first.
    fn top(self, text: &str) -> String {
        let (Some(columns), Some(lines)) = (self.width.filter(|w| *w > 0), self.height) else {
            return text.to_owned();
        };
        let mut room = lines.saturating_sub(2);
        let mut out = String::new();
        let all: Vec<&str> = text.lines().collect();
        for (n, line) in all.iter().enumerate() {
            // A terminal wraps what is longer than itself.
            let takes = width(&without_colour(line)).div_ceil(columns).max(1);
            if takes > room {
                out.push_str(&format!("… {} more lines", all.len() - n));
                return out;
            }
            room -= takes;
            out.push_str(line);
            out.push('\n');
        }
        out
    }

    pub fn strong(self, text: &str) -> String {
        if self.color {
            text.bold().to_string()
        } else {
            text.to_owned()
        }
    }

    pub fn faint(self, text: &str) -> String {
        if self.color {
            text.dimmed().to_string()
        } else {
            text.to_owned()
        }
    }
}

/// The two streams, and how the person wants them.
pub struct Console {
    out: Box<dyn Write>,
    err: Box<dyn Write>,
    pub format: Format,
    /// The one list that is wanted of several, for CSV and Markdown.
    pub list: Option<String>,
    pub style: Style,
    /// JSON on one line: for rounds that follow one another.
    pub compact: bool,
    /// Clear the screen before each round: for repeats on a terminal.
    pub redraw: bool,
    pub quiet: bool,
}

impl Console {
    pub fn new(out: Box<dyn Write>, err: Box<dyn Write>, format: Format, style: Style) -> Self {
        Self {
            out,
            err,
            format,
            list: None,
            style,
            compact: false,
            redraw: false,
            quiet: false,
        }
    }

    /// Writes a whole result at once.
    ///
    /// # Errors
    /// When standard output can't be written to; a closed pipe is for the caller to take as success.
    pub fn result(&mut self, text: &str) -> io::Result<()> {
        if self.redraw && self.format == Format::Table {
            self.out.write_all(b"\x1b[H\x1b[2J")?;
            self.out.write_all(self.style.top(text).as_bytes())?;
        } else {
            self.out.write_all(text.as_bytes())?;
        }
        self.out.flush()
    }

    /// A word to the person: never part of the result.
    pub fn note(&mut self, text: &str) {
        if !self.quiet {
            // Nobody is left to tell that standard error is gone.
            let _ = writeln!(self.err, "{}", clean_lines(text));
        }
    }

    /// A report or a heading, beside the result: cleaned when it was made, and in our own colours.
    pub fn rendered(&mut self, text: &str) {
        if !self.quiet {
            let _ = writeln!(self.err, "{text}");
        }
    }

    /// A word that is also said when quiet.
    pub fn warn(&mut self, text: &str) {
        let _ = writeln!(self.err, "{}", clean_lines(text));
    }

    /// What went wrong: also said when quiet.
    pub fn error(&mut self, text: &str, hint: Option<&str>) {
        let _ = writeln!(self.err, "stanch: {}", clean_lines(text));
        if let Some(hint) = hint {
            let _ = writeln!(self.err, "  try: {}", clean_lines(hint));
        }
    }
}

/// A server's words reach a terminal here as well.
fn clean_lines(text: &str) -> String {
    text.lines().map(clean).collect::<Vec<_>>().join("\n")
}

/// The text as it is seen: our own colours take no columns.
fn without_colour(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c == '\x1b' {
            chars.by_ref().find(|c| *c == 'm');
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_top_of_a_round_fits_the_terminal() {
        let style = Style {
            width: Some(10),
            height: Some(6),
            color: true,
            verbose: false,
        };
        let text = format!(
            "{}\n{}\nthree\nfour\nfive\n",
            style.strong("one"),
            "x".repeat(15)
        );
        assert_eq!(
            style.top(&text),
            format!(
                "{}\n{}\nthree\n… 2 more lines",
                style.strong("one"),
                "x".repeat(15)
            )
        );
        assert_eq!(
            Style {
                height: None,
                ..style
            }
            .top(&text),
            text
        );
    }
}
