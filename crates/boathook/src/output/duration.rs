//! Durations, as people write and read them.

use std::time::Duration;

/// How long something took or may take: as exact as it matters.
pub(crate) fn shown(duration: Duration) -> String {
    let millis = duration.as_millis();
    match millis {
        0..1_000 => format!("{millis}ms"),
        // Whole seconds are what people wrote themselves.
        1_000..60_000 if millis.is_multiple_of(1_000) => format!("{}s", millis / 1_000),
        1_000..60_000 => format!("{:.1}s", duration.as_secs_f64()),
        60_000..3_600_000 => in_units(duration.as_secs(), (60, "m"), "s"),
        _ => in_units(duration.as_secs() / 60, (60, "h"), "m"),
    }
}

fn in_units(count: u64, (of, large): (u64, &str), small: &str) -> String {
    match count % of {
        0 => format!("{}{large}", count / of),
        rest => format!("{}{large}{rest}{small}", count / of),
    }
}

/// Reads a duration as kubectl does: `90s`, `5m`, `1h30m`, `500ms`. Longer than none.
pub(crate) fn parse(given: &str) -> Result<Duration, String> {
    let wrong = || format!("`{given}` is not a duration: write for example 30s, 5m or 1h30m");
    let mut rest = given;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|one: char| !one.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, unit) = rest.split_at(digits);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let end = unit.find(|one: char| one.is_ascii_digit()).unwrap_or(unit.len());
        let millis = match &unit[..end] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return Err(wrong()),
        };
        let part = number.checked_mul(millis).map(Duration::from_millis);
        total = part.and_then(|part| total.checked_add(part)).ok_or_else(wrong)?;
        rest = &unit[end..];
    }
    if total.is_zero() { Err(wrong()) } else { Ok(total) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_shown_as_exactly_as_it_matters() {
        for (millis, text) in [
            (0, "0ms"),
            (999, "999ms"),
            (1_000, "1s"),
            (1_240, "1.2s"),
            (30_000, "30s"),
            (60_000, "1m"),
            (83_400, "1m23s"),
            (3_600_000, "1h"),
            (5_400_000, "1h30m"),
        ] {
            assert_eq!(shown(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn durations_are_read_as_kubectl_reads_them() {
        assert_eq!(parse("1h30m"), Ok(Duration::from_secs(5_400)));
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["", "0s", "5", "m", "5 m", "-5m", "5d", "99999999999999999999h", "9999999999999999h"] {
            assert!(parse(wrong).is_err_and(|told| told.contains(&format!("`{wrong}`"))), "{wrong}");
        }
    }
}
