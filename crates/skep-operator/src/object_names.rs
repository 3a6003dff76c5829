//! Names of objects as manifests give them, looked at before anybody asks the API server for one of them.
//!
//! A name that no object can have must not get into a request: there it would be part of a path, and mean something else.

use serde::Serialize;
use serde_json::Value;
use skep_api::names::{LABEL_LIMIT, OBJECT_NAME_LIMIT};

const SECRET: &str = "Secret";

/// Members that hold the name of an object, or a list of such, and the kind of that object. Certificates are not here:
/// [`crate::ca_bundle`] has its own rules for their names. Nor are groups, which nothing depends on.
const MEMBERS: [(&str, &str); 12] = [
    ("authServerRef", "MCPExternalAuthConfig"),
    ("authzConfigRef", "MCPAuthzConfig"),
    ("configMap", "ConfigMap"),
    ("externalAuthConfigRef", "MCPExternalAuthConfig"),
    ("imagePullSecrets", SECRET),
    ("initialAccessTokenRef", SECRET),
    ("oidcConfigRef", "MCPOIDCConfig"),
    ("passwordRef", SECRET),
    ("secrets", SECRET),
    ("telemetryConfigRef", "MCPTelemetryConfig"),
    ("toolConfigRef", "MCPToolConfig"),
    ("webhookConfigRef", "MCPWebhookConfig"),
];
/// How other members end that name Secrets.
const SECRET_MEMBERS: [&str; 3] = ["SecretRef", "SecretRefs", "secretKeyRef"];
/// Members that are a name themselves. An empty one names nobody.
const SERVICE_ACCOUNT: &str = "serviceAccount";
/// Names a ConfigMap if its type says so.
const PERMISSION_PROFILE: &str = "permissionProfile";
/// Members whose content is not ours to understand.
const OPAQUE: [&str; 2] = ["config", "podTemplateSpec"];

/// Whether an object can have this name: that of a DNS subdomain.
pub(crate) fn is_name(text: &str) -> bool {
    text.len() <= OBJECT_NAME_LIMIT && text.split('.').all(is_word)
}

/// Whether a volume, a Service or a label value can be called this: a word of a DNS name.
pub(crate) fn is_label(text: &str) -> bool {
    text.len() <= LABEL_LIMIT && is_word(text)
}

