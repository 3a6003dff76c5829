//! The authorization server that a proxy carries.
//!
//! The object itself is valid, see [`Resolved`](crate::proxy::Resolved); what is refused here does not go with the
//! workload, or cannot be translated.

mod clients;
mod storage;
mod upstream;

use skep_api::config::run_config::{
    CimdConfig, EmbeddedAuthServerConfig, OidcConfig, SigningKeyConfig, TokenLifespans,
};
use skep_api::duration::DurationText;
use skep_api::kind::Kind as _;
use skep_api::kinds::MCPExternalAuthConfig;
use skep_api::kinds::auth_server::clients::ClientMetadataDocuments;
use skep_api::kinds::auth_server::{self as kind, EmbeddedAuthServer};
use skep_api::kinds::mcp_external_auth_config::ExternalAuthType;
use skep_api::names::auth_server;

use super::error::AuthServerReference;
use super::{external_auth, named, text};
use crate::proxy::Inputs;

/// The object that describes the auth server of a workload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<'a> {
    pub reference: AuthServerReference,
    pub object: &'a MCPExternalAuthConfig,
}

/// The auth server of a workload, if it has one. Two are one too many.
pub(super) fn find<'a>(inputs: &Inputs<'a>) -> Result<Option<Found<'a>>, String> {
    let reference = inputs.common.auth_server_ref.map(|reference| reference.name.as_str());
    let own = named(MCPExternalAuthConfig::DEFINITION.kind, reference, inputs.resolved.auth_server.as_ref())?;
    let outgoing =
        external_auth::find(inputs)?.filter(|object| object.spec.type_ == ExternalAuthType::EmbeddedAuthServer);
    match (own, outgoing) {
        (Some(_), Some(_)) => Err("conflict: both authServerRef and externalAuthConfigRef reference an embedded auth \
                                   server; use authServerRef for the embedded auth server and externalAuthConfigRef \
                                   for outgoing auth only"
            .to_owned()),
        (Some(object), None) => Ok(Some(Found { reference: AuthServerReference::AuthServerRef, object })),
        (None, Some(object)) => Ok(Some(Found { reference: AuthServerReference::ExternalAuthConfigRef, object })),
        (None, None) => Ok(None),
    }
}

/// What a workload and its auth server have settled about tokens.
#[derive(Clone, Copy, Debug)]
struct Terms<'a> {
    /// The one resource that tokens are issued for.
    resource: &'a str,
    /// The scopes that clients can ask for.
    scopes: &'a [String],
}

/// The scopes of a server that was told these; none means the common ones.
pub(super) fn supported_scopes(told: &[String]) -> Vec<String> {
    if told.is_empty() { EmbeddedAuthServerConfig::DEFAULT_SCOPES.map(ToOwned::to_owned).into() } else { told.to_vec() }
}

/// The auth server in the words of the document, or what the workload's author has to change.
pub(super) fn build(
    inputs: &Inputs<'_>,
    object: &MCPExternalAuthConfig,
    oidc: Option<&OidcConfig>,
) -> Result<EmbeddedAuthServerConfig, String> {
    // The kind is MCPServer in this text on both kinds: that is what the contract says.
    let oidc =
        oidc.ok_or("OIDC config is required for embedded auth server: OIDCConfigRef must be set on the MCPServer")?;
    let (audience, resource) = (&oidc.audience, &oidc.resource_url);
    if audience != resource {
        return Err(format!(
            "oidcConfigRef.audience {audience:?} must match resourceUrl {resource:?} when an embedded auth server is \
             active; set audience to {resource:?} or set resourceUrl to match audience"
        ));
    }
    let told = oidc.scopes.clone().unwrap_or_default();
    let scopes = supported_scopes(&told);
    let terms = Terms { resource, scopes: &scopes };
    external_auth::present("embeddedAuthServer", object.spec.embedded_auth_server.as_ref())
        .and_then(|server| translate(inputs, server, &terms))
        .map(|server| EmbeddedAuthServerConfig { scopes_supported: told, ..server })
        .map_err(|cause| format!("failed to build embedded auth server config: {cause}"))
}

