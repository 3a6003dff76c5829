//! Server-side apply and the fields that managers own.

use serde_json::{Value, json};
use skep_kube::apply::{
    ApplyError, Ownable, Target, apply as apply_configuration, fields_v1, keep_times, update, validate_managed_fields,
};
use skep_kube::schema::Schema;

use crate::parts::documents;

const NOW: &str = "2026-01-02T03:04:05Z";
const LATER: &str = "2026-01-02T03:04:06Z";

/// Inputs: a schema, the live object, a configuration.
pub(super) fn apply(input: &[u8]) {
    let Some([schema, live, configuration]) = documents(input) else { return };
    let schema = Schema::read(&schema);
    let ownable = Ownable::all_but(&["status"]);
    let target = Target {
        schema: &schema,
        api_version: "fuzz.test/v1",
        versions: &["fuzz.test/v1", "fuzz.test/v2"],
        subresource: "",
        ownable: &ownable,
        blank: &json!({}),
    };
    let live = live.is_object().then_some(&live);
    let mut updated = configuration.clone();
    update(&target, live, &mut updated, "updater", NOW);
    if let Some(live) = live {
        keep_times(live, &mut updated);
    }
    for force in [false, true] {
        let applied = apply_configuration(&target, live, &configuration, "applier", force, NOW);
        let Ok(applied) = applied else { continue };
        let again = apply_configuration(&target, Some(&applied), &configuration, "applier", force, LATER);
        // It may change something, as on a real server: an empty list that takes the last owned items of a set first
        // goes, and comes back empty the next time.
        assert!(!matches!(again, Err(ApplyError::LiveManagedFields(_))), "what is written can be read: {again:?}");
    }
}

/// Inputs: fields as `managedFields` has them.
pub(super) fn managed_fields(input: &[u8]) {
    let Some([fields]) = documents(input) else { return };
    let entry = json!({ "manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields });
    validate_managed_fields(&json!({ "metadata": { "managedFields": [entry, fields] } }));
    let Ok(set) = fields_v1::decode(&fields) else { return };
    let encoded: Value = fields_v1::encode(&set);
    assert_eq!(fields_v1::decode(&encoded).ok(), Some(set), "what is written can be read");
}
