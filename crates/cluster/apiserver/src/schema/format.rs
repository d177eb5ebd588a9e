//! The formats of strings that are checked, as Kubernetes checks them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;

use super::{Schema, Type};

/// What Kubernetes knows but nothing here checks: a CRD that uses one is warned of it.
const UNCHECKED: &str = "bsonobjectid mac uuid3 uuid4 uuid5 isbn isbn10 isbn13 creditcard ssn hexcolor rgbcolor \
    k8sshortname k8slongname";

impl Schema {
    /// What the author of a CRD is warned of: formats that nobody checks.
    pub fn warnings(&self) -> Vec<String> {
        let children = self.properties.values().chain(&self.items).chain(&self.additional);
        let below = children.flat_map(|child| child.warnings());
        warning(self).into_iter().chain(below).collect()
    }
}

fn warning(schema: &Schema) -> Option<String> {
    let format = schema.limits.format.as_str();
    let normalized = format.replace('-', "");
    if schema.kind != Type::String || matches!(format, "" | "password") || checker(&normalized).is_some() {
        return None;
    }
    Some(match UNCHECKED.split(' ').any(|known| known == normalized) {
        true => format!("format \"{format}\" is not checked here"),
        false => format!("unrecognized format \"{format}\""),
    })
}

/// Whether the text has the format; a format that is not checked allows everything.
pub(super) fn matches(format: &str, text: &str) -> bool {
    checker(&format.replace('-', "")).is_none_or(|check| check(text))
}

fn checker(normalized: &str) -> Option<fn(&str) -> bool> {
    match normalized {
        "datetime" => Some(is_date_time),
        "date" => Some(|text| text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()),
        "duration" => Some(|text| go_duration(text).is_some() || spelt_duration(text)),
        "byte" => Some(|text| STANDARD.decode(text).is_ok()),
        "ipv4" => Some(|text| text.parse::<Ipv4Addr>().is_ok()),
        "ipv6" => Some(|text| text.parse::<Ipv6Addr>().is_ok()),
        "cidr" => Some(is_cidr),
        "uri" => Some(is_uri),
        "email" => Some(is_email),
        "hostname" => Some(is_hostname),
        "uuid" => Some(|text| UUID.is_match(text)),
        _ => None,
    }
}

static UUID: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$").expect("a valid pattern")
});

static DATE_TIME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$")
        .expect("a valid pattern")
});

pub(super) fn is_date_time(text: &str) -> bool {
    // jiff alone takes a space for the T and much more.
    DATE_TIME.is_match(text) && text.parse::<jiff::Timestamp>().is_ok()
}

/// Nanoseconds of a duration as Go writes it: `1h30m`, `-1.5s`, `300ms`.
pub fn go_duration(text: &str) -> Option<i64> {
    const UNITS: [(&str, f64); 8] =
        [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("μs", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3600e9)];
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest.is_empty() {
        return None;
    }
    let mut nanos = 0f64;
    while !rest.is_empty() && rest != "0" {
        let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit() && c != '.')?);
        let (unit, after) = after.split_at(after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len()));
        let (_, length) = UNITS.iter().find(|(name, _)| *name == unit)?;
        nanos += number.parse::<f64>().ok()? * length;
        rest = after;
    }
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    Some((sign * nanos) as i64)
}

/// The spelt-out durations that Kubernetes takes too: `1 hour`, `22 ns`, `3 days`.
fn spelt_duration(text: &str) -> bool {
    static SPELT: LazyLock<Regex> = LazyLock::new(|| {
        let units =
            "ns|nanos?|us|µs|micros?|ms|millis?|s|secs?|seconds?|m|mins?|minutes?|h|hours?|hrs?|d|days?|w|weeks?";
        Regex::new(&format!(r"^\s*[0-9]+(\.[0-9]+)?\s*({units})\s*$")).expect("a valid pattern")
    });
    SPELT.is_match(text)
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.bytes().all(|byte| byte.is_ascii_digit()) && bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

/// An absolute URI or an absolute path, as Go's request URIs.
fn is_uri(text: &str) -> bool {
    static URI: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^([A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20\x7f]+|/[^\x00-\x20\x7f]*)$").expect("a valid pattern")
    });
    URI.is_match(text)
}

fn is_email(text: &str) -> bool {
    text.rsplit_once('@').is_some_and(|(name, host)| {
        !name.is_empty() && !name.contains([' ', '@', '<', '>']) && !host.is_empty() && !host.contains(' ')
    })
}

fn is_hostname(text: &str) -> bool {
    let label = |label: &str| {
        let inside = |c: char| c.is_alphanumeric() || c == '-';
        (1..=63).contains(&label.len()) && label.chars().all(inside) && !label.starts_with('-') && !label.ends_with('-')
    };
    text.len() <= 255 && text.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_texts_pass_and_bad_ones_do_not() {
        let cases = [
            ("date-time", "2020-01-01T00:00:00Z", "2020-01-01 00:00:00Z"),
            ("date-time", "2020-01-01T00:00:00.5+02:00", "2020-01-01T00:00:00"),
            ("date", "2020-01-01", "2020-13-01"),
            ("duration", "1h30m", "x"),
            ("duration", "1 hour", "1 fortnight"),
            ("byte", "YQ==", "*"),
            ("ipv4", "10.0.0.1", "10.0.0"),
            ("ipv6", "::1", "10.0.0.1"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
            ("uri", "https://a.example/b?c", "x y"),
            ("email", "a@b.example", "x"),
            ("hostname", "a-b.example", "x y"),
            ("uuid", "6b29fc40-ca47-1067-b31d-00dd010662da", "x"),
        ];
        for (format, good, bad) in cases {
            assert!(matches(format, good), "{good} is a {format}");
            assert!(!matches(format, bad), "{bad} is no {format}");
        }
    }

    #[test]
    fn a_schema_is_warned_of_formats_that_are_not_checked() {
        let text = |format| serde_json::json!({"type": "string", "format": format});
        let properties = serde_json::json!({"a": text("weird"), "b": text("mac"), "d": text("date")});
        let schema = Schema::from_openapi(&serde_json::json!({"type": "object", "properties": properties})).unwrap();
        assert_eq!(schema.warnings(), ["unrecognized format \"weird\"", "format \"mac\" is not checked here"]);
    }

    #[test]
    fn go_durations_are_read_in_nanoseconds() {
        assert_eq!(go_duration("1h30m"), Some(5_400_000_000_000));
        assert_eq!(go_duration("-1.5s"), Some(-1_500_000_000));
        assert_eq!(go_duration("0"), Some(0));
        assert_eq!(go_duration("1"), None);
        assert_eq!(go_duration(""), None);
        assert_eq!(go_duration("1x"), None);
    }
}
