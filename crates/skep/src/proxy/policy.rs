//! Policies and callbacks of a document, as the proxy has them.

use std::fmt::Display;
use std::path::{Component, Path};
use std::time::Duration;

use serde_json::Value;
use skep_api::config::run_config::middleware::{AuthorizationParameters, WebhookParameters};
use skep_api::config::run_config::{
    AuthzConfig, AuthzType, ClaimMapping, FailurePolicy, HttpPdpOptions, MiddlewareConfig, RunConfig, WebhookConfig,
};
use skep_proxy::fetch::TlsFiles;
use skep_proxy::middleware::{self, Authorizer, CedarSettings, PdpSettings, Power, Secret, Webhooks};

use super::document::judge_strangers;
use super::mounted::mounted;
use super::{Variables, secrets};

/// How long a callback may be given.
const TIMEOUTS: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(30);

/// Who decides, as an entry says.
pub(super) fn authorizer(
    config: &RunConfig,
    entry: &MiddlewareConfig,
    variables: Variables<'_>,
) -> Result<Authorizer, String> {
    let parameters: AuthorizationParameters = entry.read_parameters().map_err(text)?;
    let document = match parameters.config_data {
        Some(document) => document,
        None if parameters.config_path.is_empty() => {
            return Err("neither config_data nor config_path is set".to_owned());
        }
        None => read(&mounted(&parameters.config_path, variables), variables)?,
    };
    match document.authorizer() {
        AuthzType::Cedar => {
            let options = document.cedar().map_err(|misfit| format!("cedar: {misfit}"))?;
            let options = options.ok_or("the section cedar is missing")?;
            Authorizer::cedar(CedarSettings {
                policies: options.policies,
                entities: options.entities_json,
                upstream_provider: options.primary_upstream_provider,
                group_claim: options.group_claim_name,
                role_claim: options.role_claim_name,
                group_type: options.group_entity_type,
                multi_valued_claims: options.multi_valued_claims,
                server: config.name.clone(),
            })
            .map_err(text)
        }
        AuthzType::Http => {
            let options = document.http().map_err(|misfit| format!("pdp: {misfit}"))?;
            Authorizer::pdp(decision_point(config, options.ok_or("the section pdp is missing")?)?).map_err(text)
        }
        AuthzType::Other(other) => Err(format!("type {other:?} is not one of cedarv1 and httpv1")),
    }
}

fn decision_point(config: &RunConfig, options: HttpPdpOptions) -> Result<PdpSettings, String> {
    let endpoint = options.http.ok_or("pdp.http must be set")?;
    let context = options.context.unwrap_or_default();
    Ok(PdpSettings {
        url: endpoint.url,
        timeout: u64::try_from(endpoint.timeout).ok().filter(|seconds| *seconds > 0).map(Duration::from_secs),
        is_unverified: endpoint.insecure_skip_verify,
        tells_arguments: context.include_args,
        tells_operation: context.include_operation,
        claims: match options.claim_mapping {
            ClaimMapping::Mpe => middleware::ClaimMapping::Mpe,
            ClaimMapping::Standard => middleware::ClaimMapping::Standard,
            ClaimMapping::Other(other) => {
                return Err(format!("pdp.claim_mapping {other:?} must be mpe or standard"));
            }
        },
        server: config.name.clone(),
    })
}

/// A document in a file, as JSON or YAML.
fn read(path: &Path, variables: Variables<'_>) -> Result<AuthzConfig, String> {
    let wrong = |cause: &dyn Display| format!("config_path {}: {cause}", path.display());
    if path.components().any(|part| part == Component::ParentDir) {
        return Err(wrong(&"a path must not lead upwards"));
    }
    let is_json = match path.extension().map(|extension| extension.to_string_lossy().to_lowercase()).as_deref() {
        None | Some("json") => true,
        Some("yaml" | "yml") => false,
        Some(_) => return Err(wrong(&"a file ends in .json, .yaml or .yml")),
    };
    let content = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    let parsed: Value = if is_json {
        serde_json::from_str(&content).map_err(|error| wrong(&error))?
    } else {
        serde_saphyr::from_str(&content).map_err(|error| wrong(&error))?
    };
    let Value::Object(document) = parsed else { return Err(wrong(&"it is no object")) };
    let document = AuthzConfig(document);
    if document.version().is_empty() {
        return Err(wrong(&"version must be set"));
    }
    judge_strangers(&document, variables).map_err(|stranger| wrong(&stranger))?;
    Ok(document)
}

