//! Which containers were taken for a session, whichever proxy took them.
//!
//! Several proxies of one MCPServer may be alive at once: an old and a new one during a rollout, or more replicas than one. A
//! container that is for one session is claimed before it is attached to, and for good: it ends when it is left, and the one
//! that comes after it has another id. So nobody has to give a claim back, and none runs out while somebody still holds what
//! it stands for. There is at most one for each pod. Claims are an annotation of the StatefulSet, which every write names the version of that it was made for:
//! of two proxies that claim the same container, one is refused.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::json;
use skep_api::names::annotations::STDIO_PROCESSES_TAKEN;
use skep_api::names::field_managers::SESSIONS;

use super::attach::answered;

#[cfg(test)]
mod tests;

/// How often others may write the StatefulSet in between before there is a pause.
const ATTEMPTS: u32 = 10;

/// A container that runs the server.
#[derive(Debug, Clone)]
pub(super) struct Container {
    pub(super) pod: String,
    /// No other container ever has it.
    pub(super) id: String,
    pub(super) is_ready: bool,
}

/// Who claims.
#[derive(Debug, Clone)]
pub struct Proxy {
    /// What this process believes to be the name of its pod.
    pub pod: Option<String>,
    /// What no other process is called, in this pod or in another one.
    pub process: String,
}

/// What is written down about the container of a pod that was taken last.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Taken {
    container: String,
    /// The pod of the proxy, empty when it is in none.
    by: String,
    process: String,
    /// Which claim of that process it is.
    number: u64,
}

type ByPod = BTreeMap<String, Taken>;

/// The claims to the containers of one StatefulSet.
#[derive(Debug)]
pub(super) struct Claims {
    stateful_sets: Api<StatefulSet>,
    pods: Api<Pod>,
    name: String,
    proxy: Proxy,
    next: AtomicU64,
    /// Claims of this process with which nothing was done. Nobody has met their containers.
    unused: Arc<Mutex<HashSet<u64>>>,
}

/// A container that is ours. Unless it is used up it may be claimed again, by this process.
#[derive(Debug)]
pub(super) struct Claim {
    container: Container,
    number: u64,
    is_used: bool,
    unused: Arc<Mutex<HashSet<u64>>>,
}

impl Claim {
    pub(super) fn container(&self) -> &Container {
        &self.container
    }

    /// Somebody is at the container. It is for nobody else.
    pub(super) fn use_up(&mut self) {
        self.is_used = true;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.is_used {
            self.unused.lock().insert(self.number);
        }
    }
}

impl Claims {
    pub(super) fn new(client: Client, namespace: &str, name: &str, proxy: Proxy) -> Self {
        Self {
            stateful_sets: Api::namespaced(client.clone(), namespace),
            pods: Api::namespaced(client, namespace),
            name: name.to_owned(),
            proxy,
            next: AtomicU64::new(0),
            unused: Arc::default(),
        }
    }

    /// Claims the first one of these containers that nobody has taken, if there is one.
    pub(super) async fn claim(&self, running: &[Container]) -> Result<Option<Claim>, String> {
        for _ in 0..ATTEMPTS {
            let (live, taken) = self.read().await?;
            let claim = running.iter().find_map(|container| match taken.get(&container.pod) {
                Some(last) if last.container == container.id => self.claim_again(container, last),
                // It cannot be told from others.
                _ if container.id.is_empty() => None,
                _ => Some((self.claim_of(container), true)),
            });
            let Some((claim, is_new)) = claim else { return Ok(None) };
            if !is_new || self.write(&live, taken, &claim).await? {
                return Ok(Some(claim));
            }
        }
        Err(format!("StatefulSet {} is written all the time", self.name))
    }

    /// The pods of these containers that were taken by proxies which are gone. They may never have been attached to, and then
    /// would never end.
    pub(super) async fn left_behind(&self, running: &[Container]) -> Result<Vec<String>, String> {
        let (_, taken) = self.read().await?;
        let mut left = Vec::new();
        for container in running {
            let Some(last) = taken.get(&container.pod).filter(|last| last.container == container.id) else { continue };
            if self.is_gone(last).await? {
                left.push(container.pod.clone());
            }
        }
        Ok(left)
    }

    /// What is there, and what of it is taken.
    async fn read(&self) -> Result<(StatefulSet, ByPod), String> {
        let live = answered(self.stateful_sets.get(&self.name)).await?;
        let taken = match live.annotations().get(STDIO_PROCESSES_TAKEN) {
            Some(text) => serde_json::from_str(text).map_err(|error| {
                let name = &self.name;
                format!("annotation {STDIO_PROCESSES_TAKEN} of StatefulSet {name} cannot be read, remove it: {error}")
            })?,
            None => ByPod::new(),
        };
        Ok((live, taken))
    }

    /// Writes a claim down, unless somebody else has written something meanwhile.
    async fn write(&self, live: &StatefulSet, mut taken: ByPod, claim: &Claim) -> Result<bool, String> {
        let Claim { container, number, .. } = claim;
        let by = self.own_pod().await?.unwrap_or_default();
        let process = self.proxy.process.clone();
        taken.insert(container.pod.clone(), Taken { container: container.id.clone(), by, process, number: *number });
        let text = serde_json::to_string(&taken).map_err(|error| error.to_string())?;
        let patch = json!({"metadata": {
            "resourceVersion": live.resource_version(), "annotations": {STDIO_PROCESSES_TAKEN: text},
        }});
        let params = PatchParams { field_manager: Some(SESSIONS.to_owned()), ..PatchParams::default() };
        answered(async {
            match self.stateful_sets.patch_metadata(&self.name, &params, &Patch::Merge(&patch)).await {
                Ok(_) => Ok(true),
                Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
                Err(error) => Err(error),
            }
        })
        .await
    }

    fn claim_of(&self, container: &Container) -> Claim {
        self.numbered(container, self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// The claim that this process has to a container and has not used.
    fn claim_again(&self, container: &Container, last: &Taken) -> Option<(Claim, bool)> {
        let is_ours = last.process == self.proxy.process && self.unused.lock().remove(&last.number);
        is_ours.then(|| (self.numbered(container, last.number), false))
    }

    fn numbered(&self, container: &Container, number: u64) -> Claim {
        Claim { container: container.clone(), number, is_used: false, unused: Arc::clone(&self.unused) }
    }

    /// Whether the proxy that has taken a container is there no more. Who it was may be unknown: then it may be there.
    async fn is_gone(&self, last: &Taken) -> Result<bool, String> {
        if last.process == self.proxy.process || last.by.is_empty() {
            return Ok(false);
        }
        if self.own_pod().await?.is_some_and(|own| own == last.by) {
            // The process before this one.
            return Ok(true);
        }
        let pod = answered(self.pods.get_opt(&last.by)).await?;
        let phase = pod.map(|pod| pod.status.and_then(|status| status.phase).unwrap_or_default());
        Ok(phase.is_none_or(|phase| matches!(phase.as_str(), "Succeeded" | "Failed")))
    }

    /// The pod of this process. What it believes is wrong where the network is the machine's or the name is a long one.
    async fn own_pod(&self) -> Result<Option<String>, String> {
        let Some(name) = &self.proxy.pod else { return Ok(None) };
        Ok(answered(self.pods.get_opt(name)).await?.map(|pod| pod.name_any()))
    }
}
