//! The user's pod template: that of the backend of an MCPServer, that of the proxy of an MCPRemoteProxy.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde_json::Value;
use skep_api::raw::RawObject;

use super::amounts;
use crate::place;
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
    let template: PodTemplateSpec = place::read(&Value::Object(raw.0.clone())).map_err(refused)?;
    check_amounts(&template).map_err(refused)?;
    // Whether it can be merged shows when it is.
    super::template(inputs, "").map_err(|error| refused(error.to_string()))?;
    Ok(Some(raw))
}

fn check_amounts(template: &PodTemplateSpec) -> Result<(), String> {
    let Some(pod) = &template.spec else { return Ok(()) };
    for (list, containers) in
        [("containers", &pod.containers[..]), ("initContainers", pod.init_containers.as_deref().unwrap_or_default())]
    {
        for (index, container) in containers.iter().enumerate() {
            if let Some(resources) = &container.resources {
                amounts::check(&format!("spec.{list}[{index}].resources"), resources)?;
            }
        }
    }
    Ok(())
}
