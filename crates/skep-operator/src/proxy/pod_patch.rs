//! What the proxy runner is told about the pods of its backend.

use serde_json::{Map, Value, json};
use skep_api::kinds::mcp_server::{EnvFromSecret, MCPServerSpec};
use skep_api::kinds::references::SecretKeyRef;
use skep_api::names::mcp_server;

use super::pod::PodError;
use super::pod::env::Environment;
use super::{Inputs, Target};
use crate::members::{WrongType, container, list, object};

/// The pod template of the backend: that of the user with the account and the secrets of the spec. `None` when it says
/// nothing, and for a proxy that has no backend in the cluster.
pub fn pod_patch(inputs: &Inputs<'_>) -> Result<Option<Value>, PodError> {
    let Target::Server(spec) = inputs.target else { return Ok(None) };
    let mut patch = spec.pod_template_spec.as_ref().map(|template| template.0.clone()).unwrap_or_default();
    let account = match spec.service_account.as_deref() {
        Some(name) => name.to_owned(),
        None => mcp_server::backend_service_account(inputs.common.name),
    };
    if !account.is_empty() {
        object(&mut patch, "spec")?.insert("serviceAccountName".to_owned(), json!(account));
    }
    if !spec.secrets.is_empty() {
        add_secrets(object(&mut patch, "spec")?, spec)?;
    }
    let patch = Value::Object(patch);
    Ok(says_something(&patch).then_some(patch))
}

/// Puts the secrets into the environment of the backend's container, which is made if need be. They come last, and a
/// variable of the same name makes way.
fn add_secrets(pod: &mut Map<String, Value>, spec: &MCPServerSpec) -> Result<(), PodError> {
    let mut variables = Environment::default();
    for secret in &spec.secrets {
        let EnvFromSecret { key, name, target_env_name } = secret;
        let target = target_env_name.as_ref().filter(|target| !target.is_empty()).unwrap_or(key);
        variables.secret(target, &SecretKeyRef { key: key.clone(), name: name.clone() });
    }
    let container = container(pod, mcp_server::BACKEND_CONTAINER)?;
    let env = list(container, "env")?;
    for variable in variables.finish() {
        env.retain(|known| known["name"] != variable.name.as_str());
        env.push(serde_json::to_value(variable)?);
    }
    Ok(())
}

impl From<WrongType> for PodError {
    fn from(error: WrongType) -> Self {
        Self::Template(format!("spec.podTemplateSpec is no pod template: {error}"))
    }
}

fn says_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Object(members) => members.values().any(says_something),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}
