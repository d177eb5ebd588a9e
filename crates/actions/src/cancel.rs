//! A word that whoever started something can give later: stop, or begin nothing more.

use std::sync::Arc;

use tokio::sync::watch;

/// Clones are the same token. What it says cannot be taken back.
#[derive(Clone, Debug)]
pub struct Cancel(Arc<watch::Sender<Word>>);

/// In order: who is to stop begins nothing more either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Word {
    GoOn,
    /// No further attempt. What is under way is waited for: it could not be ended, and how it ends matters.
    BeginNoMore,
    Stop,
}

impl Cancel {
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Word::GoOn)))
    }

    pub fn cancel(&self) {
        self.say(Word::Stop);
    }

    /// Lets what is under way end by itself, and nothing follow it.
    pub fn begin_no_more(&self) {
        self.say(Word::BeginNoMore);
    }

    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow() == Word::Stop
    }

    /// Waits until it is cancelled, perhaps for ever.
    pub async fn cancelled(&self) {
        self.told(Word::Stop).await;
    }

    /// Waits until nothing more is to begin, perhaps for ever.
    pub async fn begins_no_more(&self) {
        self.told(Word::BeginNoMore).await;
    }

    /// Waits for this word or a stronger one, perhaps for ever.
    pub(crate) async fn told(&self, awaited: Word) {
        let mut told = self.0.subscribe();
        told.wait_for(|word| awaited <= *word).await.expect("the sender lives in self");
    }

    fn say(&self, word: Word) {
        self.0.send_if_modified(|said| {
            let news = *said < word;
            *said = word.max(*said);
            news
        });
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

    #[tokio::test]
    async fn who_is_to_begin_no_more_is_not_stopped_and_who_is_stopped_stays_so() {
        let cancel = Cancel::new();
        cancel.begin_no_more();
        cancel.told(Word::BeginNoMore).await;
        assert!(!cancel.is_cancelled());
        cancel.cancel();
        cancel.begin_no_more();
        assert!(cancel.is_cancelled());
        cancel.told(Word::BeginNoMore).await;
    }
}
