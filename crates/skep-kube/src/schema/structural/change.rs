//! What an update of a CustomResourceDefinition may not change: where its objects are stored.

use serde_json::Value;

use crate::status::FieldError;

pub(super) fn check(new: &Value, old: &Value) -> Vec<FieldError> {
    let is_established = old["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True");
    // Until it is established there are no objects.
    let while_served = ["/spec/scope", "/spec/names/kind"].into_iter().filter(|_| is_established);
    while_served
        .chain(["/spec/group", "/spec/names/plural"])
        .filter(|place| new.pointer(place) != old.pointer(place))
        .map(|place| {
            let field = place.trim_start_matches('/').replace('/', ".");
            FieldError::invalid(field, new.pointer(place).cloned().unwrap_or_default(), "field is immutable")
        })
        .collect()
}
