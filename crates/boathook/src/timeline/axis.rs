//! The time axis: from moments to columns, and the ticks that say which column is which time.

use std::time::Duration;

use jiff::Timestamp;

use super::between;
use crate::output::duration::shown;

/// Steps that people count in, in milliseconds; beyond them, hours.
const STEPS: [u64; 24] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000,
    900_000, 1_800_000, 3_600_000, 7_200_000, 18_000_000,
];

/// Between the starts of two labels, so that they are told apart.
const LEAST_BETWEEN: u64 = 7;

pub(super) struct Axis {
    start: Timestamp,
    length: Duration,
    columns: usize,
}

impl Axis {
    pub(super) fn new(start: Timestamp, end: Timestamp, columns: usize) -> Self {
        // A moment has no width: it is drawn as if it had the least that is shown.
        let length = between(start, end).max(Duration::from_millis(1));
        Self { start, length, columns: columns.max(1) }
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    pub(super) fn column(&self, moment: Timestamp) -> usize {
        let part = between(self.start, moment).as_secs_f64() / self.length.as_secs_f64();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between none and a screen's width"
        )]
        let column = (part * self.columns as f64) as usize;
        column.min(self.columns - 1)
    }

    /// From the start to a moment.
    pub(super) fn since_start(&self, moment: Timestamp) -> Duration {
        between(self.start, moment)
    }

    /// Two lines: the times, and below each its tick.
    pub(super) fn ruler(&self) -> [String; 2] {
        let (mut labels, mut ticks) = (String::new(), String::new());
        let step = self.step();
        for number in 0_u32.. {
            let time = step * number;
            if time > self.length {
                break;
            }
            let column = self.column(self.start + time);
            let label = if time.is_zero() { "0".to_owned() } else { shown(time) };
            labels = format!("{labels:column$}{label}");
            ticks = format!("{ticks:column$}|");
        }
        [labels, ticks]
    }

    fn step(&self) -> Duration {
        let columns = u64::try_from(self.columns).unwrap_or(u64::MAX);
        let least = u64::try_from(self.length.as_millis()).unwrap_or(u64::MAX).saturating_mul(LEAST_BETWEEN) / columns;
        let hours = least.div_ceil(3_600_000) * 3_600_000;
        Duration::from_millis(STEPS.into_iter().find(|step| *step >= least).unwrap_or(hours))
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::at, *};

    #[test]
    fn ticks_are_round_and_apart() {
        let [labels, ticks] = Axis::new(at(0), at(1_234), 40).ruler();
        assert_eq!(labels, "0               500ms           1s");
        assert_eq!(ticks, "|               |               |");
        let [labels, _] = Axis::new(at(0), at(7 * 86_400_000), 40).ruler();
        assert_eq!(labels, "0      30h    60h    90h    120h   150h");
        let [labels, ticks] = Axis::new(at(5), at(5), 40).ruler();
        assert!(labels.starts_with('0') && ticks.ends_with('|'), "{labels}");
    }

    #[test]
    fn every_moment_has_a_column() {
        let axis = Axis::new(at(100), at(200), 10);
        assert_eq!([0, 100, 149, 150, 200, 900].map(|moment| axis.column(at(moment))), [0, 0, 4, 5, 9, 9]);
    }
}
