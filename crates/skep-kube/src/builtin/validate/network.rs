//! Endpoints, network policies, ingresses.

use std::collections::HashSet;
use std::net::IpAddr;

use super::super::place::{At, one_of, port_or_name};
use crate::names::{
    PORT_RANGE, RANGE_FORM, address, address_range, dns1123_label, dns1123_subdomain, is_port_number,
    reachable_address, wildcard_subdomain,
};
use crate::status::FieldError;

/// As many endpoints as one slice can have.
const MOST_ENDPOINTS: usize = 1000;

/// Who looks after the Ingresses of a class: a domain and a path.
pub(super) fn ingress_class(controller: &At<'_>) -> Vec<FieldError> {
    let text = controller.own_text();
    if text.is_empty() {
        return vec![controller.required("")];
    }
    match text.split_once('/') {
        Some((domain, path)) if !domain.is_empty() && !path.is_empty() => {
            let complaints = dns1123_subdomain(domain).into_iter();
            complaints.map(|complaint| controller.invalid_as(domain, &complaint)).collect()
        }
        _ => vec![controller.invalid("must be a domain-prefixed path (such as \"acme.io/foo\")")],
    }
}

pub(super) fn endpoint_slice(root: &At<'_>) -> Vec<FieldError> {
    let kind = root.member("addressType");
    match kind.own_text() {
        "IPv4" | "IPv6" | "FQDN" => {}
        "" => return vec![kind.required("")],
        _ => return vec![kind.unsupported(&["FQDN", "IPv4", "IPv6"])],
    }
    let mut errors = Vec::new();
    let mut names = HashSet::new();
    for port in root.items("ports") {
        let name = port.member("name");
        if !name.own_text().is_empty() {
            errors.extend(name.each(dns1123_label(name.own_text())));
        }
        if !names.insert(name.own_text()) {
            errors.push(name.duplicate());
        }
        errors.extend(one_of(&port.member("protocol"), &["SCTP", "TCP", "UDP"]));
    }
    let endpoints = root.items("endpoints");
    if endpoints.len() > MOST_ENDPOINTS {
        return vec![FieldError::too_many("endpoints", endpoints.len(), MOST_ENDPOINTS)];
    }
    for endpoint in endpoints {
        for (name, form) in [("nodeName", dns1123_subdomain as fn(&str) -> Vec<String>), ("hostname", dns1123_label)] {
            let place = endpoint.member(name);
            if place.is_set() {
                errors.extend(place.each(form(place.own_text())));
            }
        }
        let addresses = endpoint.items("addresses");
        if addresses.is_empty() {
            errors.push(endpoint.member("addresses").required("must contain at least 1 address"));
        }
        for place in addresses {
            if kind.own_text() == "FQDN" {
                errors.extend(place.each(dns1123_subdomain(place.own_text())));
                continue;
            }
            if address(place.own_text()).is_some_and(|found| found.is_ipv4() != (kind.own_text() == "IPv4")) {
                // The real server leaves the index out.
                let detail = format!("must be an {} address", kind.own_text());
                errors.push(endpoint.member("addresses").invalid_as(place.own_text(), &detail));
            }
            errors.extend(place.each(reachable_address(place.own_text())));
        }
    }
    errors
}

pub(super) fn endpoints(root: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for subset in root.items("subsets") {
        let lists = ["addresses", "notReadyAddresses"].map(|name| subset.items(name));
        if lists.iter().all(Vec::is_empty) {
            errors.push(subset.required("must specify `addresses` or `notReadyAddresses`"));
        }
        for entry in lists.iter().flatten() {
            let ip = entry.member("ip");
            errors.extend(ip.each(reachable_address(ip.own_text())));
            if address(ip.own_text()).is_none() {
                // The real server looks twice.
                errors.push(ip.invalid_as(ip.own_text(), "must be a valid IP address"));
            }
        }
        let ports = subset.items("ports");
        for port in &ports {
            let name = port.member("name");
            if name.own_text().is_empty() {
                if ports.len() > 1 {
                    errors.push(name.required(""));
                }
            } else {
                errors.extend(name.each(dns1123_label(name.own_text())));
            }
            let number = port.member("port");
            if !is_port_number(number.value.as_i64().unwrap_or_default()) {
                errors.push(number.invalid(PORT_RANGE));
            }
            errors.extend(one_of(&port.member("protocol"), &["SCTP", "TCP", "UDP"]));
        }
    }
    errors
}

