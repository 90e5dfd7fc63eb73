//! A HOTKEYS session on a Redis (8.6): started with an end, stopped and cleared by us alone. One that somebody else has
//! started is never touched.

use std::time::Duration;

use super::setting::OptIn;
use crate::model::Outcome;
use crate::source::redis::{NO_HOTKEYS, Node, Refused};

/// A session that somebody asked for by name. Made only here.
#[derive(Debug)]
pub struct ApprovedSession {
    keys: usize,
    time: Duration,
}

impl ApprovedSession {
    /// At most 64 keys, as the server has it; it ends by itself after this time.
    pub fn asked_by_name(_: OptIn, keys: usize, time: Duration) -> Self {
        Self {
            keys: keys.clamp(1, 64),
            time,
        }
    }
}

/// Starts it. An error of a session that is there already is the server's word for it.
pub async fn start_session(node: &mut Node, approved: &ApprovedSession) -> Outcome {
    let (keys, seconds) = (
        approved.keys.to_string(),
        approved.time.as_secs().max(1).to_string(),
    );
    let words: [&[u8]; 9] = [
        b"HOTKEYS",
        b"START",
        b"METRICS",
        b"1",
        b"CPU",
        b"COUNT",
        keys.as_bytes(),
        b"DURATION",
        seconds.as_bytes(),
    ];
    match node.ask(&words).await {
        Ok(_) => Outcome::Set,
        Err(Refused::Unknown(_)) => {
            Outcome::Refused(format!("this server {NO_HOTKEYS} (Redis 8.6 does)"))
        }
        Err(Refused::NotPermitted(why)) => Outcome::Refused(why),
        Err(other) => Outcome::Failed(other.text().to_owned()),
    }
}

/// Ends and clears the session that we have started.
pub async fn end_session(node: &mut Node, _: &ApprovedSession) -> Outcome {
    // It may have ended by itself: then there is nothing to stop, and what it counted is still to be cleared.
    let _ = node.say("HOTKEYS STOP").await;
    match node.say("HOTKEYS RESET").await {
        Ok(_) => Outcome::Set,
        Err(other) => Outcome::Failed(other.text().to_owned()),
    }
}
