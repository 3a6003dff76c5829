//! Services.

use std::collections::HashSet;

use super::super::place::{At, one_of, port_or_name, struct_text};
use super::exposure;
use crate::names::{
    ADDRESS_FORM, PORT_RANGE, address, dns1123_label, dns1123_subdomain, is_port_number, qualified_name,
    reachable_address,
};
use crate::status::{FieldError, Problem};

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
/// A day.
const LONGEST_AFFINITY: i64 = 86400;

pub(super) fn service(root: &At<'_>) -> Vec<FieldError> {
    let spec = root.member("spec");
    let addresses = spec.items("clusterIPs");
    if let Some(errors) = wrong_addresses(&spec, &addresses) {
        return errors;
    }
    if let Some(errors) = exposure::wrong_families(&spec) {
        return errors;
    }
    let mut errors = Vec::new();
    let headless = spec.text("clusterIP") == "None";
    let kind = spec.member("type");
    if spec.items("ports").is_empty() && !headless && kind.own_text() != "ExternalName" {
        errors.push(spec.member("ports").required(""));
    }
    match kind.own_text() {
        "ExternalName" => {
            if spec.has("clusterIPs") {
                errors.push(spec.member("clusterIPs").forbidden("may not be set for ExternalName services"));
            }
            errors.extend(exposure::of_a_name(&spec));
            let name = spec.member("externalName");
            let text = name.own_text().strip_suffix('.').unwrap_or(name.own_text());
            if text.is_empty() {
                errors.push(name.required(""));
            } else {
                errors.extend(name.each(dns1123_subdomain(text)));
            }
        }
        "LoadBalancer" if headless => {
            errors
                .push(spec.member("clusterIPs").index(0).invalid("may not be set to 'None' for LoadBalancer services"));
        }
        "NodePort" if headless => {
            errors.push(spec.member("clusterIPs").index(0).invalid("may not be set to 'None' for NodePort services"));
        }
        _ => {}
    }
    errors.extend(ports(&spec));
    errors.extend(spec.member("selector").labels());
    errors.extend(affinity(&spec));
    for address in spec.items("externalIPs") {
        errors.extend(address.each(reachable_address(address.own_text())));
    }
    errors.extend(one_of(&kind, &TYPES));
    errors.extend(node_ports(&spec));
    errors.extend(duplicate_ports(&spec));
    errors.extend(exposure::traffic(&spec));
    errors
}

/// Nothing else is looked at when the addresses are wrong.
fn wrong_addresses(spec: &At<'_>, addresses: &[At<'_>]) -> Option<Vec<FieldError>> {
    if spec.text("type") == "ExternalName" {
        return None;
    }
    let errors: Vec<FieldError> = addresses
        .iter()
        .filter(|place| !matches!(place.own_text(), "None" | "") && address(place.own_text()).is_none())
        .map(|place| place.invalid(ADDRESS_FORM))
        .collect();
    if !errors.is_empty() {
        return Some(errors);
    }
    let list = spec.member("clusterIPs");
    let differs = addresses.first().is_some_and(|first| first.own_text() != spec.text("clusterIP"));
    differs.then(|| vec![list.invalid("first value must match `clusterIP`")])
}

fn ports(spec: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let ports = spec.items("ports");
    let mut names = HashSet::new();
    for port in &ports {
        let name = port.member("name");
        if name.own_text().is_empty() {
            if ports.len() > 1 {
                errors.push(name.required(""));
            }
        } else {
            let messages = dns1123_label(name.own_text());
            errors.extend(name.each(messages));
            if !names.insert(name.own_text()) {
                errors.push(name.duplicate());
            }
        }
        let number = port.member("port");
        if !is_port_number(number.value.as_i64().unwrap_or_default()) {
            errors.push(number.invalid(PORT_RANGE));
        }
        if port.text("protocol").is_empty() {
            errors.push(port.member("protocol").required(""));
        } else {
            errors.extend(one_of(&port.member("protocol"), &["SCTP", "TCP", "UDP"]));
        }
        errors.extend(port_or_name(&port.member("targetPort")));
        let application = port.member("appProtocol");
        if !application.own_text().is_empty() {
            errors.extend(application.each(qualified_name(application.own_text())));
        }
    }
    errors
}

fn affinity(spec: &At<'_>) -> Vec<FieldError> {
    let affinity = spec.member("sessionAffinity");
    let mut errors: Vec<FieldError> = if affinity.own_text().is_empty() {
        vec![affinity.required("")]
    } else {
        one_of(&affinity, &["ClientIP", "None"]).into_iter().collect()
    };
    let seconds = spec.deep("sessionAffinityConfig.clientIP.timeoutSeconds");
    if affinity.own_text() == "ClientIP"
        && seconds.value.as_i64().is_some_and(|number| !(1..=LONGEST_AFFINITY).contains(&number))
    {
        errors.push(seconds.invalid("must be greater than 0 and less than 86400"));
    }
    errors
}

fn node_ports(spec: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let kind = spec.text("type");
    let mut used = HashSet::new();
    for port in spec.items("ports") {
        let place = port.member("nodePort");
        let Some(number) = place.value.as_i64().filter(|number| *number != 0) else { continue };
        if matches!(kind, "ClusterIP" | "ExternalName") {
            errors.push(place.forbidden(&format!("may not be used when `type` is '{kind}'")));
        } else if !used.insert((number, port.text("protocol"))) {
            errors.push(place.duplicate());
        }
    }
    errors
}

/// Two ports with the same number and protocol.
fn duplicate_ports(spec: &At<'_>) -> Vec<FieldError> {
    let mut seen = HashSet::new();
    let mut errors = Vec::new();
    for port in spec.items("ports") {
        if seen.insert((port.number("port"), port.text("protocol"))) {
            continue;
        }
        let text = struct_text(&[
            ("Name", "\"\"".to_owned()),
            ("Protocol", port.value["protocol"].to_string()),
            ("AppProtocol", "null".to_owned()),
            ("Port", port.value["port"].to_string()),
            ("TargetPort", "0".to_owned()),
            ("NodePort", "0".to_owned()),
        ]);
        errors.push(FieldError::new(port.path.as_str(), Problem::DuplicateStruct(text), ""));
    }
    errors
}
