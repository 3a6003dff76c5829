//! Rolls the pods of every Deployment from one template to the next, by way of ReplicaSets.

mod conditions;
mod history;
mod plan;
mod proportion;
mod rollout;
mod status;

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::json;
use skep_control::{Key, Next, Queue, work};

use super::cluster::Cluster;
use super::error::{ControllerError, found};
use super::events::{Note, Recorder};
use super::objects::Objects;
use super::ownership::{claim_all, controller_key, is_controlled_by, matches, selector_of, wake_owners};
use super::pods;
use conditions::Milestone;
use plan::{Observed, Step};

const SOURCE: &str = "deployment-controller";
const CONCURRENCY: usize = 5;
const REVISION: &str = "deployment.kubernetes.io/revision";

pub(super) struct Controller {
    deployments: Objects<Deployment>,
    replica_sets: Objects<ReplicaSet>,
    pods: Objects<Pod>,
    recorder: Recorder,
    queue: Arc<Queue<Key>>,
}

impl Controller {
    pub(super) fn new(cluster: &mut Cluster) -> Self {
        let deployments = cluster.objects::<Deployment>();
        let replica_sets = cluster.objects::<ReplicaSet>();
        let pods = cluster.objects::<Pod>();
        let queue = Arc::new(Queue::default());
        wake_owners(&queue, &deployments, &replica_sets, selects);
        // Only a Recreate rollout waits for pods to be gone; everything else is in the status of the ReplicaSets.
        let (wake, owners) = (queue.clone(), replica_sets.clone());
        pods.cache().on_change(move |pod| {
            let replica_set = controller_key::<ReplicaSet>(&pod.metadata).and_then(|key| owners.get(&key));
            if let Some(owner) = replica_set.and_then(|found| controller_key::<Deployment>(&found.metadata)) {
                wake.add(owner);
            }
        });
        Self { deployments, replica_sets, pods, recorder: cluster.recorder.clone(), queue }
    }

    pub(super) async fn run(self) {
        self.deployments.cache().complete().await;
        self.replica_sets.cache().complete().await;
        self.pods.cache().complete().await;
        work(SOURCE, &self.queue, CONCURRENCY, &(), |key| self.reconcile(key)).await;
    }

    async fn reconcile(&self, key: Key) -> Result<Next, ControllerError> {
        let Some(deployment) = self.deployments.get(&key) else { return Ok(Next::Rest) };
        let Some(spec) = &deployment.spec else { return Ok(Next::Rest) };
        if spec.selector == LabelSelector::default() {
            let message = "This deployment is selecting all pods. A non-empty selector is required.".to_owned();
            self.recorder.record(deployment.as_ref(), Note::warning(SOURCE, "SelectingAll", message));
            return Ok(Next::Rest);
        }
        let selector = selector_of(&spec.selector)?;
        let replica_sets =
            claim_all(&self.deployments, deployment.as_ref(), &self.replica_sets, |found| matches(&selector, found))
                .await?;
        let observed = Observed {
            deployment: &deployment,
            replica_sets: &replica_sets,
            busy: self.replica_sets_with_running_pods(&key.namespace, &replica_sets),
        };
        let plan = plan::plan(&observed);
        let mut milestone = plan.milestone;
        let mut failure = None;
        for step in plan.steps {
            match self.take(&deployment, step).await {
                Ok(reached) => milestone = reached.or(milestone),
                Err((reached, error)) => {
                    milestone = reached.or(milestone);
                    failure = Some(error);
                    break;
                }
            }
        }
        let wait = self.write_status(&key, &deployment, milestone).await?;
        match failure {
            Some(error) if !error.is_namespace_terminating() => Err(error),
            _ => Ok(Next::after(wait)),
        }
    }

    fn replica_sets_with_running_pods(&self, namespace: &str, replica_sets: &[Arc<ReplicaSet>]) -> Vec<String> {
        let pods = self.pods.in_namespace(namespace);
        let unfinished: Vec<_> = pods.iter().filter(|pod| !pods::is_finished(pod)).collect();
        let busy = replica_sets
            .iter()
            .filter(|owner| unfinished.iter().any(|pod| is_controlled_by(&pod.metadata, &owner.metadata)));
        busy.filter_map(|replica_set| replica_set.uid()).collect()
    }

