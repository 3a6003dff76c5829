//! The real server, asked in plain HTTP, and our own structures filled from what it holds.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context as _, bail};
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use skep_conformance::control_plane::{ControlPlane, Identity};
use skep_kube::auth::node::NodeObjects;
use skep_kube::auth::rbac::RoleIndex;
use skep_kube::auth::tokens::{BoundKind, BoundObjects, ObjectState};

pub(crate) const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const ACCESS_REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

pub(crate) struct Server {
    pub(crate) control_plane: ControlPlane,
    pub(crate) admin: Client,
}

/// A status code and the document that came with it.
pub(crate) type Answer = (u16, Value);

impl Server {
    pub(crate) async fn start_or_skip(test: &str) -> anyhow::Result<Option<Self>> {
        let Some(control_plane) = ControlPlane::start_or_skip(test).await else {
            return Ok(None);
        };
        let admin = control_plane.admin().await?;
        Ok(Some(Self { control_plane, admin }))
    }

    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        let (code, document) = ask(&self.admin, "GET", path, &[], None).await?;
        if code != 200 {
            bail!("GET {path}: {code} {document}");
        }
        Ok(document)
    }

    pub(crate) async fn post(&self, path: &str, document: &Value) -> anyhow::Result<Answer> {
        ask(&self.admin, "POST", path, &[], Some(document)).await
    }

    pub(crate) async fn create(&self, path: &str, document: &Value) -> anyhow::Result<Value> {
        let (code, created) = self.post(path, document).await?;
        if code != 201 {
            bail!("POST {path}: {code} {created}");
        }
        Ok(created)
    }

    /// A client by a kubeconfig, changed as wanted.
    pub(crate) async fn client_of(
        &self,
        identity: &Identity,
        change: impl FnOnce(&mut Kubeconfig),
    ) -> anyhow::Result<Client> {
        let mut kubeconfig = Kubeconfig::from_yaml(&self.control_plane.kubeconfig(identity))?;
        change(&mut kubeconfig);
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        Ok(Client::try_from(config)?)
    }

    /// Creates roles and bindings, and waits until the authorizer has seen the last of them.
    pub(crate) async fn create_roles(&self, documents: &[Value]) -> anyhow::Result<()> {
        for document in documents {
            let kind = document["kind"].as_str().context("kind")?.to_lowercase();
            let path = match document["metadata"]["namespace"].as_str() {
                Some(namespace) => format!("{RBAC}/namespaces/{namespace}/{kind}s"),
                None => format!("{RBAC}/{kind}s"),
            };
            let mut document = document.clone();
            document["apiVersion"] = "rbac.authorization.k8s.io/v1".into();
            self.create(&path, &document).await?;
        }
        self.settle().await
    }

    /// Roles, bindings and aggregation reach the authorizer by watching; a binding made last is seen last.
    async fn settle(&self) -> anyhow::Result<()> {
        let name = format!("settled-{}", uuid::Uuid::new_v4());
        let grant = json!({ "verbs": ["get"], "apiGroups": ["settled"], "resources": ["settled"] });
        let group = "rbac.authorization.k8s.io";
        let role = json!({ "apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": { "name": name }, "rules": [grant] });
        let binding = json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": { "name": name },
            "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": name },
            "subjects": [{ "apiGroup": group, "kind": "User", "name": name }],
        });
        self.create(&format!("{RBAC}/clusterroles"), &role).await?;
        self.create(&format!("{RBAC}/clusterrolebindings"), &binding).await?;
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": { "user": name, "resourceAttributes": { "verb": "get", "group": "settled", "resource": "settled" } },
        });
        for _ in 0..200 {
            if self.create(ACCESS_REVIEWS, &review).await?["status"]["allowed"] == true {
                // Namespaced kinds come by watches of their own.
                tokio::time::sleep(Duration::from_millis(300)).await;
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        bail!("the authorizer has not seen the new roles")
    }

    /// Our index, filled with all that the real server has.
    pub(crate) async fn roles(&self) -> anyhow::Result<RoleIndex> {
        let mut index = RoleIndex::default();
        for (plural, kind) in [
            ("clusterroles", "ClusterRole"),
            ("clusterrolebindings", "ClusterRoleBinding"),
            ("roles", "Role"),
            ("rolebindings", "RoleBinding"),
        ] {
            for mut document in items(&self.get(&format!("{RBAC}/{plural}")).await?) {
                document["kind"] = kind.into();
                index.apply(&document);
            }
        }
        Ok(index)
    }

    pub(crate) async fn objects(&self) -> anyhow::Result<Objects> {
        let mut objects = Objects::default();
        for kind in [BoundKind::ServiceAccount, BoundKind::Pod, BoundKind::Secret, BoundKind::Node] {
            for document in items(&self.get(&format!("/api/v1/{}", kind.plural())).await?) {
                let text = |field: &str| document["metadata"][field].as_str().unwrap_or_default().to_owned();
                objects.states.insert((kind, text("namespace"), text("name")), ObjectState::of(&document));
                if kind == BoundKind::Pod {
                    objects.pods.push(document);
                }
            }
        }
        Ok(objects)
    }
}

pub(crate) fn items(list: &Value) -> Vec<Value> {
    list.get("items").and_then(Value::as_array).cloned().unwrap_or_default()
}

/// What exists on the real server.
#[derive(Default)]
pub(crate) struct Objects {
    pub(crate) states: HashMap<(BoundKind, String, String), ObjectState>,
    pods: Vec<Value>,
}

impl BoundObjects for Objects {
    fn find(&self, kind: BoundKind, namespace: &str, name: &str) -> Option<ObjectState> {
        self.states.get(&(kind, namespace.to_owned(), name.to_owned())).cloned()
    }
}

impl NodeObjects for Objects {
    fn any_pod(&self, node: &str, namespace: Option<&str>, fits: &mut dyn FnMut(&Value) -> bool) -> bool {
        let is_there = |pod: &&Value| namespace.is_none_or(|namespace| pod["metadata"]["namespace"] == namespace);
        self.pods.iter().filter(|pod| pod["spec"]["nodeName"] == node).filter(is_there).any(fits)
    }

    fn volume_of_claim(&self, _: &str, _: &str) -> Option<String> {
        None
    }
}

pub(crate) async fn ask(
    client: &Client,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    document: Option<&Value>,
) -> anyhow::Result<Answer> {
    let mut request = http::Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let body = document.map(ToString::to_string).unwrap_or_default().into_bytes();
    let response = client.send(request.header("content-type", kind).body(Body::from(body))?).await?;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await?.to_bytes();
    let mut document: Value = serde_json::from_slice(&body).unwrap_or_default();
    if let Some(metadata) = document.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    Ok((code, document))
}
