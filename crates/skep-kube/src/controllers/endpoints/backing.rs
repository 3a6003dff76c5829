//! The pods that answer for a Service, as its slices tell them.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod, Service};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions};
use kube::ResourceExt;

use super::super::pods;
use super::addresses;
use super::slices::{Groups, Source};

/// Who manages the slices of a Service with a selector.
pub(super) const MANAGER: &str = "endpointslice-controller.k8s.io";
/// The label by which a node tells its zone.
const ZONE: &str = "topology.kubernetes.io/zone";
/// Endpoints of one slice.
const CAPACITY: usize = 100;

pub(super) fn source(service: &Service) -> Source {
    Source::new(service, MANAGER, CAPACITY).headless(addresses::is_headless(service))
}

/// The endpoints of these pods. Those whose node is not known are left out until it is.
pub(super) fn groups(service: &Service, pods: &[Arc<Pod>], node: impl Fn(&str) -> Option<Arc<Node>>) -> Groups {
    let mut groups = Groups::new();
    for family in families(service) {
        for pod in pods {
            let Some(node) = pods::node_name(pod).and_then(&node) else { continue };
            if let Some(endpoint) = endpoint(service, pod, &node, &family) {
                groups.entry((family.clone(), addresses::ports(service, pod))).or_default().push(endpoint);
            }
        }
        if !groups.keys().any(|(known, _)| *known == family) {
            // A Service without endpoints still has a slice, which says so.
            groups.insert((family, Vec::new()), Vec::new());
        }
    }
    groups
}

fn families(service: &Service) -> Vec<String> {
    let families = service.spec.as_ref().and_then(|spec| spec.ip_families.clone()).unwrap_or_default();
    if families.is_empty() { vec!["IPv4".to_owned()] } else { families }
}

fn endpoint(service: &Service, pod: &Pod, node: &Node, family: &str) -> Option<Endpoint> {
    let address = addresses::address(pod, family)?;
    let (ready, terminating) = (pods::is_ready(pod), pods::is_terminating(pod));
    let published = addresses::publishes_unready(service);
    Some(Endpoint {
        addresses: vec![address.to_owned()],
        conditions: Some(EndpointConditions {
            ready: Some(published || ready && !terminating),
            serving: Some(ready),
            terminating: Some(terminating),
        }),
        hostname: addresses::hostname(service, pod),
        node_name: node.metadata.name.clone(),
        zone: node.labels().get(ZONE).cloned(),
        target_ref: Some(addresses::reference(pod)),
        ..Endpoint::default()
    })
}

#[cfg(test)]
mod tests;
