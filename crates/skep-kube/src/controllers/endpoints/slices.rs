//! The EndpointSlices of a Service: how its endpoints are spread over them with few writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::objects::Kind;
use super::super::ownership::controller_reference;
use super::addresses::Port;
use super::{HEADLESS, TRIGGER_TIME};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

pub(super) const SERVICE_NAME: &str = "kubernetes.io/service-name";
pub(super) const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";

/// What slices are made from: an object with the name of their Service.
#[derive(Debug)]
pub(super) struct Source {
    name: String,
    namespace: Option<String>,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    owner: OwnerReference,
    /// Endpoints of one slice.
    capacity: usize,
}

impl Source {
    /// Its slices say what it says of itself, and who manages them.
    pub(super) fn new<K: Kind>(object: &K, manager: &str, capacity: usize) -> Self {
        let metadata = object.meta().clone();
        let name = metadata.name.unwrap_or_default();
        let mut labels = metadata.labels.unwrap_or_default();
        labels.insert(SERVICE_NAME.into(), name.clone());
        labels.insert(MANAGED_BY.into(), manager.into());
        let own = ["kubectl.kubernetes.io/last-applied-configuration", TRIGGER_TIME];
        let mut annotations = metadata.annotations.unwrap_or_default();
        annotations.retain(|name, _| !own.contains(&name.as_str()));
        let owner = controller_reference(object);
        Self { name, namespace: metadata.namespace, labels, annotations, owner, capacity }
    }

    /// Says whether the Service is headless, which is never taken from the object itself.
    pub(super) fn headless(mut self, is_headless: bool) -> Self {
        self.labels.remove(HEADLESS);
        self.labels.extend(is_headless.then(|| (HEADLESS.to_owned(), String::new())));
        self
    }
}

#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) create: Vec<EndpointSlice>,
    pub(super) update: Vec<EndpointSlice>,
    pub(super) delete: Vec<Arc<EndpointSlice>>,
}

/// Endpoints by address family and by the ports they have in common; a slice holds one such group only.
pub(super) type Groups = BTreeMap<(String, Vec<Port>), Vec<Endpoint>>;

/// What to write so that there is a slice for each group, as few of them as possible.
pub(super) fn plan(source: &Source, groups: Groups, existing: &[Arc<EndpointSlice>]) -> Plan {
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
        spread(source, &group, endpoints, slices, &mut filled, &mut missing, &mut free);
    }
    // A slice that nobody needs takes the content of one that is missing.
    for wanted in missing {
        match free.iter().position(|slice| slice.address_type == wanted.address_type) {
            Some(index) => {
                let recycled = free.swap_remove(index);
                plan.update.push(refilled(source, &recycled, wanted.ports, wanted.endpoints.unwrap_or_default()));
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
    source: &Source,
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
        let kept = slice
            .endpoints
            .iter()
            .flatten()
            .filter_map(|endpoint| waiting.remove(&identity(endpoint)))
            .take(source.capacity);
        let kept: Vec<_> = kept.collect();
        contents.push((slice, kept));
    }
    let mut waiting = waiting.into_values();
    for (_, content) in &mut contents {
        let room = source.capacity.saturating_sub(content.len());
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
        let after = refilled(source, &slice, slice_ports(ports), content);
        filled.push((slice, after));
    }
    let mut rest: Vec<Endpoint> = waiting.collect();
    if rest.is_empty() && !kept_one {
        missing.push(new_slice(source, family, ports, Vec::new()));
    }
    while !rest.is_empty() {
        let tail = rest.split_off(rest.len().min(source.capacity));
        missing.push(new_slice(source, family, ports, std::mem::replace(&mut rest, tail)));
    }
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

fn new_slice(source: &Source, family: &str, ports: &[Port], endpoints: Vec<Endpoint>) -> EndpointSlice {
    EndpointSlice {
        metadata: ObjectMeta {
            generate_name: Some(generate_name(&source.name)),
            namespace: source.namespace.clone(),
            labels: Some(source.labels.clone()),
            annotations: Some(source.annotations.clone()).filter(|annotations| !annotations.is_empty()),
            owner_references: Some(vec![source.owner.clone()]),
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
    source: &Source,
    slice: &EndpointSlice,
    ports: Option<Vec<EndpointPort>>,
    endpoints: Vec<Endpoint>,
) -> EndpointSlice {
    let mut after = EndpointSlice { endpoints: Some(endpoints), ports, ..slice.clone() };
    after.metadata.labels = Some(source.labels.clone());
    let mut wanted = source.annotations.clone();
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
