//! All services and what is behind them, as one picture that is replaced whole.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use kube::ResourceExt as _;

use super::local_port::local_ports;
use crate::network::Reach;

const OWNER_LABEL: &str = "kubernetes.io/service-name";
/// The namespace and name of the service that is the API server.
const API_SERVER: [&str; 2] = ["default", "kubernetes"];
/// How long a client stays with its server when nothing else is said.
const USUAL_AFFINITY: Duration = Duration::from_hours(3);

/// The namespace and name of a service.
pub(crate) type ServiceKey = (String, String);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Directory {
    pub(crate) services: BTreeMap<ServiceKey, Entry>,
}

/// One service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Empty when the service has no address of its own.
    pub(crate) address: Option<IpAddr>,
    /// A name elsewhere that this one stands for.
    pub(crate) external_name: Option<String>,
    pub(crate) affinity: Option<Duration>,
    pub(crate) ports: Vec<Port>,
    /// Who can be asked by name.
    pub(crate) hosts: BTreeSet<Host>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Port {
    pub(crate) name: Option<String>,
    pub(crate) protocol: String,
    pub(crate) number: u16,
    /// Where it is on the node itself.
    pub(crate) on_node: Option<u16>,
    /// Where it is on the loopback of the machine.
    pub(crate) on_machine: Option<u16>,
    /// Where ready servers are.
    pub(crate) backends: Vec<SocketAddr>,
}

/// A pod behind a service, as far as names go.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Host {
    pub(crate) address: IpAddr,
    pub(crate) name: Option<String>,
}

impl Directory {
    /// The picture as the node of this name sees it: pods of other nodes are out of its reach.
    pub(crate) fn new<'a>(
        node: &str,
        services: impl IntoIterator<Item = &'a Service>,
        slices: impl IntoIterator<Item = &'a EndpointSlice>,
    ) -> Self {
        let mut of_service: BTreeMap<ServiceKey, Vec<&EndpointSlice>> = BTreeMap::new();
        for slice in slices {
            let Some(owner) = slice.labels().get(OWNER_LABEL) else { continue };
            of_service.entry((slice.namespace().unwrap_or_default(), owner.clone())).or_default().push(slice);
        }
        let entry = |service: &Service| {
            let key = (service.namespace().unwrap_or_default(), service.name_any());
            let slices = of_service.get(&key).map(Vec::as_slice).unwrap_or_default();
            (key, Entry::new(node, service, slices))
        };
        Self { services: services.into_iter().map(entry).collect() }
    }

    /// Turns the addresses into those that can be connected to, and listened on.
    pub(crate) fn resolve(&mut self, reach: Reach) {
        for entry in self.services.values_mut() {
            entry.address = entry.address.map(|address| reach.address(address));
            for backend in entry.ports.iter_mut().flat_map(|port| &mut port.backends) {
                *backend = reach.socket(*backend);
            }
        }
    }

    /// Puts one address behind the service that pods know the API server by.
    pub(crate) fn lead_to_api_server(&mut self, address: SocketAddr) {
        let key = API_SERVER.map(str::to_owned).into();
        for port in self.services.get_mut(&key).into_iter().flat_map(|entry| &mut entry.ports) {
            port.backends = vec![address];
        }
    }
}

