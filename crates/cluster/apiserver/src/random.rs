//! What must be like nothing else: uids, and the ends of generated names.

/// Letters and digits that make no words: Kubernetes' alphabet for generated names.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A random UUID, as Kubernetes makes UIDs.
pub fn uid() -> String {
    let mut bytes = bytes::<16>();
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// The five characters that make a generated name its own.
pub fn suffix() -> String {
    bytes::<5>().iter().map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()])).collect()
}

pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut bytes)
        .expect("the kernel always has random bytes");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_have_the_form_of_a_uuid_and_differ() {
        let (one, two) = (uid(), uid());
        assert_ne!(one, two);
        assert_eq!((one.len(), &one[14..15]), (36, "4"));
    }
}
