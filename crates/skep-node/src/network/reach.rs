//! Where the addresses of pods and services really are.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The way from the addresses that the API server knows to those that can be connected to.
///
/// With namespaces they are the same. Without, everything is on the loopback, whose addresses the API server does not
/// take for those of pods: 10.244.0.2 is at 127.244.0.2 then, or, where others are there already, at 127.245.0.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// How far the second part of an address is moved on the loopback; none when addresses stay as they are.
    shift: Option<u8>,
}

impl Reach {
    /// Every address is where it says.
    pub(super) const DIRECT: Self = Self { shift: None };

    /// Everything is on the loopback, moved that far.
    pub fn on_loopback(shift: u8) -> Self {
        Self { shift: Some(shift) }
    }

    /// How far, if so.
    pub fn shift(self) -> Option<u8> {
        self.shift
    }

    pub fn host(self, address: Ipv4Addr) -> Ipv4Addr {
        let [_, second, third, fourth] = address.octets();
        match self.shift {
            Some(shift) if !address.is_loopback() => Ipv4Addr::new(127, second.wrapping_add(shift), third, fourth),
            _ => address,
        }
    }

    /// The same for any address; only those of version 4 have a place on the loopback.
    pub fn address(self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V4(address) => IpAddr::V4(self.host(address)),
            IpAddr::V6(_) => address,
        }
    }

    pub fn socket(self, address: SocketAddr) -> SocketAddr {
        SocketAddr::new(self.address(address.ip()), address.port())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_namespaces_everything_is_on_the_loopback() {
        let place = |reach: Reach, address: &str| reach.address(address.parse().unwrap()).to_string();
        assert_eq!(place(Reach::DIRECT, "10.244.0.2"), "10.244.0.2");
        let first = Reach::on_loopback(0);
        assert_eq!(place(first, "10.244.0.2"), "127.244.0.2");
        assert_eq!(place(first, "fd00::1"), "fd00::1");
        let second = Reach::on_loopback(12);
        assert_eq!(place(second, "10.244.0.2"), "127.0.0.2");
        assert_eq!(place(second, "127.0.0.1"), "127.0.0.1", "it is there already");
    }
}