impl Entry {
    fn new(node: &str, service: &Service, slices: &[&EndpointSlice]) -> Self {
        let spec = service.spec.clone().unwrap_or_default();
        let early = spec.publish_not_ready_addresses == Some(true);
        let serves = |endpoint: &Endpoint| {
            let is_near = endpoint.node_name.as_deref().is_none_or(|name| name == node);
            is_near && (early || is_ready(endpoint))
        };
        let type_ = spec.type_.as_deref().unwrap_or("ClusterIP");
        let client = spec.session_affinity_config.and_then(|config| config.client_ip);
        let affinity = client.and_then(|client| client.timeout_seconds).and_then(|seconds| u64::try_from(seconds).ok());
        let on_machine = local_ports(service);
        let ports = spec.ports.iter().flatten().filter_map(|port| {
            let name = port.name.clone().filter(|name| !name.is_empty());
            let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".to_owned());
            let number = u16::try_from(port.port).ok()?;
            Some(Port {
                number,
                on_machine: on_machine.get(&number).copied(),
                on_node: port.node_port.and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0),
                backends: backends(slices, name.as_deref(), &protocol, serves),
                name,
                protocol,
            })
        });
        let endpoints = slices.iter().flat_map(|slice| slice.endpoints.iter().flatten());
        let endpoints = endpoints.filter(|endpoint| serves(endpoint));
        let hosts = endpoints.flat_map(|endpoint| {
            let name = endpoint.hostname.clone().filter(|name| !name.is_empty());
            let addresses = endpoint.addresses.iter().filter_map(|address| address.parse().ok());
            addresses.map(move |address| Host { address, name: name.clone() }).collect::<Vec<_>>()
        });
        Self {
            address: spec.cluster_ip.as_deref().and_then(|address| address.parse().ok()),
            external_name: spec.external_name.filter(|_| type_ == "ExternalName"),
            affinity: (spec.session_affinity.as_deref() == Some("ClientIP"))
                .then(|| affinity.map_or(USUAL_AFFINITY, Duration::from_secs)),
            ports: ports.collect(),
            hosts: hosts.collect(),
        }
    }
}

fn backends(
    slices: &[&EndpointSlice],
    name: Option<&str>,
    protocol: &str,
    serves: impl Fn(&Endpoint) -> bool,
) -> Vec<SocketAddr> {
    let mut found = BTreeSet::new();
    for slice in slices {
        let ports = slice.ports.iter().flatten().filter(|port| {
            port.name.as_deref().filter(|name| !name.is_empty()) == name
                && port.protocol.as_deref().unwrap_or("TCP") == protocol
        });
        for port in ports.filter_map(|port| port.port.and_then(|port| u16::try_from(port).ok())) {
            for endpoint in slice.endpoints.iter().flatten().filter(|endpoint| serves(endpoint)) {
                let addresses = endpoint.addresses.iter().filter_map(|address| address.parse::<IpAddr>().ok());
                found.extend(addresses.map(|address| SocketAddr::new(address, port)));
            }
        }
    }
    found.into_iter().collect()
}

