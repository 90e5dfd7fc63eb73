//! The ways in which a person ends what goes on until it is ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
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

/// Counts how often the person asks to stop, also while something blocks: once, after what goes on; twice, now.
#[derive(Clone, Debug, Default)]
pub struct Stops {
    count: Arc<AtomicUsize>,
    watched: Arc<AtomicBool>,
}

/// So many watch for signals now: without any a signal ends the program again.
static WATCHING: AtomicUsize = AtomicUsize::new(0);

impl Stops {
    /// From now on the signals are counted instead of ending the program.
    ///
    /// # Errors
    /// When they can't be had.
    pub fn watch(&self) -> std::io::Result<()> {
        if self.watched.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        WATCHING.fetch_add(1, Ordering::Relaxed);
        let count = Arc::clone(&self.count);
        std::thread::spawn(move || {
            for signal in signals.forever() {
                count.fetch_add(1, Ordering::Relaxed);
                if WATCHING.load(Ordering::Relaxed) == 0 {
                    // It ends the program here, or there is no way to end it.
                    let _ = signal_hook::low_level::emulate_default_handler(signal);
                }
            }
        });
        Ok(())
    }

    /// What they were watched for is over.
    pub fn leave(&self) {
        if self.watched.swap(false, Ordering::Relaxed) {
            WATCHING.fetch_sub(1, Ordering::Relaxed);
        }
    }

    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}
