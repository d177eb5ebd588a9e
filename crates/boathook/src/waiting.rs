//! How commands wait for what controllers do: how often they look at the clock, and when they say that nobody comes.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};

/// Ended by Ctrl-C, as a shell says it.
pub(crate) const INTERRUPTED: u8 = 130;

/// After this long without a word of any controller, a person is told.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// What is said then.
pub(crate) const NOBODY_LOOKED: &str = "no controller has reacted yet: check that `boathook controller` runs and leads";

/// How often the progress is painted.
const FRAME: Duration = Duration::from_millis(100);

/// Ticks when the progress is to be painted.
pub(crate) fn frames() -> Interval {
    let mut frames = interval(FRAME);
    frames.set_missed_tick_behavior(MissedTickBehavior::Skip);
    frames
}
