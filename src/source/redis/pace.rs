//! What a walk leaves to others: its share of the server's time, and an end when the server becomes slow.

use std::time::{Duration, Instant};

use super::error::Refused;
use super::fleet::Node;
use crate::model::Stopped;

/// Keeps to the share of the server's time, and watches its PING.
pub struct Pace {
    share: Option<f64>,
    /// The PING of a quiet moment: what an answer takes at least.
    quiet: Duration,
    recent: Vec<Duration>,
    last_ping: Instant,
    owed: Duration,
    pub waited: Duration,
}

/// Between two looks at the server's PING.
const PING_EVERY: Duration = Duration::from_millis(100);
/// Shorter than this can't be slept.
const SLEEP: Duration = Duration::from_millis(4);

impl Pace {
    pub fn new(share: Option<f64>) -> Self {
        Self {
            share,
            quiet: Duration::ZERO,
            recent: Vec::new(),
            last_ping: Instant::now(),
            owed: Duration::ZERO,
            waited: Duration::ZERO,
        }
    }

    async fn ping(node: &mut Node) -> Result<Duration, Refused> {
        let asked = Instant::now();
        match node.say("PING").await {
            Err(lost @ Refused::Lost(_)) => Err(lost),
            // That it may not be asked is an answer as quick as any.
            _ => Ok(asked.elapsed()),
        }
    }

    pub async fn measure(&mut self, node: &mut Node) -> Result<(), Refused> {
        if self.share.is_none() {
            return Ok(());
        }
        let mut pings = Vec::new();
        for _ in 0..5 {
            pings.push(Self::ping(node).await?);
        }
        self.quiet = median(&mut pings);
        Ok(())
    }

    /// After a page that took so long: sleeps what is owed, looks whether the server has become slow.
    pub async fn after(
        &mut self,
        node: &mut Node,
        took: Duration,
    ) -> Result<Option<Stopped>, Refused> {
        let Some(share) = self.share else {
            return Ok(None);
        };
        let busy = took.saturating_sub(self.quiet);
        self.owed += busy.mul_f64(1.0 / share - 1.0);
        if self.owed >= SLEEP {
            let slept = Instant::now();
            tokio::time::sleep(self.owed).await;
            let slept = slept.elapsed();
            self.waited += slept;
            self.owed = self.owed.saturating_sub(slept);
        }
        if self.last_ping.elapsed() < PING_EVERY {
            return Ok(None);
        }
        self.last_ping = Instant::now();
        self.recent.push(Self::ping(node).await?);
        if self.recent.len() < 5 {
            return Ok(None);
        }
        let now = median(&mut self.recent.clone());
        self.recent.remove(0);
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let slow = (self.quiet * 5).max(self.quiet + Duration::from_millis(20));
        Ok((now > slow).then(|| Stopped::Slower {
            before_us: micros(self.quiet),
            now_us: micros(now),
        }))
    }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
