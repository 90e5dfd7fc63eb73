//! What is being written, and what becomes of each thing that is to be.

use std::io;
use std::path::Path;
use std::rc::Rc;

use crate::analysis::glance::{Glance, glance};
use crate::bundle::{End, Folder, Gap, Kept, Tokens};
use crate::cli::commands::Context;
use crate::cli::log_moments;
use crate::cli::redis::capture::{Reading, Told};
use crate::cli::rounds::local_now;
use crate::cli::stop::Stop;
use crate::model::{Snapshot, Target, Timestamp};
use crate::source::postgres::Connected;
use crate::sql;
use crate::view::bundle::Gauge;

/// What is being written.
pub struct Tape {
    pub folder: Folder,
    pub tokens: Option<Rc<Tokens>>,
    /// What an error may name that is to be a token, with its kind.
    pub names: Vec<(&'static str, String)>,
    /// As the last frame has it.
    pub target: Target,
    pub worst: Option<Glance>,
    pub gauge: Option<Gauge>,
    pub connected: Option<Connected>,
    pub redis: Option<Reading>,
    /// Why something couldn't be written, the first time.
    pub failed: Option<io::Error>,
}

impl Tape {
    pub fn gap(&mut self, what: &str, why: &str) {
        let mut why = sql::redacted(why).into_owned();
        if let Some(tokens) = &self.tokens {
            for (kind, name) in &self.names {
                why = why.replace(name, &tokens.of(kind, name));
            }
        }
        let gap = Gap {
            at: local_now(),
            what: what.into(),
            why,
        };
        // Told with the next one, or at the end.
        let written = self.folder.gap(gap);
        self.note(written.err());
    }

    pub fn note(&mut self, error: Option<io::Error>) {
        if self.failed.is_none() {
            self.failed = error;
        }
    }

    /// `false`: the bundle is as large as it may be.
    pub fn frame(&mut self, ctx: &mut Context<'_>, mut snapshot: Snapshot) -> bool {
        if let Some(tokens) = &self.tokens {
            tokens.hide(&mut snapshot);
        }
        let snapshot = &snapshot;
        let kept = match self.folder.frame(snapshot) {
            Ok(kept) => kept,
            Err(error) => {
                ctx.console
                    .error(&format!("a frame wasn't written: {error}"), None);
                self.gap("frame", &format!("not written: {error}"));
                self.note(Some(error));
                return true;
            }
        };
        self.target = snapshot.target.clone();
        let seen = glance(snapshot);
        for part in &seen.failed {
            let why = crate::model::Part::ALL
                .iter()
                .find(|known| known.name() == *part)
                .and_then(|part| snapshot.status(*part).1);
            self.gap(part, &why.unwrap_or_default());
        }
        if let Some(gauge) = &mut self.gauge {
            let line = gauge.line(&seen, ctx.console.style);
            ctx.console.rendered(&line);
        }
        let weight = |glance: &Glance| (glance.waiting, glance.used);
        if self
            .worst
            .as_ref()
            .is_none_or(|worst| weight(&seen) > weight(worst))
        {
            self.worst = Some(seen);
        }
        kept == Kept::Written
    }
}

impl Tape {
    /// Last of all: a log doesn't perish.
    pub fn log(&mut self, path: &Path, from: Timestamp) {
        let shown = path.display();
        match log_moments::of(path, Some(from), None) {
            Ok(told) => match self.folder.log(&told.moments) {
                Ok(Kept::Written) if told.left_out > 0 => {
                    let older = crate::model::counted(told.left_out, "older moment");
                    self.gap("log", &format!("{shown}: {older} left out"));
                }
                Ok(Kept::Written) => {}
                Ok(Kept::TooLarge) => self.gap("log", &format!("{shown}: no room (--max-size)")),
                Err(error) => {
                    self.gap("log", &format!("{shown}: not written: {error}"));
                    self.note(Some(error));
                }
            },
            Err(fault) => self.gap("log", &fault.to_string()),
        }
    }

    pub fn told(&mut self, ctx: &mut Context<'_>, told: Told) {
        let Told { report, at, value } = told;
        let written = match value {
            Ok(value) => self.folder.redis(report, at, &value),
            Err(why) => {
                self.gap(&format!("redis {report}"), &why);
                return;
            }
        };
        match written {
            Ok(Kept::Written) => {}
            Ok(Kept::TooLarge) => self.gap(&format!("redis {report}"), "no room (--max-size)"),
            Err(error) => {
                ctx.console
                    .error(&format!("redis {report} wasn't written: {error}"), None);
                self.gap(&format!("redis {report}"), &format!("not written: {error}"));
                self.note(Some(error));
            }
        }
    }

    /// What is still being read of Redis: one frame waits for all of it, a row of frames only for the report that is read.
    pub async fn rest_of_redis(&mut self, ctx: &mut Context<'_>, end: End) -> End {
        let Some(mut reading) = self.redis.take() else {
            return end;
        };
        if self.folder.frames() != 1 || !end.whole {
            reading.stop();
        }
        let Ok(mut stop) = Stop::new() else {
            return end;
        };
        loop {
            tokio::select! {
                () = stop.asked() => reading.stop(),
                told = reading.next() => match told {
                    Some(told) => self.told(ctx, told),
                    None => return end,
                }
            }
        }
    }
}
