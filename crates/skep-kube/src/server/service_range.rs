//! The addresses that services are given.

use std::net::Ipv4Addr;

/// The fewest and the most addresses that a range may have, as lengths of its prefix: room for those that every cluster has,
/// and what Kubernetes takes.
const PREFIXES: std::ops::RangeInclusive<u8> = 12..=28;

/// A range of addresses for services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceRange {
    network: Ipv4Addr,
    prefix: u8,
}

impl Default for ServiceRange {
    /// 10.96.0.0/16, as clusters have it by default.
    fn default() -> Self {
        Self { network: Ipv4Addr::new(10, 96, 0, 0), prefix: 16 }
    }
}

impl ServiceRange {
    /// The range of a network and the length of its prefix, which is from 12 to 28; none for any other.
    pub fn new(network: Ipv4Addr, prefix: u8) -> Option<Self> {
        PREFIXES.contains(&prefix).then_some(Self { network, prefix })
    }

    /// The first address, and the length of the prefix.
    pub(crate) fn bounds(self) -> (Ipv4Addr, u8) {
        (self.network, self.prefix)
    }

    /// Where pods find the API server.
    pub fn api_server(self) -> Ipv4Addr {
        self.number(1)
    }

    /// Where pods find the name server.
    pub fn name_server(self) -> Ipv4Addr {
        self.number(10)
    }

    fn number(self, number: u32) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.network).wrapping_add(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_has_room_for_what_every_cluster_has() {
        let usual = ServiceRange::default();
        assert_eq!((usual.api_server(), usual.name_server()), ([10, 96, 0, 1].into(), [10, 96, 0, 10].into()));
        let small = ServiceRange::new([192, 0, 2, 16].into(), 28).unwrap();
        assert_eq!(small.name_server(), Ipv4Addr::new(192, 0, 2, 26));
        assert!([11, 29, 32].into_iter().all(|prefix| ServiceRange::new([10, 0, 0, 0].into(), prefix).is_none()));
    }
}
