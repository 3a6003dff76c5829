//! Which services can be reached from this machine, and whether anybody is behind them.

use std::collections::BTreeMap;
use std::fmt;

use tokio::sync::watch;

use super::directory::Directory;

/// A service with a port on the loopback of this machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LocalEndpoint {
    pub namespace: String,
    pub name: String,
    pub port: u16,
}

impl fmt::Display for LocalEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}  http://127.0.0.1:{}", self.namespace, self.name, self.port)
    }
}

/// All such services, followed.
#[derive(Clone, Debug)]
pub struct LocalEndpoints {
    directory: watch::Receiver<Directory>,
}

impl LocalEndpoints {
    pub(super) fn new(directory: watch::Receiver<Directory>) -> Self {
        Self { directory }
    }

    /// Calls `tell` with every endpoint that becomes ready (true) or no longer is (false), until services are no longer
    /// served.
    pub async fn follow(mut self, tell: impl Fn(&LocalEndpoint, bool)) {
        let mut told: BTreeMap<LocalEndpoint, bool> = BTreeMap::new();
        loop {
            let now = endpoints(&self.directory.borrow_and_update());
            for (endpoint, ready) in &now {
                if told.get(endpoint).copied().unwrap_or(false) != *ready {
                    tell(endpoint, *ready);
                }
            }
            told = now;
            if self.directory.changed().await.is_err() {
                return;
            }
        }
    }
}

fn endpoints(directory: &Directory) -> BTreeMap<LocalEndpoint, bool> {
    let mut found = BTreeMap::new();
    for ((namespace, name), entry) in directory.services.iter().filter(|(_, entry)| entry.is_balancer) {
        for port in &entry.ports {
            let endpoint = LocalEndpoint { namespace: namespace.clone(), name: name.clone(), port: port.number };
            found.insert(endpoint, !port.backends.is_empty());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::service::directory::tests::directory;

    #[test]
    fn balancers_are_endpoints() {
        let service = |name: &str, type_: &str, port: u16| json!({"metadata": {"namespace": "n", "name": name}, "spec": {"type": type_, "ports": [{"port": port}]}});
        let slice = |owner: &str, ready: bool| {
            json!({"metadata": {"namespace": "n", "name": owner, "labels": {"kubernetes.io/service-name": owner}},
                "addressType": "IPv4", "ports": [{"port": 8080}],
                "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": ready}}]})
        };
        let services =
            json!([service("a", "LoadBalancer", 80), service("b", "LoadBalancer", 81), service("c", "ClusterIP", 82)]);
        let directory = directory(services, json!([slice("a", true), slice("b", false), slice("c", true)]));
        let found: Vec<_> =
            endpoints(&directory).into_iter().map(|(endpoint, ready)| (endpoint.to_string(), ready)).collect();
        let expected = [("n/a  http://127.0.0.1:80".to_owned(), true), ("n/b  http://127.0.0.1:81".to_owned(), false)];
        assert_eq!(found, expected);
    }
}
