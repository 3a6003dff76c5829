//! Whose the fields of a child are, where that has to change before an apply can do its work.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use skep_api::kind::Kind;
use skep_api::names::field_managers::OPERATOR;

use super::take_over::{claimed, taken_over};
use crate::cluster::{Child, ChildKind, Cluster};
use crate::failure::Failure;

/// The number of replicas, within the spec: an autoscaler's, or a person's, unless the desired object says it.
const LEFT_TO_OTHERS: &str = "f:replicas";

/// What is nobody's but ours: the ports of a Service, and the container of the proxy.
const CLAIMED: [&[&str]; 2] =
    [&["f:spec", "f:ports"], &["f:spec", "f:template", "f:spec", "f:containers", r#"k:{"name":"toolhive"}"#]];

/// Makes ours what an operator before this one has written into a child: whoever made it a child wrote the rest of it, too.
/// What the desired object may leave to others stays as it is.
pub(super) async fn take_over<O: Kind, K: ChildKind>(
    cluster: &Cluster,
    owner: &O,
    live: &Child<K>,
) -> Result<(), Failure> {
    let place = format!("/f:metadata/f:ownerReferences/k:{}", json!({"uid": owner.uid()}));
    let is_predecessor = |entry: &ManagedFieldsEntry| {
        entry.fields_v1.as_ref().is_some_and(|FieldsV1(fields)| fields.pointer(&place).is_some())
    };
    let change = |entries: &[ManagedFieldsEntry]| {
        let mut entries = taken_over(entries, OPERATOR, is_predecessor)?;
        let ours = entries.iter_mut().filter(|entry| entry.manager.as_deref() == Some(OPERATOR));
        for FieldsV1(fields) in ours.filter_map(|entry| entry.fields_v1.as_mut()) {
            if let Some(spec) = fields.get_mut("f:spec").and_then(Value::as_object_mut) {
                spec.remove(LEFT_TO_OTHERS);
            }
        }
        Some(entries)
    };
    change_fields(cluster, owner, live, change).await.map(drop)
}

/// Makes ours what others have written among what is nobody's but ours, so that an apply takes it away. Says whether there
/// was something.
pub(super) async fn claim<O: Kind, K: ChildKind>(
    cluster: &Cluster,
    owner: &O,
    live: &Child<K>,
) -> Result<bool, Failure> {
    change_fields(cluster, owner, live, |entries| claimed(entries, OPERATOR, &CLAIMED)).await
}

/// Changes who has written what; says whether there was something to change.
async fn change_fields<O: Kind, K: ChildKind>(
    cluster: &Cluster,
    owner: &O,
    live: &Child<K>,
    change: impl Fn(&[ManagedFieldsEntry]) -> Option<Vec<ManagedFieldsEntry>>,
) -> Result<bool, Failure> {
    let (namespace, name) = (owner.namespace().unwrap_or_default(), live.name_any());
    let resource = ApiResource::erase::<K>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.client.clone(), &namespace, &resource);
    // What others have noted down is not remembered, see `Child`.
    let Some(found) = api.get_opt(&name).await?.filter(|found| found.uid() == live.uid()) else { return Ok(false) };
    let Some(entries) = change(found.metadata.managed_fields.as_deref().unwrap_or_default()) else { return Ok(false) };
    let patch = json!({"metadata": {"resourceVersion": found.resource_version(), "managedFields": entries}});
    let params = PatchParams { field_manager: Some(OPERATOR.to_owned()), ..PatchParams::default() };
    api.patch(&name, &params, &Patch::Merge(&patch)).await?;
    Ok(true)
}
