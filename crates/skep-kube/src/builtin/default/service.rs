//! Services. Addresses and node ports are for [`crate::builtin::allocate`].

use serde_json::{Value, json};

use super::{each, empty, fill, fill_zero, text, with};

/// Three hours.
const AFFINITY_SECONDS: u32 = 10800;

pub(super) fn service(object: &mut Value) {
    fill(object, "spec", empty());
    with(object, "spec", |spec| {
        fill_zero(spec, "sessionAffinity", "None");
        if text(spec, "sessionAffinity") == "ClientIP" {
            fill(spec, "sessionAffinityConfig", json!({ "clientIP": {} }));
            with(spec, "sessionAffinityConfig", |config| {
                fill(config, "clientIP", empty());
                with(config, "clientIP", |client| fill(client, "timeoutSeconds", AFFINITY_SECONDS));
            });
        } else if let Some(members) = spec.as_object_mut() {
            members.remove("sessionAffinityConfig");
        }
        fill_zero(spec, "type", "ClusterIP");
        each(spec, "ports", port);
        traffic(spec);
        mirror_addresses(spec);
    });
}

fn port(port: &mut Value) {
    fill_zero(port, "protocol", "TCP");
    let number = port["port"].clone();
    fill_zero(port, "targetPort", number);
}

fn traffic(spec: &mut Value) {
    let kind = text(spec, "type").to_owned();
    let external_addresses = spec["externalIPs"].as_array().is_some_and(|list| !list.is_empty());
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") || (kind == "ClusterIP" && external_addresses) {
        fill_zero(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(kind.as_str(), "ClusterIP" | "NodePort" | "LoadBalancer") {
        fill(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        fill(spec, "allocateLoadBalancerNodePorts", true);
    }
}

/// `clusterIP` is the first of `clusterIPs`; a client may set either.
fn mirror_addresses(spec: &mut Value) {
    let first = spec["clusterIPs"][0].clone();
    let single = spec["clusterIP"].clone();
    match (single.as_str().unwrap_or_default().is_empty(), first.is_string()) {
        (false, false) => fill(spec, "clusterIPs", json!([single])),
        (true, true) => fill_zero(spec, "clusterIP", first),
        _ => {}
    }
}
