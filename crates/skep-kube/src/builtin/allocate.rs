//! Cluster addresses and node ports of services: which are free, and which a service gets.

use std::collections::HashSet;
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use crate::status::FieldError;

/// What can be given out, and what already is.
#[derive(Debug, Clone)]
pub struct Allocations {
    /// The first address of the range and the length of its prefix.
    pub range: (Ipv4Addr, u8),
    pub node_ports: std::ops::RangeInclusive<u16>,
    /// Addresses that only those get who ask for them.
    pub reserved: Vec<Ipv4Addr>,
    pub used_addresses: HashSet<Ipv4Addr>,
    pub used_ports: HashSet<u16>,
}

/// What a service has, or was given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Granted {
    pub addresses: Vec<Ipv4Addr>,
    pub ports: Vec<u16>,
}

impl Granted {
    /// What a service of the store has.
    pub fn of(service: &Value) -> Self {
        let spec = &service["spec"];
        let addresses = spec["clusterIPs"].as_array().into_iter().flatten();
        let ports = spec["ports"].as_array().into_iter().flatten().map(|port| &port["nodePort"]);
        Self {
            addresses: addresses.filter_map(|address| address.as_str()?.parse().ok()).collect(),
            ports: ports
                .chain([&spec["healthCheckNodePort"]])
                .filter_map(|port| u16::try_from(port.as_u64()?).ok())
                .collect(),
        }
    }
}

impl Allocations {
    /// Everything is free, but what is reserved.
    pub fn new(range: (Ipv4Addr, u8), node_ports: std::ops::RangeInclusive<u16>, reserved: Vec<Ipv4Addr>) -> Self {
        Self { range, node_ports, reserved, used_addresses: HashSet::new(), used_ports: HashSet::new() }
    }

    /// Takes note of what somebody has.
    pub fn note(&mut self, granted: &Granted) {
        self.used_addresses.extend(&granted.addresses);
        self.used_ports.extend(&granted.ports);
    }

    fn size(&self) -> u32 {
        2_u32.checked_pow(32_u32.saturating_sub(u32::from(self.range.1))).unwrap_or(u32::MAX)
    }

    fn contains(&self, address: Ipv4Addr) -> bool {
        let first = u32::from(self.range.0);
        // The first and the last address are those of the network and of broadcasts.
        let offset = u32::from(address).wrapping_sub(first);
        offset > 0 && offset < self.size().saturating_sub(1)
    }

    fn free_address(&self, seed: u32) -> Option<Ipv4Addr> {
        let usable = self.size().checked_sub(2)?;
        candidates(usable, (self.size() / 16).min(256), seed)
            .map(|offset| Ipv4Addr::from(u32::from(self.range.0).wrapping_add(1 + offset)))
            .find(|address| !self.used_addresses.contains(address) && !self.reserved.contains(address))
    }

    /// `own`: what the same service has got already.
    fn free_port(&self, own: &[u16], seed: u32) -> Option<u16> {
        let first = *self.node_ports.start();
        let count = u32::from(self.node_ports.end().checked_sub(first)?) + 1;
        candidates(count, (count / 32).min(128), seed)
            .filter_map(|offset| u16::try_from(u32::from(first) + offset).ok())
            .find(|port| !self.used_ports.contains(port) && !own.contains(port))
    }
}

/// All numbers below `count`. The first ones come last: people like them for what they ask for by number, and they
/// should find them free. Ranges that are too small for it have no such part.
fn candidates(count: u32, band: u32, seed: u32) -> impl Iterator<Item = u32> {
    const SMALLEST_BAND: u32 = 16;
    let band = if count > 2 * SMALLEST_BAND { band.max(SMALLEST_BAND).min(count) } else { 0 };
    let within = |from: u32, length: u32| (0..length).map(move |step| from + seed.wrapping_add(step) % length);
    within(band, count - band).chain(within(0, band))
}

