//! The ways in which a person ends what goes on until it is ended.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::fault::Fault;

/// Ctrl-C, the end of the terminal, or a polite kill: in each case things are put in order first.
pub struct Stop([Signal; 3]);

impl Stop {
    pub fn new() -> Result<Self, Fault> {
        Ok(Self([
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        ]))
    }

    pub async fn asked(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
