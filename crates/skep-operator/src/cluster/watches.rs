//! The watches, and who is woken by what they see.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::runtime::watcher;
use kube::{Api, Resource as _, ResourceExt};
use skep_api::kind::Kind;
use skep_api::kinds::{MCPRemoteProxy, MCPServer, VirtualMCPServer};
use skep_api::names::labels;
use skep_control::{Cache, Keeper};
use tokio::task::JoinSet;

use super::{ChildKind, Cluster, OwnKind, Refers, child};
use crate::id::ObjectId;

/// How many objects are listed at a time. They are packed one by one, but come by the page: a large one would take more
/// memory than all of them do afterwards.
const PAGE: u32 = 50;

pub(super) struct Watches<'a> {
    /// Empty for the whole cluster.
    namespaces: &'a [String],
    tasks: JoinSet<()>,
}

impl<'a> Watches<'a> {
    pub(super) fn new(namespaces: &'a [String]) -> Self {
        Self { namespaces, tasks: JoinSet::new() }
    }

    pub(super) fn into_tasks(self) -> JoinSet<()> {
        self.tasks
    }

    /// Objects of ours wake their own controller, those that name them, and those that they name or named before.
    pub(super) fn own<K: OwnKind + Refers>(&mut self, cluster: &Arc<Cluster>) {
        let cache = K::cache(cluster);
        let wake = Arc::downgrade(cluster);
        cache.on_transition(move |change| {
            let Some(cluster) = wake.upgrade() else { return };
            let id = ObjectId::of::<K>(change.key.clone());
            let targets = match change.after() {
                Some(super::Seen::Read(object)) => Some(object.targets()),
                // What an unreadable object names is unknown; what it named before is still protected.
                Some(super::Seen::Unreadable(_)) => None,
                None => Some(BTreeSet::new()),
            };
            for target in targets.into_iter().flat_map(|targets| cluster.references.set(&id, targets)) {
                cluster.wake(target);
            }
            wake_referrers(&cluster, &id);
            cluster.wake(id);
        });
        self.follow(cluster, cache, &config());
    }

    /// Children wake their owner, and whoever names them.
    pub(super) fn children<K: ChildKind>(&mut self, cluster: &Arc<Cluster>) {
        let cache = K::cache(cluster);
        let wake = Arc::downgrade(cluster);
        cache.on_change(move |object| {
            let Some(cluster) = wake.upgrade() else { return };
            let namespace = object.namespace().unwrap_or_default();
            if let Some(kind) =
                object.controller().filter(|owner| child::is_ours(owner)).and_then(|owner| known(&owner.kind))
            {
                let name = object.controller().map(|owner| owner.name.clone()).unwrap_or_default();
                cluster.wake(ObjectId::new(kind, namespace.as_str(), name));
            } else if let Some(found) = object.meta().labels.as_ref() {
                // A StatefulSet of a backend that nobody has adopted yet.
                let name = found.get(labels::TOOLHIVE_NAME).cloned().unwrap_or_else(|| object.name_any());
                cluster.wake(ObjectId::new(MCPServer::DEFINITION.kind, namespace.as_str(), name));
            }
            if let Some(kind) = referenced(&K::kind(&())) {
                wake_referrers(&cluster, &ObjectId::new(kind, namespace, object.name_any()));
            }
        });
        self.follow(cluster, cache, &config());
    }

    /// Pods wake the workload whose labels they carry.
    pub(super) fn pods(&mut self, cluster: &Arc<Cluster>) {
        let wake = Arc::downgrade(cluster);
        cluster.pods.on_change(move |pod| {
            let Some(cluster) = wake.upgrade() else { return };
            let (Some(app), Some(name)) = (pod.labels().get(labels::APP), pod.labels().get(labels::TOOLHIVE_NAME))
            else {
                return;
            };
            let kind = match app.as_str() {
                labels::MCP_SERVER => MCPServer::DEFINITION.kind,
                labels::MCP_REMOTE_PROXY => MCPRemoteProxy::DEFINITION.kind,
                labels::VIRTUAL_MCP_SERVER => VirtualMCPServer::DEFINITION.kind,
                _ => return,
            };
            cluster.wake(ObjectId::new(kind, pod.namespace().unwrap_or_default(), name));
        });
        let config = config().labels(&format!("{}={}", labels::TOOLHIVE, labels::TRUE));
        self.follow(cluster, &cluster.pods, &config);
    }

    fn follow<K, M>(&mut self, cluster: &Cluster, cache: &Arc<Cache<K, M>>, config: &watcher::Config)
    where
        M: Keeper<K, Kept: Send + Sync>,
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + serde::de::DeserializeOwned
            + std::fmt::Debug
            + Send
            + Sync
            + 'static,
    {
        if self.namespaces.is_empty() {
            cache.expect(None);
            self.tasks.spawn(cache.clone().follow(None, Api::all(cluster.client.clone()), config.clone()));
        }
        for namespace in self.namespaces {
            cache.expect(Some(namespace));
            let api = Api::namespaced(cluster.client.clone(), namespace);
            self.tasks.spawn(cache.clone().follow(Some(namespace.clone()), api, config.clone()));
        }
    }
}

fn config() -> watcher::Config {
    watcher::Config::default().page_size(PAGE)
}

/// Wakes everyone who names an object, directly or through another one: the workloads of a CA bundle's config.
fn wake_referrers(cluster: &Cluster, target: &ObjectId) {
    for referrer in cluster.references.referrers(target) {
        for further in cluster.references.referrers(&referrer) {
            cluster.wake(further);
        }
        cluster.wake(referrer);
    }
}

/// The kinds of ours that own children, by the name in an owner reference.
fn known(kind: &str) -> Option<&'static str> {
    [MCPServer::DEFINITION.kind, MCPRemoteProxy::DEFINITION.kind, VirtualMCPServer::DEFINITION.kind]
        .into_iter()
        .find(|known| *known == kind)
}

/// Built-in kinds that objects of ours name.
fn referenced(kind: &str) -> Option<&'static str> {
    (kind == super::targets::CONFIG_MAP).then_some(super::targets::CONFIG_MAP)
}
