//! Whether a proxy can run with a document. Found here, a mistake is told in the status; found later, pods crash.

use std::collections::BTreeMap;

use http::HeaderValue;
use skep_api::config::run_config::{HeaderForwardConfig, ProxyMode, RunConfig, Transport};
use skep_api::kinds::mcp_server::MCPServerSpec;

use crate::config::address::{self, Plain, Reach};
use crate::header_names;
use crate::proxy::Target;

const PORTS: std::ops::RangeInclusive<i32> = 1..=65535;
const LINE_BREAKS: [char; 2] = ['\r', '\n'];

/// What is wrong with the document, by the names that its author knows.
pub(super) fn check(target: Target<'_>, config: &RunConfig) -> Result<(), String> {
    required("name", &config.name)?;
    check_transport(config)?;
    check_port("proxyPort", config.port)?;
    if config.host.contains(char::is_whitespace) {
        return Err(format!("host {:?} must not contain spaces", config.host));
    }
    match target {
        Target::Server(spec) => check_server(spec, config)?,
        Target::Remote(_) => check_remote(config)?,
    }
    check_tools(config)?;
    check_resource(config)?;
    check_sessions(config)
}

fn check_server(spec: &MCPServerSpec, config: &RunConfig) -> Result<(), String> {
    required("spec.image", &config.image)?;
    if config.image.starts_with('-') {
        return Err(format!(
            "spec.image {:?} must not begin with a hyphen: the proxy takes it for a flag",
            config.image
        ));
    }
    if config.transport != Transport::Stdio {
        check_port("mcpPort", config.target_port)?;
    }
    for (index, variable) in spec.env.iter().enumerate() {
        let name = &variable.name;
        if name.is_empty() || name.contains('=') || name.contains(LINE_BREAKS) {
            return Err(format!(
                "spec.env[{index}].name {name:?} must not be empty and must not contain = or line breaks"
            ));
        }
        if variable.value.expose().contains(LINE_BREAKS) {
            return Err(format!("spec.env[{index}].value, that of {name}, must not contain line breaks"));
        }
    }
    config.volumes.iter().try_for_each(|volume| check_volume(volume))
}

fn check_remote(config: &RunConfig) -> Result<(), String> {
    required("spec.remoteUrl", &config.remote_url)?;
    if config.transport == Transport::Stdio {
        return Err("transport must be sse or streamable-http for a remote server".to_owned());
    }
    config.header_forward.as_ref().map_or(Ok(()), check_headers)
}

/// The proxy starts only with headers that it can send. What a value says is not repeated.
fn check_headers(headers: &HeaderForwardConfig) -> Result<(), String> {
    const FIELD: &str = "spec.headerForward";
    for name in headers.add_plaintext_headers.keys().chain(headers.add_headers_from_secret.keys()) {
        header_names::check(name).map_err(|cause| format!("{FIELD}: {cause}"))?;
    }
    for (name, value) in &headers.add_plaintext_headers {
        if HeaderValue::from_str(value.expose()).is_err() {
            return Err(format!(
                "{FIELD}.addPlaintextHeaders: the value of {name} has characters that a header cannot hold, such as line \
                 breaks"
            ));
        }
    }
    Ok(())
}

fn required(field: &str, value: &str) -> Result<(), String> {
    if value.is_empty() { Err(format!("{field} is required")) } else { Ok(()) }
}

fn check_transport(config: &RunConfig) -> Result<(), String> {
    let mode = &config.proxy_mode;
    match (&config.transport, mode) {
        (Transport::Stdio, ProxyMode::Sse | ProxyMode::StreamableHttp)
        | (Transport::Sse, ProxyMode::Sse)
        | (Transport::StreamableHttp, ProxyMode::StreamableHttp) => Ok(()),
        (Transport::Other(text), _) if text.is_empty() => Err("transport is required".to_owned()),
        (Transport::Other(text), _) => Err(format!("transport {text:?} is not one of stdio, sse and streamable-http")),
        (Transport::Stdio, ProxyMode::Other(_)) => {
            Err(format!("proxyMode {:?} is not one of sse and streamable-http", mode.as_str()))
        }
        (transport, _) => Err(format!("proxyMode {:?} must be {transport} for transport {transport}", mode.as_str())),
    }
}

fn check_port(field: &str, port: i32) -> Result<(), String> {
    if PORTS.contains(&port) {
        return Ok(());
    }
    Err(format!("{field} {port} is not between {} and {}", PORTS.start(), PORTS.end()))
}

fn check_volume(volume: &str) -> Result<(), String> {
    let parts: Vec<&str> = volume.split(':').collect();
    match parts.as_slice() {
        [host, mount] | [host, mount, "ro"] if !host.is_empty() && !mount.is_empty() => Ok(()),
        _ => Err(format!(
            "volumes: {volume:?} must read host:mount or host:mount:ro; a path cannot be empty or contain a colon"
        )),
    }
}

fn check_tools(config: &RunConfig) -> Result<(), String> {
    for tool in &config.tools_filter {
        if tool.is_empty() || tool.contains(',') || tool.contains(LINE_BREAKS) {
            return Err(format!(
                "toolsFilter: the name {tool:?} must not be empty and must not contain commas or line breaks"
            ));
        }
    }
    if config.tools_override.contains_key("") {
        return Err("toolsOverride: the name of a tool must not be empty".to_owned());
    }
    let mut shown: BTreeMap<&str, &str> = BTreeMap::new();
    for (tool, other) in config.tools_override.iter().filter(|(_, other)| !other.name.is_empty()) {
        if let Some(taken) = shown.insert(&other.name, tool) {
            return Err(format!(
                "toolsOverride: {taken} and {tool} are both to be shown as {:?}; choose another name for one of them",
                other.name
            ));
        }
    }
    Ok(())
}

/// What clients are told to ask for tokens with.
fn check_resource(config: &RunConfig) -> Result<(), String> {
    let resource = config.oidc_config.as_ref().map(|oidc| oidc.resource_url.as_str()).unwrap_or_default();
    address::check("oidcConfigRef.resourceUrl", resource, Plain::Allowed, Reach::Unasked)
}

/// The proxy refuses a prefix that would run into the keys.
fn check_sessions(config: &RunConfig) -> Result<(), String> {
    let redis = config.scaling_config.as_ref().and_then(|scaling| scaling.session_redis.as_ref());
    match redis.map(|redis| redis.key_prefix.as_str()) {
        Some(prefix) if !prefix.is_empty() && !prefix.ends_with(':') => {
            Err(format!("sessionStorage.keyPrefix {prefix:?} must end with a colon"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_of_the_proxy_goes_with_the_transport() {
        for (transport, mode, complaint) in [
            ("stdio", "sse", ""),
            ("stdio", "streamable-http", ""),
            ("stdio", "stdio", "proxyMode \"stdio\" is not one of sse and streamable-http"),
            ("sse", "sse", ""),
            ("sse", "streamable-http", "proxyMode \"streamable-http\" must be sse for transport sse"),
            ("streamable-http", "", "proxyMode \"\" must be streamable-http for transport streamable-http"),
            ("", "sse", "transport is required"),
            ("inspector", "sse", "transport \"inspector\" is not one of stdio, sse and streamable-http"),
        ] {
            let config = RunConfig { transport: transport.into(), proxy_mode: mode.into(), ..RunConfig::default() };
            assert_eq!(check_transport(&config).err().unwrap_or_default(), complaint, "{transport} {mode}");
        }
    }
}
