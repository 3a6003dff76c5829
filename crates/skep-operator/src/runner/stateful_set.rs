//! The StatefulSet of a backend.

use serde_json::{Value, json};
use skep_api::config::run_config::RunConfig;
use skep_api::names::labels;

use super::{RunnerError, template, workload_name};

/// The StatefulSet that a document asks for. The number of replicas is somebody else's unless the document says it.
pub fn stateful_set(config: &RunConfig, openshift: bool) -> Result<Value, RunnerError> {
    let name = workload_name(config);
    let mut object = json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "labels": labels::backend(config.container_labels.clone(), name)},
        "spec": {
            "selector": {"matchLabels": labels::backend_selector(name)},
            // There is no Service of this name; it is part of the contract all the same.
            "serviceName": name,
            // Pods that wait for each other would also wait for one that cannot start, and no mended template would reach
            // it.
            "podManagementPolicy": "Parallel",
            "template": template::template(config, openshift)?,
        },
    });
    if let Some(replicas) = config.scaling_config.as_ref().and_then(|scaling| scaling.backend_replicas) {
        object["spec"]["replicas"] = json!(replicas);
    }
    Ok(object)
}
