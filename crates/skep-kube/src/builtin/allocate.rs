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
    pub used_addresses: HashSet<Ipv4Addr>,
    pub used_ports: HashSet<u16>,
}

/// What a service was given, to be returned when it is gone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Granted {
    pub addresses: Vec<Ipv4Addr>,
    pub ports: Vec<u16>,
}

impl Allocations {
    pub fn new(range: (Ipv4Addr, u8), node_ports: std::ops::RangeInclusive<u16>) -> Self {
        Self { range, node_ports, used_addresses: HashSet::new(), used_ports: HashSet::new() }
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
        let usable = self.size().checked_sub(2).filter(|usable| *usable > 0)?;
        (0..usable)
            .map(|step| u32::from(self.range.0).wrapping_add(1 + (seed.wrapping_add(step) % usable)))
            .map(Ipv4Addr::from)
            .find(|address| !self.used_addresses.contains(address))
    }

    fn free_port(&self, seed: u32) -> Option<u16> {
        let count = u32::from(self.node_ports.end().checked_sub(*self.node_ports.start())?) + 1;
        (0..count)
            .filter_map(|step| {
                u16::try_from(u32::from(*self.node_ports.start()) + (seed.wrapping_add(step) % count)).ok()
            })
            .find(|port| !self.used_ports.contains(port))
    }
}

/// Gives a defaulted service its addresses, families and node ports. `seed` spreads what is chosen.
///
/// On success the grants are already marked as used.
pub fn allocate(service: &mut Value, state: &mut Allocations, seed: u32) -> Result<Granted, FieldError> {
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
    state.used_addresses.extend(granted.addresses.iter().copied());
    state.used_ports.extend(granted.ports.iter().copied());
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
    let outside = || {
        let (first, length) = state.range;
        refuse(format!(
            "failed to allocate IP {wanted}: the provided network does not match the current range {first}/{length}"
        ))
    };
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
        let mut state = state.clone();
        state.used_ports.extend(own);
        return state
            .free_port(seed)
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
