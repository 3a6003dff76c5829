//! What is wrong with the spec of an MCPRemoteProxy, and with what it names.

use k8s_openapi::api::core::v1::Secret;
use skep_api::conditions::reasons;
use skep_api::config::run_config::{AuthzConfig, AuthzType};
use skep_api::kinds::{MCPExternalAuthConfig, MCPRemoteProxy};
use skep_control::Key;

use super::address;
use crate::cluster::{Cluster, OwnKind, Seen, Written};
use crate::config::authz::first_unreadable;
use crate::failure::Failure;
use crate::object_names;
use crate::proxy::Proxied as _;
use crate::proxy::gather::{self, Lacking};
use crate::proxy::run_config;

/// Something that only a person can correct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The reason of the condition and of the event.
    pub reason: &'static str,
    pub text: String,
    /// Whether a change of what is wrong is noticed.
    pub is_watched: bool,
}

/// The first thing that is wrong, in the order of the contract.
pub async fn validate(cluster: &Cluster, proxy: &MCPRemoteProxy) -> Result<Result<(), Wrong>, Failure> {
    if let Err(wrong) = names(proxy) {
        return Ok(Err(wrong));
    }
    if let Some(wrong) = external_auth(cluster, proxy).await? {
        return Ok(Err(wrong));
    }
    if let Err(wrong) = own(proxy).and_then(|()| inline_policies(proxy)) {
        return Ok(Err(wrong));
    }
    if let Some(wrong) = policies(cluster, proxy).await? {
        return Ok(Err(wrong));
    }
    Ok(header_secrets(cluster, proxy).await?.map_or(Ok(()), Err))
}

/// Whether objects can be called what the spec calls them. Without that there is nothing to look for.
fn names(proxy: &MCPRemoteProxy) -> Result<(), Wrong> {
    let wrong = |text| Wrong { reason: reasons::INVALID_SPEC, text: format!("spec.{text}"), is_watched: true };
    object_names::check(&proxy.spec).map_err(wrong)
}

async fn external_auth(cluster: &Cluster, proxy: &MCPRemoteProxy) -> Result<Option<Wrong>, Failure> {
    let common = proxy.common();
    let Some(name) = common.external_auth_config_ref else { return Ok(None) };
    let cause = match cluster.get::<MCPExternalAuthConfig>(&Key::new(common.namespace, name)).as_deref() {
        Some(Seen::Read(_)) => return Ok(None),
        Some(Seen::Unreadable(object)) => format!("it cannot be read: {}", object.cause),
        // One that no watch has told of yet is waited for when it is needed.
        None if exists::<MCPExternalAuthConfig>(cluster, common.namespace, name).await? => return Ok(None),
        None => format!("it does not exist in namespace {}", common.namespace),
    };
    let text = format!("failed to validate external auth config: failed to get MCPExternalAuthConfig {name}: {cause}");
    Ok(Some(Wrong { reason: reasons::EXTERNAL_AUTH_CONFIG_FETCH_ERROR, text, is_watched: true }))
}

async fn exists<K: OwnKind>(cluster: &Cluster, namespace: &str, name: &str) -> Result<bool, Failure> {
    Ok(gather::named::<Written<K>>(&cluster.client, namespace, name).await?.is_some())
}

fn own(proxy: &MCPRemoteProxy) -> Result<(), Wrong> {
    let spec = &proxy.spec;
    address::check(&spec.remote_url, spec.allow_private_endpoint).map_err(|text| Wrong {
        reason: reasons::REMOTE_URL_INVALID,
        text,
        is_watched: true,
    })
}

fn inline_policies(proxy: &MCPRemoteProxy) -> Result<(), Wrong> {
    let Some(inline) = proxy.common().authz_config.and_then(run_config::inline_policies) else { return Ok(()) };
    match first_unreadable(&inline.policies) {
        None => Ok(()),
        Some((index, cause)) => {
            let text = format!("cedar policy at index {index} has invalid syntax: {cause}");
            Err(Wrong { reason: reasons::AUTHZ_POLICY_SYNTAX_INVALID, text, is_watched: true })
        }
    }
}

async fn policies(cluster: &Cluster, proxy: &MCPRemoteProxy) -> Result<Option<Wrong>, Failure> {
    let common = proxy.common();
    match gather::document_of(&cluster.client, common).await {
        Ok(None) => Ok(None),
        Ok(Some(document)) => Ok(check(&document).err().map(|cause| {
            let map = common.authz_config.and_then(|authz| authz.config_map.as_ref());
            let name = map.map(|map| map.name.as_str()).unwrap_or_default();
            let text = format!("authorization ConfigMap \"{name}\" is invalid: {cause}");
            Wrong { reason: reasons::AUTHZ_CONFIG_MAP_INVALID, text, is_watched: true }
        })),
        Err(Lacking::Failure(failure)) => Err(failure),
        Err(Lacking::Content(text)) => {
            let is_missing = text.contains("not found in namespace");
            let reason =
                if is_missing { reasons::AUTHZ_CONFIG_MAP_NOT_FOUND } else { reasons::AUTHZ_CONFIG_MAP_INVALID };
            Ok(Some(Wrong { reason, text, is_watched: true }))
        }
    }
}

/// In front of a server somewhere else, only Cedar decides.
fn check(document: &AuthzConfig) -> Result<(), String> {
    match document.authorizer() {
        AuthzType::Cedar => run_config::check_policies(document),
        other => Err(format!("type {:?} is not {:?}", other.as_str(), AuthzType::Cedar.as_str())),
    }
}

async fn header_secrets(cluster: &Cluster, proxy: &MCPRemoteProxy) -> Result<Option<Wrong>, Failure> {
    let namespace = proxy.common().namespace;
    let headers = proxy.spec.header_forward.iter().flat_map(|forward| &forward.add_headers_from_secret);
    for header in headers {
        let (secret, name) = (&header.value_secret_ref.name, &header.header_name);
        if gather::named::<Secret>(&cluster.client, namespace, secret).await?.is_none() {
            let text =
                format!("secret \"{secret}\" referenced for header \"{name}\" not found in namespace \"{namespace}\"");
            return Ok(Some(Wrong { reason: reasons::HEADER_SECRET_NOT_FOUND, text, is_watched: false }));
        }
    }
    Ok(None)
}
