//! The user's pod template: that of the backend of an MCPServer, that of the proxy of an MCPRemoteProxy.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde_json::{Value, json};
use skep_api::raw::RawObject;

use crate::proxy::{Inputs, Target};

/// What the user wrote, read or not.
pub(super) fn of<'a>(inputs: &Inputs<'a>) -> Option<&'a RawObject> {
    match inputs.target {
        Target::Server(spec) => spec.pod_template_spec.as_ref(),
        Target::Remote(spec) => spec.pod_template_spec.as_ref(),
    }
}

/// The user's pod template, if there is one and it is one. The text says where it is wrong.
pub fn parse_pod_template<'a>(inputs: &Inputs<'a>) -> Result<Option<&'a RawObject>, String> {
    let Some(raw) = of(inputs) else { return Ok(None) };
    let refused = |problem: String| format!("failed to unmarshal PodTemplateSpec: {problem}");
    let template = Value::Object(raw.0.clone());
    if let Err(error) = parse(template.clone()) {
        let (place, problem) = fault(&template, &|part| part, "").unwrap_or((String::new(), error));
        return Err(refused(if place.is_empty() { problem } else { format!("{place}: {problem}") }));
    }
    // Whether it can be merged shows when it is.
    super::template(inputs, "").map_err(|error| refused(error.to_string()))?;
    Ok(Some(raw))
}

fn parse(template: Value) -> Result<PodTemplateSpec, String> {
    serde_json::from_value(template).map_err(|error| error.to_string())
}

/// The smallest part that is wrong even on its own, and what is wrong with it. `within` puts a part where it belongs.
fn fault(value: &Value, within: &dyn Fn(Value) -> Value, place: &str) -> Option<(String, String)> {
    let inner = match value {
        Value::Object(members) => members.iter().find_map(|(name, member)| {
            let place = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
            fault(member, &|part| within(json!({ name: part })), &place)
        }),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(index, item)| fault(item, &|part| within(json!([part])), &format!("{place}[{index}]"))),
        _ => None,
    };
    inner.or_else(|| parse(within(value.clone())).err().map(|problem| (place.to_owned(), problem)))
}