fn is_ready(endpoint: &Endpoint) -> bool {
    endpoint.conditions.as_ref().is_none_or(|conditions| conditions.ready != Some(false))
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::{Value, json};

    use super::*;

    pub(crate) fn directory(services: Value, slices: Value) -> Directory {
        let services: Vec<Service> = serde_json::from_value(services).unwrap();
        let slices: Vec<EndpointSlice> = serde_json::from_value(slices).unwrap();
        Directory::new("here", &services, &slices)
    }

    #[test]
    fn ready_endpoints_are_behind_a_service() {
        let service = json!({"metadata": {"namespace": "n", "name": "s"}, "spec": {"type": "NodePort",
            "clusterIP": "10.96.0.9", "sessionAffinity": "ClientIP",
            "ports": [{"name": "web", "port": 80, "nodePort": 30080}, {"name": "admin", "port": 81}]}});
        let slice = json!({"metadata": {"namespace": "n", "name": "s-1", "labels": {OWNER_LABEL: "s"}},
            "addressType": "IPv4", "ports": [{"name": "web", "port": 8080}, {"name": "admin", "port": 8081}],
            "endpoints": [
                {"addresses": ["10.244.0.3"], "conditions": {"ready": true}, "hostname": "a"},
                {"addresses": ["10.244.0.2"], "conditions": {}},
                {"addresses": ["10.244.0.4"], "conditions": {"ready": false}}]});
        let foreign = json!({"metadata": {"namespace": "other", "name": "s-2", "labels": {OWNER_LABEL: "s"}},
            "addressType": "IPv4", "ports": [{"name": "web", "port": 1}], "endpoints": [{"addresses": ["10.244.9.9"]}]});
        let directory = directory(json!([service]), json!([slice, foreign]));
        let entry = &directory.services[&("n".to_owned(), "s".to_owned())];
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert_eq!(entry.ports[0].backends, [at("10.244.0.2:8080"), at("10.244.0.3:8080")]);
        assert_eq!(entry.ports[1].backends, [at("10.244.0.2:8081"), at("10.244.0.3:8081")]);
        assert_eq!(entry.ports[0].on_node, Some(30080));
        assert_eq!(entry.affinity, Some(USUAL_AFFINITY));
        let names: Vec<_> = entry.hosts.iter().map(|host| host.name.as_deref()).collect();
        assert_eq!(names, [None, Some("a")]);
    }

    #[test]
    fn pods_of_other_nodes_are_not_behind_a_service() {
        let service = |name: &str| {
            json!({"metadata": {"namespace": "n", "name": name}, "spec": {
            "clusterIP": "10.96.0.9", "publishNotReadyAddresses": name == "early", "ports": [{"port": 80}]}})
        };
        let slice = |owner: &str| {
            json!({"metadata": {"namespace": "n", "name": owner, "labels": {OWNER_LABEL: owner}},
            "addressType": "IPv4", "ports": [{"port": 8080}], "endpoints": [
                {"addresses": ["10.244.0.2"], "nodeName": "here"},
                {"addresses": ["10.244.1.2"], "nodeName": "elsewhere"},
                {"addresses": ["10.0.0.1"]}]})
        };
        let directory = directory(json!([service("usual"), service("early")]), json!([slice("usual"), slice("early")]));
        for entry in directory.services.values() {
            let backends: Vec<String> = entry.ports[0].backends.iter().map(ToString::to_string).collect();
            assert_eq!(backends, ["10.0.0.1:8080", "10.244.0.2:8080"]);
            assert_eq!(entry.hosts.len(), 2, "nor are they known by name");
        }
    }

    #[test]
    fn the_api_server_is_where_it_is_said_to_be() {
        let service = |namespace: &str| json!({"metadata": {"namespace": namespace, "name": "kubernetes"}, "spec": {"clusterIP": "10.96.0.1", "ports": [{"name": "https", "port": 443}]}});
        let mut directory = directory(json!([service("default"), service("other")]), json!([]));
        let address: SocketAddr = "127.0.0.1:6443".parse().unwrap();
        directory.lead_to_api_server(address);
        let backends: Vec<_> = directory.services.values().map(|entry| entry.ports[0].backends.clone()).collect();
        assert_eq!(backends, [vec![address], vec![]]);
    }

    #[test]
    fn services_without_an_address() {
        let services = json!([
            {"metadata": {"namespace": "n", "name": "headless"}, "spec": {"clusterIP": "None",
                "publishNotReadyAddresses": true, "ports": [{"port": 80}]}},
            {"metadata": {"namespace": "n", "name": "far"}, "spec": {"type": "ExternalName", "externalName": "x.org"}}]);
        let slice = json!({"metadata": {"namespace": "n", "name": "h", "labels": {OWNER_LABEL: "headless"}},
            "addressType": "IPv4", "ports": [{"port": 80}],
            "endpoints": [{"addresses": ["10.244.0.4"], "conditions": {"ready": false}}]});
        let directory = directory(services, json!([slice]));
        let headless = &directory.services[&("n".to_owned(), "headless".to_owned())];
        assert_eq!((headless.address, headless.hosts.len()), (None, 1));
        let far = &directory.services[&("n".to_owned(), "far".to_owned())];
        assert_eq!(far.external_name.as_deref(), Some("x.org"));
    }
}
