//! What a pod contributes to a Service: addresses, ports and whether it can be used now.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ObjectReference, Pod, Service, ServicePort};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::super::pods;

/// The selector of a Service, if it has one.
pub(super) fn selector(service: &Service) -> Option<&BTreeMap<String, String>> {
    let spec = service.spec.as_ref().filter(|spec| spec.type_.as_deref() != Some("ExternalName"))?;
    spec.selector.as_ref().filter(|selector| !selector.is_empty())
}

pub(super) fn selects(service: &Service, pod: &Pod) -> bool {
    let Some(selector) = selector(service) else { return false };
    let labels = pod.metadata.labels.as_ref();
    selector.iter().all(|(name, value)| labels.and_then(|labels| labels.get(name)) == Some(value))
}

pub(super) fn publishes_unready(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.publish_not_ready_addresses) == Some(true)
}

pub(super) fn is_headless(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref()) == Some("None")
}

/// A port that a Service forwards to on a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Port {
    pub(super) name: String,
    pub(super) protocol: String,
    pub(super) number: i32,
    pub(super) app_protocol: Option<String>,
}

/// The ports of a Service on one pod. Ports that the pod does not name are left out.
pub(super) fn ports(service: &Service, pod: &Pod) -> Vec<Port> {
    let ports = service.spec.as_ref().and_then(|spec| spec.ports.as_deref()).unwrap_or_default();
    let resolved = ports.iter().filter_map(|port| {
        Some(Port {
            name: port.name.clone().unwrap_or_default(),
            protocol: port.protocol.clone().unwrap_or_else(|| "TCP".to_owned()),
            number: number(port, pod)?,
            app_protocol: port.app_protocol.clone(),
        })
    });
    resolved.collect()
}

fn number(port: &ServicePort, pod: &Pod) -> Option<i32> {
    match &port.target_port {
        None => Some(port.port),
        Some(IntOrString::Int(number)) => Some(*number),
        Some(IntOrString::String(name)) => {
            let protocol = port.protocol.as_deref().unwrap_or("TCP");
            let spec = pod.spec.as_ref()?;
            // Sidecars are init containers that keep running; their ports count, too.
            let sidecars = spec.init_containers.iter().flatten();
            let sidecars = sidecars.filter(|container| container.restart_policy.as_deref() == Some("Always"));
            let mut ports =
                spec.containers.iter().chain(sidecars).flat_map(|container| container.ports.iter().flatten());
            let found = ports.find(|found| {
                found.name.as_ref() == Some(name) && found.protocol.as_deref().unwrap_or("TCP") == protocol
            });
            found.map(|found| found.container_port)
        }
    }
}

/// The address of a pod in one family (`IPv4`, `IPv6`), if it has one and has not ended.
pub(super) fn address<'a>(pod: &'a Pod, family: &str) -> Option<&'a str> {
    if pods::is_finished(pod) {
        return None;
    }
    let status = pod.status.as_ref()?;
    let all = status.pod_ips.iter().flatten().map(|entry| entry.ip.as_str());
    let mut all = all.chain(status.pod_ip.as_deref());
    all.find(|address| !address.is_empty() && address.contains(':') == (family == "IPv6"))
}

/// Pods in the subdomain of their Service can be looked up by their host name.
pub(super) fn hostname(service: &Service, pod: &Pod) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    let hostname = spec.hostname.clone().filter(|name| !name.is_empty())?;
    (spec.subdomain.is_some() && spec.subdomain == service.metadata.name).then_some(hostname)
}

pub(super) fn reference(pod: &Pod) -> ObjectReference {
    ObjectReference {
        kind: Some("Pod".to_owned()),
        namespace: pod.metadata.namespace.clone(),
        name: pod.metadata.name.clone(),
        uid: pod.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}