/// Gives a defaulted service its addresses, families and node ports, and says which. `seed` spreads what is chosen.
pub fn allocate(service: &mut Value, state: &Allocations, seed: u32) -> Result<Granted, FieldError> {
    let Some(spec) = service.get_mut("spec").filter(|spec| spec.is_object()) else { return Ok(Granted::default()) };
    if spec["type"] == "ExternalName" {
        return Ok(Granted::default());
    }
    families(spec);
    let mut granted = Granted::default();
    let wanted = spec["clusterIP"].as_str().unwrap_or_default().to_owned();
    if wanted != "None" {
        let address = grant_address(state, &wanted, seed)?;
        granted.addresses.push(address);
        spec["clusterIP"] = address.to_string().into();
        spec["clusterIPs"] = json!([address.to_string()]);
    }
    if wants_node_ports(spec) {
        for index in 0..spec["ports"].as_array().map_or(0, Vec::len) {
            let port = &mut spec["ports"][index];
            // One number serves both protocols of the same port.
            let number = grant_port(state, port, &format!("spec.ports[{index}].nodePort"), &granted.ports, seed)?;
            if let Some(port) = port.as_object_mut() {
                port.insert("nodePort".to_owned(), number.into());
            }
            granted.ports.push(number);
        }
    }
    if spec["type"] == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local" {
        let mut holder = json!({ "nodePort": spec["healthCheckNodePort"].clone() });
        let number = grant_port(state, &mut holder, "spec.healthCheckNodePort", &granted.ports, seed)?;
        spec["healthCheckNodePort"] = number.into();
        granted.ports.push(number);
    }
    Ok(granted)
}

/// One family of addresses, but for headless services that nothing selects pods for: those may name any.
fn families(spec: &mut Value) {
    let selects_nothing = spec["selector"].as_object().is_none_or(serde_json::Map::is_empty);
    let (families, policy) = if spec["clusterIP"] == "None" && selects_nothing {
        (json!(["IPv4", "IPv6"]), "RequireDualStack")
    } else {
        (json!(["IPv4"]), "SingleStack")
    };
    if spec["ipFamilies"].is_null() {
        spec["ipFamilies"] = families;
    }
    if spec["ipFamilyPolicy"].is_null() {
        spec["ipFamilyPolicy"] = policy.into();
    }
}

fn wants_node_ports(spec: &Value) -> bool {
    spec["type"] == "NodePort" || (spec["type"] == "LoadBalancer" && spec["allocateLoadBalancerNodePorts"] != false)
}

fn grant_address(state: &Allocations, wanted: &str, seed: u32) -> Result<Ipv4Addr, FieldError> {
    if wanted.is_empty() {
        let detail = "failed to allocate a serviceIP: range is full";
        return state.free_address(seed).ok_or_else(|| FieldError::invalid("spec.clusterIPs", json!([""]), detail));
    }
    let refuse = |detail: String| FieldError::invalid("spec.clusterIPs", json!([wanted]), detail);
    let outside =
        || refuse(format!("failed to allocate IP {wanted}: the provided network does not match the current range"));
    let address: Ipv4Addr = wanted.parse().map_err(|_| outside())?;
    if !state.contains(address) {
        return Err(outside());
    }
    if state.used_addresses.contains(&address) {
        return Err(refuse(format!("failed to allocate IP {wanted}: provided IP is already allocated")));
    }
    Ok(address)
}

fn grant_port(state: &Allocations, port: &mut Value, path: &str, own: &[u16], seed: u32) -> Result<u16, FieldError> {
    let wanted = port["nodePort"].as_i64().unwrap_or_default();
    if wanted == 0 {
        return state
            .free_port(own, seed)
            .ok_or_else(|| FieldError::invalid(path, 0, "failed to allocate a nodePort: range is full"));
    }
    let (start, end) = (state.node_ports.start(), state.node_ports.end());
    let in_range = u16::try_from(wanted).ok().filter(|number| state.node_ports.contains(number));
    let Some(number) = in_range else {
        let detail = format!("provided port is not in the valid range. The range of valid ports is {start}-{end}");
        return Err(FieldError::invalid(path, wanted, detail));
    };
    if state.used_ports.contains(&number) && !own.contains(&number) {
        return Err(FieldError::invalid(path, wanted, "provided port is already allocated"));
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESERVED: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

    #[test]
    fn what_people_ask_for_by_number_is_given_out_last() {
        let mut state = Allocations::new((Ipv4Addr::new(10, 0, 0, 0), 24), 30_000..=32_767, vec![RESERVED]);
        for seed in 0..300 {
            assert!(state.free_address(seed).unwrap() > Ipv4Addr::new(10, 0, 0, 16), "{seed}");
            assert!(state.free_port(&[], seed).unwrap() >= 30_086, "{seed}");
        }
        state.used_addresses.extend((17..=254).map(|last| Ipv4Addr::new(10, 0, 0, last)));
        assert_eq!(state.free_address(0), Some(Ipv4Addr::new(10, 0, 0, 2)));
        state.used_addresses.extend((2..=16).map(|last| Ipv4Addr::new(10, 0, 0, last)));
        assert_eq!(state.free_address(7), None);
        assert_eq!(grant_address(&state, "10.0.0.1", 0), Ok(RESERVED));
    }
}
