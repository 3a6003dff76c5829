//! The pods of a backend: what the user says about them, completed.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use skep_api::config::run_config::{RunConfig, Transport};
use skep_api::names::env::backend::{FASTMCP_PORT, MCP_HOST, MCP_PORT, MCP_TRANSPORT};
use skep_api::names::{annotations, labels, mcp_server};

use super::ports::ports;
use super::{RunnerError, pods_for_sessions, workload_name};
use crate::members::{container, list, object};
use crate::proxy::pod::security;

/// What a platform that chooses users itself wants to see nothing about.
const CHOSEN_BY_OPENSHIFT: [&str; 3] = ["runAsUser", "runAsGroup", "fsGroup"];
/// Where a server listens that is not told anything else.
const EVERYWHERE: &str = "0.0.0.0";

/// The pod template: the patch of the document, with what every backend needs. Equal documents give equal bytes.
pub(super) fn template(config: &RunConfig, openshift: bool) -> Result<Value, RunnerError> {
    let mut template = patch(config)?;
    let metadata = object(&mut template, "metadata")?;
    let required = labels::backend(config.container_labels.clone(), workload_name(config));
    object(metadata, "labels")?.extend(required.into_iter().map(|(name, value)| (name, Value::from(value))));
    if config.mcpserver_generation > 0 {
        let stamp = config.mcpserver_generation.to_string();
        object(metadata, "annotations")?.insert(annotations::MCP_SERVER_GENERATION.to_owned(), stamp.into());
    }
    let pod = object(&mut template, "spec")?;
    pod.entry("restartPolicy").or_insert_with(|| "Always".into());
    secure(pod, serde_json::to_value(security::pod(openshift))?, openshift)?;
    complete(container(pod, mcp_server::BACKEND_CONTAINER)?, config, openshift)?;
    Ok(Value::Object(template))
}

/// What the user says about the pods.
pub(super) fn patch(config: &RunConfig) -> Result<Map<String, Value>, RunnerError> {
    let text = config.k8s_pod_template_patch.expose();
    if text.is_empty() {
        return Ok(Map::new());
    }
    // The text of the error must not repeat the patch, which may carry secrets.
    serde_json::from_str(text).map_err(|error| {
        RunnerError::Patch(format!("no JSON object (line {}, column {})", error.line(), error.column()))
    })
}

fn complete(container: &mut Map<String, Value>, config: &RunConfig, openshift: bool) -> Result<(), RunnerError> {
    container.insert("image".to_owned(), json!(config.image));
    container.insert("stdin".to_owned(), json!(config.transport == Transport::Stdio));
    container.insert("tty".to_owned(), json!(false));
    if !pods_for_sessions(config)?.is_empty() {
        // The process ends when it is left, so that the next session gets one that nobody has used.
        container.insert("stdinOnce".to_owned(), json!(true));
    }
    if !config.cmd_args.is_empty() {
        list(container, "args")?.extend(config.cmd_args.iter().map(|argument| json!(argument)));
    }
    let variables = environment(config);
    let known = list(container, "env")?;
    // A name may be there once; what the document says counts.
    known.retain(|entry| entry["name"].as_str().is_none_or(|name| !variables.contains_key(name)));
    known.extend(variables.into_iter().map(|(name, value)| json!({"name": name, "value": value})));
    if config.transport == Transport::Sse {
        let known = list(container, "ports")?;
        for port in ports(config)? {
            if !known.iter().any(|entry| entry["containerPort"] == port.number) {
                known.push(json!({"containerPort": port.number, "protocol": "TCP"}));
            }
        }
    }
    secure(container, serde_json::to_value(security::container(openshift))?, openshift)
}

/// The variables of the document, and the ones that tell the server how it is spoken to; the latter win.
fn environment(config: &RunConfig) -> BTreeMap<String, String> {
    let own = config.env_vars.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()));
    let mut variables: BTreeMap<String, String> = own.collect();
    variables.insert(MCP_TRANSPORT.to_owned(), config.transport.as_str().to_owned());
    if config.transport != Transport::Stdio {
        let port = config.target_port.to_string();
        variables.insert(MCP_PORT.to_owned(), port.clone());
        variables.insert(FASTMCP_PORT.to_owned(), port);
        let host = if config.target_host.is_empty() { EVERYWHERE } else { &config.target_host };
        variables.insert(MCP_HOST.to_owned(), host.to_owned());
    }
    variables
}

/// Fills in what the user has not said about rights.
fn secure(members: &mut Map<String, Value>, usual: Value, openshift: bool) -> Result<(), RunnerError> {
    let context = object(members, "securityContext")?;
    if let Value::Object(usual) = usual {
        for (name, value) in usual {
            context.entry(name).or_insert(value);
        }
    }
    if openshift {
        for name in CHOSEN_BY_OPENSHIFT {
            context.remove(name);
        }
    }
    Ok(())
}
