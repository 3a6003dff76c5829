//! What has to be asked of the API server: ConfigMaps and Secrets of users, which are not watched in full or not at all.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client};
use serde_json::Value;
use skep_api::conditions::types;
use skep_api::config::run_config::AuthzConfig as AuthzDocument;
use skep_api::kinds::authz::{AuthzConfigMap, AuthzSource};
use skep_api::names::proxy_pod;

use super::report::Report;
use super::{Common, Resolved, checks};
use crate::failure::Failure;

/// Why a workload cannot be built yet.
#[derive(Debug, thiserror::Error)]
pub enum Lacking {
    /// Something that a person has to create or correct; it is looked for again.
    #[error("{0}")]
    Content(String),
    #[error(transparent)]
    Failure(#[from] Failure),
}

impl From<kube::Error> for Lacking {
    fn from(error: kube::Error) -> Self {
        Self::Failure(error.into())
    }
}

/// Adds to what is resolved: the policies in a ConfigMap, whether the client secret exists, and what is to say about
/// certificates.
pub async fn gather(
    client: &Client,
    common: Common<'_>,
    resolved: &mut Resolved,
    report: &mut Report,
) -> Result<(), Lacking> {
    let Some(config) = &resolved.oidc else {
        if common.oidc_config_ref.is_some() {
            report.keep(types::CA_BUNDLE_REF_VALIDATED);
        }
        return policies(client, common, resolved).await;
    };
    if let Some(inline) = &config.spec.inline {
        let bundle = inline.ca_bundle_ref.as_ref().and_then(|bundle| bundle.config_map_ref.as_ref());
        let keys = match bundle.filter(|bundle| !bundle.name.is_empty()) {
            Some(bundle) => config_map(client, common.namespace, &bundle.name).await?.map(|found| keys(&found)),
            None => None,
        };
        if let Some(statement) = checks::ca_bundle(config, common.namespace, keys.as_deref()) {
            report.say(statement);
        }
        if let Some(secret) = &inline.client_secret_ref {
            resolved.oidc_client_secret =
                has_key(client, common.namespace, &secret.name, &secret.key).await? == HasKey::Yes;
        }
    }
    policies(client, common, resolved).await
}

async fn policies(client: &Client, common: Common<'_>, resolved: &mut Resolved) -> Result<(), Lacking> {
    resolved.authz_document = document_of(client, common).await?;
    Ok(())
}

/// The policies in the ConfigMap that `spec.authzConfig` names, if it names one.
pub async fn document_of(client: &Client, common: Common<'_>) -> Result<Option<AuthzDocument>, Lacking> {
    let authz = common.authz_config.filter(|authz| authz.type_ == AuthzSource::ConfigMap);
    let Some(reference) = authz.and_then(|authz| authz.config_map.as_ref()) else { return Ok(None) };
    let found = config_map(client, common.namespace, &reference.name).await?;
    document(found.as_ref(), reference, common.namespace).map(Some).map_err(Lacking::Content)
}

/// The policies in a ConfigMap, written as YAML or JSON.
fn document(found: Option<&ConfigMap>, reference: &AuthzConfigMap, namespace: &str) -> Result<AuthzDocument, String> {
    let name = &reference.name;
    let key = if reference.key.is_empty() { proxy_pod::AUTHZ_KEY } else { &reference.key };
    let Some(found) = found else {
        return Err(format!("authorization ConfigMap \"{name}\" not found in namespace \"{namespace}\""));
    };
    let invalid = |cause: String| format!("authorization ConfigMap \"{name}\" is invalid: {cause}");
    let text = found.data.as_ref().and_then(|data| data.get(key));
    let text = text.ok_or_else(|| invalid(format!("key \"{key}\" is missing")))?;
    if text.trim().is_empty() {
        return Err(invalid(format!("key \"{key}\" is empty")));
    }
    let parsed: Value =
        serde_saphyr::from_str(text).map_err(|error| invalid(format!("key \"{key}\": {}", first_line(&error))))?;
    let Value::Object(document) = parsed else { return Err(invalid(format!("key \"{key}\" is not an object"))) };
    Ok(AuthzDocument(document))
}

/// What is wrong and where, without a drawing of it.
fn first_line(error: &serde_saphyr::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

async fn config_map(client: &Client, namespace: &str, name: &str) -> Result<Option<ConfigMap>, kube::Error> {
    Api::<ConfigMap>::namespaced(client.clone(), namespace).get_opt(name).await
}

fn keys(found: &ConfigMap) -> Vec<String> {
    found.data.iter().flatten().map(|(key, _)| key.clone()).collect()
}

/// Whether a Secret has a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HasKey {
    Yes,
    NoKey,
    NoSecret,
}

/// Looks for a key of a Secret. The value is dropped at once.
pub async fn has_key(client: &Client, namespace: &str, name: &str, key: &str) -> Result<HasKey, kube::Error> {
    let found = Api::<Secret>::namespaced(client.clone(), namespace).get_opt(name).await?;
    Ok(match found.map(|secret| secret.data.unwrap_or_default()) {
        None => HasKey::NoSecret,
        Some(data) if data.contains_key(key) => HasKey::Yes,
        Some(_) => HasKey::NoKey,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn policies_are_yaml_or_json() {
        let reference = AuthzConfigMap { name: "p".to_owned(), key: String::new() };
        let map = |text: &str| serde_json::from_value::<ConfigMap>(json!({"data": {"authz.json": text}})).unwrap();
        let read = |text: &str| document(Some(&map(text)), &reference, "ns");
        let cedar =
            r#"{"version": "1.0", "type": "cedarv1", "cedar": {"policies": ["permit(principal, action, resource);"]}}"#;
        let yaml = "version: '1.0'\ntype: cedarv1\ncedar:\n  policies: ['permit(principal, action, resource);']\n";
        assert_eq!(read(cedar).unwrap(), read(yaml).unwrap());
        assert_eq!(read(" ").unwrap_err(), "authorization ConfigMap \"p\" is invalid: key \"authz.json\" is empty");
        assert!(read("[1]").unwrap_err().contains("not an object"));
        assert!(read("{").unwrap_err().contains("authz.json"));
        let missing = document(None, &reference, "ns").unwrap_err();
        assert_eq!(missing, "authorization ConfigMap \"p\" not found in namespace \"ns\"");
    }
}
