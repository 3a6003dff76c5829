//! Which services can be reached from this machine, and whether anybody is behind them.

use std::collections::BTreeMap;
use std::fmt;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{Api, Client, ResourceExt as _};

const OWNER_LABEL: &str = "kubernetes.io/service-name";

/// A service with a port on this machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Endpoint {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) port: i32,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}  http://127.0.0.1:{}", self.namespace, self.name, self.port)
    }
}

/// Calls `tell` with every endpoint that becomes ready (true) or no longer is (false). Never returns.
pub(crate) async fn follow(client: Client, tell: impl Fn(&Endpoint, bool)) {
    let (services, services_writer) = reflector::store::<Service>();
    let (slices, slices_writer) = reflector::store::<EndpointSlice>();
    let watched = watcher(Api::<Service>::all(client.clone()), watcher::Config::default());
    let services_changed = reflector(services_writer, watched.default_backoff()).map(drop);
    let watched = watcher(Api::<EndpointSlice>::all(client), watcher::Config::default());
    let slices_changed = reflector(slices_writer, watched.default_backoff()).map(drop);
    let mut changes = futures::stream::select(services_changed.boxed(), slices_changed.boxed());
    let mut told: BTreeMap<Endpoint, bool> = BTreeMap::new();
    while changes.next().await.is_some() {
        let (services, slices) = (services.state(), slices.state());
        let now = endpoints(services.iter().map(AsRef::as_ref), slices.iter().map(AsRef::as_ref));
        for (endpoint, ready) in &now {
            if told.get(endpoint).copied().unwrap_or(false) != *ready {
                tell(endpoint, *ready);
            }
        }
        told = now;
    }
}

fn endpoints<'a>(
    services: impl IntoIterator<Item = &'a Service>,
    slices: impl IntoIterator<Item = &'a EndpointSlice>,
) -> BTreeMap<Endpoint, bool> {
    let slices: Vec<&EndpointSlice> = slices.into_iter().collect();
    let mut found = BTreeMap::new();
    for service in services {
        let Some(spec) = &service.spec else { continue };
        if spec.type_.as_deref() != Some("LoadBalancer") {
            continue;
        }
        let own = slices.iter().filter(|slice| {
            slice.namespace() == service.namespace() && slice.labels().get(OWNER_LABEL) == Some(&service.name_any())
        });
        let ready = own
            .flat_map(|slice| slice.endpoints.iter().flatten())
            .any(|endpoint| endpoint.conditions.as_ref().is_none_or(|conditions| conditions.ready != Some(false)));
        for port in spec.ports.iter().flatten() {
            let (namespace, name) = (service.namespace().unwrap_or_default(), service.name_any());
            found.insert(Endpoint { namespace, name, port: port.port }, ready);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn balancers_are_endpoints() {
        let services: Vec<Service> = serde_json::from_value(json!([
            {"metadata": {"namespace": "n", "name": "a"}, "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}},
            {"metadata": {"namespace": "n", "name": "b"}, "spec": {"type": "LoadBalancer", "ports": [{"port": 81}]}},
            {"metadata": {"namespace": "n", "name": "c"}, "spec": {"ports": [{"port": 82}]}}]))
        .unwrap();
        let slices: Vec<EndpointSlice> = serde_json::from_value(json!([
            {"metadata": {"namespace": "n", "name": "a-1", "labels": {OWNER_LABEL: "a"}}, "addressType": "IPv4",
                "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": true}}]},
            {"metadata": {"namespace": "n", "name": "b-1", "labels": {OWNER_LABEL: "b"}}, "addressType": "IPv4",
                "endpoints": [{"addresses": ["10.0.0.2"], "conditions": {"ready": false}}]}]))
        .unwrap();
        let found: Vec<_> =
            endpoints(&services, &slices).into_iter().map(|(endpoint, ready)| (endpoint.to_string(), ready)).collect();
        let expected = [("n/a  http://127.0.0.1:80".to_owned(), true), ("n/b  http://127.0.0.1:81".to_owned(), false)];
        assert_eq!(found, expected);
    }
}
