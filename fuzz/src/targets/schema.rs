//! Schemas of custom resources, and objects in them.

use std::sync::Arc;

use serde_json::{Value, json};
use skep_kube::decode::decode;
use skep_kube::schema::{
    CompiledSchema, Schema, apply_defaults, prune, structural, unreadable, validate, validate_status,
};

use crate::parts::{documents, split};

/// Inputs: a schema, an object, the object before.
pub(super) fn schema(input: &[u8]) {
    let Some([document, object, before]) = documents(input) else { return };
    check(&document);
    use_schema(&document, &object, &before);
}

/// Inputs: a rule, a schema, an object, the object before.
pub(super) fn rules(input: &[u8]) {
    let Some(parts) = split(input) else { return };
    let [rule, rest @ ..] = parts.as_slice() else { return };
    let mut documents = rest.iter().map(|part| decode(part.as_bytes()).unwrap_or_default().value);
    let mut document = documents.next().unwrap_or_default();
    if let Some(members) = document.as_object_mut() {
        let rules = json!([{ "rule": rule }, { "rule": "true", "messageExpression": rule }]);
        members.insert("x-kubernetes-validations".into(), rules);
    }
    check(&document);
    let (object, before) = (documents.next().unwrap_or_default(), documents.next().unwrap_or_default());
    use_schema(&document, &object, &before);
}

/// Definitions are checked before anything else is done with them.
fn check(schema: &Value) {
    let version = json!({ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } });
    let definition = json!({ "metadata": { "name": "things.fuzz.test" }, "spec": { "versions": [version] } });
    structural::check(&definition, None);
}

/// Also with schemas that the check refuses: nothing must depend on it to survive.
fn use_schema(document: &Value, object: &Value, before: &Value) {
    let schema = Arc::new(Schema::read(document));
    let _ = unreadable(&schema, object);
    let mut pruned = object.clone();
    prune(&schema, &mut pruned);
    let settled = pruned.clone();
    assert!(prune(&schema, &mut pruned).is_empty(), "what is pruned is pruned");
    assert_eq!(pruned, settled, "pruning twice is pruning once");
    apply_defaults(&schema, &mut pruned);
    let settled = pruned.clone();
    apply_defaults(&schema, &mut pruned);
    assert_eq!(pruned, settled, "defaults are filled in once");
    let compiled = CompiledSchema::new(schema);
    validate(&compiled, object, None);
    validate(&compiled, &pruned, Some(before));
    validate_status(&compiled, object, before);
}
