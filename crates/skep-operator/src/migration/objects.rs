//! Every object of a definition, written as it is.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use kube::api::{DynamicObject, ListParams, PostParams, TypeMeta};
use kube::{Api, Client, ResourceExt as _};
use parking_lot::Mutex;

use super::definition::Outdated;

/// How often an object is tried that somebody else changes at the same moment.
const ATTEMPTS: usize = 3;
/// An object that was written so recently is not written again when a pass is repeated.
const REMEMBERED: Duration = Duration::from_hours(1);

/// Writes objects, and remembers which.
#[derive(Debug)]
pub(super) struct Objects {
    page: u32,
    /// By UID: the version that was written, and when.
    written: Mutex<HashMap<String, (Option<String>, Instant)>>,
}

/// What came of a pass.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Objects that others changed at every attempt.
    pub(super) conflicts: usize,
    /// Objects that were refused, with the reasons.
    pub(super) failed: Vec<String>,
}

impl Objects {
    pub(super) fn new(page: u32) -> Self {
        Self { page, written: Mutex::default() }
    }

    /// Writes every object that is not known to have been written. Only a list that fails is an error.
    pub(super) async fn rewrite(&self, client: &Client, outdated: &Outdated) -> Result<Tally, kube::Error> {
        self.written.lock().retain(|_, (_, when)| when.elapsed() < REMEMBERED);
        let all: Api<DynamicObject> = Api::all_with(client.clone(), &outdated.resource);
        let mut params = ListParams::default().limit(self.page);
        let mut tally = Tally::default();
        loop {
            let list = all.list(&params).await?;
            for object in list.items {
                if self.is_written(&object) {
                    continue;
                }
                let place = format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any());
                match self.write(client, outdated, object).await {
                    Ok(()) => {}
                    Err(kube::Error::Api(status)) if status.code == 404 => {}
                    Err(kube::Error::Api(status)) if status.code == 409 => tally.conflicts += 1,
                    Err(error) => tally.failed.push(format!("{place}: {error}")),
                }
            }
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(tally),
            }
        }
    }

    fn is_written(&self, object: &DynamicObject) -> bool {
        let written = self.written.lock();
        object
            .uid()
            .and_then(|uid| written.get(&uid).cloned())
            .is_some_and(|(version, _)| version == object.resource_version())
    }

    async fn write(&self, client: &Client, outdated: &Outdated, mut object: DynamicObject) -> Result<(), kube::Error> {
        let api: Api<DynamicObject> = match object.namespace() {
            Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &outdated.resource),
            None => Api::all_with(client.clone(), &outdated.resource),
        };
        let name = object.name_any();
        for _ in 1..ATTEMPTS {
            match self.put(&api, outdated, object).await {
                Err(kube::Error::Api(status)) if status.code == 409 => object = api.get(&name).await?,
                ended => return ended,
            }
        }
        self.put(&api, outdated, object).await
    }

    async fn put(
        &self,
        api: &Api<DynamicObject>,
        outdated: &Outdated,
        mut object: DynamicObject,
    ) -> Result<(), kube::Error> {
        let resource = &outdated.resource;
        object.types = Some(TypeMeta { api_version: resource.api_version.clone(), kind: resource.kind.clone() });
        let written = api.replace(&object.name_any(), &PostParams::default(), &object).await?;
        if let Some(uid) = written.uid() {
            self.written.lock().insert(uid, (written.resource_version(), Instant::now()));
        }
        Ok(())
    }
}
