//! Moments as objects carry them.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

/// A moment, no finer than it is written: so what is read back equals what was meant.
pub(crate) fn moment(time: Timestamp) -> MicroTime {
    MicroTime(Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_that_is_read_back_is_the_same() {
        let fine = Timestamp::from_nanosecond(1_794_800_000_123_456_789).unwrap();
        let written = serde_json::to_string(&moment(fine)).unwrap();
        assert_eq!(serde_json::from_str::<MicroTime>(&written).unwrap(), moment(fine));
    }
}