fn is_word(text: &str) -> bool {
    let is_inner = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    !text.is_empty() && text.chars().all(is_inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// What is wrong with a name of an object of some kind.
pub(crate) fn check_name(name: &str, kind: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err(format!("is empty; name a {kind}, or remove the reference"));
    }
    if is_name(name) {
        return Ok(());
    }
    Err(format!(
        "{name:?} is no name of a {kind}; use at most {OBJECT_NAME_LIMIT} lower case letters, digits, hyphens and dots, \
         with a letter or digit at both ends"
    ))
}

/// The first name in a spec that no object can have, by its path below the spec.
pub(crate) fn check<T: Serialize>(spec: &T) -> Result<(), String> {
    let spec = serde_json::to_value(spec).map_err(|error| format!("cannot be written as JSON: {error}"))?;
    walk("", &spec)
}

fn walk(place: &str, value: &Value) -> Result<(), String> {
    match value {
        Value::Object(members) => members.iter().try_for_each(|(name, value)| {
            let place = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
            named(&place, name, value)?;
            if OPAQUE.contains(&name.as_str()) { Ok(()) } else { walk(&place, value) }
        }),
        Value::Array(items) => {
            items.iter().enumerate().try_for_each(|(index, item)| walk(&format!("{place}[{index}]"), item))
        }
        _ => Ok(()),
    }
}

/// Looks at what a member names, if it names anything.
fn named(place: &str, member: &str, value: &Value) -> Result<(), String> {
    if member == SERVICE_ACCOUNT {
        let name = value.as_str().filter(|name| !name.is_empty());
        return name
            .map_or(Ok(()), |name| check_name(name, "ServiceAccount"))
            .map_err(|cause| format!("{place} {cause}"));
    }
    let Some(kind) = kind_of(member, value) else { return Ok(()) };
    let one = |place: &str, reference: &Value| {
        let name = reference["name"].as_str().unwrap_or_default();
        // The list of pull secrets leaves out those without a name.
        if name.is_empty() && member == "imagePullSecrets" {
            return Ok(());
        }
        check_name(name, kind).map_err(|cause| format!("{place}.name {cause}"))
    };
    match value {
        Value::Object(_) => one(place, value),
        Value::Array(items) => {
            items.iter().enumerate().try_for_each(|(index, item)| one(&format!("{place}[{index}]"), item))
        }
        _ => Ok(()),
    }
}

/// The kind of what a member names.
fn kind_of(member: &str, value: &Value) -> Option<&'static str> {
    if member == PERMISSION_PROFILE {
        return (value["type"] == "configmap").then_some("ConfigMap");
    }
    if SECRET_MEMBERS.iter().any(|end| member.ends_with(end)) {
        return Some(SECRET);
    }
    MEMBERS.iter().find(|(name, _)| *name == member).map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use skep_api::kinds::mcp_external_auth_config::MCPExternalAuthConfigSpec;
    use skep_api::kinds::mcp_server::MCPServerSpec;

    use super::*;

    #[test]
    fn names_are_those_of_dns() {
        for name in ["a", "a-b", "0", "a.b-c.d", &"a".repeat(253)] {
            assert!(is_name(name), "{name}");
        }
        let long = "a".repeat(254);
        for name in
            ["", " ", "a ", "A", "-a", "a-", ".a", "a.", "a..b", "a.-b", "../a", "a/b", "a%2fb", "a?x=", "ä", &long]
        {
            assert!(!is_name(name), "{name}");
        }
        assert!(is_label(&"a".repeat(63)) && !is_label("a.b") && !is_label(&"a".repeat(64)));
    }

    #[test]
    fn every_name_in_a_spec_is_looked_at() {
        let told = |member: Value| {
            let mut spec = json!({"image": "i"});
            spec.as_object_mut().unwrap().extend(member.as_object().unwrap().clone());
            check(&serde_json::from_value::<MCPServerSpec>(spec).unwrap()).unwrap_err()
        };
        for (member, place) in [
            (json!({"authServerRef": {"name": "A"}}), "authServerRef.name"),
            (json!({"authzConfig": {"configMap": {"name": "A"}}}), "authzConfig.configMap.name"),
            (json!({"authzConfigRef": {"name": "A"}}), "authzConfigRef.name"),
            (json!({"externalAuthConfigRef": {"name": "A"}}), "externalAuthConfigRef.name"),
            (json!({"oidcConfigRef": {"name": "A", "audience": "a"}}), "oidcConfigRef.name"),
            (json!({"permissionProfile": {"type": "configmap", "name": "A"}}), "permissionProfile.name"),
            (
                json!({"resourceOverrides": {"proxyDeployment": {"imagePullSecrets": [{"name": ""}, {"name": "A"}]}}}),
                "resourceOverrides.proxyDeployment.imagePullSecrets[1].name",
            ),
            (json!({"secrets": [{"name": "A", "key": "k"}]}), "secrets[0].name"),
            (json!({"serviceAccount": "A"}), "serviceAccount"),
            (
                json!({"sessionStorage": {"provider": "redis", "passwordRef": {"name": "A", "key": "k"}}}),
                "sessionStorage.passwordRef.name",
            ),
            (json!({"telemetryConfigRef": {"name": "A"}}), "telemetryConfigRef.name"),
            (json!({"toolConfigRef": {"name": "A"}}), "toolConfigRef.name"),
            (json!({"webhookConfigRef": {"name": "A"}}), "webhookConfigRef.name"),
        ] {
            let told = told(member);
            assert!(told.starts_with(&format!("{place} \"A\" is no name of a ")), "{told}");
        }
        let empty = told(json!({"authzConfig": {"configMap": {"name": ""}}}));
        assert_eq!(empty, "authzConfig.configMap.name is empty; name a ConfigMap, or remove the reference");
        let fine = json!({"image": "i", "serviceAccount": "", "permissionProfile": {"name": "/a/file"},
            "podTemplateSpec": {"spec": {"imagePullSecrets": [{"name": "A"}]}}});
        assert_eq!(check(&serde_json::from_value::<MCPServerSpec>(fine).unwrap()), Ok(()));
    }

    #[test]
    fn names_deep_within_a_config_are_found() {
        let spec = json!({"type": "embeddedAuthServer", "embeddedAuthServer": {"issuer": "https://i",
            "signingKeySecretRefs": [{"name": "a", "key": "k"}, {"name": "../a", "key": "k"}], "upstreamProviders": []}});
        let spec: MCPExternalAuthConfigSpec = serde_json::from_value(spec).unwrap();
        let told = check(&spec).unwrap_err();
        let place = "embeddedAuthServer.signingKeySecretRefs[1].name \"../a\" is no name of a Secret";
        assert!(told.starts_with(place), "{told}");
    }
}
