//! A `caBundle`: the CA certificates of the replicas that live, as PEM.

use jiff::{Timestamp, civil::DateTime, tz::Offset};
use rustls_pki_types::{CertificateDer, pem::PemObject};

/// As many replicas as anyone runs; without a bound, replicas that crash at once would fill the configuration.
const MOST: usize = 20;

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// The bundle with our own certificate in it, those that have expired left out, and likewise earlier ones of our own.
/// What is no certificate is left out too: the API server would refuse the whole for it.
pub(super) fn merged(bundle: &str, own: &str, now: Timestamp) -> String {
    let own_facts = facts(own);
    let is_own = |other: &Facts| own_facts.as_ref().is_some_and(|own| own.subject == other.subject);
    let mut others: Vec<(&str, Facts)> = blocks(bundle)
        .filter_map(|block| Some((block, facts(block)?)))
        .filter(|(_, facts)| facts.not_after > now && !is_own(facts))
        .collect();
    others.sort_by_key(|(_, facts)| std::cmp::Reverse(facts.not_after));
    others.truncate(MOST - 1);
    // In one order, so that two replicas do not write it to and fro.
    let mut all: Vec<&str> = others.into_iter().map(|(block, _)| block).chain([own.trim()]).collect();
    all.sort_unstable();
    all.dedup();
    all.join("\n") + "\n"
}

/// The certificates in a text, each as it is written.
fn blocks(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(END).filter_map(|part| Some(part[part.find(BEGIN)?..].trim()))
}

struct Facts {
    subject: Vec<u8>,
    not_after: Timestamp,
}

/// What a certificate says of itself: `tbsCertificate` of RFC 5280, up to the subject.
fn facts(pem: &str) -> Option<Facts> {
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).ok()?;
    let (certificate, _) = element(&der, SEQUENCE)?;
    let (mut rest, _) = element(certificate, SEQUENCE)?;
    if rest.first() == Some(&VERSION) {
        (_, rest) = element(rest, VERSION)?;
    }
    (_, rest) = element(rest, INTEGER)?; // serial number
    (_, rest) = element(rest, SEQUENCE)?; // signature algorithm
    (_, rest) = element(rest, SEQUENCE)?; // issuer
    let (validity, rest) = element(rest, SEQUENCE)?;
    let (subject, _) = element(rest, SEQUENCE)?;
    let tag = |of: &[u8]| of.first().copied();
    let (_, not_after) = element(validity, tag(validity)?)?;
    let (time, _) = element(not_after, tag(not_after)?)?;
    Some(Facts { subject: subject.to_owned(), not_after: time_of(tag(not_after)?, time)? })
}

const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;

/// The content of the first element, which must have this tag, and what follows it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        short @ 0..=0x7f => (usize::from(short), rest),
        // 0x80 would be an element without a length, which DER does not have.
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    (found == tag).then_some(())?;
    rest.split_at_checked(length)
}

/// `YYMMDDHHMMSSZ`, of the years 1950 to 2049, or `YYYYMMDDHHMMSSZ`.
fn time_of(tag: u8, time: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(time).ok()?.strip_suffix('Z')?;
    let text = match tag {
        UTC_TIME if text.len() == 12 => format!("{}{text}", if text < "50" { "20" } else { "19" }),
        GENERALIZED_TIME if text.len() == 14 => text.to_owned(),
        _ => return None,
    };
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i8>().ok();
    let year = text.get(..4)?.parse().ok()?;
    let civil = DateTime::new(year, number(4, 6)?, number(6, 8)?, number(8, 10)?, number(10, 12)?, number(12, 14)?, 0);
    Offset::UTC.to_timestamp(civil.ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhook::authority::Authority;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn ca(authority: &Authority, issued: i64) -> String {
        authority.issue(at(issued)).unwrap().ca
    }

    fn contains(bundle: &str, own: &str) -> bool {
        blocks(bundle).any(|block| block == own.trim())
    }

    fn authority(identity: &str) -> Authority {
        Authority::new(identity, "127.0.0.1").unwrap()
    }

    #[test]
    fn a_certificate_tells_its_end() {
        let told = facts(&ca(&authority("a"), 0)).unwrap();
        assert_eq!(told.not_after, at(3 * 3600));
        let beyond_2050 = facts(&authority("a").issue(Timestamp::from_second(3_000_000_000).unwrap()).unwrap().ca);
        assert_eq!(beyond_2050.unwrap().not_after, Timestamp::from_second(3_000_010_800).unwrap());
    }

    #[test]
    fn each_replica_adds_its_own_and_leaves_those_of_others_that_live() {
        let (a, b) = (authority("a"), authority("b"));
        let (of_a, of_b) = (ca(&a, 0), ca(&b, 1200));
        let both = merged(&merged("", &of_a, at(0)), &of_b, at(1200));
        assert!(contains(&both, &of_a) && contains(&both, &of_b) && blocks(&both).count() == 2);
        // Again is no change, in whatever order.
        assert_eq!(merged(&both, &of_a, at(1200)), both);
        // Renewed, it takes the place of the earlier one.
        let renewed = ca(&a, 1200);
        let later = merged(&both, &renewed, at(1200));
        assert!(contains(&later, &renewed) && blocks(&later).count() == 2);
        // One whose clock was stepped by an hour leaves them too.
        let stepped = merged(&later, &ca(&authority("c"), 5000), at(5000));
        assert_eq!(blocks(&stepped).count(), 3);
        // What has expired goes.
        let alone = merged(&later, &ca(&authority("c"), 15_000), at(15_000));
        assert_eq!(blocks(&alone).count(), 1);
    }

    #[test]
    fn what_is_no_certificate_goes_and_there_are_at_most_twenty() {
        let own = ca(&authority("own"), 0);
        let odd = format!("hello\n{BEGIN}\nAAAA\n{END}\n# a comment\n{}", ca(&authority("a"), 0));
        assert_eq!(blocks(&merged(&odd, &own, at(0))).count(), 2);
        let many: String = (0..30).map(|number| ca(&authority(&format!("{number}")), number)).collect();
        let kept = merged(&many, &own, at(60));
        assert!(contains(&kept, &own) && blocks(&kept).count() == 20);
        assert!(kept.contains(blocks(&many).last().unwrap()), "the youngest are kept");
    }
}
