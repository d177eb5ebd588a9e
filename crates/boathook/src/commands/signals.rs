//! The end of a command that runs until it is told to stop.

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Waits for Ctrl-C and for SIGTERM. Made before anything is started: one that comes early must be heard too.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(crate) fn new() -> Result<Self> {
        let interrupt = signal(SignalKind::interrupt()).context("failed to wait for signals")?;
        let terminate = signal(SignalKind::terminate()).context("failed to wait for signals")?;
        Ok(Self { interrupt, terminate })
    }

    pub(crate) async fn received(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
