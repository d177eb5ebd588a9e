//! Words that no other run of a command has, fit for names and labels.

use ring::rand::{SecureRandom, SystemRandom};

/// Letters and digits that make no words and are not taken for each other, as in the names that Kubernetes makes.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

pub(crate) fn word() -> String {
    let mut bytes = [0; 6];
    SystemRandom::new().fill(&mut bytes).expect("the kernel always has random bytes");
    bytes.map(|byte| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()])).iter().collect()
}
