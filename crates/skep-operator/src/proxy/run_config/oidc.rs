//! How the tokens of clients are checked.

use skep_api::config::run_config::OidcConfig;
use skep_api::kind::Kind as _;
use skep_api::kinds::MCPOIDCConfig;
use skep_api::kinds::mcp_oidc_config::{InlineOIDC, KubernetesServiceAccountOIDC, MCPOIDCConfigSpec, OIDCSource};
use skep_api::kinds::references::OIDCConfigRef;
use skep_api::names::{ca_bundle as bundle_names, default_resource_url, service_account_files};

use super::{named, text};
use crate::ca_bundle;
use crate::proxy::Inputs;

/// What the object says about the issuer, and what the reference says about this workload.
pub(super) fn resolve(inputs: &Inputs<'_>) -> Result<Option<OidcConfig>, String> {
    let reference = inputs.common.oidc_config_ref;
    let name = reference.map(|reference| reference.name.as_str());
    let object = named(MCPOIDCConfig::DEFINITION.kind, name, inputs.resolved.oidc.as_ref())?;
    let (Some(reference), Some(object)) = (reference, object) else { return Ok(None) };
    let issuer =
        issuer(&object.spec).map_err(|cause| format!("failed to resolve OIDC config from MCPOIDCConfig: {cause}"))?;
    Ok(Some(OidcConfig {
        audience: reference.audience.clone(),
        resource_url: resource_url(inputs, reference),
        scopes: (!reference.scopes.is_empty()).then(|| reference.scopes.clone()),
        ..issuer
    }))
}

fn resource_url(inputs: &Inputs<'_>, reference: &OIDCConfigRef) -> String {
    let common = &inputs.common;
    let given = reference.resource_url.as_deref().filter(|url| !url.is_empty());
    given.map_or_else(
        || {
            let service = inputs.service_name();
            default_resource_url(&service, common.name, common.namespace, common.proxy_port, &reference.audience)
        },
        ToOwned::to_owned,
    )
}

fn issuer(spec: &MCPOIDCConfigSpec) -> Result<OidcConfig, String> {
    match (spec.type_, &spec.inline, &spec.kubernetes_service_account) {
        (OIDCSource::Inline, Some(provider), _) => inline(provider),
        (OIDCSource::Inline, None, _) => {
            Err("inline configuration must be set if and only if type is 'inline'".to_owned())
        }
        (OIDCSource::KubernetesServiceAccount, _, Some(cluster)) => Ok(service_account(cluster)),
        (OIDCSource::KubernetesServiceAccount, _, None) => {
            Ok(service_account(&KubernetesServiceAccountOIDC::default()))
        }
    }
}

fn inline(provider: &InlineOIDC) -> Result<OidcConfig, String> {
    let ca_cert_path = match &provider.ca_bundle_ref {
        None => String::new(),
        Some(bundle) => {
            let selector = ca_bundle::check(bundle)?;
            bundle_names::oidc_file(&selector.name, &selector.key)
        }
    };
    Ok(OidcConfig {
        allow_private_ip: provider.jwks_allow_private_ip || provider.protected_resource_allow_private_ip,
        auth_token_file: text(provider.jwks_auth_token_path.as_deref()),
        ca_cert_path,
        client_id: text(provider.client_id.as_deref()),
        insecure_allow_http: provider.insecure_allow_http,
        introspection_url: text(provider.introspection_url.as_deref()),
        issuer: provider.issuer.clone(),
        jwks_url: text(provider.jwks_url.as_deref()),
        ..OidcConfig::default()
    })
}

fn service_account(cluster: &KubernetesServiceAccountOIDC) -> OidcConfig {
    let issuer = if cluster.issuer.is_empty() { service_account_files::DEFAULT_ISSUER } else { &cluster.issuer };
    let config = OidcConfig {
        introspection_url: text(cluster.introspection_url.as_deref()),
        issuer: issuer.to_owned(),
        jwks_url: text(cluster.jwks_url.as_deref()),
        ..OidcConfig::default()
    };
    if !cluster.use_cluster_auth.unwrap_or(true) {
        return config;
    }
    OidcConfig {
        allow_private_ip: true,
        auth_token_file: service_account_files::TOKEN_FILE.to_owned(),
        ca_cert_path: service_account_files::CA_FILE.to_owned(),
        ..config
    }
}
