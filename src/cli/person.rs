//! Who is there, how they are asked, and how they say yes, skip and stop.

use std::io::IsTerminal as _;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::time::Duration;

use super::commands::Context;
use super::settings::ActSettings;
use super::stop::Stops;
use crate::action::Consent;
use crate::operate::Ask;
use crate::view::Console;

/// A person at a terminal, a yes given in advance, or nobody.
pub struct Person {
    yes: bool,
    terminal: bool,
    named_in_full: bool,
    protects: String,
    stops: Stops,
    /// So many wishes to stop were there before the question.
    heard: usize,
    typed: Option<Typed>,
    /// Asked once more where something else than the name was typed.
    pub twice: bool,
}

impl Person {
    pub fn new(ctx: &Context<'_>, yes: bool, acting: &ActSettings) -> Self {
        let list = |what: &str, names: &[String]| match names {
            [] => String::new(),
            names => format!("; protected {what}: {}", names.join(", ")),
        };
        Self {
            yes,
            terminal: std::io::stdin().is_terminal()
                && std::io::stderr().is_terminal()
                && ctx.stdout_is_terminal,
            named_in_full: acting.named_in_full,
            protects: list("users", &acting.protected_users)
                + &list("applications", &acting.protected_applications),
            stops: Stops::default(),
            heard: 0,
            typed: None,
            twice: false,
        }
    }

    /// Nobody at all.
    pub fn nobody() -> Self {
        Self {
            yes: false,
            terminal: false,
            named_in_full: false,
            protects: String::new(),
            stops: Stops::default(),
            heard: 0,
            typed: None,
            twice: false,
        }
    }

    pub fn may_act(&self) -> bool {
        self.yes || self.terminal
    }

    /// The question itself, below what was shown.
    pub fn ask(
        &mut self,
        console: &mut Console,
        question: &str,
        name: &str,
    ) -> std::io::Result<Ask> {
        if self.yes {
            return Ok(Ask::Consent(Consent::Yes {
                named_in_full: self.named_in_full,
            }));
        }
        if !self.terminal {
            return Ok(Ask::DryRun);
        }
        self.forget();
        console.warn(&format!("{question}{}", self.protects));
        console.warn(&format!("type {name} to do it, anything else leaves it:"));
        let mut typed = self.line()?;
        let is_other = |typed: &Option<String>| {
            let typed = typed.as_deref().map(str::trim);
            typed.is_some_and(|typed| !typed.is_empty() && typed != name)
        };
        // A slip of the finger isn't the end of a run.
        if self.twice && is_other(&typed) {
            console
                .warn("that isn't the name, and nothing was done; once more, or Enter leaves it:");
            typed = self.line()?;
        }
        Ok(match typed.as_deref().map(str::trim) {
            None | Some("") => Ask::No,
            Some(typed) => Ask::Consent(Consent::Typed(typed.to_owned())),
        })
    }

    /// Somebody is there who can be asked.
    pub fn is_there(&self) -> bool {
        self.terminal
    }

    pub fn stops(&self) -> &Stops {
        &self.stops
    }

    /// A line of theirs; `None` at the end of the input, and when they ask to stop instead.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn line(&mut self) -> std::io::Result<Option<String>> {
        let typed = self.typed.get_or_insert_with(Typed::new);
        loop {
            match typed.lines.recv_timeout(Duration::from_millis(50)) {
                // A terminal that is gone is nobody who answers.
                Ok(Err(error)) if error.raw_os_error() == Some(nix::libc::EIO) => return Ok(None),
                Ok(read) => return read.map(Some),
                Err(_) if self.stops.count() > self.heard => {
                    self.heard = self.stops.count();
                    return Ok(None);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
        }
    }

    /// A line that is there already.
    pub fn line_so_far(&mut self) -> Option<String> {
        if !self.terminal {
            return None;
        }
        let typed = self.typed.get_or_insert_with(Typed::new);
        match typed.lines.try_recv() {
            Ok(Ok(line)) => Some(line),
            Ok(Err(_)) | Err(TryRecvError::Empty | TryRecvError::Disconnected) => None,
        }
    }

    /// Before a question is shown: what was typed before it is no answer to it, and neither was a Ctrl-C.
    pub fn forget(&mut self) {
        self.heard = self.stops.count();
        let _ = nix::sys::termios::tcflush(std::io::stdin(), nix::sys::termios::FlushArg::TCIFLUSH);
        while self.line_so_far().is_some() {}
    }
}

/// Lines of the standard input, read by a thread of their own: signals are only counted by now, and reading wouldn't end for
/// one.
struct Typed {
    lines: Receiver<std::io::Result<String>>,
}

impl Typed {
    fn new() -> Self {
        let (send, lines) = channel();
        std::thread::spawn(move || {
            loop {
                let mut line = String::new();
                let read = std::io::stdin().read_line(&mut line);
                let more = matches!(read, Ok(bytes) if bytes > 0);
                let said = match read {
                    Ok(0) => return,
                    Ok(_) => Ok(line),
                    Err(error) => Err(error),
                };
                if send.send(said).is_err() || !more {
                    return;
                }
            }
        });
        Self { lines }
    }
}
