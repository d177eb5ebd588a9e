//! Ages as kubectl shows them.

use jiff::{SignedDuration, Timestamp};

/// How long ago an RFC 3339 time was, as a person reads it; `<unknown>` for a time that is absent or unreadable.
pub fn age(time: &str, now: Timestamp) -> String {
    match time.parse::<Timestamp>() {
        Ok(time) => human_duration(now.duration_since(time)),
        Err(_) => "<unknown>".to_owned(),
    }
}

/// Two or three significant figures: `42s`, `5m10s`, `3h4m`, `2d5h`, `400d`, `2y3d`.
pub fn human_duration(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    let with_rest = |whole: i64, unit: &str, rest: i64, rest_unit: &str| match rest {
        0 => format!("{whole}{unit}"),
        rest => format!("{whole}{unit}{rest}{rest_unit}"),
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        // Clocks that differ by a second are not worth a word.
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => with_rest(minutes, "m", seconds % 60, "s"),
        _ if minutes < 3 * 60 => format!("{minutes}m"),
        _ if hours < 8 => with_rest(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => with_rest(days, "d", hours % 24, "h"),
        _ if days < 2 * 365 => format!("{days}d"),
        _ if days < 8 * 365 => with_rest(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_or_three_figures() {
        const MINUTE: i64 = 60;
        const HOUR: i64 = 3_600;
        const DAY: i64 = 86_400;
        for (seconds, wanted) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (10 * MINUTE - 1, "9m59s"),
            (10 * MINUTE + 1, "10m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + 4 * MINUTE, "3h4m"),
            (8 * HOUR + 4 * MINUTE, "8h"),
            (47 * HOUR, "47h"),
            (53 * HOUR, "2d5h"),
            (8 * DAY + HOUR, "8d"),
            (729 * DAY, "729d"),
            (733 * DAY, "2y3d"),
            (9 * 365 * DAY + DAY, "9y"),
        ] {
            assert_eq!(human_duration(SignedDuration::from_secs(seconds)), wanted, "{seconds} s");
        }
    }

    #[test]
    fn a_time_that_is_not_there_has_no_age() {
        assert_eq!(age("", Timestamp::UNIX_EPOCH), "<unknown>");
        assert_eq!(age("1970-01-01T00:00:00Z", Timestamp::from_second(61).expect("a time")), "61s");
    }
}
