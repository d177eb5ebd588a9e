//! How long the API server waits for an answer: it says so in the query, rounded up to a whole second.

use std::time::Duration;

/// If it does not say: the default of webhook configurations.
const DEFAULT: Duration = Duration::from_secs(10);

/// No API server waits longer.
const LONGEST: Duration = Duration::from_secs(30);

/// A second by which it may have been rounded up, and one for the answer to arrive: our own words reach the person
/// rather than `context deadline exceeded`.
const MARGIN: Duration = Duration::from_secs(2);

/// How long we may take for a request with this query.
pub(super) fn of(query: Option<&str>) -> Duration {
    time_to_answer(query.and_then(said).unwrap_or(DEFAULT).min(LONGEST))
}

/// How long we may take of the time that the API server waits.
pub fn time_to_answer(patience: Duration) -> Duration {
    // Of very little, half is better than nothing.
    patience.saturating_sub(MARGIN).max(patience / 2)
}

/// `timeout=30s`; webhooks have at most 30 seconds, so it is never written in minutes.
fn said(query: &str) -> Option<Duration> {
    let value = query.split('&').find_map(|pair| pair.strip_prefix("timeout="))?;
    value.strip_suffix('s')?.parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_answer_before_the_api_server_gives_up() {
        for (query, seconds) in [
            (Some("timeout=30s"), 28),
            (Some("a=b&timeout=5s"), 3),
            (Some("timeout=2s"), 1),
            (None, 8),
            (Some("timeout=soon"), 8),
            (Some("timeout=18446744073709551615s"), 28),
        ] {
            assert_eq!(of(query), Duration::from_secs(seconds), "{query:?}");
        }
    }
}
