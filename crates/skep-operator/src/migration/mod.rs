//! Objects that were stored in a version of the past are stored anew, so that the version can be dropped one day.
//!
//! It looks after every CustomResourceDefinition of our group that carries the label, ours or not, and is the only place
//! where a whole custom resource is sent: the API server stores what it gets in the version of today.

mod definition;
mod objects;

use std::collections::HashMap;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{PartialObjectMeta, Patch, PatchParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt as _};
use parking_lot::Mutex;
use serde_json::json;
use skep_api::crd::AUTO_MIGRATE_LABEL;
use skep_api::names::events::{actions, reasons};
use skep_api::names::labels;
use skep_control::{Key, Next, Queue, work};

use self::definition::{Outdated, is_ours};
use self::objects::Objects;
use crate::events::{Note, Recorder};
use crate::failure::Failure;

/// How soon objects are tried again that others kept changing.
const CONFLICT_RECHECK: Duration = Duration::from_secs(30);
/// After so many passes in vain somebody should know.
const PATIENCE: u32 = 5;

/// Migrates for ever. Objects are read in pages of `page`.
pub async fn run(client: Client, recorder: Recorder, page: u32) {
    let queue = Queue::<Key>::default();
    let migrator = Migrator { client, recorder, objects: Objects::new(page), in_vain: Mutex::default() };
    let pass = async |key: Key| migrator.pass(&key.name).await;
    tokio::join!(follow(&migrator.client, &queue), work("StorageVersionMigration", &queue, 1, &(), pass));
}

/// Has every definition of ours looked at when it appears and when it changes.
async fn follow(client: &Client, queue: &Queue<Key>) {
    let api: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client.clone());
    let config = watcher::Config::default().labels(&format!("{AUTO_MIGRATE_LABEL}={}", labels::TRUE));
    let mut events = watcher::watcher(api, config).default_backoff().boxed();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::InitApply(found) | Event::Apply(found)) if is_ours(&found.name_any()) => {
                queue.add(Key::of(&found));
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "watch of definitions interrupted"),
        }
    }
}

struct Migrator {
    client: Client,
    recorder: Recorder,
    objects: Objects,
    /// How many passes in a row ended with conflicts, by definition.
    in_vain: Mutex<HashMap<String, u32>>,
}

impl Migrator {
    async fn pass(&self, name: &str) -> Result<Next, Failure> {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let Some(definition) = definitions.get_opt(name).await? else { return Ok(Next::Rest) };
        let Some(outdated) = Outdated::of(&definition) else { return Ok(Next::Rest) };
        let tally = self.objects.rewrite(&self.client, &outdated).await?;
        if !tally.failed.is_empty() {
            let failure = Failure::Other(format!("objects of {name} cannot be written: {}", tally.failed.join("; ")));
            return Err(self.failed(&definition, actions::RESTORE_CRS, failure));
        }
        if tally.conflicts > 0 {
            self.count_in_vain(name);
            return Ok(Next::After(CONFLICT_RECHECK));
        }
        let patch = json!({"metadata": {"resourceVersion": definition.resource_version()},
            "status": {"storedVersions": [outdated.storage]}});
        let trimmed = definitions.patch_status(name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        trimmed.map_err(|error| self.failed(&definition, actions::PATCH_STORED_VERSIONS, error.into()))?;
        self.in_vain.lock().remove(name);
        let note = format!("every object is stored as {} now", outdated.storage);
        let reason = reasons::STORAGE_VERSION_MIGRATION_SUCCEEDED;
        self.recorder.record(&definition, Note::normal(reason, actions::MIGRATE, note));
        Ok(Next::Rest)
    }

    fn failed(&self, definition: &CustomResourceDefinition, action: &'static str, failure: Failure) -> Failure {
        let reason = reasons::STORAGE_VERSION_MIGRATION_FAILED;
        self.recorder.record(definition, Note::warning(reason, action, failure.to_string()));
        failure
    }

    fn count_in_vain(&self, name: &str) {
        let mut in_vain = self.in_vain.lock();
        let passes = in_vain.entry(name.to_owned()).or_default();
        *passes += 1;
        if *passes >= PATIENCE {
            tracing::info!(name, passes, "stored objects are changed by others all the time; migration does not end");
        }
    }
}
