//! Deletes what has lost its owners, and carries out foreground and orphan deletion.
//!
//! Every kind that can be listed, watched and deleted takes part. Nothing is deleted on hearsay: an owner is absent
//! when its deletion was seen or when the server, asked for it, does not know it.

mod decide;
mod graph;
mod monitors;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DeleteParams, DynamicObject, PartialObjectMeta, Patch, PatchParams, Preconditions};
use kube::discovery::ApiResource;
use kube::{Api, Client};
use parking_lot::Mutex;
use serde_json::{Value, json};
use skep_control::{Next, Queue, work};

use super::cluster::Cluster;
use super::discovery::Resource;
use super::error::{ControllerError, found};
use decide::{Action, FOREGROUND, ORPHAN, Owner, Policy, decide};
use graph::{Graph, Identity, Node, group_of};

const SOURCE: &str = "garbage-collector";
const CONCURRENCY: usize = 8;
/// A kind's watch starts a moment after the kind; an owner may come and go in between.
const UNSEEN: Duration = Duration::from_secs(2);

pub(super) struct Controller {
    client: Client,
    shared: Arc<Shared>,
}

/// What the monitors write and the workers read.
#[derive(Default)]
struct Shared {
    graph: Mutex<Graph>,
    /// Where the objects of a group and kind are; any served version will do to look for them.
    resources: Mutex<HashMap<(String, String), Resource>>,
    queue: Queue<String>,
}

impl Controller {
    pub(super) fn new(cluster: &Cluster) -> Self {
        Self { client: cluster.client.clone(), shared: Arc::default() }
    }

    pub(super) async fn run(self) {
        let mut monitors = monitors::Monitors::new(self.client.clone(), self.shared.clone());
        // Decisions taken before all watches are complete would ask the server about every owner.
        monitors.start().await;
        tokio::join!(monitors.follow(), work(SOURCE, &self.shared.queue, CONCURRENCY, &(), |uid| self.collect(uid)));
    }

    async fn collect(&self, uid: String) -> Result<Next, ControllerError> {
        let Some(node) = self.shared.graph.lock().get(&uid).cloned() else { return Ok(Next::Rest) };
        let mut owners = Vec::with_capacity(node.owners.len());
        if !node.deleting {
            for reference in &node.owners {
                owners.push(self.owner(&node, reference).await?);
            }
        }
        let action = {
            let graph = self.shared.graph.lock();
            let action = decide(&node, &owners, &graph.dependents(&uid));
            if node.is_foreground() {
                // What goes already is told by its own events; in a circle it would be told for ever.
                for dependent in graph.dependents(&uid).into_iter().filter(|dependent| !dependent.deleting) {
                    self.shared.queue.add(dependent.uid.clone());
                }
            }
            action
        };
        match action {
            Action::Nothing => {}
            Action::Delete(policy) => self.delete(&node, policy).await?,
            Action::Disown(owners) => self.disown(&node, &owners).await?,
            Action::Unblock => self.unblock(&node).await?,
            Action::FinishForeground => self.remove_finalizer(&node, FOREGROUND).await?,
            Action::OrphanDependents => {
                let dependents: Vec<Node> = self.shared.graph.lock().dependents(&uid).into_iter().cloned().collect();
                for dependent in dependents {
                    self.disown(&dependent, std::slice::from_ref(&uid)).await?;
                }
                self.remove_finalizer(&node, ORPHAN).await?;
            }
        }
        Ok(Next::after(owners.contains(&Owner::Unseen).then_some(UNSEEN)))
    }

    async fn owner(&self, node: &Node, reference: &OwnerReference) -> Result<Owner, ControllerError> {
        {
            let graph = self.shared.graph.lock();
            if graph.is_gone(reference, node) {
                return Ok(Owner::Absent);
            }
            if let Some(owner) = graph.get(&reference.uid).filter(|owner| owner.is_meant_by(reference, node)) {
                return Ok(if owner.is_foreground() { Owner::Waiting } else { Owner::Present });
            }
        }
        let kind = (group_of(reference).to_owned(), reference.kind.clone());
        let known = self.shared.resources.lock().get(&kind).cloned();
        let Some(resource) = known else {
            // A kind that is not served now may be served later; until then its objects count as there.
            return Ok(Owner::Unseen);
        };
        if resource.namespaced && node.namespace.is_empty() {
            // An owner in a namespace cannot be named from outside: the reference can never be resolved.
            return Ok(Owner::Present);
        }
        let api = api_of(&self.client, &resource.api, resource.namespaced, &node.namespace);
        let live = found(api.get(&reference.name).await.map_err(Into::into))?;
        if live.is_some_and(|live| live.metadata.uid.as_deref() == Some(reference.uid.as_str())) {
            return Ok(Owner::Unseen);
        }
        let namespace = if resource.namespaced { &node.namespace } else { "" };
        self.shared.graph.lock().remember_gone(Identity::of(reference, namespace));
        Ok(Owner::Absent)
    }

    async fn delete(&self, node: &Node, policy: Policy) -> Result<(), ControllerError> {
        let parameters = match policy {
            Policy::Background => DeleteParams::background(),
            Policy::Foreground => DeleteParams::foreground(),
            Policy::Orphan => DeleteParams::orphan(),
        };
        // Somebody may just be giving it a new owner: only the version that was decided about is deleted.
        let precondition = Preconditions { uid: Some(node.uid.clone()), resource_version: Some(node.version.clone()) };
        let parameters = parameters.preconditions(precondition);
        let answer = self.api(node).delete(&node.name, &parameters).await.map_err(Into::into);
        found(answer).map(drop)
    }

    async fn disown(&self, node: &Node, owners: &[String]) -> Result<(), ControllerError> {
        let kept: Vec<_> = node.owners.iter().filter(|owner| !owners.contains(&owner.uid)).collect();
        self.patch(node, json!({"ownerReferences": kept})).await
    }

    async fn unblock(&self, node: &Node) -> Result<(), ControllerError> {
        let mut owners = node.owners.clone();
        for owner in &mut owners {
            owner.block_owner_deletion = Some(false);
        }
        self.patch(node, json!({"ownerReferences": owners})).await
    }

    async fn remove_finalizer(&self, node: &Node, finalizer: &str) -> Result<(), ControllerError> {
        let kept: Vec<_> = node.finalizers.iter().filter(|known| *known != finalizer).collect();
        self.patch(node, json!({"finalizers": kept})).await
    }

    async fn patch(&self, node: &Node, mut metadata: Value) -> Result<(), ControllerError> {
        metadata["uid"] = json!(node.uid);
        metadata["resourceVersion"] = json!(node.version);
        let patch = json!({"metadata": metadata});
        let answer = self.api(node).patch(&node.name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        found(answer.map_err(Into::into)).map(drop)
    }

    fn api(&self, node: &Node) -> Api<PartialObjectMeta<DynamicObject>> {
        api_of(&self.client, &node.api, node.namespaced, &node.namespace)
    }
}

fn api_of(
    client: &Client,
    api: &ApiResource,
    namespaced: bool,
    namespace: &str,
) -> Api<PartialObjectMeta<DynamicObject>> {
    if namespaced { Api::namespaced_with(client.clone(), namespace, api) } else { Api::all_with(client.clone(), api) }
}
