//! The name of this process: no other has it, and no later one will.

use ring::rand::{SecureRandom, SystemRandom};

/// As long as a label's value may be, so that the whole can be written anywhere.
const LONGEST_HOST: usize = 40;

/// The host's name, for a person who reads it, and 64 random bits, for all else.
pub fn identity() -> String {
    let mut bytes = [0; 8];
    SystemRandom::new().fill(&mut bytes).expect("the kernel always has random bytes");
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{}-{:016x}", plain(&host), u64::from_be_bytes(bytes))
}

fn plain(host: &str) -> String {
    let allowed = |one: &char| one.is_ascii_alphanumeric() || matches!(one, '-' | '.');
    let plain: String = host.chars().filter(allowed).take(LONGEST_HOST).collect();
    let plain = plain.trim_matches(['-', '.']);
    if plain.is_empty() { "host".to_owned() } else { plain.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_are_alike() {
        assert_ne!(identity(), identity());
    }

    #[test]
    fn a_host_name_becomes_part_of_a_label() {
        assert_eq!(plain("db-0.example.org."), "db-0.example.org");
        assert_eq!(plain("ü"), "host");
        assert_eq!(plain(&"a".repeat(99)).len(), LONGEST_HOST);
    }
}
