//! Keeps the number of pods of every ReplicaSet at what is asked for.

mod plan;
mod status;

use std::sync::Arc;

use futures::future::join_all;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::DeleteParams;
use skep_control::{Key, Next, Queue, work};

use super::cluster::Cluster;
use super::error::ControllerError;
use super::events::{Note, Recorder};
use super::objects::Objects;
use super::ownership::{claim_all, is_controlled_by, matches, selector_of, wake_owners};
use super::pods;
use status::Failure;

const SOURCE: &str = "replicaset-controller";
const CONCURRENCY: usize = 5;
/// Requests at a time for one ReplicaSet.
const LARGEST_BATCH: usize = 32;

pub(super) struct Controller {
    replica_sets: Objects<ReplicaSet>,
    pods: Objects<Pod>,
    recorder: Recorder,
    queue: Arc<Queue<Key>>,
}

impl Controller {
    pub(super) fn new(cluster: &mut Cluster) -> Self {
        let replica_sets = cluster.objects::<ReplicaSet>();
        let pods = cluster.objects::<Pod>();
        let queue = Arc::new(Queue::default());
        wake_owners(&queue, &replica_sets, &pods, selects);
        Self { replica_sets, pods, recorder: cluster.recorder.clone(), queue }
    }

    pub(super) async fn run(self) {
        self.replica_sets.cache().complete().await;
        self.pods.cache().complete().await;
        work(SOURCE, &self.queue, CONCURRENCY, &(), |key| self.reconcile(key)).await;
    }

    async fn reconcile(&self, key: Key) -> Result<Next, ControllerError> {
        let Some(replica_set) = self.replica_sets.get(&key) else { return Ok(Next::Rest) };
        let Some(spec) = &replica_set.spec else { return Ok(Next::Rest) };
        let selector = selector_of(&spec.selector)?;
        let owned =
            claim_all(&self.replica_sets, replica_set.as_ref(), &self.pods, |pod| matches(&selector, pod)).await?;
        let mut failure = None;
        if replica_set.metadata.deletion_timestamp.is_none() {
            let pods = self.pods.in_namespace(&key.namespace);
            let plan = plan::plan(&replica_set, &owned, &pods);
            failure = self.carry_out(&replica_set, plan).await;
        }
        // What was just created or deleted is in the cache by now.
        let owned: Vec<_> = self.pods.in_namespace(&key.namespace);
        let owned = owned.iter().filter(|pod| is_controlled_by(&pod.metadata, &replica_set.metadata));
        let owned: Vec<&Pod> = owned.map(AsRef::as_ref).collect();
        self.write_status(&replica_set, &owned, failure.as_ref()).await?;
        match failure {
            Some(Failure { error, .. }) if !error.is_namespace_terminating() => Err(error),
            _ => Ok(Next::after(pods::next_available(owned, pods::seconds(spec.min_ready_seconds), Timestamp::now()))),
        }
    }

    async fn carry_out(&self, replica_set: &ReplicaSet, plan: plan::Plan) -> Option<Failure> {
        let created = self.create(replica_set, plan.create).await;
        let deleted = self.delete(replica_set, &plan.delete).await;
        match (created, deleted) {
            (Err(error), _) => Some(Failure { reason: "FailedCreate", error }),
            (_, Err(error)) => Some(Failure { reason: "FailedDelete", error }),
            _ => None,
        }
    }

    /// Creates pods in batches of growing size, so that a quota or a broken template costs one refusal, not hundreds.
    async fn create(&self, replica_set: &ReplicaSet, mut missing: usize) -> Result<(), ControllerError> {
        let Some(pod) = plan::new_pod(replica_set) else { return Ok(()) };
        let mut batch = 1;
        while missing > 0 {
            let size = batch.min(missing);
            let answers = join_all((0..size).map(|_| self.pods.create(&pod))).await;
            for answer in answers {
                match answer {
                    Ok(created) => {
                        let message = format!("Created pod: {}", created.name_any());
                        self.recorder.record(replica_set, Note::normal(SOURCE, "SuccessfulCreate", message));
                    }
                    Err(error) => {
                        if !error.is_namespace_terminating() {
                            let message = format!("Error creating: {}", error.server_message());
                            self.recorder.record(replica_set, Note::warning(SOURCE, "FailedCreate", message));
                        }
                        return Err(error);
                    }
                }
            }
            missing -= size;
            batch = (batch * 2).min(LARGEST_BATCH);
        }
        Ok(())
    }

    async fn delete(&self, replica_set: &ReplicaSet, surplus: &[Arc<Pod>]) -> Result<(), ControllerError> {
        for batch in surplus.chunks(LARGEST_BATCH) {
            let deletions = batch.iter().map(|pod| self.pods.delete(pod, DeleteParams::default()));
            for (pod, answer) in batch.iter().zip(join_all(deletions).await) {
                if let Err(error) = answer {
                    let message = format!("Error deleting: {}", error.server_message());
                    self.recorder.record(replica_set, Note::warning(SOURCE, "FailedDelete", message));
                    return Err(error);
                }
                let message = format!("Deleted pod: {}", pod.name_any());
                self.recorder.record(replica_set, Note::normal(SOURCE, "SuccessfulDelete", message));
            }
        }
        Ok(())
    }

    async fn write_status(
        &self,
        replica_set: &ReplicaSet,
        owned: &[&Pod],
        failure: Option<&Failure>,
    ) -> Result<(), ControllerError> {
        let wanted = status::status(replica_set, owned, failure, Timestamp::now());
        if replica_set.status.as_ref() == Some(&wanted) {
            return Ok(());
        }
        let updated = ReplicaSet { status: Some(wanted), ..replica_set.clone() };
        super::error::found(self.replica_sets.replace_status(&updated).await)?;
        Ok(())
    }
}

fn selects(replica_set: &ReplicaSet, pod: &Pod) -> bool {
    let selector = replica_set.spec.as_ref().and_then(|spec| selector_of(&spec.selector).ok());
    selector.is_some_and(|selector| matches(&selector, &pod.metadata))
}
