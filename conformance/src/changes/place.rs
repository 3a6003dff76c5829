//! A namespace, and how people write there.

use std::fmt;

use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use skep_api::kind::Kind;

/// A namespace of a cluster that has our CRDs.
#[derive(Clone)]
pub struct Place {
    /// May do everything there.
    pub client: Client,
    pub namespace: String,
}

impl fmt::Debug for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Place").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

/// A change may come too late or too early, nothing else.
pub(super) fn forgive<T>(done: kube::Result<T>) -> kube::Result<Option<T>> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Place {
    /// Objects of any kind.
    pub fn objects(&self, resource: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.namespace, resource)
    }

    pub(super) fn all<K: kube::Resource<DynamicType = ()>>(&self) -> Api<DynamicObject> {
        self.objects(&ApiResource::erase::<K>(&()))
    }

    /// Creates an object, unless there is one.
    pub(super) async fn create<K>(&self, name: &str, members: Value) -> kube::Result<Option<DynamicObject>>
    where
        K: kube::Resource<DynamicType = ()>,
    {
        let mut document = without_nulls(members);
        document["metadata"] = json!({"name": name});
        document["apiVersion"] = json!(K::api_version(&()));
        document["kind"] = json!(K::kind(&()));
        let object = serde_json::from_value(document).map_err(kube::Error::SerdeError)?;
        forgive(self.all::<K>().create(&PostParams::default(), &object).await)
    }

    /// Creates an object of ours or changes its spec. Members that are null are taken away.
    pub(super) async fn write<K: Kind>(&self, name: &str, spec: Value) -> kube::Result<()> {
        if self.create::<K>(name, json!({"spec": spec})).await?.is_none() {
            self.merge::<K>(name, &json!({"spec": spec})).await?;
        }
        Ok(())
    }

    pub(super) async fn merge<K: kube::Resource<DynamicType = ()>>(
        &self,
        name: &str,
        patch: &Value,
    ) -> kube::Result<()> {
        let patched = self.all::<K>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        forgive(patched).map(drop)
    }

    pub(super) async fn merge_status<K: Kind>(&self, name: &str, status: Value) -> kube::Result<()> {
        let patch = Patch::Merge(json!({"status": status}));
        forgive(self.all::<K>().patch_status(name, &PatchParams::default(), &patch).await).map(drop)
    }

    pub(super) async fn delete<K: kube::Resource<DynamicType = ()>>(&self, name: &str) -> kube::Result<()> {
        forgive(self.all::<K>().delete(name, &DeleteParams::default()).await).map(drop)
    }
}

/// A document that can be created as it is: what a patch takes away was never there.
fn without_nulls(document: Value) -> Value {
    match document {
        Value::Object(members) => {
            let kept = members.into_iter().filter(|(_, member)| !member.is_null());
            kept.map(|(name, member)| (name, without_nulls(member))).collect()
        }
        other => other,
    }
}
