//! The ports of services on the loopback of this machine.
//!
//! A service keeps the port that it was given once: its URL is in the settings of other programs. The port is
//! remembered on the service itself, in an annotation that nobody else writes.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::net::{Ipv4Addr, SocketAddr};

use k8s_openapi::api::core::v1::Service;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

use crate::broker::{Broker, Reservation};

/// Says at which ports of this machine a service is: `SERVICE-PORT:LOCAL-PORT`, separated by commas.
const ANNOTATION: &str = "skep.dev/local-ports";
/// Ports below this are for administrators.
const FIRST_ORDINARY: u16 = 1_024;
/// Where such ports go for everybody else: 80 becomes 8080.
const ORDINARY_OFFSET: u16 = 8_000;
/// How many ports are tried at a time.
const MOST_TRIED: usize = 1_000;

/// The ports of a service on this machine, by its own ports.
pub fn local_ports(service: &Service) -> BTreeMap<u16, u16> {
    let pair = |text: &str| {
        let (own, local) = text.split_once(':')?;
        Some((own.trim().parse().ok()?, local.trim().parse().ok()?))
    };
    service.annotations().get(ANNOTATION).into_iter().flat_map(|text| text.split(',')).filter_map(pair).collect()
}

/// The ports of the machine that this run has given to services. No other run gives them away in the meantime, even while
/// nobody listens there, as no pod is ready.
#[derive(Debug, Default)]
pub(super) struct LocalPorts {
    reserved: BTreeMap<u16, Reservation>,
}

impl LocalPorts {
    /// Gives every service that is offered on this machine its ports, and takes them from those that no longer are.
    ///
    /// Offered are balancers, and services that belong to an object of the API group `group`.
    pub(super) async fn assign(
        &mut self,
        client: &Client,
        broker: &Broker,
        group: Option<&str>,
        services: &[&Service],
    ) {
        let remembered: BTreeSet<u16> =
            services.iter().flat_map(|service| local_ports(service).into_values()).collect();
        for port in &remembered {
            // Another run may have it, which is told when the port is opened.
            self.reserve(broker, *port).await;
        }
        let mut known = BTreeMap::new();
        let changes = loop {
            let changes = plan(services, group, &known);
            let wanted = changes.iter().flat_map(|(service, ports)| {
                let remembered = local_ports(service);
                ports.values().copied().filter(move |port| !remembered.values().any(|known| known == port))
            });
            let unknown: Vec<u16> = wanted.filter(|port| !known.contains_key(port)).collect();
            if unknown.is_empty() || known.len() > MOST_TRIED {
                break changes;
            }
            for port in unknown {
                known.insert(port, self.is_free(broker, port).await);
            }
        };
        let given: BTreeSet<u16> = changes.iter().flat_map(|(_, ports)| ports.values().copied()).collect();
        self.reserved.retain(|port, _| remembered.contains(port) || given.contains(port));
        for (service, ports) in changes {
            remember(client, service, &ports).await;
        }
    }

