//! The RunConfig of a proxy, built from its workload and the objects that the workload names.
//!
//! Nothing here reads or writes anything: what has to exist in the cluster is listed by [`needed_secrets`], and looked
//! up by whoever gathers the inputs. Equal inputs give equal bytes.

mod auth_server;
mod authz;
mod backend;
mod config_map;
mod error;
mod external_auth;
mod header_forward;
mod middleware;
mod oidc;
mod on_behalf_of;
mod permission_profile;
mod rate_limit;
mod scaling;
mod secrets;
mod telemetry;
mod tools;
mod validate;
mod webhooks;

#[cfg(test)]
mod tests;

use skep_api::config::run_config::{AuditConfig, EmbeddedAuthServerConfig, RunConfig};

pub use self::authz::{check_policies, inline as inline_policies};
pub use self::config_map::{checksum, config_map, inline_authz};
pub use self::error::{AuthServerReference, BuildError};
pub use self::middleware::chain;
pub use self::secrets::{Need, NeededSecret, needed_secrets};
use super::{Inputs, Target};

/// The RunConfig of a workload.
pub fn build(inputs: &Inputs<'_>) -> Result<RunConfig, BuildError> {
    let create = |cause| BuildError::Create { kind: inputs.kind(), cause };
    let mut config = backend::describe(inputs).map_err(create)?;
    config.oidc_config = oidc::resolve(inputs).map_err(create)?;
    if let Some(server) = auth_server::find(inputs).map_err(create)? {
        let terminal = |violation| BuildError::EmbeddedAuthServer { reference: server.reference, violation };
        let built = auth_server::build(inputs, server.object, config.oidc_config.as_ref()).map_err(terminal)?;
        advertise_scopes(&mut config, &built);
        config.embedded_auth_server_config = Some(built);
    }
    fill(inputs, &mut config).map_err(create)?;
    validate::check(inputs.target, &config).map_err(BuildError::Invalid)?;
    Ok(config)
}

/// Everything that does not have to do with signing in.
fn fill(inputs: &Inputs<'_>, config: &mut RunConfig) -> Result<(), String> {
    let common = &inputs.common;
    if let Some(oidc) = &config.oidc_config {
        config.thv_ca_bundle.clone_from(&oidc.ca_cert_path);
        config.jwks_auth_token_file.clone_from(&oidc.auth_token_file);
    }
    config.authz_config = authz::document(inputs)?;
    config.audit_config = common.audit.is_some_and(|audit| audit.enabled).then(AuditConfig::standard);
    config.telemetry_config = telemetry::config(inputs)?;
    config.trust_proxy_headers = common.trust_proxy_headers;
    config.endpoint_prefix = text(common.endpoint_prefix);
    // The rate limiter counts where the sessions are, so this comes before the chain.
    config.scaling_config = scaling::config(inputs)?;
    tools::show(inputs, config)?;
    external_auth::add(inputs, config)?;
    if let Target::Server(spec) = inputs.target {
        webhooks::add(inputs, spec, config)?;
        rate_limit::add(inputs, spec, config)?;
    }
    config.middleware_configs =
        middleware::chain(config).map_err(|cause| format!("failed to populate middleware configs: {cause}"))?;
    Ok(())
}

/// A workload that names no scopes tells its clients to ask for those that its own auth server knows.
fn advertise_scopes(config: &mut RunConfig, server: &EmbeddedAuthServerConfig) {
    if let Some(oidc) = &mut config.oidc_config
        && oidc.scopes.is_none()
    {
        oidc.scopes = Some(auth_server::supported_scopes(&server.scopes_supported));
    }
}

/// The object that a reference names. One that is named and not given is an error: a policy must never be left out
/// because it could not be read.
fn named<'a, T>(kind: &str, reference: Option<&str>, object: Option<&'a T>) -> Result<Option<&'a T>, String> {
    match (reference, object) {
        (None, _) => Ok(None),
        (Some(_), Some(object)) => Ok(Some(object)),
        (Some(name), None) => Err(format!("{kind} {name} is not there; create it, or remove the reference to it")),
    }
}

/// The text of an optional member; in these documents the empty text stands for none.
fn text(member: Option<&str>) -> String {
    member.unwrap_or_default().to_owned()
}