pub(super) fn network_policy(root: &At<'_>) -> Vec<FieldError> {
    let spec = root.member("spec");
    let mut errors = spec.member("podSelector").selector();
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.items(direction) {
            for port in rule.items("ports") {
                errors.extend(policy_port(&port));
            }
            for peer in rule.items(peers) {
                errors.extend(policy_peer(&peer));
            }
        }
    }
    let kinds = spec.items("policyTypes");
    if kinds.len() > 2 {
        errors.push(spec.member("policyTypes").invalid("may not specify more than two policyTypes"));
        return errors;
    }
    for kind in kinds {
        errors.extend(one_of(&kind, &["Ingress", "Egress"]));
    }
    errors
}

fn policy_port(port: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    errors.extend(one_of(&port.member("protocol"), &["TCP", "UDP", "SCTP"]));
    let number = port.member("port");
    if number.is_set() {
        errors.extend(port_or_name(&number));
    }
    let end = port.member("endPort");
    if let Some(last) = end.value.as_i64() {
        if !number.is_set() {
            errors.push(end.invalid("may not be specified when `port` is not specified"));
        } else if number.value.is_string() {
            errors.push(end.invalid("may not be specified when `port` is non-numeric"));
        } else if number.value.as_i64().is_some_and(|first| last < first) {
            // The real server shows the port, not the end.
            errors.push(end.invalid_as(number.value.clone(), "must be greater than or equal to `port`"));
        } else if !is_port_number(last) {
            errors.push(end.invalid(PORT_RANGE));
        }
    }
    errors
}

fn policy_peer(peer: &At<'_>) -> Vec<FieldError> {
    let kinds = ["podSelector", "namespaceSelector", "ipBlock"].map(|kind| peer.has(kind));
    match kinds {
        [false, false, false] => return vec![peer.required("must specify a peer")],
        [pods, namespaces, true] if pods || namespaces => {
            return vec![peer.forbidden("may not specify both ipBlock and another peer")];
        }
        _ => {}
    }
    let mut errors = Vec::new();
    for kind in ["podSelector", "namespaceSelector"] {
        errors.extend(peer.member(kind).selector());
    }
    let block = peer.member("ipBlock");
    if block.is_set() {
        let range = block.member("cidr");
        match address_range(range.own_text()) {
            None if range.own_text().is_empty() => errors.push(range.required("")),
            None => errors.push(range.invalid(RANGE_FORM)),
            Some(outer) => {
                for except in block.items("except") {
                    match address_range(except.own_text()) {
                        None => errors.push(except.invalid(RANGE_FORM)),
                        Some(inner) if !strictly_inside(inner, outer) => {
                            errors.push(except.invalid("must be a strict subset of `cidr`"));
                        }
                        Some(_) => {}
                    }
                }
            }
        }
    }
    errors
}

fn strictly_inside((inner, inner_length): (IpAddr, u8), (outer, outer_length): (IpAddr, u8)) -> bool {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => (u128::from(u32::from(address)) << 96, 0),
        IpAddr::V6(address) => (u128::from(address), 1),
    };
    let ((inner, inner_family), (outer, outer_family)) = (bits(inner), bits(outer));
    let mask = if outer_length == 0 { 0 } else { u128::MAX << (128 - u32::from(outer_length)) };
    inner_family == outer_family && inner_length > outer_length && inner & mask == outer & mask
}

