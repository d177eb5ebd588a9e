//! How long each scenario of a run took. The longest are told at the end: a run waits for them.

use std::{
    fmt::Write as _,
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// A screen's worth is enough to see where the time goes.
const TOLD: usize = 12;

/// A run is a process, and so is what it has measured.
static TAKEN: Mutex<Vec<(String, Duration)>> = Mutex::new(Vec::new());

pub(crate) fn note(scenario: String, taken: Duration) {
    // A list is whole between two pushes.
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner).push((scenario, taken));
}

/// The longest, a line each.
pub(crate) fn longest() -> String {
    told(TAKEN.lock().unwrap_or_else(PoisonError::into_inner).clone())
}

fn told(mut taken: Vec<(String, Duration)>) -> String {
    taken.sort_by_key(|(_, taken)| std::cmp::Reverse(*taken));
    let mut text = String::new();
    for (scenario, taken) in taken.iter().take(TOLD) {
        let _ = writeln!(text, "{:6.1} s  {scenario}", taken.as_secs_f64());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_are_told_first_and_no_more_than_a_screen_of_them() {
        let taken = (1..100).map(|seconds| (format!("of-{seconds}"), Duration::from_secs(seconds))).collect();
        let told = told(taken);
        assert_eq!(told.lines().count(), TOLD);
        assert_eq!(told.lines().next(), Some("  99.0 s  of-99"));
    }
}
