//! Gives every StatefulSet its numbered pods, their volumes, and one update at a time.

mod claims;
mod identity;
mod plan;
mod revisions;
mod status;

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::json;
use skep_control::{Failure as _, Key, Next, Queue, work};

use super::cluster::Cluster;
use super::error::{ControllerError, found};
use super::events::{Note, Recorder};
use super::objects::Objects;
use super::ownership::{claim_all, is_controlled_by, matches, selector_of, wake_owners};
use super::pods;
use plan::{Observed, Step};
use revisions::Revisions;

const SOURCE: &str = "statefulset-controller";
const CONCURRENCY: usize = 5;
/// Steps of one pass; a Parallel set of thousands goes on in the next.
const STEPS: usize = 100;

pub(super) struct Controller {
    sets: Objects<StatefulSet>,
    pods: Objects<Pod>,
    revisions: Objects<ControllerRevision>,
    claims: Objects<PersistentVolumeClaim>,
    recorder: Recorder,
    queue: Arc<Queue<Key>>,
}

impl Controller {
    pub(super) fn new(cluster: &mut Cluster) -> Self {
        let sets = cluster.objects::<StatefulSet>();
        let pods = cluster.objects::<Pod>();
        let queue = Arc::new(Queue::default());
        wake_owners(&queue, &sets, &pods, |set, pod| identity::ordinal(&set.name_any(), &pod.name_any()).is_some());
        Self {
            sets,
            pods,
            revisions: cluster.objects(),
            claims: cluster.objects(),
            recorder: cluster.recorder.clone(),
            queue,
        }
    }

    pub(super) async fn run(self) {
        self.sets.cache().complete().await;
        self.pods.cache().complete().await;
        self.revisions.cache().complete().await;
        self.claims.cache().complete().await;
        work(SOURCE, &self.queue, CONCURRENCY, &(), |key| self.reconcile(key)).await;
    }

    async fn reconcile(&self, key: Key) -> Result<Next, ControllerError> {
        let Some(set) = self.sets.get(&key) else { return Ok(Next::Rest) };
        let Some(spec) = &set.spec else { return Ok(Next::Rest) };
        let selector = selector_of(&spec.selector)?;
        let selects = |pod: &ObjectMeta| {
            let numbered = identity::ordinal(&key.name, pod.name.as_deref().unwrap_or_default()).is_some();
            numbered && matches(&selector, pod)
        };
        let owned = claim_all(&self.sets, set.as_ref(), &self.pods, selects).await?;
        let history =
            claim_all(&self.sets, set.as_ref(), &self.revisions, |revision| matches(&selector, revision)).await?;
        let Some(revisions) = self.settle_revisions(&set, &history).await? else { return Ok(Next::Rest) };
        let mut failure = None;
        if set.metadata.deletion_timestamp.is_none() {
            let observed = Observed { set: &set, pods: &owned, revisions: &revisions };
            failure = self.carry_out(&set, &observed).await.err();
        }
        self.write_status(&key, &set, &revisions).await?;
        if let Some(error) = failure.filter(|error| !error.is_namespace_terminating()) {
            return Err(error);
        }
        let owned = self.owned_pods(&set);
        for surplus in revisions.superfluous(&set, &history, &owned) {
            self.revisions.delete(&surplus, DeleteParams::default()).await?;
        }
        let minimum = pods::seconds(spec.min_ready_seconds);
        Ok(Next::after(pods::next_available(owned.iter().map(AsRef::as_ref), minimum, Timestamp::now())))
    }

    /// Makes sure that the current template has a revision, the newest one.
    async fn settle_revisions(
        &self,
        set: &StatefulSet,
        history: &[Arc<ControllerRevision>],
    ) -> Result<Option<Revisions>, ControllerError> {
        match revisions::settle(set, history)? {
            revisions::Settled::Ready(revisions) => Ok(Some(*revisions)),
            revisions::Settled::Renumber(revision) => {
                self.revisions.replace(&revision).await?;
                self.queue.add(Key::of(set));
                Ok(None)
            }
            revisions::Settled::Create(revision) => {
                match self.revisions.create(&revision).await {
                    Err(error) if error.has_reason("AlreadyExists") => self.collide(set, &revision).await?,
                    Err(error) if error.is_namespace_terminating() => return Ok(None),
                    answer => drop(answer?),
                }
                self.queue.add(Key::of(set));
                Ok(None)
            }
        }
    }

    /// The name of a new revision is taken by one with other content: count the collision, so that the hash changes.
    async fn collide(&self, set: &StatefulSet, revision: &ControllerRevision) -> Result<(), ControllerError> {
        let taken = self.revisions.live(&Key::of(revision)).await?;
        if taken.is_some_and(|taken| is_controlled_by(&taken.metadata, &set.metadata)) {
            return Ok(());
        }
        let mut updated = set.clone();
        let status = updated.status.get_or_insert_default();
        status.collision_count = Some(status.collision_count.unwrap_or(0).saturating_add(1));
        self.sets.replace_status(&updated).await?;
        Ok(())
    }

