//! Ranges of addresses that somebody asks for.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

/// Addresses that mean something else wherever they are used.
const TAKEN: [(Ipv4Net, &str); 5] = [
    (Ipv4Net::new_assert(Ipv4Addr::UNSPECIFIED, 8), "addresses of this network"),
    (Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8), "loopback addresses"),
    (Ipv4Net::new_assert(Ipv4Addr::new(169, 254, 0, 0), 16), "link-local addresses"),
    (Ipv4Net::new_assert(Ipv4Addr::new(224, 0, 0, 0), 4), "multicast addresses"),
    (Ipv4Net::new_assert(Ipv4Addr::new(240, 0, 0, 0), 4), "reserved addresses"),
];

/// A range that pods or services can have addresses of.
pub(super) fn address_range(text: &str) -> Result<Ipv4Net, String> {
    let range: Ipv4Net = text.parse().map_err(|_| "a range is needed, as in 10.97.0.0/16".to_owned())?;
    match TAKEN.iter().find(|(taken, _)| taken.contains(&range) || range.contains(taken)) {
        Some((taken, what)) => Err(format!(
            "{what} ({taken}) are in it, which lead to no pod and to no service; choose private ones, as in 10.97.0.0/16"
        )),
        None => Ok(range),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_that_lead_somewhere_are_taken() {
        for range in ["10.244.0.0/16", "172.16.0.0/12", "192.168.7.0/24", "100.64.0.0/10", "10.97.3.4/20"] {
            assert_eq!(address_range(range), Ok(range.parse().unwrap()));
        }
        for (range, what) in [
            ("0.0.0.0/0", "addresses of this network"),
            ("0.1.0.0/16", "addresses of this network"),
            ("127.244.0.0/16", "loopback addresses"),
            ("126.0.0.0/7", "loopback addresses"),
            ("169.254.0.0/16", "link-local addresses"),
            ("169.0.0.0/8", "link-local addresses"),
            ("224.0.0.0/16", "multicast addresses"),
            ("239.1.2.0/24", "multicast addresses"),
            ("255.255.0.0/16", "reserved addresses"),
            ("10.97.0.0", "a range is needed"),
            ("fd00::/64", "a range is needed"),
        ] {
            let told = address_range(range).unwrap_err();
            assert!(told.starts_with(what), "{range}: {told}");
        }
    }
}
