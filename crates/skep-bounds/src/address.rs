//! Which addresses a name may lead to. They are judged as they are dialled, so that it does not matter how they were
//! written or who was asked for them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses that nobody has a reason to be asked at: of no machine or of many, of machines without a network, and where
/// clouds answer machines about themselves.
const BARRED_V4: [(Ipv4Addr, u32); 7] = [
    (Ipv4Addr::UNSPECIFIED, 8),
    (Ipv4Addr::new(100, 100, 100, 200), 32),
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(192, 0, 0, 192), 32),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];
const BARRED_V6: [(Ipv6Addr, u32); 5] = [
    (Ipv6Addr::UNSPECIFIED, 128),
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254), 128),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8),
];
/// Addresses that are not on the internet.
const INNER_V4: [(Ipv4Addr, u32); 10] = [
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
];
const INNER_V6: [(Ipv6Addr, u32); 6] = [
    (Ipv6Addr::LOCALHOST, 128),
    (Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10),
];

/// Whether an address is one of those that are never dialled, whoever allows what.
pub fn is_barred(address: IpAddr) -> bool {
    is_among(address, &BARRED_V4, &BARRED_V6)
}

/// Whether an address is one of those that are not for everybody.
pub fn is_private(address: IpAddr) -> bool {
    is_barred(address) || is_among(address, &INNER_V4, &INNER_V6)
}

fn is_among(address: IpAddr, v4: &[(Ipv4Addr, u32)], v6: &[(Ipv6Addr, u32)]) -> bool {
    let address = match address {
        IpAddr::V6(address) => embedded(address).map_or(IpAddr::V6(address), IpAddr::V4),
        address @ IpAddr::V4(_) => address,
    };
    match address {
        IpAddr::V4(address) => v4.iter().any(|(network, bits)| {
            let shift = 32 - bits;
            address.to_bits() >> shift == network.to_bits() >> shift
        }),
        IpAddr::V6(address) => v6.iter().any(|(network, bits)| {
            let shift = 128 - bits;
            address.to_bits() >> shift == network.to_bits() >> shift
        }),
    }
}

/// The address of version 4 that an address of version 6 leads to.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let low = |high: u16, low: u16| Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    match address.segments() {
        // The two that are addresses of their own.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        // Compatible, mapped and translated ones, and those behind NAT64.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, rest]
        | [0, 0, 0, 0, 0xffff, 0, high, rest]
        | [0x64, 0xff9b, 0 | 1, 0, 0, 0, high, rest]
        // Those that a relay takes apart.
        | [0x2002, high, rest, ..] => low(high, rest),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_not_for_everybody_are_known_in_every_form() {
        for address in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.168.1.1",
            "198.18.0.1",
            "203.0.113.5",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:0:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::10.0.0.1",
            "64:ff9b:1:2::1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "2001::1",
            "2001:db8::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(is_private(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn what_is_barred_is_barred_for_everybody_and_the_own_networks_are_not() {
        for address in [
            "0.0.0.0",
            "169.254.169.254",
            "169.254.170.2",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::1",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
            "fe80::1",
            "ff02::1",
        ] {
            assert!(is_barred(address.parse().unwrap()), "{address}");
        }
        for address in [
            "127.0.0.1",
            "::1",
            "10.96.0.10",
            "172.20.1.1",
            "192.168.1.1",
            "100.64.0.1",
            "fd00::1",
            "fd00:ec3::1",
            "1.1.1.1",
        ] {
            assert!(!is_barred(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn addresses_of_the_internet_are_open() {
        for address in [
            "1.1.1.1",
            "9.255.255.255",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.255.255",
            "172.32.0.1",
            "168.63.129.17",
            "192.0.1.1",
            "198.20.0.1",
            "223.255.255.255",
            "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
            "2002:101:101::1",
            "2606:4700::1111",
            "2001:1::1",
        ] {
            assert!(!is_private(address.parse().unwrap()), "{address}");
        }
    }
}
