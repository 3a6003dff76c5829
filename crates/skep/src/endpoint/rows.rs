//! From objects to endpoints. Nothing here talks to anybody.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use k8s_openapi::api::core::v1::{Pod, Service, ServicePort};
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::Value;
use skep_api::conditions::types::READY;
use skep_api::kind::GROUP;
use skep_api::names::service_url;
use skep_node::service::{closed_ports, local_ports};

use super::answers::tell_unanswered;
use super::pods::{FAILED, PENDING, life};
use super::{Endpoint, OLD_PATH, Observed, USUAL_PATH, split};

/// All endpoints, in the order of their names.
pub(crate) fn endpoints(observed: &Observed) -> Vec<Endpoint> {
    let servers = observed.servers.iter().map(|(kind, object)| server(kind, object, observed));
    let plain = observed.services.iter().filter(|service| !belongs_to_us(service.owner_references()));
    let mut all: Vec<Endpoint> = servers.chain(plain.flat_map(|service| offered(service, observed))).collect();
    all.sort_by(|one, other| {
        (&one.namespace, &one.name, &one.kind, &one.url).cmp(&(&other.namespace, &other.name, &other.kind, &other.url))
    });
    all
}

fn belongs_to_us(owners: &[k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference]) -> bool {
    owners.iter().any(|owner| owner.api_version.split_once('/').is_some_and(|(group, _)| group == GROUP))
}

/// An object whose controller says how it does.
fn server(kind: &str, object: &DynamicObject, observed: &Observed) -> Endpoint {
    let (spec, status) = (&object.data["spec"], &object.data["status"]);
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let condition = status["conditions"].as_array().into_iter().flatten().find(|condition| condition["type"] == READY);
    let ready = condition.map_or(status["phase"] == READY, |condition| condition["status"] == "True");
    let message = condition.and_then(|condition| text(&condition["message"])).or_else(|| text(&status["message"]));
    let transport = text(&spec["transport"]);
    let url = text(&status["url"]).map(|url| with_path(url, transport.as_deref()));
    let place = url.as_deref().and_then(|url| local_place(url, observed)).unwrap_or_default();
    let endpoint = Endpoint {
        kind: kind.to_owned(),
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
        transport,
        phase: text(&status["phase"]).unwrap_or_else(|| PENDING.to_owned()),
        ready,
        local_url: place.url,
        inside: place.inside,
        url,
        tools: None,
        is_guarded: false,
        message: message.filter(|_| !ready),
    };
    let endpoint = tell_unanswered(endpoint, object, observed);
    match place.service {
        Some((service, local)) => {
            let behind = Behind::find(service, observed);
            tell_closed(tell_life(endpoint, behind.phase, behind.message), service, local)
        }
        None => endpoint,
    }
}

/// The endpoint, unless the pods that it takes do not serve: what its controller says may be from before they ended.
pub(super) fn tell_life(mut endpoint: Endpoint, phase: &str, message: Option<String>) -> Endpoint {
    if endpoint.ready && phase != READY {
        phase.clone_into(&mut endpoint.phase);
        endpoint.ready = false;
        endpoint.message = message;
    }
    endpoint
}

/// A URL that clients can use. Proxies of remote servers do not say at which path those are: where such servers usually are.
fn with_path(url: String, transport: Option<&str>) -> String {
    match (split(&url).1, transport) {
        ("" | "/", Some("sse")) => format!("{}{OLD_PATH}", url.trim_end_matches('/')),
        ("" | "/", Some(_)) => format!("{}{USUAL_PATH}", url.trim_end_matches('/')),
        _ => url,
    }
}

/// Where a URL leads to.
#[derive(Default)]
struct LocalPlace<'a> {
    /// On this machine.
    url: Option<String>,
    /// On the network of the pods.
    inside: Option<SocketAddr>,
    /// Whose port of this machine that is.
    service: Option<(&'a Service, u16)>,
}

/// Where a URL of a service leads to. Its form is `http://NAME.NAMESPACE.svc…:PORT/PATH`.
fn local_place<'a>(url: &str, observed: &'a Observed) -> Option<LocalPlace<'a>> {
    let rest = url.strip_prefix("http://")?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (host, port) = authority.split_once(':').unwrap_or((authority, "80"));
    let mut labels = host.split('.');
    let (name, namespace) = (labels.next()?, labels.next()?);
    let is_it = |service: &Service| {
        service.metadata.name.as_deref() == Some(name) && service.metadata.namespace.as_deref() == Some(namespace)
    };
    let service = observed.services.iter().find(|service| is_it(service))?;
    let port = port.parse().ok()?;
    let local = local_ports(service).get(&port).copied()?;
    Some(LocalPlace {
        url: Some(format!("http://127.0.0.1:{local}{path}")),
        inside: inside(service, port),
        service: Some((service, local)),
    })
}

