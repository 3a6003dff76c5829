//! Advice: conditions that tell about a workload and never stop it.

use skep_api::conditions::{Statement, reasons, types};
use skep_api::kinds::mcp_external_auth_config::ExternalAuthType;
use skep_api::kinds::mcp_group::MCPGroupPhase;
use skep_api::kinds::session_storage::SessionProvider;
use skep_api::kinds::{MCPGroup, MCPOIDCConfig};
use skep_api::names::ca_bundle;
use skep_control::Key;

use super::Common;
use super::report::Report;
use crate::cluster::{Cluster, Seen};

/// Whether the group exists and is ready.
pub fn group(cluster: &Cluster, common: Common<'_>, report: &mut Report) {
    let Some(name) = common.group_ref else { return };
    let type_ = types::GROUP_REF_VALIDATED;
    let missing = || {
        let text = format!("MCPGroup '{name}' not found in namespace '{}'", common.namespace);
        Statement::fails(type_, reasons::GROUP_REF_NOT_FOUND, text)
    };
    let statement = match cluster.get::<MCPGroup>(&Key::new(common.namespace, name)).as_deref() {
        None | Some(Seen::Unreadable(_)) => missing(),
        Some(Seen::Read(group)) if group.metadata.deletion_timestamp.is_some() => {
            Statement::fails(type_, reasons::GROUP_REF_NOT_FOUND, "Referenced MCPGroup is being deleted")
        }
        Some(Seen::Read(group)) => match group.status.as_ref().map(|status| status.phase).unwrap_or_default() {
            MCPGroupPhase::Ready => {
                let text = format!("MCPGroup '{name}' is valid and ready");
                Statement::holds(type_, reasons::GROUP_REF_IS_VALID, text)
            }
            phase => {
                let text = format!("MCPGroup '{name}' is not ready (current phase: {phase:?})");
                Statement::fails(type_, reasons::GROUP_REF_NOT_READY, text)
            }
        },
    };
    report.say(statement);
}

/// A policy option that has no effect on this kind.
pub fn primary_upstream(common: Common<'_>, kind: &str, report: &mut Report) {
    let inline = common.authz_config.and_then(|authz| authz.inline.as_ref());
    let provider = inline.and_then(|inline| inline.primary_upstream_provider.as_deref());
    if let Some(provider) = provider.filter(|provider| !provider.is_empty()) {
        let text = format!(
            "spec.authzConfig.inline.primaryUpstreamProvider=\"{provider}\" has no effect on {kind}; the field only takes \
             effect on VirtualMCPServer with an embedded auth server"
        );
        let type_ = types::AUTHZ_PRIMARY_UPSTREAM_PROVIDER_IGNORED;
        report.say(Statement::holds(type_, reasons::PRIMARY_UPSTREAM_PROVIDER_IGNORED, text));
    }
}

/// Credentials that servers of this kind are never shown. Nobody is to believe that they are.
pub fn without_effect(config: &str, type_: ExternalAuthType, kind: &str, is_remote: bool) -> Option<Statement> {
    let (name, instead) = match type_ {
        ExternalAuthType::HeaderInjection if is_remote => {
            ("headerInjection", "set the header with spec.headerForward.addHeadersFromSecret")
        }
        ExternalAuthType::HeaderInjection => {
            ("headerInjection", "give the server what it needs with spec.secrets, or put it behind a VirtualMCPServer")
        }
        ExternalAuthType::BearerToken if !is_remote => {
            ("bearerToken", "give the server its token with spec.secrets; only an MCPRemoteProxy sends one")
        }
        ExternalAuthType::UpstreamInject => ("upstreamInject", "put the server behind a VirtualMCPServer"),
        ExternalAuthType::Xaa => ("xaa", "put the server behind a VirtualMCPServer"),
        ExternalAuthType::Unauthenticated => ("unauthenticated", "nothing is added without it, either"),
        ExternalAuthType::BearerToken
        | ExternalAuthType::TokenExchange
        | ExternalAuthType::EmbeddedAuthServer
        | ExternalAuthType::AwsSts
        | ExternalAuthType::Obo => return None,
    };
    let text = format!(
        "MCPExternalAuthConfig '{config}' is of type {name}, which has no effect on {kind}: {instead}; remove \
         spec.externalAuthConfigRef"
    );
    let type_ = types::EXTERNAL_AUTH_CONFIG_VALIDATED;
    Some(Statement::holds(type_, reasons::EXTERNAL_AUTH_CONFIG_HAS_NO_EFFECT, text))
}

/// Whether sessions are shared between replicas.
pub fn session_storage(common: Common<'_>, report: &mut Report) {
    let type_ = types::SESSION_STORAGE_WARNING;
    let is_redis = common.session_storage.is_some_and(|storage| storage.provider == SessionProvider::Redis);
    report.say(match (common.replicas.unwrap_or_default() > 1, is_redis) {
        (false, _) => Statement::fails(
            type_,
            reasons::SESSION_STORAGE_WARNING_NOT_APPLICABLE,
            "session storage warning is not active",
        ),
        (true, true) => {
            Statement::fails(type_, reasons::SESSION_STORAGE_CONFIGURED, "Redis session storage is configured")
        }
        (true, false) => Statement::holds(
            type_,
            reasons::SESSION_STORAGE_MISSING_FOR_REPLICAS,
            "replicas > 1 but sessionStorage.provider is not redis; sessions are not shared across replicas",
        ),
    });
}

/// Whether the certificates of the identity provider are there. `keys` are those of the ConfigMap, if it exists.
pub fn ca_bundle(config: &MCPOIDCConfig, namespace: &str, keys: Option<&[String]>) -> Option<Statement> {
    let reference = config.spec.inline.as_ref()?.ca_bundle_ref.as_ref()?;
    let type_ = types::CA_BUNDLE_REF_VALIDATED;
    let bundle = match crate::ca_bundle::check(reference) {
        Ok(bundle) => bundle,
        Err(text) => return Some(Statement::fails(type_, reasons::CA_BUNDLE_REF_INVALID, text)),
    };
    let (name, key) = (&bundle.name, ca_bundle::key_or_default(&bundle.key));
    Some(match keys {
        None => {
            let text = format!("CA bundle ConfigMap '{name}' not found in namespace '{namespace}'");
            Statement::fails(type_, reasons::CA_BUNDLE_REF_NOT_FOUND, text)
        }
        Some(keys) if keys.iter().any(|found| found == key) => {
            let text = format!("CA bundle ConfigMap '{name}' is valid (key: {key})");
            Statement::holds(type_, reasons::CA_BUNDLE_REF_VALID, text)
        }
        Some(_) => {
            let text = format!("Key '{key}' not found in ConfigMap '{name}'");
            Statement::fails(type_, reasons::CA_BUNDLE_REF_INVALID, text)
        }
    })
}