    /// Whether nobody else has a port, which is ours then.
    async fn is_free(&mut self, broker: &Broker, port: u16) -> bool {
        let is_open = || async { broker.listen(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await.is_ok() };
        self.reserve(broker, port).await && is_open().await
    }

    /// Whether a port is reserved for this run, now or from before.
    async fn reserve(&mut self, broker: &Broker, port: u16) -> bool {
        if let Entry::Vacant(vacant) = self.reserved.entry(port)
            && let Ok(reservation) = broker.reserve(port).await
        {
            vacant.insert(reservation);
        }
        self.reserved.contains_key(&port)
    }
}

async fn remember(client: &Client, service: &Service, ports: &BTreeMap<u16, u16>) {
    let (namespace, name) = (service.namespace().unwrap_or_default(), service.name_any());
    let api: Api<Service> = Api::namespaced(client.clone(), &namespace);
    let patch = json!({"metadata": {"annotations": {ANNOTATION: written(ports)}}});
    if let Err(error) = api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await {
        tracing::debug!(namespace, service = name, %error, "local ports not remembered");
    }
}

fn written(ports: &BTreeMap<u16, u16>) -> Option<String> {
    let pairs: Vec<String> = ports.iter().map(|(own, local)| format!("{own}:{local}")).collect();
    (!pairs.is_empty()).then(|| pairs.join(","))
}

/// The services whose ports change, each with the ports that it has from now on. Whoever was there first keeps what it
/// has. `is_free` is what is known about ports of this machine.
fn plan<'a>(
    services: &[&'a Service],
    group: Option<&str>,
    is_free: &BTreeMap<u16, bool>,
) -> Vec<(&'a Service, BTreeMap<u16, u16>)> {
    let mut services = services.to_vec();
    services.sort_by_key(|service| (service.creation_timestamp(), service.namespace(), service.name_any()));
    let mut taken: BTreeSet<u16> = services.iter().flat_map(|service| numbers(service, true)).collect();
    let mut planned = Vec::new();
    for service in services {
        let offered = if is_offered(service, group) { numbers(service, false) } else { BTreeSet::new() };
        let mut ports = local_ports(service);
        ports.retain(|own, local| offered.contains(own) && taken.insert(*local));
        planned.push((service, offered, ports));
    }
    for (_, offered, ports) in &mut planned {
        for own in offered.iter().filter(|own| !ports.contains_key(own)).copied().collect::<Vec<_>>() {
            if let Some(local) = candidates(own).find(|port| is_free.get(port) != Some(&false) && taken.insert(*port)) {
                ports.insert(own, local);
            }
        }
    }
    let changes = planned.into_iter().filter(|(service, _, ports)| *ports != local_ports(service));
    changes.map(|(service, _, ports)| (service, ports)).collect()
}

/// Where a port could be: at its own number, or at the next one.
fn candidates(own: u16) -> impl Iterator<Item = u16> {
    let further = if own < FIRST_ORDINARY { own + ORDINARY_OFFSET } else { own.saturating_add(1) };
    std::iter::once(own).chain(further..=u16::MAX)
}

/// Whether a service is a balancer of this machine. One of a class is somebody else's.
pub(super) fn is_balancer(service: &Service) -> bool {
    let spec = service.spec.as_ref();
    spec.is_some_and(|spec| spec.type_.as_deref() == Some("LoadBalancer") && spec.load_balancer_class.is_none())
}

fn is_offered(service: &Service, group: Option<&str>) -> bool {
    let Some(spec) = &service.spec else { return false };
    let has_address = spec.cluster_ip.as_deref() != Some("None");
    let belongs = |group: &str| {
        let owners = service.owner_references();
        owners.iter().any(|owner| owner.api_version.split_once('/').is_some_and(|(of, _)| of == group))
    };
    match spec.type_.as_deref() {
        Some("LoadBalancer") => is_balancer(service),
        Some("ExternalName") => false,
        _ => has_address && group.is_some_and(belongs),
    }
}

/// The ports of a service, or where they are on the node.
fn numbers(service: &Service, on_node: bool) -> BTreeSet<u16> {
    let ports = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
    let number = ports.filter_map(|port| if on_node { port.node_port } else { Some(port.port) });
    number.filter_map(|number| u16::try_from(number).ok()).filter(|number| *number > 0).collect()
}

#[cfg(test)]
mod tests {
    use kube::api::PostParams;
    use serde_json::Value;
    use skep_kube::auth::tokens::{SigningKey, TokenAuthority};
    use skep_kube::server::Server;
    use skep_kube::store::Store;

    use super::*;

    const GROUP: &str = "example.dev";

    fn service(name: &str, remembered: &str, spec: &Value) -> Service {
        let mut value = json!({"metadata": {"namespace": "n", "name": name}, "spec": spec});
        if !remembered.is_empty() {
            value["metadata"]["annotations"] = json!({ ANNOTATION: remembered });
        }
        serde_json::from_value(value).unwrap()
    }

    fn balancer(name: &str, remembered: &str, port: u16) -> Service {
        service(name, remembered, &json!({"type": "LoadBalancer", "ports": [{"port": port}]}))
    }

    fn planned(services: &[Service], busy: &[u16]) -> Vec<(String, Option<String>)> {
        let services: Vec<&Service> = services.iter().collect();
        let known = busy.iter().map(|port| (*port, false)).collect();
        let changed = plan(&services, Some(GROUP), &known);
        changed.into_iter().map(|(service, ports)| (service.name_any(), written(&ports))).collect()
    }

    fn line(name: &str, ports: &str) -> (String, Option<String>) {
        (name.to_owned(), Some(ports.to_owned()))
    }

    #[test]
    fn the_own_number_or_the_next_that_is_free() {
        let services = [balancer("a", "", 8080), balancer("b", "", 8080), balancer("c", "", 80)];
        let found = planned(&services, &[80, 8081]);
        assert_eq!(found, [line("a", "8080:8080"), line("b", "8080:8082"), line("c", "80:8083")]);
    }