/// The callbacks of an entry.
pub(super) fn webhooks(power: Power, entry: &MiddlewareConfig, variables: Variables<'_>) -> Result<Webhooks, String> {
    let parameters: WebhookParameters = entry.read_parameters().map_err(text)?;
    let hooks = parameters.webhooks.into_iter().map(|hook| webhook(hook, variables)).collect::<Result<_, _>>()?;
    Webhooks::new(power, hooks, &parameters.server_name, &parameters.transport).map_err(text)
}

fn webhook(hook: WebhookConfig, variables: Variables<'_>) -> Result<middleware::WebhookSettings, String> {
    let wrong = |problem: String| format!("webhook {:?}: {problem}", hook.name);
    let timeout = hook.timeout.effective().filter(|timeout| TIMEOUTS.contains(timeout));
    let files = hook.tls_config.clone().unwrap_or_default();
    let file = |path: &str| (!path.is_empty()).then(|| mounted(path, variables));
    let identity = match (file(&files.client_cert_path), file(&files.client_key_path)) {
        (None, None) => None,
        (Some(certificate), Some(key)) => Some((certificate, key)),
        _ => return Err(wrong("client_cert_path and client_key_path go together".to_owned())),
    };
    if hook.url.starts_with("http://") {
        tracing::warn!(webhook = hook.name, "messages are told to it without TLS, which protects nothing");
    } else if files.insecure_skip_verify {
        tracing::warn!(webhook = hook.name, "insecure_skip_verify: whoever answers in its place is believed");
    }
    Ok(middleware::WebhookSettings {
        url: hook.url.clone(),
        timeout: timeout.ok_or_else(|| wrong("timeout must be from 1s to 30s".to_owned()))?,
        failure_policy: match &hook.failure_policy {
            FailurePolicy::Fail => middleware::FailurePolicy::Fail,
            FailurePolicy::Ignore => middleware::FailurePolicy::Ignore,
            FailurePolicy::Other(other) => {
                return Err(wrong(format!("failure_policy {other:?} must be fail or ignore")));
            }
        },
        tls: TlsFiles { authorities: file(&files.ca_bundle_path), identity, is_unverified: files.insecure_skip_verify },
        secret: signing_key(&hook.hmac_secret_ref, variables).map_err(wrong)?,
        name: hook.name,
    })
}

/// Where the key of signatures is: in a file, or under the id of a secret in the environment.
fn signing_key(reference: &str, variables: Variables<'_>) -> Result<Option<Secret>, String> {
    if reference.is_empty() {
        return Ok(None);
    }
    if Path::new(reference).is_absolute() {
        return Ok(Some(Secret::File(mounted(reference, variables))));
    }
    let id = reference.split_once(",target=").map_or(reference, |(id, _)| id);
    let value = secrets::find(id, variables);
    let value = value.map_err(|missing| format!("there is no key for its signatures; {missing}"))?;
    Ok(Some(Secret::Value(value.into_bytes())))
}

