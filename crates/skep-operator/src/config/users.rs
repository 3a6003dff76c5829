//! The workloads that use a config object.

use std::fmt;

use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use skep_api::kinds::config_status::{ConfigStatus, WorkloadKind, WorkloadReference};
use skep_api::kinds::{MCPRemoteProxy, MCPServer, MCPServerEntry, VirtualMCPServer};
use skep_control::Key;

use super::ConfigKind;
use crate::cluster::{Cluster, Refers, Seen};
use crate::failure::Failure;
use crate::id::ObjectId;

/// The users of one object, sorted by kind and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Users(Vec<WorkloadReference>);

impl Users {
    /// As the watches know them. This may lag a moment behind.
    pub(super) fn known<K: ConfigKind>(cluster: &Cluster, object: &K) -> Self {
        cluster.references.referrers(&ObjectId::of::<K>(Key::of(object))).iter().filter_map(workload).collect()
    }

    /// As the API server knows them now.
    pub(super) async fn live<K: ConfigKind>(cluster: &Cluster, object: &K) -> Result<Self, Failure> {
        let target = ObjectId::of::<K>(Key::of(object));
        let mut found = naming::<MCPServer>(cluster, &target).await?;
        found.extend(naming::<MCPRemoteProxy>(cluster, &target).await?);
        found.extend(naming::<VirtualMCPServer>(cluster, &target).await?);
        found.extend(naming::<MCPServerEntry>(cluster, &target).await?);
        Ok(found.iter().filter_map(workload).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts the users, and how many they are, into the object's status.
    pub(super) fn note(self, status: &mut ConfigStatus) {
        status.reference_count = Some(i32::try_from(self.0.len()).unwrap_or(i32::MAX));
        status.referencing_workloads = self.0;
    }
}

impl FromIterator<WorkloadReference> for Users {
    fn from_iter<I: IntoIterator<Item = WorkloadReference>>(users: I) -> Self {
        let mut users: Vec<WorkloadReference> = users.into_iter().collect();
        users.sort();
        Self(users)
    }
}

/// `[{MCPServer a} {VirtualMCPServer b}]`.
impl fmt::Display for Users {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list: Vec<String> = self.0.iter().map(|user| format!("{{{:?} {}}}", user.kind, user.name)).collect();
        write!(formatter, "[{}]", list.join(" "))
    }
}

fn workload(id: &ObjectId) -> Option<WorkloadReference> {
    let kind = serde_json::from_value::<WorkloadKind>(id.kind.into()).ok()?;
    Some(WorkloadReference { kind, name: id.key.name.clone() })
}

async fn naming<K: Refers>(cluster: &Cluster, target: &ObjectId) -> Result<Vec<ObjectId>, Failure> {
    let api: Api<Seen<K>> = Api::namespaced(cluster.client.clone(), &target.key.namespace);
    let listed = api.list(&ListParams::default()).await?;
    let names = listed.items.iter().filter(|seen| match seen {
        Seen::Read(object) => object.targets().contains(target),
        // What it names cannot be known; what it named when it could be read is in the index.
        Seen::Unreadable(_) => false,
    });
    Ok(names.map(|seen| ObjectId::new(K::DEFINITION.kind, target.key.namespace.as_str(), seen.name_any())).collect())
}