    #[test]
    fn what_was_given_once_is_kept() {
        // The first by name comes after the one that has the port; and nobody asks whether that is free.
        let services = [balancer("a", "", 8080), balancer("b", "8080:8080", 8080), balancer("c", "81:8080", 81)];
        let found = planned(&services, &[8080]);
        assert_eq!(found, [line("a", "8080:8081"), line("c", "81:81")]);
    }

    #[test]
    fn ports_that_are_gone_are_given_back() {
        let node = service("node", "", &json!({"type": "NodePort", "ports": [{"port": 1, "nodePort": 8080}]}));
        let services = [balancer("a", "1:1,9:9", 9), balancer("b", "", 8080), node];
        assert_eq!(planned(&services, &[]), [line("a", "9:9"), line("b", "8080:8081")]);
        let inner = service("inner", "80:80", &json!({"ports": [{"port": 80}]}));
        assert_eq!(planned(&[inner], &[]), [("inner".to_owned(), None)]);
    }

    #[test]
    fn balancers_of_a_class_are_left_to_others() {
        let of_class = |name: &str, remembered: &str| {
            let spec = json!({"type": "LoadBalancer", "loadBalancerClass": "example.com/lb", "ports": [{"port": 80}]});
            service(name, remembered, &spec)
        };
        assert!(is_balancer(&balancer("a", "", 80)) && !is_balancer(&of_class("a", "")));
        assert_eq!(planned(&[of_class("a", "")], &[]), []);
        assert_eq!(planned(&[of_class("a", "80:80")], &[]), [("a".to_owned(), None)]);
    }

    #[test]
    fn services_of_the_group_are_offered_too() {
        let owned = |name: &str, api_version: &str, address: &str| {
            let mut service = service(name, "", &json!({"clusterIP": address, "ports": [{"port": 9000}]}));
            let owner = json!([{"apiVersion": api_version, "kind": "K", "name": "k", "uid": "u"}]);
            service.metadata.owner_references = serde_json::from_value(owner).unwrap();
            service
        };
        let services = [
            owned("proxy", "example.dev/v1", "10.96.0.7"),
            owned("headless", "example.dev/v1", "None"),
            owned("foreign", "apps/v1", "10.96.0.8"),
        ];
        assert_eq!(planned(&services, &[]), [line("proxy", "9000:9000")]);
    }

    /// A machine with a service that wants this port, and nobody behind it.
    async fn machine(port: u16) -> Client {
        let tokens = TokenAuthority::new(SigningKey::generate().unwrap());
        let server = Server::new(Store::open(None).unwrap(), tokens, "127.0.0.1:1").await.unwrap();
        let api: Api<Service> = Api::namespaced(server.client(), "default");
        let object = json!({"metadata": {"name": "echo"}, "spec": {"type": "LoadBalancer", "ports": [{"port": port}]}});
        api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
        server.client()
    }

    async fn assigned(client: &Client, broker: &Broker, ports: &mut LocalPorts) -> BTreeMap<u16, u16> {
        let api: Api<Service> = Api::namespaced(client.clone(), "default");
        ports.assign(client, broker, Some(GROUP), &[&api.get("echo").await.unwrap()]).await;
        local_ports(&api.get("echo").await.unwrap())
    }

    #[tokio::test]
    async fn two_runs_do_not_give_away_the_same_port() {
        let port = skep_conformance::ports::free_port().unwrap();
        let broker = Broker::connect().unwrap();
        let (first, second) = (machine(port).await, machine(port).await);
        let (mut of_first, mut of_second) = (LocalPorts::default(), LocalPorts::default());
        assert_eq!(assigned(&first, &broker, &mut of_first).await, [(port, port)].into());
        assert_eq!(assigned(&second, &broker, &mut of_second).await, [(port, port + 1)].into());
        // What is remembered is reserved again, and what was given once is kept.
        drop((of_first, of_second));
        let (mut of_first, mut of_second) = (LocalPorts::default(), LocalPorts::default());
        assert_eq!(assigned(&second, &broker, &mut of_second).await, [(port, port + 1)].into());
        assert_eq!(assigned(&first, &broker, &mut of_first).await, [(port, port)].into());
        let third = machine(port).await;
        assert_eq!(assigned(&third, &broker, &mut LocalPorts::default()).await, [(port, port + 2)].into());
        // A service that is gone needs none.
        of_first.assign(&first, &broker, Some(GROUP), &[]).await;
        assert_eq!(assigned(&machine(port).await, &broker, &mut LocalPorts::default()).await, [(port, port)].into());
    }
}
