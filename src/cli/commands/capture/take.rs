//! Frame after frame, each by itself.

use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};

use super::console::Console;
use super::tape::Tape;
use crate::bundle::End;
use crate::cli::commands::Context;
use crate::cli::fault::Fault;
use crate::cli::redis::capture::{Reading, Told};
use crate::cli::rounds::{self, local_now};
use crate::cli::settings::ConnectSettings;
use crate::cli::stop::Stop;
use crate::model::Snapshot;
use crate::source::postgres::{Parts, round};

/// The next report of Redis, where one is being read.
async fn next_of(reading: &mut Option<Reading>) -> Told {
    if let Some(open) = reading {
        if let Some(told) = open.next().await {
            return told;
        }
        *reading = None;
    }
    std::future::pending().await
}

/// Frame after frame, until the time is over, the bundle is full, or the person ends it.
pub async fn take(
    ctx: &mut Context<'_>,
    tape: &mut Tape,
    settings: &ConnectSettings,
    every: Option<Duration>,
    time: Option<Duration>,
) -> Result<End, Fault> {
    let over = |whole: bool, why: &str| End {
        at: local_now(),
        whole,
        why: why.into(),
    };
    let mut stop = Stop::new()?;
    let mut console = Console::new(settings, every);
    let Some(every) = every else {
        tokio::select! {
            () = stop.asked() => {
                tape.gap("frame", "stopped by hand before the server had answered");
                return Ok(over(false, "stopped before it was read"));
            }
            _ = one(ctx, tape, settings, &mut console) => {}
        }
        return Ok(over(true, "one frame"));
    };
    let until = time.map(|time| Instant::now() + time);
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let passed = async {
            match until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stop.asked() => {
                // Without a time given that is how it ends.
                return Ok(over(time.is_none(), "stopped by hand"));
            }
            () = passed => return Ok(over(true, "the time is over")),
            told = next_of(&mut tape.redis) => {
                tape.told(ctx, told);
                continue;
            }
            _ = ticks.tick() => {}
        }
        tokio::select! {
            () = stop.asked() => {
                tape.gap("frame", "stopped by hand before the server had answered");
                return Ok(over(time.is_none(), "stopped by hand"));
            }
            room = one(ctx, tape, settings, &mut console) => if !room {
                return Ok(over(false, "the bundle became as large as it may (--max-size)"));
            }
        }
    }
}

/// One round, whatever comes of it; `false`: there is no room for it.
async fn one(
    ctx: &mut Context<'_>,
    tape: &mut Tape,
    settings: &ConnectSettings,
    console: &mut Console<'_>,
) -> bool {
    if tape.connected.is_none() {
        match rounds::connect(ctx, settings).await {
            Ok(connected) => {
                tape.is_back(ctx);
                tape.connected = Some(connected);
            }
            Err(Fault::Connect(error)) => {
                tape.is_away(ctx, &error);
                tape.gap("frame", &error.to_string());
                // That there was no slot is a frame as well.
                return match rounds::without_slot(&error, settings) {
                    Some(mut snapshot) => {
                        snapshot.pooler = console.beside(async {}).await.1;
                        tape.frame(ctx, snapshot)
                    }
                    None => true,
                };
            }
            Err(fault) => {
                tape.gap("frame", &fault.to_string());
                return true;
            }
        }
    }
    let Some(connected) = &tape.connected else {
        return true;
    };
    let (read, pooler) = console
        .beside(round(connected, Parts::TO_KEEP, settings.round))
        .await;
    match read {
        Ok(snapshot) => tape.frame(ctx, Snapshot { pooler, ..snapshot }),
        Err(error) => {
            ctx.console.error(&error.to_string(), None);
            tape.gap("frame", &format!("{} ({})", error.message, error.code));
            if error.connection_lost {
                tape.connected = None;
            }
            true
        }
    }
}
