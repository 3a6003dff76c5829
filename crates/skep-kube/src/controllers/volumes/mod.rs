//! Gives every volume claim a volume: an existing one that fits, or a new folder on this machine.

mod plan;
mod protection;

use std::path::PathBuf;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::json;
use skep_control::{Key, Next, Queue, work};

use super::cluster::Cluster;
use super::error::{ControllerError, found};
use super::events::{Note, Recorder};
use super::objects::Objects;
use plan::{ClaimStep, VolumeStep};

const SOURCE: &str = "persistentvolume-controller";
const CONCURRENCY: usize = 4;

/// The one built-in storage class: folders under a base folder.
#[derive(Clone, Debug)]
pub struct Storage {
    /// The class that claims without a class get, too.
    pub class: String,
    /// The name of the provisioner in annotations and events.
    pub provisioner: String,
    /// Volumes are folders in here. Only the node needs to be able to write there, and whoever reclaims.
    pub folder: PathBuf,
}

/// Claims and volumes wait in one queue; a volume has no namespace.
pub(super) struct Controller {
    claims: Objects<PersistentVolumeClaim>,
    volumes: Objects<PersistentVolume>,
    pods: Objects<Pod>,
    recorder: Recorder,
    storage: Storage,
    queue: Arc<Queue<Key>>,
}

impl Controller {
    pub(super) fn new(cluster: &mut Cluster, storage: Storage) -> Self {
        let claims = cluster.objects::<PersistentVolumeClaim>();
        let volumes = cluster.objects::<PersistentVolume>();
        let pods = cluster.objects::<Pod>();
        let queue = Arc::new(Queue::default());
        let wake = queue.clone();
        claims.cache().on_change(move |claim| {
            wake.add(Key::of(claim));
            if let Some(volume) = claim.spec.as_ref().and_then(|spec| spec.volume_name.clone()) {
                wake.add(Key::new("", volume));
            }
        });
        let (wake, waiting) = (queue.clone(), claims.clone());
        volumes.cache().on_change(move |volume| {
            wake.add(Key::of(volume));
            match volume.spec.as_ref().and_then(|spec| spec.claim_ref.clone()) {
                Some(claim) => {
                    wake.add(Key::new(claim.namespace.unwrap_or_default(), claim.name.unwrap_or_default()));
                }
                // A volume that is free may be what somebody waits for.
                None => waiting.cache().all().iter().filter(|claim| plan::is_pending(claim)).for_each(|claim| {
                    wake.add(Key::of(claim.as_ref()));
                }),
            }
        });
        let wake = queue.clone();
        pods.cache().on_change(move |pod| {
            for claim in protection::claims_of(pod) {
                wake.add(Key::new(pod.namespace().unwrap_or_default(), claim));
            }
        });
        Self { claims, volumes, pods, recorder: cluster.recorder.clone(), storage, queue }
    }

    pub(super) async fn run(self) {
        self.claims.cache().complete().await;
        self.volumes.cache().complete().await;
        self.pods.cache().complete().await;
        work(SOURCE, &self.queue, CONCURRENCY, &(), |key| self.reconcile(key)).await;
    }

    async fn reconcile(&self, key: Key) -> Result<Next, ControllerError> {
        if key.namespace.is_empty() {
            if let Some(volume) = self.volumes.get(&key) {
                self.settle_volume(&volume).await?;
            }
        } else if let Some(claim) = self.claims.get(&key) {
            self.settle_claim(&claim).await?;
        }
        Ok(Next::Rest)
    }

    async fn settle_claim(&self, claim: &PersistentVolumeClaim) -> Result<(), ControllerError> {
        let key = Key::of(claim);
        if claim.metadata.deletion_timestamp.is_some() {
            let pods = self.pods.in_namespace(&key.namespace);
            if let Some(finalizers) = protection::finalizers_of_claim(claim, &pods) {
                return self.set_claim_finalizers(claim, &finalizers).await;
            }
            return Ok(());
        }
        match plan::claim_step(claim, &self.volumes.cache().all(), &self.storage) {
            ClaimStep::Nothing => Ok(()),
            ClaimStep::Annotate(updated) | ClaimStep::Bind(updated) => {
                found(self.claims.replace(&updated).await).map(drop)
            }
            ClaimStep::Provision(volume) => {
                match self.volumes.create(&volume).await {
                    Err(error) if error.has_reason("AlreadyExists") => {}
                    answer => drop(answer?),
                }
                let message = format!("Successfully provisioned volume {}", volume.name_any());
                self.recorder.record(claim, Note::normal(SOURCE, "ProvisioningSucceeded", message));
                Ok(())
            }
            ClaimStep::Take(volume) => found(self.volumes.replace(&volume).await).map(drop),
            ClaimStep::SetStatus(status) => {
                let updated = PersistentVolumeClaim { status: Some(*status), ..claim.clone() };
                found(self.claims.replace_status(&updated).await).map(drop)
            }
            ClaimStep::Wait { reason, message } => {
                self.recorder.record(claim, Note::normal(SOURCE, reason, message));
                Ok(())
            }
        }
    }

    async fn set_claim_finalizers(
        &self,
        claim: &PersistentVolumeClaim,
        finalizers: &[String],
    ) -> Result<(), ControllerError> {
        let metadata = json!({"resourceVersion": claim.resource_version(), "finalizers": finalizers});
        found(self.claims.patch(&Key::of(claim), &json!({"metadata": metadata})).await).map(drop)
    }

    async fn settle_volume(&self, volume: &PersistentVolume) -> Result<(), ControllerError> {
        let reference = volume.spec.as_ref().and_then(|spec| spec.claim_ref.clone()).unwrap_or_default();
        let key = Key::new(reference.namespace.unwrap_or_default(), reference.name.unwrap_or_default());
        let claim = self.claims.get(&key);
        if volume.metadata.deletion_timestamp.is_some() {
            if let Some(finalizers) = protection::finalizers_of_volume(volume, claim.as_deref()) {
                let metadata = json!({"resourceVersion": volume.resource_version(), "finalizers": finalizers});
                found(self.volumes.patch(&Key::of(volume), &json!({"metadata": metadata})).await)?;
            }
            return Ok(());
        }
        match plan::volume_step(volume, claim.as_deref(), &self.storage, Timestamp::now()) {
            VolumeStep::Nothing => Ok(()),
            VolumeStep::SetStatus(status) => {
                let updated = PersistentVolume { status: Some(*status), ..volume.clone() };
                found(self.volumes.replace_status(&updated).await).map(drop)
            }
            VolumeStep::Reclaim(folder) => {
                // The claim is gone for certain, not only from the cache: the data goes with it.
                if self.claims.live(&key).await?.is_some_and(|live| plan::is_claimed_by(volume, &live)) {
                    return Ok(());
                }
                if let Some(folder) = folder {
                    remove(folder).await?;
                }
                self.volumes.delete(volume, DeleteParams::default()).await
            }
        }
    }
}

async fn remove(folder: PathBuf) -> Result<(), ControllerError> {
    match tokio::fs::remove_dir_all(&folder).await {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(ControllerError::Folder { folder: folder.display().to_string(), source })
        }
        _ => Ok(()),
    }
}
