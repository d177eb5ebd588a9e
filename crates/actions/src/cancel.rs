//! A word that whoever started something can give later: stop.

use std::sync::Arc;

use tokio::sync::watch;

/// Clones are the same token. Cancelling it cannot be taken back.
#[derive(Clone, Debug)]
pub struct Cancel(Arc<watch::Sender<bool>>);

impl Cancel {
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is cancelled, perhaps for ever.
    pub async fn cancelled(&self) {
        let mut told = self.0.subscribe();
        told.wait_for(|cancelled| *cancelled).await.expect("the sender lives in self");
    }
}

impl Default for Cancel {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_clone_hears_it_also_when_it_asks_later() {
        let cancel = Cancel::new();
        let other = cancel.clone();
        assert!(!other.is_cancelled());
        let waiting = tokio::spawn(async move { other.cancelled().await });
        cancel.cancel();
        waiting.await.unwrap();
        cancel.cancelled().await;
        assert!(cancel.is_cancelled());
    }
}
