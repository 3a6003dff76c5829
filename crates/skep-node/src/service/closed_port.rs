//! Ports on the loopback of this machine that a service should have, and somebody else has.
//!
//! Whoever shows services to people has to know. It is remembered on the service itself, in an annotation that nobody else
//! writes.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Service;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

use super::directory::ServiceKey;

/// The ports, separated by commas.
const ANNOTATION: &str = "skep.dev/closed-ports";

/// The ports of this machine at which a service should be and is not: another program has them.
pub fn closed_ports(service: &Service) -> BTreeSet<u16> {
    let text = service.annotations().get(ANNOTATION);
    text.into_iter().flat_map(|text| text.split(',')).filter_map(|port| port.trim().parse().ok()).collect()
}

/// Remembers which ports are closed now.
pub(super) async fn remember(client: &Client, services: &[&Service], closed: &BTreeMap<ServiceKey, BTreeSet<u16>>) {
    for (service, text) in changes(services, closed) {
        let (namespace, name) = (service.namespace().unwrap_or_default(), service.name_any());
        let api: Api<Service> = Api::namespaced(client.clone(), &namespace);
        let patch = json!({"metadata": {"annotations": {ANNOTATION: text}}});
        if let Err(error) = api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await {
            tracing::debug!(namespace, service = name, %error, "closed ports not remembered");
        }
    }
}

/// The services of which something else is remembered than what is so, each with what is to be remembered.
fn changes<'a>(
    services: &[&'a Service],
    closed: &BTreeMap<ServiceKey, BTreeSet<u16>>,
) -> Vec<(&'a Service, Option<String>)> {
    let mut changes = Vec::new();
    for service in services {
        let now = closed.get(&(service.namespace().unwrap_or_default(), service.name_any()));
        let now = now.cloned().unwrap_or_default();
        if now != closed_ports(service) {
            let ports: Vec<String> = now.iter().map(ToString::to_string).collect();
            changes.push((*service, (!ports.is_empty()).then(|| ports.join(","))));
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_are_written() {
        let service = |name: &str, remembered: Option<&str>| -> Service {
            let annotations = json!({ ANNOTATION: remembered });
            let annotations = if remembered.is_some() { annotations } else { json!({}) };
            serde_json::from_value(json!({"metadata": {"namespace": "n", "name": name, "annotations": annotations}}))
                .unwrap()
        };
        let all = [service("a", None), service("b", Some("80,81")), service("c", Some("80")), service("d", None)];
        let closed = [("a", vec![80]), ("b", vec![81, 80])];
        let closed =
            closed.into_iter().map(|(name, ports)| (("n".to_owned(), name.to_owned()), ports.into_iter().collect()));
        let found = changes(&all.iter().collect::<Vec<_>>(), &closed.collect());
        let found: Vec<_> = found.into_iter().map(|(service, text)| (service.name_any(), text)).collect();
        assert_eq!(found, [("a".to_owned(), Some("80".to_owned())), ("c".to_owned(), None)]);
    }
}
