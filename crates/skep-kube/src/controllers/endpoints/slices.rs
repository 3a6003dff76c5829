//! The EndpointSlices of a Service: how its endpoints are spread over them with few writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod, Service};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;

use super::super::ownership::controller_reference;
use super::super::pods;
use super::addresses::{self, Port};
use super::{HEADLESS, TRIGGER_TIME};

pub(super) const SERVICE_NAME: &str = "kubernetes.io/service-name";
pub(super) const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
pub(super) const MANAGER: &str = "endpointslice-controller.k8s.io";
/// The label by which a node tells its zone.
const ZONE: &str = "topology.kubernetes.io/zone";
/// Endpoints of one slice.
const CAPACITY: usize = 100;

#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) create: Vec<EndpointSlice>,
    pub(super) update: Vec<EndpointSlice>,
    pub(super) delete: Vec<Arc<EndpointSlice>>,
}

/// Endpoints by address family and by the ports they have in common; a slice holds one such group only.
type Groups = BTreeMap<(String, Vec<Port>), Vec<Endpoint>>;

/// What to write for these pods. Those whose node is not known are left out until it is.
pub(super) fn plan(
    service: &Service,
    pods: &[Arc<Pod>],
    node: impl Fn(&str) -> Option<Arc<Node>>,
    existing: &[Arc<EndpointSlice>],
) -> Plan {
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
    let mut plan = Plan::default();
    let mut free: Vec<Arc<EndpointSlice>> = Vec::new();
    let mut filled: Vec<(Arc<EndpointSlice>, EndpointSlice)> = Vec::new();
    let mut of_group: BTreeMap<(String, Vec<Port>), Vec<Arc<EndpointSlice>>> = BTreeMap::new();
    for slice in existing {
        let group = (slice.address_type.clone(), ports_of(slice));
        if groups.contains_key(&group) {
            of_group.entry(group).or_default().push(slice.clone());
        } else {
            free.push(slice.clone());
        }
    }
    let mut missing: Vec<EndpointSlice> = Vec::new();
    for (group, endpoints) in groups {
        let slices = of_group.remove(&group).unwrap_or_default();
        spread(service, &group, endpoints, slices, &mut filled, &mut missing, &mut free);
    }
    // A slice that nobody needs takes the content of one that is missing.
    for wanted in missing {
        match free.iter().position(|slice| slice.address_type == wanted.address_type) {
            Some(index) => {
                let recycled = free.swap_remove(index);
                plan.update.push(refilled(
                    service,
                    &recycled,
                    wanted.ports.clone(),
                    wanted.endpoints.unwrap_or_default(),
                ));
            }
            None => plan.create.push(wanted),
        }
    }
    plan.delete = free;
    plan.update.extend(filled.into_iter().filter(|(before, after)| !is_same(before, after)).map(|(_, after)| after));
    plan
}

