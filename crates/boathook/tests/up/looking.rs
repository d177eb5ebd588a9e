//! Waiting for what nobody tells of: it is looked at again and again, politely, until a deadline.

use std::time::{Duration, Instant};

use super::DEADLINE;

/// Short against what is waited for, long against one look: the machine has other things to do.
const INTERVAL: Duration = Duration::from_millis(20);

/// Looks until it holds.
pub(super) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let looking = async {
        let mut ticks = tokio::time::interval(INTERVAL);
        while !holds().await {
            ticks.tick().await;
        }
    };
    tokio::time::timeout(DEADLINE, looking).await.unwrap_or_else(|_| panic!("in vain: {what}"));
}

/// The same where nothing else runs meanwhile.
pub(super) fn block_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        std::thread::sleep(INTERVAL);
    }
}
