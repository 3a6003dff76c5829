//! Where the addresses of pods and services really are.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::isolation::Isolation;

/// The way from the addresses that the API server knows to those that can be connected to.
///
/// With namespaces they are the same. Without, everything is on the loopback, whose addresses the API server does not
/// take for those of pods: 10.244.0.2 is at 127.244.0.2 then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach(Isolation);

impl Reach {
    pub fn new(isolation: Isolation) -> Self {
        Self(isolation)
    }

    pub fn host(self, address: Ipv4Addr) -> Ipv4Addr {
        let [_, second, third, fourth] = address.octets();
        match self.0 {
            Isolation::Namespaces => address,
            Isolation::None => Ipv4Addr::new(127, second, third, fourth),
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
        let place = |isolation, address: &str| Reach::new(isolation).address(address.parse().unwrap()).to_string();
        assert_eq!(place(Isolation::Namespaces, "10.244.0.2"), "10.244.0.2");
        assert_eq!(place(Isolation::None, "10.244.0.2"), "127.244.0.2");
        assert_eq!(place(Isolation::None, "127.0.0.1"), "127.0.0.1");
        assert_eq!(place(Isolation::None, "fd00::1"), "fd00::1");
    }
}
