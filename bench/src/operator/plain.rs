//! A client that sends the writes of the operator without being one.

use kube::Client;
use serde_json::{Value, json};

use super::cluster::{self, PLAIN, WATCHED};
use crate::load::Call;

/// The server whose objects are the pattern of all. Nothing else contains its name.
pub(super) const PATTERN: &str = "specimen";

/// The collections that children are in, below a namespace, with their kinds.
const CHILDREN: [(&str, &str, &str); 6] = [
    ("api/v1", "serviceaccounts", "ServiceAccount"),
    ("apis/rbac.authorization.k8s.io/v1", "roles", "Role"),
    ("apis/rbac.authorization.k8s.io/v1", "rolebindings", "RoleBinding"),
    ("api/v1", "configmaps", "ConfigMap"),
    ("apis/apps/v1", "deployments", "Deployment"),
    ("api/v1", "services", "Service"),
];

/// What an API server adds on its own.
const ADDED: [&str; 5] = ["uid", "resourceVersion", "creationTimestamp", "managedFields", "ownerReferences"];

/// A write with the name of the pattern in it.
#[derive(Debug)]
struct Pattern {
    path: String,
    body: String,
    call: fn(&str, &Value) -> Call,
}

/// The writes for one server, after its creation.
#[derive(Debug)]
pub(super) struct Patterns(Vec<Pattern>);

impl Patterns {
    /// Learns them from what the operator made of the pattern.
    pub(super) async fn learn(client: &Client) -> anyhow::Result<Self> {
        let server = format!("{}/{PATTERN}", cluster::servers(PLAIN));
        let own = cluster::list(client, &cluster::servers(WATCHED)).await?;
        let own = own.into_iter().next().unwrap_or_default();
        let finalizers = json!({"metadata": {"finalizers": own["metadata"]["finalizers"]}});
        let status = json!({"status": own["status"]});
        let mut patterns = vec![
            Pattern { path: server.clone(), body: finalizers.to_string(), call: Call::merge },
            Pattern { path: format!("{server}/status"), body: status.to_string(), call: Call::merge },
        ];
        for (version, plural, kind) in CHILDREN {
            for object in cluster::list(client, &format!("/{version}/namespaces/{WATCHED}/{plural}")).await? {
                let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                if !name.contains(PATTERN) {
                    continue;
                }
                let path = format!("/{version}/namespaces/{PLAIN}/{plural}/{name}?fieldManager=skep-bench&force=true");
                let api_version = version.split_once('/').map_or("v1", |(_, version)| version);
                patterns.push(Pattern { path, body: bare(object, api_version, kind), call: Call::apply });
            }
        }
        Ok(Self(patterns))
    }

    /// How many writes a server takes, its creation included.
    pub(super) fn count(&self) -> usize {
        self.0.len() + 1
    }

    pub(super) fn calls(&self, name: &str) -> anyhow::Result<Vec<Call>> {
        let call = |pattern: &Pattern| {
            let body = serde_json::from_str(&pattern.body.replace(PATTERN, name))?;
            Ok((pattern.call)(&pattern.path.replace(PATTERN, name), &body))
        };
        self.0.iter().map(call).collect()
    }
}

/// An object as somebody would write it who knows what the operator knows.
fn bare(mut object: Value, api_version: &str, kind: &str) -> String {
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    object["metadata"]["namespace"] = PLAIN.into();
    for (part, members) in [("metadata", &ADDED[..]), ("spec", &["clusterIP", "clusterIPs"])] {
        if let Some(part) = object.get_mut(part).and_then(Value::as_object_mut) {
            part.retain(|name, _| !members.contains(&name.as_str()));
        }
    }
    if let Some(members) = object.as_object_mut() {
        members.remove("status");
    }
    object.to_string()
}
