//! Ways to write and find objects that only these tests need.

use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use serde_json::Value;
use skep_api::kind::GROUP;
use skep_operator::cluster::OwnKind;

use crate::cluster::{Fixture, LOOSE};

impl Fixture {
    /// Objects of a kind in the version without a schema.
    pub fn loose_api<K: OwnKind>(&self) -> Api<DynamicObject> {
        let resource = ApiResource {
            group: GROUP.to_owned(),
            version: LOOSE.to_owned(),
            api_version: format!("{GROUP}/{LOOSE}"),
            kind: K::DEFINITION.kind.to_owned(),
            plural: K::DEFINITION.plural.to_owned(),
        };
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    /// Creates or changes an object past its schema.
    pub async fn write_loosely<K: OwnKind>(&self, name: &str, object: Value) {
        let mut object = object;
        object["apiVersion"] = format!("{GROUP}/{LOOSE}").into();
        object["kind"] = K::DEFINITION.kind.into();
        let params = PatchParams::apply("loose").force();
        self.loose_api::<K>().patch(name, &params, &Patch::Apply(&object)).await.unwrap();
    }

    pub async fn merge_status<K: OwnKind>(&self, name: &str, patch: Value) -> K {
        self.api().patch_status(name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap()
    }

    /// Where an object is found, for those who want its JSON.
    pub fn path_of<K: OwnKind>(&self, name: &str) -> String {
        format!("{}/{name}", K::url_path(&(), Some(&self.namespace)))
    }
}
