//! What is behind the proxy, and where the proxy listens.

use std::collections::BTreeMap;

use skep_api::config::run_config::{PermissionProfile, ProxyMode, RunConfig, Transport};
use skep_api::kinds::mcp_remote_proxy::MCPRemoteProxySpec;
use skep_api::kinds::mcp_server::MCPServerSpec;
use skep_api::kinds::transport::{self, DEFAULT_PORT, RemoteTransport, ServerTransport};
use skep_api::names::env::backend::{FASTMCP_PORT, MCP_PORT, MCP_TRANSPORT};
use skep_api::names::labels;
use skep_api::sensitive::Sensitive;

use super::{header_forward, permission_profile};
use crate::proxy::{Inputs, Target};

/// A document with the backend and the listener, and nothing else.
pub(super) fn describe(inputs: &Inputs<'_>) -> Result<RunConfig, String> {
    let common = &inputs.common;
    let mut config = match inputs.target {
        Target::Server(spec) => RunConfig { mcpserver_generation: common.generation, ..server(spec)? },
        Target::Remote(spec) => remote(common.name, spec),
    };
    RunConfig::SCHEMA_VERSION.clone_into(&mut config.schema_version);
    common.name.clone_into(&mut config.name);
    common.name.clone_into(&mut config.container_name);
    common.name.clone_into(&mut config.base_name);
    config.host.clone_from(&inputs.settings.host);
    config.port = common.proxy_port;
    config.container_labels = labels::container(common.name, config.transport.as_str(), common.proxy_port);
    Ok(config)
}

fn server(spec: &MCPServerSpec) -> Result<RunConfig, String> {
    let (transport, proxy_mode) = match spec.transport {
        ServerTransport::Stdio => (Transport::Stdio, stdio_mode(spec.proxy_mode)),
        ServerTransport::Sse => (Transport::Sse, ProxyMode::Sse),
        ServerTransport::StreamableHttp => (Transport::StreamableHttp, ProxyMode::StreamableHttp),
    };
    let target_port = spec.mcp_port.unwrap_or(DEFAULT_PORT);
    let profile = spec.permission_profile.as_ref();
    Ok(RunConfig {
        image: spec.image.clone(),
        cmd_args: spec.args.clone(),
        env_vars: environment(spec, &transport, target_port),
        volumes: spec.volumes.iter().map(permission_profile::volume).collect(),
        permission_profile_name_or_path: permission_profile::name_or_path(profile),
        permission_profile: permission_profile::contents(profile, &spec.volumes)?,
        transport,
        proxy_mode,
        target_port,
        ..RunConfig::default()
    })
}

fn remote(name: &str, spec: &MCPRemoteProxySpec) -> RunConfig {
    let (transport, proxy_mode) = match spec.transport {
        RemoteTransport::Sse => (Transport::Sse, ProxyMode::Sse),
        RemoteTransport::StreamableHttp => (Transport::StreamableHttp, ProxyMode::StreamableHttp),
    };
    RunConfig {
        remote_url: spec.remote_url.clone(),
        allow_private_endpoint: spec.allow_private_endpoint,
        env_vars: BTreeMap::from([(MCP_TRANSPORT.to_owned(), transport.as_str().into())]),
        permission_profile: PermissionProfile::builtin(PermissionProfile::NETWORK),
        header_forward: spec.header_forward.as_ref().and_then(|headers| header_forward::config(name, headers)),
        transport,
        proxy_mode,
        ..RunConfig::default()
    }
}

fn stdio_mode(mode: transport::ProxyMode) -> ProxyMode {
    match mode {
        transport::ProxyMode::Sse => ProxyMode::Sse,
        transport::ProxyMode::StreamableHttp => ProxyMode::StreamableHttp,
    }
}

/// The user's variables and the ones that tell the server how it is spoken to; the latter win.
fn environment(spec: &MCPServerSpec, transport: &Transport, port: i32) -> BTreeMap<String, Sensitive> {
    let mut variables: BTreeMap<_, _> =
        spec.env.iter().map(|variable| (variable.name.clone(), variable.value.clone())).collect();
    variables.insert(MCP_TRANSPORT.to_owned(), transport.as_str().into());
    if *transport != Transport::Stdio {
        variables.insert(MCP_PORT.to_owned(), port.to_string().into());
        variables.insert(FASTMCP_PORT.to_owned(), port.to_string().into());
    }
    variables
}
