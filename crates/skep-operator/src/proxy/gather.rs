//! What has to be asked of the API server: ConfigMaps and Secrets of users, which are not watched in full or not at all.

use std::fmt;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use skep_api::conditions::types;
use skep_api::config::run_config::{AuthzConfig as AuthzDocument, PermissionProfile};
use skep_api::kinds::authz::{AuthzConfigMap, AuthzSource};
use skep_api::kinds::mcp_server::PermissionProfileSource;
use skep_api::names::proxy_pod;

use super::report::Report;
use super::{Common, Inputs, Resolved, Target, checks};
use crate::failure::Failure;
use crate::object_names::is_name;

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

/// Adds to what is resolved: policies and a permission profile in ConfigMaps, whether the client secret exists, and what is
/// to say about certificates.
pub async fn gather(
    client: &Client,
    inputs: &Inputs<'_>,
    resolved: &mut Resolved,
    report: &mut Report,
) -> Result<(), Lacking> {
    let common = inputs.common;
    identity_provider(client, common, resolved, report).await?;
    resolved.permission_profile = permission_profile(client, inputs).await?;
    resolved.authz_document = document_of(client, common).await?;
    Ok(())
}

/// Certificates and client secret of the identity provider.
async fn identity_provider(
    client: &Client,
    common: Common<'_>,
    resolved: &mut Resolved,
    report: &mut Report,
) -> Result<(), Lacking> {
    let Some(config) = &resolved.oidc else { return Ok(()) };
    // It may name certificates no more.
    report.clear(types::CA_BUNDLE_REF_VALIDATED, None);
    if let Some(inline) = &config.spec.inline {
        let bundle = inline.ca_bundle_ref.as_ref().and_then(|bundle| bundle.config_map_ref.as_ref());
        let keys = match bundle.filter(|bundle| !bundle.name.is_empty()) {
            Some(bundle) => named(client, common.namespace, &bundle.name).await?.map(|found| keys(&found)),
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
    Ok(())
}

/// The profile in a ConfigMap, where it is enforced.
async fn permission_profile(client: &Client, inputs: &Inputs<'_>) -> Result<Option<PermissionProfile>, Lacking> {
    let Target::Server(spec) = inputs.target else { return Ok(None) };
    let profile = spec.permission_profile.as_ref().filter(|_| inputs.settings.enforce_network_profiles);
    let Some(profile) = profile.filter(|profile| profile.type_ == PermissionProfileSource::ConfigMap) else {
        return Ok(None);
    };
    let found = named::<ConfigMap>(client, inputs.common.namespace, &profile.name).await?;
    let source = Source {
        what: "permission profile",
        name: &profile.name,
        key: profile.key.as_deref().unwrap_or_default(),
        namespace: inputs.common.namespace,
    };
    let document = source.document(found.as_ref()).map_err(Lacking::Content)?;
    let read = serde_json::from_value(Value::Object(document));
    read.map(Some).map_err(|error| Lacking::Content(source.invalid(&error)))
}

/// The policies in the ConfigMap that `spec.authzConfig` names, if it names one.
pub async fn document_of(client: &Client, common: Common<'_>) -> Result<Option<AuthzDocument>, Lacking> {
    let authz = common.authz_config.filter(|authz| authz.type_ == AuthzSource::ConfigMap);
    let Some(reference) = authz.and_then(|authz| authz.config_map.as_ref()) else { return Ok(None) };
    let found = named::<ConfigMap>(client, common.namespace, &reference.name).await?;
    let document = authorization(reference, common.namespace).document(found.as_ref());
    document.map(|document| Some(AuthzDocument(document))).map_err(Lacking::Content)
}

fn authorization<'a>(reference: &'a AuthzConfigMap, namespace: &'a str) -> Source<'a> {
    Source { what: "authorization", name: &reference.name, key: authorization_key(reference), namespace }
}

/// The key of a ConfigMap with policies.
pub fn authorization_key(reference: &AuthzConfigMap) -> &str {
    if reference.key.is_empty() { proxy_pod::AUTHZ_KEY } else { &reference.key }
}

/// Where a document is that is written as YAML or JSON.
#[derive(Clone, Copy, Debug)]
struct Source<'a> {
    what: &'static str,
    name: &'a str,
    key: &'a str,
    namespace: &'a str,
}

impl Source<'_> {
    fn document(self, found: Option<&ConfigMap>) -> Result<Map<String, Value>, String> {
        let Self { what, name, key, namespace } = self;
        let Some(found) = found else {
            return Err(format!("{what} ConfigMap \"{name}\" not found in namespace \"{namespace}\""));
        };
        let text = found.data.as_ref().and_then(|data| data.get(key));
        let text = text.ok_or_else(|| self.invalid(&format!("key \"{key}\" is missing")))?;
        if text.trim().is_empty() {
            return Err(self.invalid(&format!("key \"{key}\" is empty")));
        }
        let parsed: Value = serde_saphyr::from_str(text)
            .map_err(|error| self.invalid(&format!("key \"{key}\": {}", first_line(&error))))?;
        let Value::Object(document) = parsed else {
            return Err(self.invalid(&format!("key \"{key}\" is not an object")));
        };
        Ok(document)
    }

    fn invalid(self, cause: &dyn fmt::Display) -> String {
        format!("{} ConfigMap \"{}\" is invalid: {cause}", self.what, self.name)
    }
}

/// What is wrong and where, without a drawing of it.
fn first_line(error: &serde_saphyr::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

/// An object that a user names. What is no name, nothing is called; and in a request it would mean something else.
pub async fn named<K>(client: &Client, namespace: &str, name: &str) -> Result<Option<K>, kube::Error>
where
    K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + fmt::Debug,
{
    if !is_name(name) {
        return Ok(None);
    }
    Api::<K>::namespaced(client.clone(), namespace).get_opt(name).await
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
    let found = named::<Secret>(client, namespace, name).await?;
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
    fn names_are_told_from_paths() {
        for name in ["a", "a-b.c", "0"] {
            assert!(is_name(name), "{name}");
        }
        for text in ["", "a ", "A", "-a", "a-", "a..b", "../x", "a/b", "a%2fb", "a?x=", &"a".repeat(254)] {
            assert!(!is_name(text), "{text}");
        }
    }

    #[test]
    fn policies_are_yaml_or_json() {
        let reference = AuthzConfigMap { name: "p".to_owned(), key: String::new() };
        let map = |text: &str| serde_json::from_value::<ConfigMap>(json!({"data": {"authz.json": text}})).unwrap();
        let source = authorization(&reference, "ns");
        let read = |text: &str| source.document(Some(&map(text)));
        let cedar =
            r#"{"version": "1.0", "type": "cedarv1", "cedar": {"policies": ["permit(principal, action, resource);"]}}"#;
        let yaml = "version: '1.0'\ntype: cedarv1\ncedar:\n  policies: ['permit(principal, action, resource);']\n";
        assert_eq!(read(cedar).unwrap(), read(yaml).unwrap());
        assert_eq!(read(" ").unwrap_err(), "authorization ConfigMap \"p\" is invalid: key \"authz.json\" is empty");
        assert!(read("[1]").unwrap_err().contains("not an object"));
        assert!(read("{").unwrap_err().contains("authz.json"));
        let missing = source.document(None).unwrap_err();
        assert_eq!(missing, "authorization ConfigMap \"p\" not found in namespace \"ns\"");
    }
}