fn translate(
    inputs: &Inputs<'_>,
    server: &EmbeddedAuthServer,
    terms: &Terms<'_>,
) -> Result<EmbeddedAuthServerConfig, String> {
    if let Some(scope) = server.baseline_client_scopes.iter().find(|scope| !terms.scopes.contains(scope)) {
        return Err(unsupported_scope("baselineClientScopes", scope, terms));
    }
    Ok(EmbeddedAuthServerConfig {
        allow_confidential_client_registration: server.allow_confidential_client_registration,
        allowed_audiences: Some(vec![terms.resource.to_owned()]),
        authorization_endpoint_base_url: text(server.authorization_endpoint_base_url.as_deref()),
        baseline_client_scopes: server.baseline_client_scopes.clone(),
        cimd: server.cimd.as_ref().filter(|documents| documents.enabled).map(metadata_documents),
        delegate_clients: clients::delegates(&server.delegate_clients, terms)?,
        disable_upstream_token_injection: server.disable_upstream_token_injection,
        force_confidential_redirect_uris: server.force_confidential_redirect_uris.clone(),
        hmac_secret_files: (0..server.hmac_secret_refs.len()).map(auth_server::hmac_file).collect(),
        insecure_allow_confidential_over_loopback_http: server.insecure_allow_confidential_over_loopback_http,
        insecure_allow_http: server.insecure_allow_http,
        issuer: server.issuer.clone(),
        schema_version: EmbeddedAuthServerConfig::SCHEMA_VERSION.to_owned(),
        signing_key_config: signing_keys(server.signing_key_secret_refs.len()),
        storage: server.storage.as_ref().map(|storage| storage::translate(inputs, storage)).transpose()?.flatten(),
        token_lifespans: server.token_lifespans.as_ref().and_then(lifespans),
        trusted_issuers: clients::trusted_issuers(&server.trusted_issuers, terms)?,
        upstreams: Some(upstream::translate(&server.upstream_providers, terms.resource)?),
        ..EmbeddedAuthServerConfig::default()
    })
}

fn unsupported_scope(field: &str, scope: &str, terms: &Terms<'_>) -> String {
    format!("{field}: scope {scope:?} is not among those of oidcConfigRef.scopes: {}", terms.scopes.join(", "))
}

fn metadata_documents(documents: &ClientMetadataDocuments) -> CimdConfig {
    CimdConfig {
        cache_fallback_ttl: duration(documents.cache_fallback_ttl.as_ref()),
        cache_max_size: documents.cache_max_size.unwrap_or_default(),
        enabled: true,
        ..CimdConfig::default()
    }
}

/// The first key signs, the others only verify.
fn signing_keys(count: usize) -> Option<SigningKeyConfig> {
    (count > 0).then(|| SigningKeyConfig {
        fallback_key_files: (1..count).map(auth_server::signing_key_name).collect(),
        key_dir: auth_server::KEY_DIRECTORY.to_owned(),
        signing_key_file: auth_server::signing_key_name(0),
        ..SigningKeyConfig::default()
    })
}

fn lifespans(lifespans: &kind::TokenLifespans) -> Option<TokenLifespans> {
    let lifespans = TokenLifespans {
        access_token_lifespan: duration(lifespans.access_token_lifespan.as_ref()),
        auth_code_lifespan: duration(lifespans.auth_code_lifespan.as_ref()),
        refresh_token_lifespan: duration(lifespans.refresh_token_lifespan.as_ref()),
        ..TokenLifespans::default()
    };
    (lifespans != TokenLifespans::default()).then_some(lifespans)
}

fn duration(member: Option<&DurationText>) -> DurationText {
    member.cloned().unwrap_or_default()
}
