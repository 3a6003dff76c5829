//! Environment variables: what the operator sets on pods, and what each process reads.
//!
//! Names that depend on an object are made by the functions here, both for the pod and for the configuration that
//! mentions them. Fixed names are grouped by the process that reads them.

pub mod backend;
pub mod operator;
pub mod runner;
pub mod virtual_mcp;

/// What the name of a secret's variable begins with: the `environment` provider finds secret `X` in
/// `TOOLHIVE_SECRET_X`.
pub const SECRET_PREFIX: &str = "TOOLHIVE_SECRET_";
/// What the identifier of a workload's own secret begins with. Secrets of users must not begin with `__thv_`.
pub const WORKLOAD_SECRET_SCOPE: &str = "__thv_workloads_";
/// What the identifiers of secrets that users may not choose begin with.
pub const SYSTEM_SECRET_PREFIX: &str = "__thv_";
/// What the names of header-forward manifests begin with.
pub const HEADER_FORWARD_PREFIX: &str = "TOOLHIVE_HEADER_FORWARD_";
/// What the names of variables with values of telemetry headers begin with.
pub const TELEMETRY_HEADER_PREFIX: &str = "TOOLHIVE_OTEL_HEADER_";

/// Makes a part of a variable's name: capitals, and an underscore for every character but `A-Z`, `0-9` and `_`.
///
/// Different texts may become the same name, such as `a-b` and `a.b`.
pub fn sanitize(text: &str) -> String {
    text.chars()
        .map(|character| match character.to_ascii_uppercase() {
            upper @ ('A'..='Z' | '0'..='9' | '_') => upper,
            _ => '_',
        })
        .collect()
}

/// Whether a shell and every other program can use the name: letters, digits and underscores, no digit first.
pub fn is_portable(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
}

/// The variable of a secret, the identifier verbatim. For a bearer token the identifier is the name of the Secret,
/// which may contain hyphens and dots: Kubernetes accepts them, see [`secret_alias`].
pub fn secret(identifier: &str) -> String {
    format!("{SECRET_PREFIX}{identifier}")
}

/// A portable second name for [`secret`], when the first is not portable.
pub fn secret_alias(identifier: &str) -> Option<String> {
    (!is_portable(&secret(identifier))).then(|| secret(&sanitize(identifier)))
}

/// The variable that is looked up before [`secret`] for webhook keys and the credentials of remote servers.
pub fn workload_secret(identifier: &str) -> String {
    format!("{SECRET_PREFIX}{WORKLOAD_SECRET_SCOPE}{identifier}")
}

/// The identifier of a forwarded header's secret, as configurations name it. The owner is an MCPRemoteProxy or
/// MCPServerEntry; the variable is the [`secret`] of this.
pub fn header_forward_identifier(header: &str, owner: &str) -> String {
    format!("HEADER_FORWARD_{}_{}", sanitize(header), sanitize(owner))
}

/// The variable of a forwarded header's value.
pub fn header_forward_secret(header: &str, owner: &str) -> String {
    secret(&header_forward_identifier(header, owner))
}

/// The variable that tells a vMCP process which headers an MCPServerEntry adds.
pub fn header_forward_manifest(entry: &str) -> String {
    format!("{HEADER_FORWARD_PREFIX}{}", sanitize(entry))
}

/// The variable of a telemetry header's value.
pub fn telemetry_header(header: &str) -> String {
    format!("{TELEMETRY_HEADER_PREFIX}{}", sanitize(header))
}

/// The header whose value a variable has, if it is one for that.
pub fn telemetry_header_name(variable: &str) -> Option<String> {
    let header = variable.strip_prefix(TELEMETRY_HEADER_PREFIX).filter(|header| !header.is_empty())?;
    Some(header.to_ascii_lowercase().replace('_', "-"))
}

/// The variable of a token exchange's client secret, in a vMCP pod. Proxy pods have
/// [`runner::TOKEN_EXCHANGE_CLIENT_SECRET`].
pub fn token_exchange_client_secret(config: &str) -> String {
    format!("{}_{}", runner::TOKEN_EXCHANGE_CLIENT_SECRET, sanitize(config))
}

/// The variable of an injected header's value, in a vMCP pod.
pub fn header_injection_value(config: &str) -> String {
    format!("TOOLHIVE_HEADER_INJECTION_VALUE_{}", sanitize(config))
}

/// The variable of the client secret for the identity provider of an `xaa` config, in a vMCP pod.
pub fn xaa_idp_client_secret(config: &str) -> String {
    format!("TOOLHIVE_XAA_IDP_CLIENT_SECRET_{}", sanitize(config))
}

/// The variable of the client secret for the target of an `xaa` config, in a vMCP pod.
pub fn xaa_target_client_secret(config: &str) -> String {
    format!("TOOLHIVE_XAA_TARGET_CLIENT_SECRET_{}", sanitize(config))
}

/// The variable of the client secret for an upstream of the embedded auth server.
pub fn upstream_client_secret(upstream: &str) -> String {
    format!("TOOLHIVE_UPSTREAM_CLIENT_SECRET_{}", sanitize(upstream))
}

/// The variable of the token with which the embedded auth server registers at an upstream.
pub fn upstream_initial_access_token(upstream: &str) -> String {
    format!("TOOLHIVE_UPSTREAM_DCR_INITIAL_ACCESS_TOKEN_{}", sanitize(upstream))
}

/// The variable of a delegate client's secret. The index is its place in the list, never its identifier.
pub fn delegate_client_secret(index: usize) -> String {
    format!("TOOLHIVE_DELEGATE_CLIENT_SECRET_{index}")
}

/// The value of [`runner::OTEL_RESOURCE_ATTRIBUTES`].
pub fn resource_attributes(service: &str, namespace: &str) -> String {
    format!("service.name={service},service.namespace={namespace}")
}