    async fn carry_out(&self, set: &StatefulSet, observed: &Observed<'_>) -> Result<(), ControllerError> {
        for pod in observed.pods.iter().filter(|pod| !pods::is_terminating(pod)) {
            self.settle_claim_owners(set, pod).await?;
        }
        for step in plan::plan(observed, Timestamp::now()).into_iter().take(STEPS) {
            match step {
                Step::Create(pod) => self.create(set, &pod).await?,
                Step::Delete(pod) => {
                    let outcome = self.pods.delete(&pod, DeleteParams::default()).await;
                    self.tell(set, "Delete", &pod.name_any(), outcome.as_ref().err());
                    outcome?;
                }
                Step::Update(pod) => {
                    let outcome = self.pods.replace(&pod).await;
                    self.tell(set, "Update", &pod.name_any(), outcome.as_ref().err());
                    outcome?;
                }
            }
        }
        Ok(())
    }

    async fn create(&self, set: &StatefulSet, pod: &Pod) -> Result<(), ControllerError> {
        let name = pod.name_any();
        for claim in claims::claims_of(set, &name) {
            match self.claims.get(&Key::of(&claim)) {
                Some(known) if known.metadata.deletion_timestamp.is_some() => {
                    // A claim on its way out cannot carry a new pod; the pod comes when the claim is gone.
                    self.queue.add_after(Key::of(set), std::time::Duration::from_secs(1));
                    return Ok(());
                }
                Some(_) => {}
                None => self.create_claim(set, &name, &claim).await?,
            }
        }
        let outcome = self.pods.create(pod).await;
        if outcome.as_ref().is_err_and(|error| error.has_reason("AlreadyExists")) {
            return outcome.map(drop);
        }
        self.tell(set, "Create", &name, outcome.as_ref().err());
        outcome.map(drop)
    }

    async fn create_claim(
        &self,
        set: &StatefulSet,
        pod: &str,
        claim: &PersistentVolumeClaim,
    ) -> Result<(), ControllerError> {
        let what = format!("Create Claim {} Pod {pod} in StatefulSet {}", claim.name_any(), set.name_any());
        match self.claims.create(claim).await {
            Ok(_) => {
                let note = Note::normal(SOURCE, "SuccessfulCreate", format!("{what} success"));
                self.recorder.record(set, note);
                Ok(())
            }
            Err(error) if error.has_reason("AlreadyExists") => Ok(()),
            Err(error) => {
                let message = format!("{what} failed error: {}", error.server_message());
                self.recorder.record(set, Note::warning(SOURCE, "FailedCreate", message));
                Err(error)
            }
        }
    }

    /// Whether claims go with their set or with their pod is a matter of who owns them.
    async fn settle_claim_owners(&self, set: &StatefulSet, pod: &Pod) -> Result<(), ControllerError> {
        for claim in claims::claims_of(set, &pod.name_any()) {
            let Some(live) = self.claims.get(&Key::of(&claim)) else { continue };
            if let Some(owners) = claims::wanted_owners(set, pod, &live) {
                let metadata = json!({"resourceVersion": live.resource_version(), "ownerReferences": owners});
                found(self.claims.patch(&Key::of(live.as_ref()), &json!({"metadata": metadata})).await)?;
            }
        }
        Ok(())
    }

    fn tell(&self, set: &StatefulSet, verb: &str, pod: &str, error: Option<&ControllerError>) {
        let what = format!("{verb} Pod {pod} in StatefulSet {}", set.name_any());
        let reason = |good, bad| if error.is_none() { good } else { bad };
        let reason = match verb {
            "Create" => reason("SuccessfulCreate", "FailedCreate"),
            "Delete" => reason("SuccessfulDelete", "FailedDelete"),
            _ => reason("SuccessfulUpdate", "FailedUpdate"),
        };
        let note = match error {
            None => Note::normal(SOURCE, reason, format!("{what} successful")),
            Some(error) if error.is_namespace_terminating() || error.is_conflict() => return,
            Some(error) => Note::warning(SOURCE, reason, format!("{what} failed error: {}", error.server_message())),
        };
        self.recorder.record(set, note);
    }

    fn owned_pods(&self, set: &StatefulSet) -> Vec<Arc<Pod>> {
        let mut pods = self.pods.in_namespace(&set.namespace().unwrap_or_default());
        pods.retain(|pod| is_controlled_by(&pod.metadata, &set.metadata));
        pods
    }

    async fn write_status(
        &self,
        key: &Key,
        planned_for: &StatefulSet,
        revisions: &Revisions,
    ) -> Result<(), ControllerError> {
        let Some(set) = self.sets.get(key).filter(|set| set.uid() == planned_for.uid()) else { return Ok(()) };
        if set.metadata.generation != planned_for.metadata.generation {
            return Ok(());
        }
        let wanted = status::status(&set, &self.owned_pods(&set), revisions, Timestamp::now());
        if set.status.as_ref() != Some(&wanted) {
            let updated = StatefulSet { status: Some(wanted), ..set.as_ref().clone() };
            found(self.sets.replace_status(&updated).await)?;
        }
        Ok(())
    }
}
