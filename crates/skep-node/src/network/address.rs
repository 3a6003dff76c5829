//! Hands out addresses.

use std::collections::HashSet;
use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

use super::NetworkError;

/// The addresses of a range, save for the first and the last, which mean the range itself, and that of the node.
#[derive(Debug)]
pub(super) struct Addresses {
    range: Ipv4Net,
    taken: HashSet<Ipv4Addr>,
    last: u32,
}

impl Addresses {
    pub fn new(range: Ipv4Net) -> Result<Self, NetworkError> {
        if range.prefix_len() > 29 {
            return Err(NetworkError::TooSmall { range, what: "pods" });
        }
        let node = u32::from(range.network()) + 1;
        Ok(Self { range, taken: HashSet::new(), last: node })
    }

    /// The address of the node.
    pub fn node(&self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.range.network()) + 1)
    }

    /// The first address after the last one that was handed out which is free.
    pub fn take_next(&mut self) -> Result<Ipv4Addr, NetworkError> {
        let (first, end) = (u32::from(self.node()) + 1, u32::from(self.range.broadcast()));
        let free = (self.last + 1..end)
            .chain(first..=self.last.min(end - 1))
            .map(Ipv4Addr::from)
            .find(|address| !self.taken.contains(address))
            .ok_or(NetworkError::Exhausted(self.range))?;
        self.last = u32::from(free);
        self.taken.insert(free);
        Ok(free)
    }

    /// Takes a certain address.
    pub fn take(&mut self, address: Ipv4Addr) -> Result<(), NetworkError> {
        let reserved = [self.range.network(), self.node(), self.range.broadcast()];
        if !self.range.contains(&address) || reserved.contains(&address) {
            return Err(NetworkError::OutOfRange { address, range: self.range });
        }
        if self.taken.insert(address) { Ok(()) } else { Err(NetworkError::InUse(address)) }
    }

    /// All that are taken, in their order.
    pub fn taken(&self) -> Vec<Ipv4Addr> {
        let mut taken: Vec<_> = self.taken.iter().copied().collect();
        taken.sort();
        taken
    }

    /// Gives an address back.
    pub fn release(&mut self, address: Ipv4Addr) {
        self.taken.remove(&address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Addresses {
        Addresses::new("10.0.0.0/29".parse().unwrap()).unwrap()
    }

    fn last_of(address: Ipv4Addr) -> u8 {
        address.octets()[3]
    }

    #[test]
    fn an_address_comes_back_only_after_all_others() {
        let mut addresses = small();
        let first = addresses.take_next().unwrap();
        assert_eq!(last_of(first), 2);
        addresses.release(first);
        let next: Vec<_> = (0..5).map(|_| last_of(addresses.take_next().unwrap())).collect();
        assert_eq!(next, [3, 4, 5, 6, 2]);
        assert!(matches!(addresses.take_next(), Err(NetworkError::Exhausted(_))));
        addresses.release(Ipv4Addr::new(10, 0, 0, 4));
        assert_eq!(last_of(addresses.take_next().unwrap()), 4);
    }

    #[test]
    fn an_address_that_is_taken_is_not_handed_out() {
        let mut addresses = small();
        addresses.take(Ipv4Addr::new(10, 0, 0, 2)).unwrap();
        assert!(matches!(addresses.take(Ipv4Addr::new(10, 0, 0, 2)), Err(NetworkError::InUse(_))));
        assert_eq!(last_of(addresses.take_next().unwrap()), 3);
    }

    #[test]
    fn only_addresses_for_pods_can_be_taken() {
        let mut addresses = small();
        for last in [0, 1, 7, 8] {
            let taken = addresses.take(Ipv4Addr::new(10, 0, 0, last));
            assert!(matches!(taken, Err(NetworkError::OutOfRange { .. })), "{last}: {taken:?}");
        }
    }

    #[test]
    fn a_range_needs_room_for_pods() {
        let tiny = Addresses::new("10.0.0.0/30".parse().unwrap());
        assert!(matches!(tiny, Err(NetworkError::TooSmall { .. })));
    }
}
