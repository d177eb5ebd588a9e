//! The order in which objects are looked at when many wait: a limit on how many at once, which urgent ones pass.

use std::{pin::pin, time::Duration};

use jiff::Timestamp;
use tokio::sync::{Semaphore, SemaphorePermit, watch};

/// The limit, and the news that some object has become urgent.
pub(super) struct Turns {
    places: Semaphore,
    /// Counts changes that made an object urgent: an object that waits may be the one that changed.
    urgent: watch::Sender<u64>,
}

/// The right to look at one object now.
pub(super) enum Turn<'a> {
    Place(#[expect(dead_code, reason = "dropping it frees the place")] SemaphorePermit<'a>),
    Urgent,
}

impl Turns {
    pub(super) fn new(at_once: usize) -> Self {
        Self { places: Semaphore::new(at_once), urgent: watch::Sender::new(0) }
    }

    /// An object became urgent, and the store has it.
    pub(super) fn became_urgent(&self) {
        self.urgent.send_modify(|changes| *changes = changes.wrapping_add(1));
    }

    /// No object that waits gets a turn any more.
    pub(super) fn close(&self) {
        self.places.close();
    }

    /// Waits for a place, or until the moment at which `urgent_at` says that the object is urgent. It is asked again
    /// whenever an object has become urgent. None after [`Turns::close`].
    pub(super) async fn next(&self, urgent_at: impl Fn() -> Option<Timestamp>) -> Option<Turn<'_>> {
        let mut place = pin!(self.places.acquire());
        let mut changes = self.urgent.subscribe();
        loop {
            // A moment that has passed is a wait of zero.
            let wait = |at| Duration::try_from(Timestamp::now().duration_until(at)).unwrap_or_default();
            let urgent_in: Option<Duration> = urgent_at().map(wait);
            if urgent_in.is_some_and(|wait| wait.is_zero()) {
                return (!self.places.is_closed()).then_some(Turn::Urgent);
            }
            tokio::select! {
                place = &mut place => return place.ok().map(Turn::Place),
                changed = changes.changed() => changed.ok()?,
                () = tokio::time::sleep(urgent_in.unwrap_or_default()), if urgent_in.is_some() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures::{FutureExt, poll};
    use jiff::SignedDuration;

    use super::*;

    #[tokio::test]
    async fn urgent_object_does_not_wait_for_a_place() {
        let turns = Turns::new(1);
        let _only = turns.next(|| None).await.unwrap();
        let mut waits = pin!(turns.next(|| None));
        assert!(poll!(&mut waits).is_pending());
        assert!(matches!(turns.next(|| Some(Timestamp::MIN)).now_or_never(), Some(Some(Turn::Urgent))));
    }

    #[tokio::test]
    async fn waiting_object_that_becomes_urgent_is_next() {
        let turns = Turns::new(1);
        let _only = turns.next(|| None).await.unwrap();
        let urgent = Mutex::new(None);
        let mut waits = pin!(turns.next(|| *urgent.lock().unwrap()));
        assert!(poll!(&mut waits).is_pending());
        *urgent.lock().unwrap() = Some(Timestamp::now());
        turns.became_urgent();
        assert!(waits.await.is_some());
    }

    #[tokio::test]
    async fn waiting_object_is_next_at_its_expiry() {
        let turns = Turns::new(1);
        let _only = turns.next(|| None).await.unwrap();
        let expiry = Timestamp::now() + SignedDuration::from_millis(20);
        assert!(turns.next(|| Some(expiry)).await.is_some());
        assert!(Timestamp::now() >= expiry);
    }

    #[tokio::test]
    async fn no_turn_after_the_close() {
        let turns = Turns::new(1);
        let _only = turns.next(|| None).await.unwrap();
        let waits = turns.next(|| None);
        turns.close();
        assert!(waits.await.is_none());
        assert!(turns.next(|| Some(Timestamp::MIN)).await.is_none());
    }
}
