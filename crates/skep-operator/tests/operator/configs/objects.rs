//! Ways to write and find objects that only these tests need.

use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use serde_json::Value;
use skep_api::kind::GROUP;
use skep_operator::cluster::OwnKind;

use crate::cluster::{Fixture, LOOSE};

impl Fixture {
    /// Creates or changes an object past its schema.
    pub async fn write_loosely<K: OwnKind>(&self, name: &str, object: Value) {
        let resource = ApiResource {
            group: GROUP.to_owned(),
            version: LOOSE.to_owned(),
            api_version: format!("{GROUP}/{LOOSE}"),
            kind: K::DEFINITION.kind.to_owned(),
            plural: K::DEFINITION.plural.to_owned(),
        };
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &self.namespace, &resource);
        let mut object = object;
        object["apiVersion"] = resource.api_version.as_str().into();
        object["kind"] = resource.kind.as_str().into();
        let params = PatchParams::apply("loose").force();
        api.patch(name, &params, &Patch::Apply(&object)).await.unwrap();
    }

    pub async fn merge_status<K: OwnKind>(&self, name: &str, patch: Value) -> K {
        self.api().patch_status(name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap()
    }

    /// Where an object is found, for those who want its JSON.
    pub fn path_of<K: OwnKind>(&self, name: &str) -> String {
        format!("{}/{name}", K::url_path(&(), Some(&self.namespace)))
    }
}
