//! The Redis in front, beside the frames of a capture: each report once, as soon as it is read.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::look as redis_look;
use super::place as redis_place;
use crate::bundle::{self, Tokens};
use crate::cli::rounds::local_now;
use crate::config::RedisConfig;
use crate::model::Timestamp;
use crate::operate::redis_report;
use crate::source::redis::{self, Budget, Limits, RedisAddress, Watch};

/// What is read, the quickly perishable first; `look` is what triage shows.
const REPORTS: [&str; 7] = [
    "info", "look", "queues", "hotkeys", "stampede", "expiry", "bigkeys",
];
/// What moves, and is read again while frames are taken.
const AGAIN: [&str; 3] = ["info", "look", "queues"];
const EVERY: Duration = Duration::from_secs(30);
/// Each walk leaves the server to others, and ends.
const WALL: Duration = Duration::from_secs(15);

/// One report (`*`: all of them), or why there is none.
pub struct Told {
    pub report: &'static str,
    pub at: Timestamp,
    pub value: Result<Value, String>,
}

/// Reads that go on beside the frames.
pub struct Reading {
    told: UnboundedReceiver<Told>,
    stop: Rc<Cell<bool>>,
}

impl Reading {
    /// The next report; `None`: that was all.
    pub async fn next(&mut self) -> Option<Told> {
        self.told.recv().await
    }

    /// Ends it: what isn't read by now is told as missing.
    pub fn stop(&self) {
        self.stop.set(true);
    }
}

/// As what a report is kept.
struct Kept {
    redacted: bool,
    tokens: Option<Rc<Tokens>>,
    /// There is a frame after the first.
    again: bool,
}

impl Kept {
    fn of(&self, mut value: Value) -> Value {
        if self.redacted {
            bundle::redact_value(&mut value);
        }
        if let Some(tokens) = &self.tokens {
            tokens.hide_value(&mut value);
        }
        value
    }
}

struct Stopping(Rc<Cell<bool>>);

impl Watch for Stopping {
    fn progress(&self, _: u64, _: Option<u64>) {}

    fn is_stopped(&self) -> bool {
        self.0.get()
    }
}

/// Begins to read.
pub fn start(
    address: RedisAddress,
    config: RedisConfig,
    redacted: bool,
    tokens: Option<Rc<Tokens>>,
    again: bool,
) -> Reading {
    let (sender, told) = unbounded_channel();
    let stop = Rc::new(Cell::new(false));
    let watch = Stopping(Rc::clone(&stop));
    tokio::task::spawn_local(async move {
        let kept = Kept {
            redacted,
            tokens,
            again,
        };
        read(&address, &config, &kept, &watch, &sender).await;
    });
    Reading { told, stop }
}

async fn read(
    address: &RedisAddress,
    config: &RedisConfig,
    kept: &Kept,
    watch: &Stopping,
    sender: &UnboundedSender<Told>,
) {
    let limits = Limits {
        connect: redis_place::CONNECT,
        answer: redis_place::CONNECT,
    };
    let tell = |report, value| {
        // Nobody is left to be told when the capture has ended.
        let _ = sender.send(Told {
            report,
            at: local_now(),
            value,
        });
    };
    let mut fleet = match redis::open(address, None, limits).await {
        Ok(fleet) => fleet,
        Err(error) => {
            tell("*", Err(error.to_string()));
            return;
        }
    };
    let mut due = &REPORTS[..];
    loop {
        for report in due {
            if watch.is_stopped() {
                tell(report, Err("not read when the capture ended".into()));
                continue;
            }
            fleet.count_anew();
            let value = if *report == "look" {
                let seen = redis_look::see(&mut fleet, config, local_now, watch).await;
                let section = redis_look::section(seen, kept.redacted);
                serde_json::to_value(section).map_err(|error| error.to_string())
            } else {
                let budget = Budget::gentle(WALL);
                redis_report(report, &mut fleet, config, budget, local_now, watch).await
            };
            tell(report, value.map(|value| kept.of(value)));
        }
        if !kept.again {
            return;
        }
        // What moves is read again and again, as long as frames are taken.
        due = &AGAIN;
        let next = tokio::time::Instant::now() + EVERY;
        while tokio::time::Instant::now() < next {
            if watch.is_stopped() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        match redis::open(address, None, limits).await {
            Ok(opened) => fleet = opened,
            Err(error) => {
                tell("*", Err(error.to_string()));
                due = &[];
            }
        }
    }
}
