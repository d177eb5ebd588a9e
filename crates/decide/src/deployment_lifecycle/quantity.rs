//! Quantities, as far as it matters whether two are equal: Kubernetes takes templates for the same whose quantities are
//! written in another way.

/// Fractions are counted in these; Kubernetes knows none that are finer.
const NANOS: i128 = 1_000_000_000;

/// How many nanos it is; none if it is no quantity, or one that is too large to be meant.
pub(super) fn nanos(text: &str) -> Option<i128> {
    let digits = text.find(|sign: char| !matches!(sign, '0'..='9' | '.' | '+' | '-')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    // Without the point it is that many times too large.
    let shift = 10i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let (times, over) = scale(suffix)?;
    let (scaled, over) = (digits.checked_mul(times)?.checked_mul(NANOS)?, shift.checked_mul(over)?);
    (scaled % over == 0).then_some(scaled / over)
}

/// What a suffix multiplies with, and divides by.
fn scale(suffix: &str) -> Option<(i128, i128)> {
    let power = |base: i128, exponent: usize| base.checked_pow(u32::try_from(exponent).ok()?);
    if let Some(place) = ["", "k", "M", "G", "T", "P", "E"].iter().position(|known| *known == suffix) {
        return Some((power(1000, place)?, 1));
    }
    if let Some(place) = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].iter().position(|known| *known == suffix) {
        return Some((power(1024, place)?, 1));
    }
    if let Some(place) = ["", "m", "u", "n"].iter().position(|known| *known == suffix) {
        return Some((1, power(1000, place)?));
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    let size = 10i128.checked_pow(exponent.unsigned_abs())?;
    Some(if exponent < 0 { (1, size) } else { (size, 1) })
}

#[cfg(test)]
mod tests {
    use super::nanos;

    #[test]
    fn quantities_are_equal_however_they_are_written() {
        for [one, other] in [
            ["1Gi", "1073741824"],
            ["0.5", "500m"],
            ["1.5Ki", "1536"],
            ["100M", "1e8"],
            ["1m", "1000u"],
            ["2", "2E0"],
            ["-1", "-1000m"],
        ] {
            assert!(nanos(one).is_some() && nanos(one) == nanos(other), "{one} is {other}");
        }
        for [one, other] in [["1G", "1Gi"], ["1", "1m"], ["1E", "1e1"]] {
            assert_ne!(nanos(one), nanos(other), "{one} is not {other}");
        }
        for none in ["", "Gi", "1Zi", "1e", "1.2.3", "0.0000000001", "999999999999999999999Ei"] {
            assert_eq!(nanos(none), None, "{none}");
        }
    }
}
