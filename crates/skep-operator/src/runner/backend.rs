//! The server behind a proxy, in the cluster.

use std::fmt;
use std::time::Duration;

use futures::future::try_join_all;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Service;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use skep_api::config::run_config::RunConfig;

use super::put::{Put, put};
use super::{Attachment, RunnerError, base_name, services, stateful_set, workload_name};

/// How long the pods may take to become ready.
const ROLLOUT: Duration = Duration::from_mins(2);
/// How long to wait before another look when the API server does not answer.
const PAUSE: Duration = Duration::from_secs(5);

/// Where the server of one proxy is, and what it is to be.
#[derive(Clone)]
pub struct Backend {
    client: Client,
    namespace: String,
    name: String,
    base_name: String,
    generation: i64,
    stateful_set: Value,
    services: Vec<Value>,
}

impl fmt::Debug for Backend {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What pods are told may be secret.
        let Self { namespace, name, generation, .. } = self;
        write!(formatter, "Backend({namespace}/{name}, generation {generation})")
    }
}

/// How a deployment ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deployed {
    /// The server is what this proxy says, and ready.
    Ours,
    /// The server is what a newer proxy says.
    Newer,
}

/// What is there after a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// What this proxy says, as this generation of the StatefulSet.
    Generation(i64),
    /// What a newer proxy says.
    Newer,
}

impl Backend {
    /// What a document asks for, in a namespace.
    pub fn new(client: Client, namespace: &str, config: &RunConfig, openshift: bool) -> Result<Self, RunnerError> {
        Ok(Self {
            client,
            namespace: namespace.to_owned(),
            name: workload_name(config).to_owned(),
            base_name: base_name(config).to_owned(),
            generation: config.mcpserver_generation,
            stateful_set: stateful_set(config, openshift)?,
            services: services(config)?,
        })
    }

    fn stateful_sets(&self) -> Api<DynamicObject> {
        let resource = ApiResource::erase::<StatefulSet>(&());
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    /// Writes the StatefulSet and its Services, and waits until the pods are ready; leaves all of it alone when a newer
    /// proxy was here.
    pub async fn deploy(&self) -> Result<Deployed, RunnerError> {
        match self.write().await? {
            Written::Generation(generation) => self.rolled_out(generation).await.map(|()| Deployed::Ours),
            Written::Newer => Ok(Deployed::Newer),
        }
    }

    /// Writes the StatefulSet and its Services, unless a newer proxy has.
    pub async fn write(&self) -> Result<Written, RunnerError> {
        let written = match put(&self.stateful_sets(), &self.stateful_set, self.generation).await? {
            Put::Written(written) => written,
            Put::Overtaken(newer) => {
                let theirs = super::put::stamp(&newer).unwrap_or_default();
                tracing::info!(ours = self.generation, theirs, "a newer proxy has deployed the MCP server");
                return Ok(Written::Newer);
            }
        };
        let owner = json!([{
            "apiVersion": "apps/v1", "kind": "StatefulSet", "name": written.name_any(), "uid": written.uid(),
            "controller": true, "blockOwnerDeletion": true,
        }]);
        let api = Api::namespaced_with(self.client.clone(), &self.namespace, &ApiResource::erase::<Service>(&()));
        let services: Vec<Value> = self.services.iter().map(|service| owned(service, &owner)).collect();
        try_join_all(services.iter().map(|service| put(&api, service, self.generation))).await?;
        Ok(Written::Generation(written.metadata.generation.unwrap_or_default()))
    }

    /// Waits until all pods are of the template that was written, and ready.
    async fn rolled_out(&self, generation: i64) -> Result<(), RunnerError> {
        let api = self.stateful_sets();
        let condition = |object: Option<&DynamicObject>| object.is_none_or(|object| is_rolled_out(object, generation));
        match tokio::time::timeout(ROLLOUT, await_condition(api.clone(), &self.name, condition)).await {
            Ok(Ok(Some(_))) => Ok(()),
            Ok(Ok(None)) => Err(RunnerError::NotReady("it was deleted".to_owned())),
            Ok(Err(error)) => Err(RunnerError::NotReady(error.to_string())),
            Err(_) => {
                let live = api.get_opt(&self.name).await.ok().flatten();
                let status = live.map(|live| live.data["status"].to_string()).unwrap_or_default();
                Err(RunnerError::NotReady(format!("waited {} s; its status is {status}", ROLLOUT.as_secs())))
            }
        }
    }

    /// Whether the StatefulSet is there that the document calls the base of the server. An API server that does
    /// not answer counts as a yes.
    pub async fn exists(&self) -> bool {
        self.stateful_sets().get_opt(&self.base_name).await.map_or(true, |found| found.is_some())
    }

    /// Whether somebody wants no pods at all.
    pub async fn is_scaled_to_zero(&self) -> bool {
        let found = self.stateful_sets().get_opt(&self.name).await.ok().flatten();
        found.is_some_and(|found| !wants_pods(&found))
    }

    /// Waits until somebody wants pods, or the StatefulSet is gone.
    pub async fn wanted(&self) {
        let condition = |object: Option<&DynamicObject>| object.is_none_or(wants_pods);
        while await_condition(self.stateful_sets(), &self.name, condition).await.is_err() {
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Waits until the StatefulSet that is there now is gone.
    pub async fn gone(&self) {
        loop {
            if let Ok(found) = self.stateful_sets().get_opt(&self.name).await {
                let Some(uid) = found.and_then(|found| found.uid()) else { return };
                let deleted = await_condition(self.stateful_sets(), &self.name, conditions::is_deleted(&uid)).await;
                if deleted.is_ok() {
                    return;
                }
            }
            // Whatever keeps us from looking will pass.
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The way to the standard streams of the server.
    pub fn attachment(&self) -> Attachment {
        Attachment::new(self.client.clone(), &self.namespace, &self.name)
    }
}

fn owned(service: &Value, owner: &Value) -> Value {
    let mut service = service.clone();
    service["metadata"]["ownerReferences"] = owner.clone();
    service
}

fn wants_pods(object: &DynamicObject) -> bool {
    object.data["spec"]["replicas"] != 0
}

fn is_rolled_out(object: &DynamicObject, generation: i64) -> bool {
    let count = |member: &str| object.data["status"][member].as_i64().unwrap_or_default();
    let wanted = object.data["spec"]["replicas"].as_i64().unwrap_or(1);
    count("observedGeneration") >= generation && count("updatedReplicas") == wanted && count("readyReplicas") == wanted
}