pub(super) fn ingress(root: &At<'_>) -> Vec<FieldError> {
    let spec = root.member("spec");
    let mut errors = Vec::new();
    let rules = spec.items("rules");
    let backend = spec.member("defaultBackend");
    if rules.is_empty() && !backend.is_set() {
        let place = At { path: spec.path.clone(), value: &serde_json::Value::Null };
        errors.push(place.invalid("either `defaultBackend` or `rules` must be specified"));
    }
    if backend.is_set() {
        errors.extend(ingress_backend(&backend));
    }
    for rule in rules {
        let host = rule.member("host");
        if !host.own_text().is_empty() {
            if address(host.own_text()).is_some() {
                errors.push(host.invalid("must be a DNS name, not an IP address"));
            }
            let wild = host.own_text().contains('*');
            let rule = if wild { wildcard_subdomain } else { dns1123_subdomain };
            errors.extend(host.each(rule(host.own_text())));
        }
        let http = rule.member("http");
        if http.is_set() {
            let paths = http.items("paths");
            if paths.is_empty() {
                errors.push(http.member("paths").required(""));
            }
            errors.extend(paths.iter().flat_map(ingress_path));
        }
    }
    for tls in spec.items("tls") {
        for host in tls.items("hosts") {
            let rule = if host.own_text().contains('*') { wildcard_subdomain } else { dns1123_subdomain };
            errors.extend(host.each(rule(host.own_text())));
        }
    }
    let class = spec.member("ingressClassName");
    if class.is_set() {
        errors.extend(class.each(dns1123_subdomain(class.own_text())));
    }
    errors
}

fn ingress_path(path: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let kind = path.member("pathType");
    let text = path.member("path");
    match kind.own_text() {
        // Without a type nothing else of the path is looked at.
        "" => return vec![kind.required("pathType must be specified")],
        "Exact" | "Prefix" => {
            if text.own_text().starts_with('/') {
                errors.extend(exact_path(&text));
            } else {
                errors.push(text.invalid_as(text.own_text(), "must be an absolute path"));
            }
        }
        "ImplementationSpecific" => {
            if !text.own_text().is_empty() && !text.own_text().starts_with('/') {
                errors.push(text.invalid("must be an absolute path"));
            }
        }
        _ => errors.push(kind.unsupported(&["Exact", "ImplementationSpecific", "Prefix"])),
    }
    errors.extend(ingress_backend(&path.member("backend")));
    errors
}

/// Paths that are compared part by part must have one spelling.
fn exact_path(path: &At<'_>) -> Vec<FieldError> {
    let inside = ["//", "/./", "/../", "%2f", "%2F"].into_iter().filter(|part| path.own_text().contains(part));
    let at_end = ["/..", "/."].into_iter().filter(|end| path.own_text().ends_with(end));
    inside
        .map(|part| path.invalid(&format!("must not contain '{part}'")))
        .chain(at_end.map(|end| path.invalid(&format!("cannot end with '{end}'"))))
        .collect()
}

fn ingress_backend(backend: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match (backend.has("resource"), backend.has("service")) {
        (true, true) => errors.push(backend.invalid_as("", "cannot set both resource and service backends")),
        (false, false) => errors.push(backend.invalid_as("", "resource or service backend is required")),
        (true, false) => {}
        (false, true) => {
            let name = backend.deep("service.name");
            if name.own_text().is_empty() {
                errors.push(name.required(""));
            } else {
                errors.extend(name.each(dns1123_label(name.own_text())));
            }
            let port = backend.deep("service.port");
            let number = port.number("number").unwrap_or_default();
            match (port.text("name"), number) {
                ("", 0) => errors.push(port.required("port name or number is required")),
                ("", number) if !is_port_number(number) => errors.push(port.member("number").invalid(PORT_RANGE)),
                ("", _) => {}
                (_, 0) => errors.extend(port_or_name(&port.member("name"))),
                (_, _) => errors.push(backend.invalid_as("", "cannot set both port name & port number")),
            }
        }
    }
    errors
}
