//! Addresses of machines and networks.

use std::net::IpAddr;

use crate::go_text;

/// What a text that is no address is told.
pub const ADDRESS_FORM: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
/// What a text that is no range of addresses is told.
pub const RANGE_FORM: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

pub fn address(text: &str) -> Option<IpAddr> {
    text.parse().ok()
}

/// An address and the length of its prefix.
pub fn address_range(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let length: u8 = length.parse().ok()?;
    let limit = if address.is_ipv4() { 32 } else { 128 };
    (length <= limit).then_some((address, length))
}

/// An address that leads to another machine.
pub fn reachable_address(text: &str) -> Vec<String> {
    let Some(address) = address(text) else { return vec![ADDRESS_FORM.to_owned()] };
    let link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    let link_local_multicast = match address {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    };
    let mut complaints = Vec::new();
    if address.is_unspecified() {
        complaints.push(format!("may not be unspecified ({})", go_text::quoted(text)));
    }
    if address.is_loopback() {
        complaints.push("may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned());
    }
    if link_local {
        complaints.push("may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned());
    }
    if link_local_multicast {
        complaints.push("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned());
    }
    complaints
}
