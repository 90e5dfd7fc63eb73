//! The pooler's console beside the frames of a capture: they don't wait for one that is silent.

use std::time::Duration;

use tokio::pin;
use tokio::time::{Instant, timeout};

use crate::cli::rounds;
use crate::cli::settings::ConnectSettings;
use crate::model::{Millis, Pooler, Section};
use crate::source::pgbouncer;

/// One that couldn't be read is asked again after so long.
const AGAIN: Duration = Duration::from_secs(10);

pub struct Console<'s> {
    settings: &'s ConnectSettings,
    /// The interval of the frames, which bounds a look; `None` with a single frame, which waits for the whole look.
    every: Option<Duration>,
    /// When it failed last, and why.
    failed: Option<(Instant, String)>,
}

impl<'s> Console<'s> {
    pub fn new(settings: &'s ConnectSettings, every: Option<Duration>) -> Self {
        Self {
            settings,
            every,
            failed: None,
        }
    }

    /// A look at the pooler while something else is read; no longer than that takes, or the time of a frame.
    pub async fn beside<T>(
        &mut self,
        read: impl Future<Output = T>,
    ) -> (T, Option<Section<Pooler>>) {
        if let Some((at, why)) = &self.failed
            && at.elapsed() < AGAIN
        {
            let why = format!("not asked again so soon: {why}");
            return (read.await, Some(Section::skipped(why)));
        }
        let began = Instant::now();
        let look = rounds::look_at_pooler(self.settings);
        pin!(look, read);
        let mut seen = None;
        let read = loop {
            tokio::select! {
                read = &mut read => break read,
                section = &mut look, if seen.is_none() => seen = Some(section),
            }
        };
        let seen = match (seen, self.every) {
            (Some(seen), _) => seen,
            (None, None) => look.await,
            (None, Some(every)) => {
                let rest = every.saturating_sub(began.elapsed());
                timeout(rest, look).await.unwrap_or_else(|_| {
                    let waited = Millis::from(began.elapsed());
                    Some(pgbouncer::unanswered(format!("no answer within {waited}")))
                })
            }
        };
        self.failed = match &seen {
            Some(section) => section.why().map(|why| (Instant::now(), why)),
            None => None,
        };
        (read, seen)
    }
}
