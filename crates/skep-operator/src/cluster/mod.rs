//! What the operator knows of the cluster: one watch per kind for the whole process, and who names whom.

mod child;
mod kind;
mod packed;
mod pod;
mod references;
mod seen;
mod shallow;
mod targets;
mod watches;
mod written;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures::FutureExt as _;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::{Client, Resource as _};
use serde::Serialize;
use skep_api::kind::Kind;
use skep_api::kinds::{
    MCPAuthzConfig, MCPExternalAuthConfig, MCPGroup, MCPOIDCConfig, MCPRemoteProxy, MCPServer, MCPServerEntry,
    MCPTelemetryConfig, MCPToolConfig, MCPWebhookConfig, VirtualMCPServer,
};
use skep_control::{Cache, Key, Queue};

use crate::id::ObjectId;

pub use child::{Child, controller, is_ours};
pub use packed::{Packed, Packer};
pub use pod::{KeptPod, PodClass, PodKeeper, PodSeen};
pub use references::References;
pub use seen::{Seen, Unreadable};
pub use targets::Refers;
pub use written::Written;

/// A kind of ours that is watched.
pub trait OwnKind: Kind {
    /// The objects of this kind, as they were a moment ago.
    fn cache(cluster: &Cluster) -> &Arc<Cache<Seen<Self>, Packer>>;
}

/// A built-in kind that children are of.
pub trait ChildKind:
    kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Serialize
    + fmt::Debug
    + Sized
    + Send
    + Sync
    + 'static
{
    /// The objects of this kind, as they were a moment ago.
    fn cache(cluster: &Cluster) -> &Arc<Cache<Child<Self>, Packer>>;
}

macro_rules! cluster {
    (
        own: $($own:ident: $own_kind:ty),+ $(,)?;
        children: $($child:ident: $child_kind:ty),+ $(,)?;
        at_times: $($rare:ident: $rare_kind:ty),+ $(,)?
    ) => {
        /// What the operator knows of the cluster.
        pub struct Cluster {
            pub client: Client,
            pub references: References,
            /// Where each controller of ours finds what it has to look at.
            queues: BTreeMap<&'static str, Arc<Queue<Key>>>,
            pods: Arc<Cache<PodSeen, PodKeeper>>,
            $($own: Arc<Cache<Seen<$own_kind>, Packer>>,)+
            $($child: Arc<Cache<Child<$child_kind>, Packer>>,)+
            $($rare: Arc<Cache<Child<$rare_kind>, Packer>>,)+
        }

        impl Cluster {
            /// A cluster that nothing is known of yet.
            fn empty(client: Client, queues: BTreeMap<&'static str, Arc<Queue<Key>>>) -> Self {
                Self {
                    client,
                    references: References::default(),
                    queues,
                    pods: Arc::default(),
                    $($own: Arc::default(),)+
                    $($child: Arc::default(),)+
                    $($rare: Arc::default(),)+
                }
            }

            /// Waits until the first complete list of every kind has arrived; of those that are needed only at times, if
            /// they are.
            pub async fn complete(&self, at_times: bool) {
                self.pods.complete().await;
                $(self.$own.complete().await;)+
                $(self.$child.complete().await;)+
                if at_times {
                    $(self.$rare.complete().await;)+
                }
            }

            /// The kinds of which [`Self::complete`] still waits for a list.
            pub fn unknown(&self, at_times: bool) -> Vec<String> {
                let mut unknown = Vec::new();
                let mut look = |is_known: Option<()>, kind: Cow<'_, str>| {
                    if is_known.is_none() {
                        unknown.push(kind.into_owned());
                    }
                };
                look(self.pods.complete().now_or_never(), PodSeen::kind(&()));
                $(look(self.$own.complete().now_or_never(), <$own_kind as kube::Resource>::kind(&()));)+
                $(look(self.$child.complete().now_or_never(), <$child_kind as kube::Resource>::kind(&()));)+
                if at_times {
                    $(look(self.$rare.complete().now_or_never(), <$rare_kind as kube::Resource>::kind(&()));)+
                }
                unknown
            }

            /// Has every controller look at all objects of its kind again.
            pub fn wake_all(&self) {
                $(for key in self.$own.keys() {
                    self.wake(ObjectId::of::<$own_kind>(key));
                })+
            }

            fn start(self: &Arc<Self>, watches: &mut watches::Watches) {
                $(if self.needs(<$own_kind>::DEFINITION.kind) {
                    watches.own::<$own_kind>(self);
                } else {
                    self.$own.forgo();
                })+
                if self.has_children() {
                    watches.pods(self);
                    $(watches.children::<$child_kind>(self);)+
                    $(watches.children::<$rare_kind>(self);)+
                } else {
                    self.pods.forgo();
                    $(self.$child.forgo();)+
                    $(self.$rare.forgo();)+
                }
            }
        }

        $(impl OwnKind for $own_kind {
            fn cache(cluster: &Cluster) -> &Arc<Cache<Seen<Self>, Packer>> {
                &cluster.$own
            }
        })+

        $(impl ChildKind for $child_kind {
            fn cache(cluster: &Cluster) -> &Arc<Cache<Child<Self>, Packer>> {
                &cluster.$child
            }
        })+

        $(impl ChildKind for $rare_kind {
            fn cache(cluster: &Cluster) -> &Arc<Cache<Child<Self>, Packer>> {
                &cluster.$rare
            }
        })+
    };
}

