//! Pod addresses: one of 127.64.0.0/16 each, so that two servers on one port never meet. All of it is loopback.

use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::sync::Mutex;

#[derive(Default)]
pub(super) struct Addresses(Mutex<Taken>);

#[derive(Default)]
struct Taken {
    taken: HashSet<u16>,
    last: u16,
}

impl Addresses {
    /// Begins after an address of chance: two nodes on one machine then seldom meet, and no pod finds the address of
    /// one that another start of the node gave.
    pub(super) fn from_anywhere() -> Self {
        let mut bytes = [0; 2];
        ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut bytes)
            .expect("the system gives random bytes");
        Self(Mutex::new(Taken { last: u16::from_ne_bytes(bytes), ..Taken::default() }))
    }

    /// The next free address: one that was given back is used again as late as possible.
    pub(super) fn take(&self) -> Option<Ipv4Addr> {
        let mut state = self.0.lock().expect("no one panics while holding it");
        let after = state.last;
        // Not the network's own address, nor the last one.
        let free = (1..=u16::MAX)
            .map(|step| after.wrapping_add(step))
            .find(|host| *host != 0 && *host != u16::MAX && !state.taken.contains(host))?;
        state.taken.insert(free);
        state.last = free;
        Some(Ipv4Addr::from(0x7f40_0000 | u32::from(free)))
    }

    /// Takes the address that a pod had before, if it is free.
    pub(super) fn take_again(&self, address: &str) -> Option<Ipv4Addr> {
        let address: Ipv4Addr = address.parse().ok()?;
        let [127, 64, high, low] = address.octets() else { return None };
        let host = u16::from_be_bytes([high, low]);
        let mut state = self.0.lock().expect("no one panics while holding it");
        state.taken.insert(host).then_some(address)
    }

    pub(super) fn give_back(&self, address: Ipv4Addr) {
        let [_, _, high, low] = address.octets();
        self.0.lock().expect("no one panics while holding it").taken.remove(&u16::from_be_bytes([high, low]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_unique_and_used_again_late() {
        let addresses = Addresses::default();
        let first = addresses.take().unwrap();
        let second = addresses.take().unwrap();
        assert_eq!((first.to_string().as_str(), second.to_string().as_str()), ("127.64.0.1", "127.64.0.2"));
        addresses.give_back(first);
        assert_eq!(addresses.take().unwrap().to_string(), "127.64.0.3");
        assert_eq!(addresses.take_again("127.64.0.1"), Some(first));
        assert_eq!(addresses.take_again("127.64.0.1"), None);
    }
}
