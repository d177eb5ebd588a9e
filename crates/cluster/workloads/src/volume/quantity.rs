//! Amounts of storage as Kubernetes writes them: `1Gi`, `500M`, `1e9`.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// In bytes, rounded up; 0 for what is no amount (the API server lets none pass).
pub(crate) fn bytes(quantity: &Quantity) -> u64 {
    const SUFFIXES: [(&str, f64); 12] = [
        ("Ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("Ti", 1_099_511_627_776.0),
        ("Pi", 1_125_899_906_842_624.0),
        ("Ei", 1_152_921_504_606_846_976.0),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("P", 1e15),
        ("m", 1e-3),
    ];
    let text = quantity.0.as_str();
    let scaled = |(suffix, factor): (&str, f64)| Some((text.strip_suffix(suffix)?, factor));
    let (number, factor) = SUFFIXES.into_iter().find_map(scaled).unwrap_or((text, 1.0));
    // The cast saturates: nothing is negative or larger than 64 bits hold.
    number.parse::<f64>().map_or(0, |number| (number * factor).ceil() as u64)
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
        let read = |text: &str| bytes(&Quantity(text.to_owned()));
        assert_eq!(["1Gi", "1.5Ki", "2M", "7", "1e3", "1500m"].map(read), [1 << 30, 1536, 2_000_000, 7, 1000, 2]);
        assert_eq!([1 << 30, 1536, 7, 0].map(|bytes| of_bytes(bytes).0), ["1Gi", "1536", "7", "0"]);
    }
}
