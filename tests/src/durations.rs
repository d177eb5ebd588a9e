//! How long each scenario of a run took. The longest are printed at the end, and which of them belong in another tier.

use std::{
    fmt::Write as _,
    fs::OpenOptions,
    io::Write as _,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result};

/// Names a file to which the time of every scenario is appended, for `.ci/run` to compare with the run before.
const FILE_VAR: &str = "BOATHOOK_TEST_DURATIONS";

/// Enough to see where the time goes.
const SHOWN: usize = 10;

/// A run is a process, and so is what it has measured.
static TAKEN: Mutex<Vec<(String, Duration)>> = Mutex::new(Vec::new());

pub(crate) fn note(scenario: String, taken: Duration) {
    // A list is whole between two pushes.
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner).push((scenario, taken));
}

/// The longest, a line each. `limit` is the longest wait that a scenario of this tier has by design.
pub(crate) fn longest(limit: Duration) -> String {
    table(TAKEN.lock().unwrap_or_else(PoisonError::into_inner).clone(), limit)
}

/// Appends all of them to the file that the environment names, if any.
pub(crate) fn save() -> Result<()> {
    let Ok(path) = std::env::var(FILE_VAR) else { return Ok(()) };
    let mut text = String::new();
    for (scenario, taken) in TAKEN.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let _ = writeln!(text, "{:.1} {scenario}", taken.as_secs_f64());
    }
    let file = OpenOptions::new().create(true).append(true).open(&path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).with_context(|| format!("failed to write `{path}`"))
}

fn table(mut taken: Vec<(String, Duration)>, limit: Duration) -> String {
    taken.sort_by_key(|(_, taken)| std::cmp::Reverse(*taken));
    let mut text = format!("the longest of {}:\n", taken.len());
    for (scenario, taken) in taken.iter().take(SHOWN) {
        let exceeds = if *taken > limit {
            format!("  (longer than the {} s of its tier)", limit.as_secs())
        } else {
            String::new()
        };
        let _ = writeln!(text, "{:6.1} s  {scenario}{exceeds}", taken.as_secs_f64());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_come_first_and_tell_which_exceed_their_tier() {
        let taken = (1..100).map(|seconds| (format!("of-{seconds}"), Duration::from_secs(seconds))).collect();
        let table = table(taken, Duration::from_secs(98));
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines.len(), SHOWN + 1);
        assert_eq!(lines[1], "  99.0 s  of-99  (longer than the 98 s of its tier)");
        assert_eq!(lines[2], "  98.0 s  of-98");
    }
}
