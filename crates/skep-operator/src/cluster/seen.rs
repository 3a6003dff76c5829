//! Custom resources as they come from the API server, those that cannot be read included.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};
use skep_api::kind::Kind;
use skep_api::names::annotations;

use super::kind::named_as;
use super::shallow;
use crate::place;

/// An object of kind `K`. One that cannot be read does not hide the others: a list of both is read all the same.
#[derive(Clone, Debug)]
pub enum Seen<K> {
    Read(K),
    Unreadable(Box<Unreadable>),
}

/// An object that an older or newer schema let pass.
#[derive(Clone, Debug)]
pub struct Unreadable {
    pub metadata: ObjectMeta,
    /// What is wrong, with the path of the member where that is known.
    pub cause: String,
    object: Value,
}

impl Unreadable {
    /// The status as it is, so that a condition can be added to it.
    pub fn status(&self) -> &Value {
        &self.object["status"]
    }

    /// The object with the spec of one that has none; without its status, if that cannot be read either.
    pub fn without_spec<K: Kind>(&self) -> Result<K, serde_json::Error> {
        let read = |object: Value| serde_json::from_value::<K>(object);
        read(json!({"metadata": self.metadata, "status": self.status()}))
            .or_else(|_| read(json!({"metadata": self.metadata})))
    }
}

impl<'de, K: Kind> Deserialize<'de> for Seen<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (mut object, is_cut) = shallow::read(deserializer)?;
        trim(&mut object);
        let read = if is_cut { Err(too_deep(&object)) } else { read(&object) };
        match read {
            Ok(object) => Ok(Self::Read(object)),
            Err(cause) => {
                let metadata = ObjectMeta::deserialize(&object["metadata"]).map_err(serde::de::Error::custom)?;
                Ok(Self::Unreadable(Box::new(Unreadable { metadata, cause, object })))
            }
        }
    }
}

/// What cannot be read is written as it came, so that it is no more readable afterwards; what was cut off leaves a level
/// that is too deep.
impl<K: Kind> Serialize for Seen<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Read(object) => object.serialize(serializer),
            Self::Unreadable(unreadable) => unreadable.object.serialize(serializer),
        }
    }
}

/// What is wrong with an object that is nested too deeply.
fn too_deep(object: &Value) -> String {
    let members = object["spec"].as_object().into_iter().flatten();
    let place = members.max_by_key(|(_, member)| shallow::depth(member)).map(|(name, _)| format!("spec.{name}"));
    format!("{}: nested deeper than {} levels", place.as_deref().unwrap_or("spec"), shallow::LEVELS)
}

/// Reads an object. A status from elsewhere is no reason to leave it alone: it is read as one that has none yet.
fn read<K: Kind>(object: &Value) -> Result<K, String> {
    place::read(object).or_else(|cause| {
        let mut without_status = object.clone();
        without_status.as_object_mut().and_then(|members| members.remove("status"));
        place::read(&without_status).map_err(|_| cause)
    })
}

/// Forgets what the operator never asks for and what would take most of the memory.
fn trim(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    metadata.remove("managedFields");
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(annotations::KUBECTL_LAST_APPLIED);
    }
}

impl<K: Kind> kube::Resource for Seen<K> {
    named_as!(K);

    fn meta(&self) -> &ObjectMeta {
        match self {
            Self::Read(object) => object.meta(),
            Self::Unreadable(object) => &object.metadata,
        }
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Self::Read(object) => object.meta_mut(),
            Self::Unreadable(object) => &mut object.metadata,
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::ResourceExt as _;
    use kube::core::ObjectList;
    use skep_api::kinds::MCPServer;

    use super::*;

    #[test]
    fn one_deep_object_does_not_hide_the_others() {
        let deep = format!("{}1{}", r#"{"a":"#.repeat(300), "}".repeat(300));
        let text = format!(
            r#"{{"metadata": {{}}, "items": [
                {{"metadata": {{"name": "deep"}}, "spec": {{"image": "i", "podTemplateSpec": {deep}}}, "status": {{"phase": "Ready"}}}},
                {{"metadata": {{"name": "good"}}, "spec": {{"image": "i"}}}}]}}"#
        );
        let list: ObjectList<Seen<MCPServer>> = serde_json::from_str(&text).unwrap();
        let [Seen::Unreadable(deep), Seen::Read(good)] = list.items.as_slice() else { panic!("{list:?}") };
        assert_eq!(deep.cause, "spec.podTemplateSpec: nested deeper than 100 levels");
        assert_eq!((deep.metadata.name.as_deref(), &deep.status()["phase"]), (Some("deep"), &json!("Ready")));
        assert_eq!(good.name_any(), "good");
        // It is no more readable after it was put aside.
        let again: Seen<MCPServer> = serde_json::from_str(&serde_json::to_string(&list.items[0]).unwrap()).unwrap();
        assert!(matches!(again, Seen::Unreadable(again) if again.cause == deep.cause));
    }

    #[test]
    fn one_unreadable_object_does_not_hide_the_others() {
        let list = json!({"metadata": {"resourceVersion": "7"}, "items": [
            {"metadata": {"name": "good", "managedFields": [{"manager": "m"}]}, "spec": {"image": "i"}},
            {"metadata": {"name": "bad"}, "spec": {"image": 3}, "status": {"phase": "Ready"}},
            {"metadata": {"name": "new"}, "spec": {"image": "i", "transport": "carrier-pigeon"}},
            {"metadata": {"name": "odd"}, "spec": {"image": "i"}, "status": {"phase": "Dancing"}}]});
        let list: ObjectList<Seen<MCPServer>> = serde_json::from_value(list).unwrap();
        let [Seen::Read(good), Seen::Unreadable(bad), Seen::Unreadable(new), Seen::Read(odd)] = list.items.as_slice()
        else {
            panic!("{list:?}")
        };
        assert_eq!(good.spec.image, "i");
        assert_eq!(good.metadata.managed_fields, None);
        assert_eq!((bad.metadata.name.as_deref(), &bad.status()["phase"]), (Some("bad"), &json!("Ready")));
        assert!(new.cause.contains("carrier-pigeon"), "{}", new.cause);
        assert_eq!(list.items[2].name_any(), "new");
        assert_eq!((odd.spec.image.as_str(), odd.status.is_none()), ("i", true));
        for seen in &list.items {
            let again: Seen<MCPServer> = serde_json::from_value(serde_json::to_value(seen).unwrap()).unwrap();
            assert_eq!(format!("{again:?}"), format!("{seen:?}"));
        }
        let bare: MCPServer = bad.without_spec().unwrap();
        assert_eq!((bare.name_any().as_str(), bare.spec.image.as_str(), bare.status.is_some()), ("bad", "", true));
    }
}
