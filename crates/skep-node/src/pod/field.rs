//! The downward API: what a pod may be told about itself.

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{Container, Pod, ResourceFieldSelector};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::ResourceExt as _;
use skep_kube::builtin;
use skep_kube::go_text::quoted;

/// What the node adds to the pod's own description.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) pod_ip: Option<IpAddr>,
    pub(crate) host_ip: IpAddr,
    /// What a container may use when it has no limit.
    pub(crate) allocatable: BTreeMap<String, Quantity>,
}

/// The value at a field path such as `metadata.annotations['key']`; nothing for a path that does not exist.
pub(crate) fn of_pod(pod: &Pod, place: &Place, path: &str) -> Option<String> {
    if let Some((map, key)) = path.strip_suffix("']").and_then(|path| path.split_once("['")) {
        let entries = match map {
            "metadata.annotations" => pod.annotations(),
            "metadata.labels" => pod.labels(),
            _ => return None,
        };
        return Some(entries.get(key).cloned().unwrap_or_default());
    }
    let spec = pod.spec.as_ref();
    let ip = |address: Option<IpAddr>| address.map(|address| address.to_string()).unwrap_or_default();
    Some(match path {
        "metadata.name" => pod.name_any(),
        "metadata.namespace" => pod.namespace().unwrap_or_default(),
        "metadata.uid" => pod.uid().unwrap_or_default(),
        "metadata.annotations" => lines(pod.annotations()),
        "metadata.labels" => lines(pod.labels()),
        "spec.nodeName" => spec.and_then(|spec| spec.node_name.clone()).unwrap_or_default(),
        "spec.serviceAccountName" => spec.and_then(|spec| spec.service_account_name.clone()).unwrap_or_default(),
        "status.hostIP" | "status.hostIPs" => place.host_ip.to_string(),
        "status.podIP" | "status.podIPs" => ip(place.pod_ip),
        _ => return None,
    })
}

fn lines(entries: &BTreeMap<String, String>) -> String {
    let lines: Vec<_> = entries.iter().map(|(key, value)| format!("{key}={}", quoted(value))).collect();
    lines.join("\n")
}

/// A limit or request of a container in units of the divisor, rounded up; nothing for an unknown resource.
pub(crate) fn of_container(container: &Container, place: &Place, field: &ResourceFieldSelector) -> Option<String> {
    let (table, resource) = field.resource.split_once('.')?;
    let resources = container.resources.as_ref();
    let limits = resources.and_then(|resources| resources.limits.as_ref());
    let requests = resources.and_then(|resources| resources.requests.as_ref());
    let amount = match table {
        "limits" => limits.and_then(|limits| limits.get(resource)).or_else(|| place.allocatable.get(resource)),
        "requests" => requests.and_then(|requests| requests.get(resource)),
        _ => return None,
    };
    let milli = |quantity: &Quantity| builtin::Quantity::parse(&quantity.0).map_or(0, builtin::Quantity::milli);
    let divisor = field.divisor.as_ref().map_or(0, milli);
    let divisor = if divisor > 0 { divisor } else { 1_000 };
    let amount = amount.map_or(0, milli).max(0);
    Some(((amount + divisor - 1) / divisor).to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn place() -> Place {
        Place {
            pod_ip: Some([10, 244, 0, 7].into()),
            host_ip: [10, 244, 0, 1].into(),
            allocatable: BTreeMap::from([("cpu".into(), Quantity("2".into()))]),
        }
    }

    #[test]
    fn paths_of_a_pod() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "n", "uid": "u",
                "labels": {"b": "2", "a": "one \"1\""}, "annotations": {"example.com/generation": "7"}},
            "spec": {"nodeName": "laptop", "serviceAccountName": "default", "containers": []},
        }))
        .unwrap();
        let table = [
            ("metadata.name", Some("p")),
            ("metadata.namespace", Some("n")),
            ("metadata.uid", Some("u")),
            ("metadata.labels", Some("a=\"one \\\"1\\\"\"\nb=\"2\"")),
            ("metadata.labels['b']", Some("2")),
            ("metadata.labels['absent']", Some("")),
            ("metadata.annotations['example.com/generation']", Some("7")),
            ("spec.nodeName", Some("laptop")),
            ("spec.serviceAccountName", Some("default")),
            ("status.hostIP", Some("10.244.0.1")),
            ("status.podIP", Some("10.244.0.7")),
            ("status.phase", None),
            ("spec.containers['x']", None),
        ];
        for (path, expected) in table {
            assert_eq!(of_pod(&pod, &place(), path).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn resources_of_a_container() {
        let container: Container = serde_json::from_value(json!({"name": "c", "resources": {
            "limits": {"memory": "1500Ki"}, "requests": {"cpu": "250m"}}}))
        .unwrap();
        let table = [
            ("limits.memory", None, Some("1536000")),
            ("limits.memory", Some("1Mi"), Some("2")),
            ("limits.cpu", None, Some("2")),
            ("requests.cpu", None, Some("1")),
            ("requests.cpu", Some("1m"), Some("250")),
            ("requests.memory", None, Some("0")),
            ("spread.cpu", None, None),
        ];
        for (resource, divisor, expected) in table {
            let field = ResourceFieldSelector {
                resource: resource.into(),
                divisor: divisor.map(|divisor| Quantity(divisor.into())),
                container_name: None,
            };
            assert_eq!(of_container(&container, &place(), &field).as_deref(), expected, "{resource}");
        }
    }
}
