//! A cluster where manifests run: a machine with `skep up`, or a real control plane with `skep node`. What is checked at
//! both is checked by the same code.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, LogParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use skep_conformance::ports::free_port;

use crate::protected;

/// Far more than it takes, for machines that are busy building.
pub(crate) const LIMIT: Duration = Duration::from_mins(4);

/// The default namespace of a cluster.
pub(crate) struct Place(Client);

impl Place {
    pub(crate) fn new(client: &Client) -> Self {
        Self(client.clone())
    }

    /// Applies a manifest, as `skep up -f` does.
    pub(crate) async fn apply(&self, object: &Value) {
        let params = PatchParams::apply("test");
        self.like(object).patch(name(object), &params, &Patch::Apply(object)).await.unwrap();
    }

    /// Deletes the object of a manifest.
    pub(crate) async fn delete(&self, object: &Value) {
        self.like(object).delete(name(object), &DeleteParams::default()).await.unwrap();
    }

    /// Where objects like this one are.
    fn like(&self, object: &Value) -> Api<DynamicObject> {
        let kind = kube::core::TypeMeta {
            api_version: object["apiVersion"].as_str().unwrap().to_owned(),
            kind: object["kind"].as_str().unwrap().to_owned(),
        };
        let resource = ApiResource::from_gvk(&kind.try_into().unwrap());
        Api::default_namespaced_with(self.0.clone(), &resource)
    }

    /// The address on this machine of a port of pods, by a balancer of its own.
    pub(crate) async fn offer(&self, name: &str, pods: &Value, target: u16) -> String {
        let port = free_port().unwrap();
        self.apply(
            &json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": format!("{name}-here")}, "spec": {
            "type": "LoadBalancer", "selector": pods, "ports": [{"port": port, "targetPort": target}]}}),
        )
        .await;
        format!("127.0.0.1:{port}")
    }

    /// Applies a workload of ours that has the usual port; its address on this machine.
    pub(crate) async fn serve(&self, workload: &Value) -> String {
        self.apply(workload).await;
        self.offer(name(workload), &proxies(workload), 8080).await
    }

    /// A token of a service account that is meant for somebody.
    pub(crate) async fn token(&self, account: &str, audience: &str) -> String {
        let accounts: Api<ServiceAccount> = Api::default_namespaced(self.0.clone());
        let spec = TokenRequestSpec { audiences: Some(vec![audience.to_owned()]), ..TokenRequestSpec::default() };
        let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
        let given = accounts.create_token_request(account, &PostParams::default(), &request).await.unwrap();
        given.status.unwrap().token.unwrap()
    }

    /// What the proxy of a workload has printed.
    pub(crate) async fn printed(&self, workload: &Value) -> String {
        let labels = proxies(workload);
        let labels = labels.as_object().unwrap().iter();
        let labels: Vec<_> = labels.map(|(label, value)| format!("{label}={}", value.as_str().unwrap())).collect();
        self.printed_by(&labels.join(",")).await
    }

    /// What pods with these labels have printed.
    pub(crate) async fn printed_by(&self, labels: &str) -> String {
        let pods: Api<Pod> = Api::default_namespaced(self.0.clone());
        let mut text = String::new();
        for pod in pods.list(&ListParams::default().labels(labels)).await.unwrap() {
            text += &pods.logs(&pod.name_any(), &LogParams::default()).await.unwrap_or_default();
        }
        text
    }

    /// Waits until the server of a workload answers somebody.
    pub(crate) async fn until_served(&self, workload: &Value, address: &str, token: Option<&str>) {
        eventually(&format!("{} is served", workload["metadata"]["name"]), || async {
            let problem = match speaks(address, "/health") {
                Ok(()) if protected::Client::begin_as(address, token).is_some() => return Ok(()),
                Ok(()) => "it does not shake hands".to_owned(),
                Err(problem) => problem,
            };
            Err(format!("{problem}\n{}", self.printed(workload).await))
        })
        .await;
    }
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

/// The labels of the proxies of a workload.
fn proxies(workload: &Value) -> Value {
    let app = workload["kind"].as_str().unwrap().to_lowercase();
    json!({"app": app, "app.kubernetes.io/instance": workload["metadata"]["name"]})
}

/// An object of ours.
pub(crate) fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": kind, "metadata": {"name": name, "namespace": "default"},
        "spec": spec})
}

/// Whether something good is at an address. A service without ready pods takes connections and drops them.
pub(crate) fn speaks(address: &str, path: &str) -> Result<(), String> {
    let ask = || -> std::io::Result<String> {
        let mut connection = TcpStream::connect(address)?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        connection.write_all(request.as_bytes())?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer).map(|_| answer)
    };
    let answer = ask().map_err(|error| error.to_string())?;
    if answer.starts_with("HTTP/1.1 200") { Ok(()) } else { Err(answer) }
}

/// Asks again and again until the answer is good.
pub(crate) async fn eventually<F: Future<Output = Result<(), String>>>(what: &str, ask: impl Fn() -> F) {
    eventually_within(LIMIT, what, ask).await;
}

pub(crate) async fn eventually_within<F>(limit: Duration, what: &str, ask: impl Fn() -> F)
where
    F: Future<Output = Result<(), String>>,
{
    let begun = Instant::now();
    loop {
        match ask().await {
            Ok(()) => return,
            Err(last) => assert!(begun.elapsed() < limit, "not so: {what}\nlast: {last}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
