//! Services, endpoints, policies, ingresses.

use serde_json::Value;
use time::OffsetDateTime;

use super::{AGE, Declared, Field, NAME, Words, age, items, labels_text, name, or_none, selector_text, text};

pub(super) fn columns(kind: &str) -> Vec<Declared> {
    match kind {
        "Service" => vec![
            NAME,
            Declared("Type", "string", 0, Field("spec.type")),
            Declared("Cluster-IP", "string", 0, Field("spec.clusterIP")),
            Declared("External-IP", "string", 0, Field("spec.externalIPs")),
            Declared("Port(s)", "string", 0, Field("spec.ports")),
            AGE,
            Declared("Selector", "string", 1, Field("spec.selector")),
        ],
        "Endpoints" => vec![NAME, Declared("Endpoints", "string", 0, Field("subsets")), AGE],
        "EndpointSlice" => vec![
            NAME,
            Declared("AddressType", "string", 0, Field("addressType")),
            Declared("Ports", "string", 0, Field("ports")),
            Declared("Endpoints", "string", 0, Field("endpoints")),
            AGE,
        ],
        "NetworkPolicy" => vec![NAME, Declared("Pod-Selector", "string", 0, Field("spec.podSelector")), AGE],
        "Ingress" => vec![
            NAME,
            Declared("Class", "string", 0, Words("The class of controllers that serve it.")),
            Declared("Hosts", "string", 0, Words("The hosts it answers for.")),
            Declared("Address", "string", 0, Words("Where it can be reached.")),
            Declared("Ports", "string", 0, Words("The ports it is served on.")),
            AGE,
        ],
        _ => vec![
            NAME,
            Declared("Controller", "string", 0, Field("spec.controller")),
            Declared("Parameters", "string", 0, Field("spec.parameters")),
            AGE,
        ],
    }
}

pub(super) fn row(kind: &str, object: &Value, now: OffsetDateTime) -> Vec<Value> {
    let spec = &object["spec"];
    match kind {
        "Service" => vec![
            name(object),
            text(spec, "type").into(),
            cluster_address(spec),
            external_address(object),
            service_ports(spec),
            age(object, now),
            labels_text(&spec["selector"]).into(),
        ],
        "Endpoints" => vec![name(object), endpoints(object), age(object, now)],
        "EndpointSlice" => {
            vec![
                name(object),
                text(object, "addressType").into(),
                slice_ports(object),
                slice_endpoints(object),
                age(object, now),
            ]
        }
        "NetworkPolicy" => vec![name(object), selector_text(&spec["podSelector"]).into(), age(object, now)],
        "Ingress" => {
            let ports = if items(spec, "tls").is_empty() { "80" } else { "80, 443" };
            vec![
                name(object),
                ingress_class(object),
                hosts(spec),
                balancer(object).into(),
                ports.into(),
                age(object, now),
            ]
        }
        _ => vec![name(object), text(spec, "controller").into(), parameters(spec), age(object, now)],
    }
}

fn cluster_address(spec: &Value) -> Value {
    match items(spec, "clusterIPs").first().and_then(Value::as_str) {
        Some(address) => or_none(address),
        None => or_none(text(spec, "clusterIP")),
    }
}

fn balancer(object: &Value) -> String {
    let ingress = items(&object["status"]["loadBalancer"], "ingress");
    let addresses = ingress.iter().map(|entry| match text(entry, "ip") {
        "" => text(entry, "hostname"),
        address => address,
    });
    addresses.filter(|address| !address.is_empty()).collect::<Vec<_>>().join(",")
}

fn external_address(service: &Value) -> Value {
    let spec = &service["spec"];
    let listed: Vec<&str> = items(spec, "externalIPs").iter().filter_map(Value::as_str).collect();
    match text(spec, "type") {
        "ClusterIP" | "NodePort" => or_none(&listed.join(",")),
        "LoadBalancer" => {
            let balanced = balancer(service);
            let all: Vec<&str> =
                [balanced.as_str()].into_iter().filter(|text| !text.is_empty()).chain(listed).collect();
            if all.is_empty() { "<pending>".into() } else { all.join(",").into() }
        }
        "ExternalName" => text(spec, "externalName").into(),
        _ => "<unknown>".into(),
    }
}

fn service_ports(spec: &Value) -> Value {
    let ports: Vec<String> = items(spec, "ports")
        .iter()
        .map(|port| match port["nodePort"].as_i64() {
            Some(node_port) if node_port > 0 => format!("{}:{node_port}/{}", port["port"], text(port, "protocol")),
            _ => format!("{}/{}", port["port"], text(port, "protocol")),
        })
        .collect();
    or_none(&ports.join(","))
}

/// How many addresses are listed before the rest is only counted.
const SHOWN: usize = 3;

fn endpoints(object: &Value) -> Value {
    let mut all = Vec::new();
    for subset in items(object, "subsets") {
        let addresses = items(subset, "addresses");
        let ports = items(subset, "ports");
        if ports.is_empty() {
            all.extend(addresses.iter().map(|address| text(address, "ip").to_owned()));
        }
        for port in ports {
            all.extend(addresses.iter().map(|address| match text(address, "ip") {
                ip if ip.contains(':') => format!("[{ip}]:{}", port["port"]),
                ip => format!("{ip}:{}", port["port"]),
            }));
        }
    }
    shortened(&all)
}

fn shortened(all: &[String]) -> Value {
    let more = all.len().saturating_sub(SHOWN);
    let shown = all[..all.len() - more].join(",");
    if more > 0 { format!("{shown} + {more} more...").into() } else { or_none(&shown) }
}

fn slice_ports(slice: &Value) -> Value {
    let ports: Vec<String> = items(slice, "ports")
        .iter()
        .map(|port| match (port["port"].as_i64(), text(port, "name")) {
            (Some(number), _) => number.to_string(),
            (None, "") => "*".to_owned(),
            (None, name) => name.to_owned(),
        })
        .collect();
    if ports.is_empty() { "<unset>".into() } else { shortened(&ports) }
}

fn slice_endpoints(slice: &Value) -> Value {
    let all: Vec<String> = items(slice, "endpoints")
        .iter()
        .flat_map(|endpoint| items(endpoint, "addresses"))
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    if all.is_empty() { "<unset>".into() } else { shortened(&all) }
}

fn ingress_class(object: &Value) -> Value {
    match text(&object["spec"], "ingressClassName") {
        "" => or_none(text(&object["metadata"]["annotations"], "kubernetes.io/ingress.class")),
        class => class.into(),
    }
}

fn hosts(spec: &Value) -> Value {
    let hosts: Vec<&str> =
        items(spec, "rules").iter().map(|rule| text(rule, "host")).filter(|host| !host.is_empty()).collect();
    let more = hosts.len().saturating_sub(SHOWN);
    match (hosts.is_empty(), more) {
        (true, _) => "*".into(),
        (false, 0) => hosts.join(",").into(),
        (false, more) => format!("{} + {more} more...", hosts[..SHOWN].join(",")).into(),
    }
}

fn parameters(spec: &Value) -> Value {
    let reference = &spec["parameters"];
    if reference.is_null() {
        return "<none>".into();
    }
    let kind = text(reference, "kind");
    match text(reference, "apiGroup") {
        "" => format!("{kind}/{}", text(reference, "name")).into(),
        group => format!("{kind}.{group}/{}", text(reference, "name")).into(),
    }
}
