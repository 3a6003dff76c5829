//! Endpoints that somebody wrote for a Service without a selector, as slices: nobody reads Endpoints any more.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::{EndpointAddress, EndpointSubset, Endpoints};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions};
use kube::ResourceExt;

use super::addresses::Port;
use super::slices::{Groups, Source};

/// Who manages the slices of Endpoints.
pub(super) const MANAGER: &str = "endpointslicemirroring-controller.k8s.io";
/// Those who write slices themselves say so on their Endpoints.
const SKIPPED: &str = "endpointslice.kubernetes.io/skip-mirror";
/// Once upon a time leaders were elected by Endpoints.
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
/// Endpoints of one slice, and of one subset; more are left out.
const CAPACITY: usize = 1_000;

/// Whether slices are to be made of them.
pub(super) fn is_wanted(endpoints: &Endpoints) -> bool {
    let is_skipped = endpoints.labels().get(SKIPPED).is_some_and(|value| value == "true");
    let is_a_lock = endpoints.annotations().contains_key(LEADER);
    !is_skipped && !is_a_lock && endpoints.metadata.deletion_timestamp.is_none()
}

pub(super) fn source(endpoints: &Endpoints) -> Source {
    Source::new(endpoints, MANAGER, CAPACITY)
}

/// The endpoints, by address family and ports.
pub(super) fn groups(endpoints: &Endpoints) -> Groups {
    let mut groups = Groups::new();
    for subset in endpoints.subsets.iter().flatten() {
        let ports = ports(subset);
        let ready = subset.addresses.iter().flatten().map(|address| (address, true));
        let unready = subset.not_ready_addresses.iter().flatten().map(|address| (address, false));
        for (address, is_ready) in ready.chain(unready).take(CAPACITY) {
            let Ok(parsed) = address.ip.parse::<IpAddr>() else { continue };
            let family = if parsed.is_ipv4() { "IPv4" } else { "IPv6" };
            groups.entry((family.to_owned(), ports.clone())).or_default().push(endpoint(address, is_ready));
        }
    }
    groups
}

fn ports(subset: &EndpointSubset) -> Vec<Port> {
    let ports = subset.ports.iter().flatten().map(|port| Port {
        name: port.name.clone().unwrap_or_default(),
        protocol: port.protocol.clone().unwrap_or_else(|| "TCP".to_owned()),
        number: port.port,
        app_protocol: port.app_protocol.clone(),
    });
    ports.collect()
}

fn endpoint(address: &EndpointAddress, is_ready: bool) -> Endpoint {
    Endpoint {
        addresses: vec![address.ip.clone()],
        conditions: Some(EndpointConditions { ready: Some(is_ready), ..EndpointConditions::default() }),
        hostname: address.hostname.clone().filter(|name| !name.is_empty()),
        node_name: address.node_name.clone(),
        target_ref: address.target_ref.clone(),
        ..Endpoint::default()
    }
}