cluster! {
    own: authz_configs: MCPAuthzConfig, external_auth_configs: MCPExternalAuthConfig, groups: MCPGroup,
        oidc_configs: MCPOIDCConfig, remote_proxies: MCPRemoteProxy, servers: MCPServer, entries: MCPServerEntry,
        telemetry_configs: MCPTelemetryConfig, tool_configs: MCPToolConfig, webhook_configs: MCPWebhookConfig,
        virtual_servers: VirtualMCPServer;
    children: config_maps: ConfigMap, deployments: Deployment, role_bindings: RoleBinding, roles: Role,
        service_accounts: ServiceAccount, services: Service, stateful_sets: StatefulSet;
    // Only an operator that enforces permission profiles makes these; another one may lack the right to see them.
    at_times: network_policies: NetworkPolicy,
}

/// Kinds with a controller that makes children.
const PARENTS: [&str; 2] = [MCPRemoteProxy::DEFINITION.kind, MCPServer::DEFINITION.kind];
/// Kinds that name configs, and are not named by anything that has a controller.
const USERS: [&str; 4] = [
    MCPRemoteProxy::DEFINITION.kind,
    MCPServer::DEFINITION.kind,
    MCPServerEntry::DEFINITION.kind,
    VirtualMCPServer::DEFINITION.kind,
];

impl fmt::Debug for Cluster {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Cluster").finish_non_exhaustive()
    }
}

impl Cluster {
    /// Watches the cluster, or some namespaces of it, as far as the controllers with these queues need to know it. The
    /// watches end when the returned tasks are dropped.
    pub fn watch(
        client: Client,
        namespaces: &[String],
        queues: BTreeMap<&'static str, Arc<Queue<Key>>>,
    ) -> (Arc<Self>, tokio::task::JoinSet<()>) {
        let cluster = Arc::new(Self::empty(client, queues));
        let mut watches = watches::Watches::new(namespaces);
        cluster.start(&mut watches);
        (cluster, watches.into_tasks())
    }

    /// Whether a controller makes objects for those of its kind.
    fn has_children(&self) -> bool {
        PARENTS.iter().any(|kind| self.queues.contains_key(kind))
    }

    /// Whether a controller has to know the objects of a kind: they are its own; its own name them; or they name its own.
    fn needs(&self, kind: &str) -> bool {
        if self.queues.contains_key(kind) {
            return true;
        }
        if USERS.contains(&kind) {
            return self.queues.keys().any(|controlled| !PARENTS.contains(controlled));
        }
        self.has_children()
    }

    /// The object of one of our kinds, if it exists and can be read.
    pub fn get<K: OwnKind>(&self, key: &Key) -> Option<Arc<Seen<K>>> {
        K::cache(self).get(key)
    }

    /// A child by its name.
    pub fn child<K: ChildKind>(&self, key: &Key) -> Option<Arc<Child<K>>> {
        K::cache(self).get(key)
    }

    /// The pods of a workload, known by the base labels of its kind.
    pub fn pods(&self, namespace: &str, selector: &skep_api::names::labels::Labels) -> Vec<Arc<PodSeen>> {
        let candidates = self.pods.select(namespace, |pod| pod.may_have(selector));
        candidates.into_iter().filter(|pod| pod.has_labels(selector)).collect()
    }

    /// Has the controller of a kind look at an object; a kind without a controller is not looked at.
    pub fn wake(&self, id: ObjectId) {
        if let Some(queue) = self.queues.get(id.kind) {
            queue.add(id.key);
        }
    }
}