/// The endpoint at a port of this machine, unless another program has that port: whoever asks there asks that one.
fn tell_closed(mut endpoint: Endpoint, service: &Service, local: u16) -> Endpoint {
    let closed = closed_ports(service);
    let in_use = |port: u16| {
        format!(
            "port {port} of 127.0.0.1 is in use by another program, perhaps another skep up: end that one, and the port \
             is opened; ss -ltnp 'sport = :{port}' shows who it is"
        )
    };
    if closed.contains(&local) {
        FAILED.clone_into(&mut endpoint.phase);
        endpoint.ready = false;
        endpoint.message = Some(in_use(local));
    } else if let Some(port) = closed.first().filter(|_| endpoint.ready) {
        endpoint.message = Some(format!("its URL works, but node {}", in_use(*port)));
    }
    endpoint
}

/// The address of a service on the network of the pods.
fn inside(service: &Service, port: u16) -> Option<SocketAddr> {
    let address = service.spec.as_ref()?.cluster_ip.as_deref()?.parse().ok()?;
    Some(SocketAddr::new(address, port))
}

/// The ports of a service on this machine, as endpoints of the workload behind it.
fn offered(service: &Service, observed: &Observed) -> Vec<Endpoint> {
    let local = local_ports(service);
    let ports = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
    let ports: Vec<(&ServicePort, u16, u16)> = ports
        .filter(|port| port.protocol.as_deref().unwrap_or("TCP") == "TCP")
        .filter_map(|port| {
            let number = u16::try_from(port.port).ok()?;
            Some((port, number, *local.get(&number)?))
        })
        .collect();
    if ports.is_empty() {
        return Vec::new();
    }
    let namespace = service.namespace().unwrap_or_default();
    let behind = Behind::find(service, observed);
    let endpoint = |(port, number, local): (&ServicePort, u16, u16)| {
        let path = if port.name.as_deref() == Some("mcp") { USUAL_PATH } else { "" };
        let endpoint = Endpoint {
            kind: behind.kind.to_owned(),
            namespace: namespace.clone(),
            name: behind.name.clone(),
            transport: None,
            phase: behind.phase.to_owned(),
            ready: behind.phase == READY,
            url: Some(format!("{}{path}", service_url(&service.name_any(), &namespace, port.port))),
            local_url: Some(format!("http://127.0.0.1:{local}{path}")),
            inside: inside(service, number),
            tools: None,
            is_guarded: false,
            message: behind.message.clone(),
        };
        tell_closed(endpoint, service, local)
    };
    ports.into_iter().map(endpoint).collect()
}

/// What a service leads to.
struct Behind {
    kind: &'static str,
    name: String,
    phase: &'static str,
    message: Option<String>,
}

impl Behind {
    fn find(service: &Service, observed: &Observed) -> Self {
        let namespace = service.metadata.namespace.as_deref();
        let selector = service.spec.as_ref().and_then(|spec| spec.selector.clone()).unwrap_or_default();
        let selects = |labels: Option<&BTreeMap<String, String>>| {
            let labels = labels.filter(|_| !selector.is_empty());
            labels.is_some_and(|labels| selector.iter().all(|(name, value)| labels.get(name) == Some(value)))
        };
        let in_namespace = |of: &Option<String>| of.as_deref() == namespace;
        let pods: Vec<&Pod> = observed.pods.iter().map(AsRef::as_ref).collect();
        let pods: Vec<&Pod> = pods
            .into_iter()
            .filter(|pod| in_namespace(&pod.metadata.namespace) && selects(pod.metadata.labels.as_ref()))
            .collect();
        let deployment = observed.deployments.iter().find(|deployment| {
            let template = deployment.spec.as_ref().and_then(|spec| spec.template.metadata.as_ref());
            in_namespace(&deployment.metadata.namespace)
                && selects(template.and_then(|metadata| metadata.labels.as_ref()))
        });
        let stateful_set = observed.stateful_sets.iter().find(|set| {
            let template = set.spec.as_ref().and_then(|spec| spec.template.metadata.as_ref());
            in_namespace(&set.metadata.namespace) && selects(template.and_then(|metadata| metadata.labels.as_ref()))
        });
        let (kind, name, replicas) = match (deployment, stateful_set) {
            (Some(deployment), _) => {
                ("Deployment", deployment.name_any(), deployment.spec.as_ref().and_then(|spec| spec.replicas))
            }
            (None, Some(set)) => ("StatefulSet", set.name_any(), set.spec.as_ref().and_then(|spec| spec.replicas)),
            (None, None) => ("Service", service.name_any(), None),
        };
        let (phase, message) = life(&pods, replicas);
        Self { kind, name, phase, message }
    }
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