fn text(error: impl Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use skep_api::config::run_config::MiddlewareType;

    use super::*;

    const PERMIT: &str = "permit(principal, action, resource);";

    fn entry(parameters: &Value) -> MiddlewareConfig {
        MiddlewareConfig::new(MiddlewareType::Authorization, parameters).unwrap()
    }

    fn decided(parameters: &Value) -> Result<(), String> {
        let config = RunConfig::from_json(r#"{"transport": "stdio", "name": "hive"}"#).unwrap();
        authorizer(&config, &entry(parameters), &|_| None).map(drop)
    }

    fn called(hook: &Value) -> Result<(), String> {
        let known = ["TOOLHIVE_SECRET_KEY", "TOOLHIVE_SECRET___thv_workloads_OWN"];
        let variables = |name: &str| known.contains(&name).then(|| "hunter2".to_owned());
        let parameters = json!({"webhooks": [hook], "server_name": "hive", "transport": "stdio"});
        webhooks(Power::Refuse, &entry(&parameters), &variables).map(drop)
    }

    #[test]
    fn what_is_wrong_with_policies_is_named() {
        for (parameters, told) in [
            (json!({}), "neither config_data nor config_path is set"),
            (json!({"config_data": {"type": "opa"}}), "type \"opa\" is not one of"),
            (json!({"config_data": {"type": "cedarv1"}}), "the section cedar is missing"),
            (json!({"config_data": {"type": "cedarv1", "cedar": {}}}), "at least one policy"),
            (json!({"config_data": {"type": "cedarv1", "cedar": {"policies": ["permit"]}}}), "cedar.policies[0] is no"),
            (json!({"config_data": {"type": "httpv1", "pdp": {}}}), "pdp.http must be set"),
            (json!({"config_data": {"type": "httpv1", "pdp": {"http": {"url": "http://a"}}}}), "claim_mapping"),
            (
                json!({"config_data": {"type": "httpv1", "pdp": {"http": {"url": "a"}, "claim_mapping": "mpe"}}}),
                "pdp.http.url \"a\" must be",
            ),
            (
                json!({"config_data": {"type": "httpv1",
                    "pdp": {"http": {"url": "http://169.254.169.254"}, "claim_mapping": "mpe"}}}),
                "pdp.http.url: 169.254.169.254 is at a",
            ),
            (
                json!({"config_data": {"type": "httpv1",
                    "pdp": {"http": {"url": "http://u:hunter2@a"}, "claim_mapping": "mpe"}}}),
                "pdp.http.url: the address at a carries a user name",
            ),
            (
                json!({"config_data": {"type": "httpv1",
                    "pdp": {"http": {"url": "http://u:hunter2 @a"}, "claim_mapping": "mpe"}}}),
                "pdp.http.url \"http://a\" must be",
            ),
            (json!({"config_path": "/nowhere/policies.json"}), "config_path /nowhere/policies.json: No such file"),
            (json!({"config_path": "/etc/../policies.json"}), "upwards"),
            (json!({"config_path": "/etc/policies.toml"}), "ends in .json"),
        ] {
            let said = decided(&parameters).unwrap_err();
            assert!(said.contains(told) && !said.contains("hunter2"), "{parameters}: {said}");
        }
    }

    #[test]
    fn policies_are_read_from_the_document_or_from_a_file() {
        let cedar = json!({"version": "1.0", "type": "cedarv1", "cedar": {"policies": [PERMIT]}});
        assert_eq!(decided(&json!({ "config_data": cedar })), Ok(()));
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in [
            ("policies.json", cedar.to_string()),
            ("policies", cedar.to_string()),
            ("policies.yml", format!("version: '1.0'\ntype: cedarv1\ncedar:\n  policies: ['{PERMIT}']\n")),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            assert_eq!(decided(&json!({ "config_path": path })), Ok(()), "{name}");
        }
        let path = folder.path().join("bare.json");
        std::fs::write(&path, r#"{"type": "cedarv1"}"#).unwrap();
        assert!(decided(&json!({ "config_path": path })).unwrap_err().contains("version must be set"));
        std::fs::write(&path, r#"{"version": "1.0", "type": "cedarv1", "cedar": {"policy": []}}"#).unwrap();
        let said = decided(&json!({ "config_path": path })).unwrap_err();
        assert!(said.contains("cedar.policy: no such member"), "{said}");
    }

    #[test]
    fn what_is_wrong_with_a_callback_is_named() {
        let good = json!({"name": "w", "url": "http://a", "failure_policy": "fail", "tls_config": {"insecure_skip_verify": true}});
        assert_eq!(called(&good), Ok(()));
        for (member, value, told) in [
            ("name", json!(""), "needs a name"),
            ("timeout", json!("31s"), "webhook \"w\": timeout must be from 1s to 30s"),
            ("timeout", json!(-1), "timeout"),
            ("failure_policy", json!("panic"), "failure_policy \"panic\" must be fail or ignore"),
            ("tls_config", json!({"client_cert_path": "/c"}), "go together"),
            ("tls_config", json!({}), "must use https"),
            ("url", json!("http://[fe80::1]/"), "its url: [fe80::1] is at a"),
            ("url", json!("https://user:hunter2@a/"), "its url: the address at a carries a user name"),
            ("url", json!("nope"), "its url: nope is no address of the form https://HOST"),
            ("url", json!("ftp://a/"), "its url: ftp://a/ is no address"),
            ("hmac_secret_ref", json!("OTHER"), "set the variable TOOLHIVE_SECRET_OTHER"),
            ("hmac_secret_ref", json!("/nowhere/hmac"), "/nowhere/hmac"),
        ] {
            let mut bad = good.clone();
            bad[member] = value;
            let said = called(&bad).unwrap_err();
            assert!(said.contains(told), "{bad}: {said}");
        }
        for key in ["KEY,target=hmac", "KEY", "OWN"] {
            let mut signed = good.clone();
            signed["hmac_secret_ref"] = json!(key);
            assert_eq!(called(&signed), Ok(()), "{key}");
        }
    }
}
