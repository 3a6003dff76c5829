//! Objects between their stored and their served form.
//!
//! Stored objects have no `apiVersion`, `kind` and `resourceVersion`: the first two depend on the version that is asked
//! for, the last is the revision of the record. `metadata` is written first, so that all three can be put in front
//! without parsing the object again; a list of thousands of objects is a concatenation.

use bytes::Bytes;
use serde_json::{Map, Value};

use super::metadata;
use crate::sorted;
use crate::store::{Content, Labels, Record, Text};

const STORED_PREFIX: &[u8] = b"{\"metadata\":{";
/// What would follow if an object did not begin like that, which none does.
const NOTHING_STORED: &[u8] = b"}}";

/// The stored form of an object. Equal objects have equal forms.
pub fn store(object: &Value) -> Result<Content, serde_json::Error> {
    let labels = Labels::of(object);
    let empty = Map::new();
    let members = object.as_object().unwrap_or(&empty);
    let mut bytes = STORED_PREFIX.to_vec();
    let mut first = true;
    for (name, value) in sorted::members(members.get("metadata").and_then(Value::as_object).unwrap_or(&empty)) {
        if name != "resourceVersion" {
            write_member(&mut bytes, &mut first, name, value)?;
        }
    }
    bytes.push(b'}');
    let mut first = false;
    for (name, value) in sorted::members(members) {
        if !matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            write_member(&mut bytes, &mut first, name, value)?;
        }
    }
    bytes.push(b'}');
    Ok(Content { object: Text::new(&bytes), labels })
}

fn write_member(bytes: &mut Vec<u8>, first: &mut bool, name: &str, value: &Value) -> Result<(), serde_json::Error> {
    if !std::mem::take(first) {
        bytes.push(b',');
    }
    serde_json::to_writer(&mut *bytes, name)?;
    bytes.push(b':');
    sorted::write(value, bytes)
}

/// Which version and kind an object is shown as.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    pub api_version: &'a str,
    pub kind: &'a str,
}

/// Appends the served form of a record. `revision` is the record's own, except for a deleted object.
pub fn serve(record: &Record, revision: u64, shown: Shown<'_>, output: &mut Vec<u8>) {
    let rest = serve_shared(record, revision, shown, output);
    output.extend_from_slice(&rest);
}

/// As [`serve`], without the rest of the object, which is the same for everybody: what the store holds of it follows.
pub fn serve_shared(record: &Record, revision: u64, shown: Shown<'_>, output: &mut Vec<u8>) -> Bytes {
    output.extend_from_slice(b"{\"apiVersion\":");
    write_text(shown.api_version, output);
    output.extend_from_slice(b",\"kind\":");
    write_text(shown.kind, output);
    output.extend_from_slice(b",\"metadata\":{\"resourceVersion\":\"");
    let rest = stored_rest(record);
    write_revision(&rest, revision, output);
    rest
}

/// As [`serve`], without `apiVersion` and `kind`.
pub fn serve_bare(record: &Record, output: &mut Vec<u8>) {
    output.extend_from_slice(b"{\"metadata\":{\"resourceVersion\":\"");
    let rest = stored_rest(record);
    write_revision(&rest, record.revision, output);
    output.extend_from_slice(&rest);
}

fn write_revision(rest: &[u8], revision: u64, output: &mut Vec<u8>) {
    output.extend_from_slice(revision.to_string().as_bytes());
    output.push(b'"');
    if rest.first() != Some(&b'}') {
        output.push(b',');
    }
}

/// What follows the revision of an object: the rest of its metadata and everything else.
fn stored_rest(record: &Record) -> Bytes {
    let object = record.object.bytes();
    if object.starts_with(STORED_PREFIX) {
        object.slice(STORED_PREFIX.len()..)
    } else {
        Bytes::from_static(NOTHING_STORED)
    }
}

/// Names of versions and kinds need no escaping; if one does all the same, it gets it.
fn write_text(text: &str, output: &mut Vec<u8>) {
    output.extend_from_slice(Value::from(text).to_string().as_bytes());
}

/// A record as an object to look into or to change.
pub fn load(record: &Record, shown: Shown<'_>) -> Result<Value, serde_json::Error> {
    let mut object: Value = serde_json::from_slice(&record.object.bytes())?;
    object["apiVersion"] = shown.api_version.into();
    object["kind"] = shown.kind.into();
    metadata::set(&mut object, "resourceVersion", Some(record.revision.to_string().into()));
    Ok(object)
}

/// The served form of one record.
pub fn served(record: &Record, shown: Shown<'_>) -> Bytes {
    let mut output = Vec::with_capacity(record.object.len() + 128);
    serve(record, record.revision, shown, &mut output);
    output.into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::store::Key;

    const SHOWN: Shown<'static> = Shown { api_version: "apps/v1", kind: "Deployment" };

    fn record(object: &Value) -> Record {
        let content = store(object).unwrap();
        let key = Key::new("apps/deployments", "default", "web");
        Record { key, revision: 7, created: 3, object: content.object, labels: content.labels }
    }

    #[test]
    fn an_object_comes_out_as_it_went_in_with_the_revision_of_its_record() {
        let object = json!({
            "apiVersion": "apps/v1beta1", "kind": "Old",
            "metadata": { "name": "web", "labels": { "a": "b" }, "resourceVersion": "2" },
            "spec": { "replicas": 1 }, "data": { "x\"y": "\n" },
        });
        let record = record(&object);
        let mut expected = object.clone();
        expected["apiVersion"] = "apps/v1".into();
        expected["kind"] = "Deployment".into();
        expected["metadata"]["resourceVersion"] = "7".into();
        assert_eq!(load(&record, SHOWN).unwrap(), expected);
        assert_eq!(serde_json::from_slice::<Value>(&served(&record, SHOWN)).unwrap(), expected);
        assert_eq!(record.labels.get("a"), Some("b"));
    }

    #[test]
    fn an_object_without_metadata_is_still_an_object() {
        let record = record(&json!({ "spec": {} }));
        let served: Value = serde_json::from_slice(&served(&record, SHOWN)).unwrap();
        assert_eq!(served["metadata"], json!({ "resourceVersion": "7" }));
    }
}