    async fn take(
        &self,
        deployment: &Deployment,
        step: Step,
    ) -> Result<Option<Milestone>, (Option<Milestone>, ControllerError)> {
        match step {
            Step::Create(replica_set) => self.create(deployment, &replica_set).await,
            Step::Update(replica_set) => {
                self.replica_sets.replace(&replica_set).await.map_err(|error| (None, error))?;
                Ok(None)
            }
            Step::Scale { replica_set, from, to } => {
                self.replica_sets.replace(&replica_set).await.map_err(|error| (None, error))?;
                if from != to {
                    self.tell_scaled(deployment, &replica_set.name_any(), from, to);
                }
                Ok(None)
            }
            Step::SetRevision(revision) => {
                self.set_revision(deployment, &revision).await.map_err(|error| (None, error))?;
                Ok(None)
            }
            Step::Delete(replica_set) => {
                let parameters = DeleteParams::default();
                self.replica_sets.delete(&replica_set, parameters).await.map_err(|error| (None, error))?;
                Ok(None)
            }
        }
    }

    /// Annotations of a Deployment count as part of its specification, except when they come with a status: the
    /// revision must not look like a change that somebody has to observe.
    async fn set_revision(&self, deployment: &Deployment, revision: &str) -> Result<(), ControllerError> {
        let mut updated = deployment.clone();
        updated.metadata.annotations.get_or_insert_default().insert(REVISION.to_owned(), revision.to_owned());
        let answer = self.deployments.replace_status(&updated).await?;
        if history::annotation(&answer.metadata, REVISION) != Some(revision) {
            // A server that keeps metadata out of status updates.
            let patch = json!({"metadata": {"annotations": {REVISION: revision}}});
            self.deployments.patch(&Key::of(deployment), &patch).await?;
        }
        Ok(())
    }

    fn tell_scaled(&self, deployment: &Deployment, name: &str, from: i32, to: i32) {
        let direction = if from < to { "up" } else { "down" };
        let message = format!("Scaled {direction} replica set {name} from {from} to {to}");
        self.recorder.record(deployment, Note::normal(SOURCE, "ScalingReplicaSet", message));
    }

    async fn create(
        &self,
        deployment: &Deployment,
        replica_set: &ReplicaSet,
    ) -> Result<Option<Milestone>, (Option<Milestone>, ControllerError)> {
        let name = replica_set.name_any();
        match self.replica_sets.create(replica_set).await {
            Ok(_) => {
                let replicas = replica_set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(0);
                if replicas > 0 {
                    self.tell_scaled(deployment, &name, 0, replicas);
                }
                Ok(Some(Milestone::Created(name)))
            }
            Err(error) if error.has_reason("AlreadyExists") => {
                // The name is taken by something else with the same hash: the next try uses another one. Our own
                // ReplicaSet, not yet seen by the cache, is simply found in the next pass.
                let key = Key::of(replica_set);
                let taken = self.replica_sets.live(&key).await.map_err(|error| (None, error))?;
                let ours = taken.is_some_and(|taken| is_controlled_by(&taken.metadata, &deployment.metadata));
                Err((if ours { None } else { Some(Milestone::Collided) }, error))
            }
            Err(error) if error.is_namespace_terminating() => Err((None, error)),
            Err(error) => {
                let message = format!("Failed to create new replica set \"{name}\": {}", error.server_message());
                self.recorder.record(deployment, Note::warning(SOURCE, "ReplicaSetCreateError", message));
                Err((Some(Milestone::CreateFailed(error.server_message())), error))
            }
        }
    }

    /// Writes the status if it has changed. Returns when to look again for the progress deadline.
    async fn write_status(
        &self,
        key: &Key,
        planned_for: &Deployment,
        milestone: Option<Milestone>,
    ) -> Result<Option<std::time::Duration>, ControllerError> {
        // The plan's own writes (revision, scaling) are in the cache by now.
        let Some(deployment) = self.deployments.get(key).filter(|found| found.uid() == planned_for.uid()) else {
            return Ok(None);
        };
        if deployment.metadata.generation != planned_for.metadata.generation {
            // The status would claim to have observed a change that the plan did not know.
            return Ok(Some(std::time::Duration::ZERO));
        }
        let all = self.replica_sets.in_namespace(&key.namespace);
        let owned: Vec<_> =
            all.into_iter().filter(|found| is_controlled_by(&found.metadata, &deployment.metadata)).collect();
        let now = Timestamp::now();
        let wanted = status::status(&deployment, &owned, milestone.as_ref(), now);
        let wait = conditions::until_deadline(&deployment, &wanted, now);
        if deployment.status.as_ref() != Some(&wanted) {
            let updated = Deployment { status: Some(wanted), ..deployment.as_ref().clone() };
            found(self.deployments.replace_status(&updated).await)?;
        }
        Ok(wait)
    }
}

fn selects(deployment: &Deployment, replica_set: &ReplicaSet) -> bool {
    let selector = deployment.spec.as_ref().and_then(|spec| selector_of(&spec.selector).ok());
    selector.is_some_and(|selector| matches(&selector, &replica_set.metadata))
}
