//! Whether a proxy may send requests to an address: not to itself, not to the API server, not to the metadata of a cloud,
//! and to private networks only when told so.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// Names that are never sent to, and everything below them.
const FORBIDDEN_NAMES: [&str; 5] = [
    "localhost",
    "kubernetes.default.svc.cluster.local",
    "kubernetes.default.svc",
    "kubernetes.default",
    "metadata.google.internal",
];
/// Names of the cluster, and everything below them.
const PRIVATE_NAMES: [&str; 1] = ["cluster.local"];

const FORBIDDEN_V4: [(Ipv4Addr, u32); 3] =
    [(Ipv4Addr::UNSPECIFIED, 8), (Ipv4Addr::new(127, 0, 0, 0), 8), (Ipv4Addr::new(169, 254, 0, 0), 16)];
const PRIVATE_V4: [(Ipv4Addr, u32); 3] =
    [(Ipv4Addr::new(10, 0, 0, 0), 8), (Ipv4Addr::new(172, 16, 0, 0), 12), (Ipv4Addr::new(192, 168, 0, 0), 16)];
const FORBIDDEN_V6: [(Ipv6Addr, u32); 3] =
    [(Ipv6Addr::UNSPECIFIED, 128), (Ipv6Addr::LOCALHOST, 128), (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10)];
const PRIVATE_V6: [(Ipv6Addr, u32); 1] = [(Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7)];

/// What is wrong with the address of a remote server.
pub fn check(text: &str, allow_private: bool) -> Result<(), String> {
    if text.is_empty() {
        return Err("remote URL must not be empty".to_owned());
    }
    let url = Url::parse(text).map_err(|error| format!("remote URL is invalid: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("remote URL must use http or https scheme, got \"{}\"", url.scheme()));
    }
    let blocked = match url.host() {
        None => return Err("remote URL must have a valid host".to_owned()),
        Some(Host::Ipv4(address)) => address_blocked(address.into(), allow_private),
        Some(Host::Ipv6(address)) => address_blocked(address.into(), allow_private),
        Some(Host::Domain(name)) => name_blocked(name, allow_private),
    };
    blocked.map_or(Ok(()), |cause| Err(format!("remote URL host is not allowed: {cause}")))
}

fn name_blocked(name: &str, allow_private: bool) -> Option<String> {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let private = if allow_private { &[][..] } else { &PRIVATE_NAMES };
    let is_below = |above: &str| name == above || name.strip_suffix(above).is_some_and(|rest| rest.ends_with('.'));
    let found = FORBIDDEN_NAMES.iter().chain(private).find(|forbidden| is_below(forbidden))?;
    Some(format!("hostname \"{name}\" matches blocked internal hostname \"{found}\""))
}

fn address_blocked(address: IpAddr, allow_private: bool) -> Option<String> {
    // An IPv4 address in an IPv6 coat is an IPv4 address.
    let address = address.to_canonical();
    let range = match address {
        IpAddr::V4(address) => {
            let private = if allow_private { &[][..] } else { &PRIVATE_V4 };
            let within = |(network, bits): &&(Ipv4Addr, u32)| {
                (u32::from(address) ^ u32::from(*network)).checked_shr(32 - bits).unwrap_or(0) == 0
            };
            FORBIDDEN_V4.iter().chain(private).find(within).map(|(network, bits)| format!("{network}/{bits}"))
        }
        IpAddr::V6(address) => {
            let private = if allow_private { &[][..] } else { &PRIVATE_V6 };
            let within = |(network, bits): &&(Ipv6Addr, u32)| {
                (u128::from(address) ^ u128::from(*network)).checked_shr(128 - bits).unwrap_or(0) == 0
            };
            FORBIDDEN_V6.iter().chain(private).find(within).map(|(network, bits)| format!("{network}/{bits}"))
        }
    };
    range.map(|range| format!("IP address {address} falls within blocked range {range}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_judged() {
        for (url, strict, relaxed) in [
            ("https://mcp.example.com/mcp", "", ""),
            ("http://x.svc", "", ""),
            ("", "must not be empty", "must not be empty"),
            ("::", "remote URL is invalid", "remote URL is invalid"),
            ("ftp://example.com", "got \"ftp\"", "got \"ftp\""),
            ("https://", "remote URL is invalid", "remote URL is invalid"),
            ("http://127.0.0.1", "127.0.0.0/8", "127.0.0.0/8"),
            ("http://2130706433/", "127.0.0.0/8", "127.0.0.0/8"),
            ("http://0x7f.1/", "127.0.0.0/8", "127.0.0.0/8"),
            ("http://0177.0.0.1/", "127.0.0.0/8", "127.0.0.0/8"),
            ("http://[::ffff:127.0.0.1]/", "127.0.0.0/8", "127.0.0.0/8"),
            ("http://0.0.0.0", "0.0.0.0/8", "0.0.0.0/8"),
            ("http://169.254.169.254/latest", "169.254.0.0/16", "169.254.0.0/16"),
            ("http://[::1]:80", "::1/128", "::1/128"),
            ("http://[fe80::1]", "fe80::/10", "fe80::/10"),
            ("http://[fd00::1]", "fc00::/7", ""),
            ("http://10.1.2.3", "10.0.0.0/8", ""),
            ("http://172.31.0.1", "172.16.0.0/12", ""),
            ("http://172.32.0.1", "", ""),
            ("http://192.168.0.1", "192.168.0.0/16", ""),
            ("http://LocalHost", "blocked internal hostname \"localhost\"", "localhost"),
            ("http://a.localhost.", "localhost", "localhost"),
            ("http://mylocalhost", "", ""),
            ("http://kubernetes.default.svc", "kubernetes.default.svc", "kubernetes.default.svc"),
            ("http://metadata.google.internal", "metadata.google.internal", "metadata.google.internal"),
            ("http://s.ns.svc.cluster.local:8080", "cluster.local", ""),
        ] {
            for (allow_private, expected) in [(false, strict), (true, relaxed)] {
                let complaint = check(url, allow_private).err().unwrap_or_default();
                assert!(
                    complaint.contains(expected) && complaint.is_empty() == expected.is_empty(),
                    "{url} {allow_private}: {complaint}"
                );
            }
        }
    }
}
