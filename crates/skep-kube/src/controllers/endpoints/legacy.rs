//! The Endpoints object of a Service, for clients that do not know slices.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints, Pod, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::super::pods;
use super::HEADLESS;
use super::addresses::{self, Port};

const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const MANAGER: &str = "endpoint-controller";
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
/// Addresses of one Endpoints object; more are left out, which is said in an annotation.
const CAPACITY: usize = 1_000;

pub(super) fn is_ours(endpoints: &Endpoints) -> bool {
    let labels = endpoints.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(MANAGED_BY)).map(String::as_str) == Some(MANAGER)
}

/// The Endpoints of a Service, based on the `existing` ones.
pub(super) fn endpoints(service: &Service, pods: &[Arc<Pod>], existing: Option<&Endpoints>) -> Endpoints {
    let mut wanted = existing.cloned().unwrap_or_else(|| Endpoints {
        metadata: ObjectMeta {
            name: service.metadata.name.clone(),
            namespace: service.metadata.namespace.clone(),
            ..ObjectMeta::default()
        },
        subsets: None,
    });
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.remove(HEADLESS);
    labels.insert(MANAGED_BY.into(), MANAGER.into());
    if addresses::is_headless(service) {
        labels.insert(HEADLESS.into(), String::new());
    }
    wanted.metadata.labels = Some(labels);
    let (subsets, truncated) = subsets(service, pods);
    wanted.subsets = Some(subsets).filter(|subsets| !subsets.is_empty());
    if truncated {
        wanted.metadata.annotations.get_or_insert_default().insert(OVER_CAPACITY.into(), "truncated".into());
    } else if let Some(annotations) = &mut wanted.metadata.annotations {
        annotations.remove(OVER_CAPACITY);
    }
    wanted
}

#[derive(Default)]
struct Group {
    ready: Vec<EndpointAddress>,
    unready: Vec<EndpointAddress>,
}

fn subsets(service: &Service, pods: &[Arc<Pod>]) -> (Vec<EndpointSubset>, bool) {
    let family = service.spec.as_ref().and_then(|spec| spec.ip_families.clone()?.into_iter().next());
    let family = family.unwrap_or_else(|| "IPv4".to_owned());
    let published = addresses::publishes_unready(service);
    let mut groups: BTreeMap<Vec<Port>, Group> = BTreeMap::new();
    let mut count = 0;
    // Ready pods first, so that they are the ones that find room.
    let mut ordered: Vec<_> = pods.iter().filter(|pod| published || !pods::is_terminating(pod)).collect();
    ordered.sort_by_key(|pod| !pods::is_ready(pod));
    for pod in ordered {
        let ports = addresses::ports(service, pod);
        let Some(address) = addresses::address(pod, &family) else { continue };
        if ports.is_empty() && !addresses::is_headless(service) {
            continue;
        }
        count += 1;
        if count > CAPACITY {
            break;
        }
        let address = EndpointAddress {
            ip: address.to_owned(),
            hostname: addresses::hostname(service, pod),
            node_name: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
            target_ref: Some(addresses::reference(pod)),
        };
        let group = groups.entry(ports).or_default();
        if published || pods::is_ready(pod) { &mut group.ready } else { &mut group.unready }.push(address);
    }
    (groups.into_iter().map(|(ports, group)| subset(ports, group)).collect(), count > CAPACITY)
}

fn subset(ports: Vec<Port>, group: Group) -> EndpointSubset {
    let sorted = |mut addresses: Vec<EndpointAddress>| {
        addresses.sort_by(|one, other| one.ip.cmp(&other.ip));
        Some(addresses).filter(|addresses| !addresses.is_empty())
    };
    let ports = ports.into_iter().map(|port| EndpointPort {
        name: Some(port.name).filter(|name| !name.is_empty()),
        protocol: Some(port.protocol),
        port: port.number,
        app_protocol: port.app_protocol,
    });
    EndpointSubset {
        addresses: sorted(group.ready),
        not_ready_addresses: sorted(group.unready),
        ports: Some(ports.collect::<Vec<_>>()).filter(|ports| !ports.is_empty()),
    }
}