/// Distributes the endpoints of one group: each stays in the slice where it is; new ones fill the gaps.
fn spread(
    service: &Service,
    group: &(String, Vec<Port>),
    endpoints: Vec<Endpoint>,
    slices: Vec<Arc<EndpointSlice>>,
    filled: &mut Vec<(Arc<EndpointSlice>, EndpointSlice)>,
    missing: &mut Vec<EndpointSlice>,
    free: &mut Vec<Arc<EndpointSlice>>,
) {
    let (family, ports) = group;
    let mut waiting: BTreeMap<String, Endpoint> =
        endpoints.into_iter().map(|endpoint| (identity(&endpoint), endpoint)).collect();
    let mut contents: Vec<(Arc<EndpointSlice>, Vec<Endpoint>)> = Vec::new();
    for slice in slices {
        let kept =
            slice.endpoints.iter().flatten().filter_map(|endpoint| waiting.remove(&identity(endpoint))).take(CAPACITY);
        let kept: Vec<_> = kept.collect();
        contents.push((slice, kept));
    }
    let mut waiting = waiting.into_values();
    for (_, content) in &mut contents {
        let room = CAPACITY.saturating_sub(content.len());
        content.extend(waiting.by_ref().take(room));
    }
    let wants_none = contents.iter().all(|(_, content)| content.is_empty());
    let mut kept_one = false;
    for (slice, content) in contents {
        if content.is_empty() && (kept_one || !wants_none) {
            free.push(slice);
            continue;
        }
        kept_one = true;
        let after = refilled(service, &slice, slice_ports(ports), content);
        filled.push((slice, after));
    }
    let mut rest: Vec<Endpoint> = waiting.collect();
    if rest.is_empty() && !kept_one {
        missing.push(new_slice(service, family, ports, Vec::new()));
    }
    while !rest.is_empty() {
        let tail = rest.split_off(rest.len().min(CAPACITY));
        missing.push(new_slice(service, family, ports, std::mem::replace(&mut rest, tail)));
    }
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

fn identity(endpoint: &Endpoint) -> String {
    let uid = endpoint.target_ref.as_ref().and_then(|target| target.uid.clone()).unwrap_or_default();
    format!("{uid}/{}", endpoint.addresses.first().map(String::as_str).unwrap_or_default())
}

fn ports_of(slice: &EndpointSlice) -> Vec<Port> {
    let ports = slice.ports.iter().flatten().map(|port| Port {
        name: port.name.clone().unwrap_or_default(),
        protocol: port.protocol.clone().unwrap_or_else(|| "TCP".to_owned()),
        number: port.port.unwrap_or(0),
        app_protocol: port.app_protocol.clone(),
    });
    ports.collect()
}

fn slice_ports(ports: &[Port]) -> Option<Vec<EndpointPort>> {
    let ports = ports.iter().map(|port| EndpointPort {
        name: Some(port.name.clone()),
        protocol: Some(port.protocol.clone()),
        port: Some(port.number),
        app_protocol: port.app_protocol.clone(),
    });
    Some(ports.collect::<Vec<_>>()).filter(|ports| !ports.is_empty())
}

fn labels(service: &Service) -> BTreeMap<String, String> {
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.remove(HEADLESS);
    labels.insert(SERVICE_NAME.into(), service.metadata.name.clone().unwrap_or_default());
    labels.insert(MANAGED_BY.into(), MANAGER.into());
    if addresses::is_headless(service) {
        labels.insert(HEADLESS.into(), String::new());
    }
    labels
}

fn annotations(service: &Service) -> BTreeMap<String, String> {
    let own = ["kubectl.kubernetes.io/last-applied-configuration", TRIGGER_TIME];
    let annotations = service.metadata.annotations.clone().unwrap_or_default();
    annotations.into_iter().filter(|(name, _)| !own.contains(&name.as_str())).collect()
}

fn new_slice(service: &Service, family: &str, ports: &[Port], endpoints: Vec<Endpoint>) -> EndpointSlice {
    EndpointSlice {
        metadata: ObjectMeta {
            generate_name: Some(generate_name(service.metadata.name.as_deref().unwrap_or_default())),
            namespace: service.metadata.namespace.clone(),
            labels: Some(labels(service)),
            annotations: Some(annotations(service)).filter(|annotations| !annotations.is_empty()),
            owner_references: Some(vec![controller_reference(service)]),
            ..ObjectMeta::default()
        },
        address_type: family.to_owned(),
        endpoints: Some(endpoints),
        ports: slice_ports(ports),
    }
}

/// Room is left for the random end of the name.
fn generate_name(service: &str) -> String {
    let longest = 57.min(service.len());
    format!("{}-", &service[..service.floor_char_boundary(longest)])
}

fn refilled(
    service: &Service,
    slice: &EndpointSlice,
    ports: Option<Vec<EndpointPort>>,
    endpoints: Vec<Endpoint>,
) -> EndpointSlice {
    let mut after = EndpointSlice { endpoints: Some(endpoints), ports, ..slice.clone() };
    after.metadata.labels = Some(labels(service));
    let mut wanted = annotations(service);
    if let Some(known) = slice.metadata.annotations.as_ref().and_then(|known| known.get(TRIGGER_TIME)) {
        wanted.insert(TRIGGER_TIME.into(), known.clone());
    }
    after.metadata.annotations = Some(wanted).filter(|annotations| !annotations.is_empty());
    after
}

/// Empty lists may come back as none.
fn is_same(before: &EndpointSlice, after: &EndpointSlice) -> bool {
    let comparable = |slice: &EndpointSlice| EndpointSlice {
        ports: slice.ports.clone().filter(|ports| !ports.is_empty()),
        endpoints: slice.endpoints.clone().filter(|endpoints| !endpoints.is_empty()),
        ..slice.clone()
    };
    comparable(before) == comparable(after)
}

#[cfg(test)]
mod tests;
