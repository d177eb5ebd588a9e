//! Amounts as Kubernetes writes them: `1Gi`, `500M`, `250m`, `1e9`.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// In thousandths; none for what is no amount.
pub fn millis(quantity: &Quantity) -> Option<u128> {
    let text = quantity.0.as_str();
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let power = |units: [&str; 6], base: u128| {
        let place = units.iter().position(|known| *known == unit)?;
        Some(1000 * base.pow(u32::try_from(place).ok()? + 1))
    };
    let scale = match unit {
        "m" => 1,
        "" => 1000,
        _ => power(["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"], 1024)
            .or_else(|| power(["k", "M", "G", "T", "P", "E"], 1000))
            .or_else(|| 10_u128.checked_pow(unit.strip_prefix(['e', 'E'])?.parse().ok()?)?.checked_mul(1000))?,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: u128 = format!("0{whole}{fraction}").parse().ok()?;
    Some(digits.checked_mul(scale)? / 10_u128.checked_pow(fraction.len().try_into().ok()?)?)
}

/// In bytes, rounded up; 0 for what is no amount (the API server lets none pass).
pub fn bytes(quantity: &Quantity) -> u64 {
    millis(quantity).map_or(0, |millis| u64::try_from(millis.div_ceil(1000)).unwrap_or(u64::MAX))
}

/// The shortest exact spelling in binary units.
pub(crate) fn of_bytes(bytes: u64) -> Quantity {
    const UNITS: [&str; 6] = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];
    let mut left = bytes;
    let mut unit = 0;
    while left != 0 && left.is_multiple_of(1024) && unit + 1 < UNITS.len() {
        left /= 1024;
        unit += 1;
    }
    Quantity(format!("{left}{}", UNITS[unit]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_they_are_written() {
        let read = |text: &str| millis(&Quantity(text.to_owned()));
        let amounts = ["250m", "1.5", "64Mi", "2k", "1e3", "1Ei"].map(|text| read(text).unwrap());
        assert_eq!(amounts, [250, 1500, (64 << 20) * 1000, 2_000_000, 1_000_000, (1 << 60) * 1000]);
        assert_eq!(["1x", "", "i", "1ii", "Mi", "-1"].map(read), [None, Some(0), None, None, Some(0), None]);
        let bytes = |text: &str| bytes(&Quantity(text.to_owned()));
        assert_eq!(["1Gi", "1.5Ki", "2M", "7", "1500m"].map(bytes), [1 << 30, 1536, 2_000_000, 7, 2]);
        assert_eq!([1 << 30, 1536, 7, 0].map(|bytes| of_bytes(bytes).0), ["1Gi", "1536", "7", "0"]);
    }
}
