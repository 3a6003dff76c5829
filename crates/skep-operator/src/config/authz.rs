//! What makes an MCPAuthzConfig valid: what its authorizer cannot start with is said here, before any pod does.

use cedar_policy::{Entities, EntityTypeName, Policy};
use serde_json::json;
use skep_api::conditions::reasons;
use skep_api::config::document::Part;
use skep_api::config::run_config::{AuthzConfig, AuthzType, CedarOptions, ClaimMapping, HttpPdpOptions};
use skep_api::config::strangers::strangers;
use skep_api::kinds::MCPAuthzConfig;
use skep_api::kinds::mcp_authz_config::MCPAuthzConfigSpec;
use skep_api::names::finalizers;

use super::address::{self, Plain, Reach};
use super::{Complaint, ConfigKind};

impl ConfigKind for MCPAuthzConfig {
    const FINALIZER: &'static str = finalizers::MCP_AUTHZ_CONFIG;
    const REASONS: (&'static str, &'static str) = (reasons::CONFIG_VALID, reasons::CONFIG_INVALID);

    fn judge(&self) -> Result<(), Complaint> {
        let document = document(&self.spec)?;
        match document.authorizer() {
            AuthzType::Cedar => {
                let options = document.cedar().map_err(|misfit| format!("config.{misfit}"))?.unwrap_or_default();
                refuse_strangers(&options)?;
                check_cedar(&options).map_err(|problem| format!("config.{problem}"))?;
            }
            AuthzType::Http => {
                let options = document.http().map_err(|misfit| format!("config.{misfit}"))?.unwrap_or_default();
                refuse_strangers(&options)?;
                check_http(&options).map_err(|problem| format!("config.{problem}"))?;
            }
            AuthzType::Other(_) => {}
        }
        Ok(())
    }
}

/// A member that no authorizer knows is a misspelled one, and policies would decide without it.
fn refuse_strangers(options: &impl Part) -> Result<(), String> {
    let told: Vec<String> = strangers(options).iter().map(|stranger| format!("config.{stranger}")).collect();
    if told.is_empty() { Ok(()) } else { Err(told.join(" ")) }
}

/// The document that the data plane reads: the settings, below the key of their authorizer.
pub(crate) fn document(spec: &MCPAuthzConfigSpec) -> Result<AuthzConfig, String> {
    let key = match AuthzType::from(spec.type_.as_str()) {
        AuthzType::Cedar => "cedar",
        AuthzType::Http => "pdp",
        AuthzType::Other(empty) if empty.is_empty() => {
            return Err(format!("type must not be empty; use {} or {}", AuthzType::Cedar, AuthzType::Http));
        }
        AuthzType::Other(other) => {
            return Err(format!(
                "type {other:?} is not a known authorizer; use {} or {}",
                AuthzType::Cedar,
                AuthzType::Http
            ));
        }
    };
    let members = json!({"version": AuthzConfig::VERSION, "type": spec.type_, key: spec.config});
    let serde_json::Value::Object(members) = members else { return Err("config must be an object".to_owned()) };
    Ok(AuthzConfig(members))
}

/// Refuses options that Cedar cannot read. What is told begins with the option.
pub(crate) fn check_cedar(options: &CedarOptions) -> Result<(), String> {
    if options.policies.is_empty() {
        return Err("policies must have at least one policy".to_owned());
    }
    if let Some((index, error)) = first_unreadable(&options.policies) {
        return Err(format!("policies[{index}] is no Cedar policy: {error}"));
    }
    if !options.entities_json.trim().is_empty() {
        Entities::from_json_str(&options.entities_json, None)
            .map_err(|error| format!("entities_json is no list of Cedar entities: {error}"))?;
    }
    let group = &options.group_entity_type;
    // It is a single word: groups are in no namespace.
    if !group.is_empty() && (group.contains(':') || group.parse::<EntityTypeName>().is_err()) {
        return Err(format!("group_entity_type {group:?} must be a name of letters, digits and _"));
    }
    Ok(())
}

/// The first policy that Cedar cannot read, and why.
pub(crate) fn first_unreadable(policies: &[String]) -> Option<(usize, String)> {
    let errors = policies.iter().map(|policy| Policy::parse(None, policy).err());
    errors.enumerate().find_map(|(index, error)| Some((index, error?.to_string())))
}

/// Refuses options that a decision point cannot be asked with. What is told begins with the option.
pub(crate) fn check_http(options: &HttpPdpOptions) -> Result<(), String> {
    let endpoint = options.http.as_ref().ok_or("http must be set")?;
    if endpoint.url.is_empty() {
        return Err("http.url must not be empty".to_owned());
    }
    // It may stand beside the proxy.
    address::check("http.url", &endpoint.url, Plain::Allowed, Reach::Private)?;
    match &options.claim_mapping {
        ClaimMapping::Mpe | ClaimMapping::Standard => Ok(()),
        ClaimMapping::Other(other) => {
            Err(format!("claim_mapping {other:?} must be {} or {}", ClaimMapping::Mpe, ClaimMapping::Standard))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use skep_api::kinds::MCPAuthzConfig;

    use crate::config::{ConfigKind as _, judge};

    const PERMIT: &str = "permit(principal, action, resource);";

    fn cedar(config: &Value) -> Value {
        json!({"type": "cedarv1", "config": config})
    }

    fn http(config: &Value) -> Value {
        json!({"type": "httpv1", "config": config})
    }

    #[test]
    fn specs_are_judged() {
        let endpoint = json!({"url": "https://pdp"});
        judge::<MCPAuthzConfig>([
            (cedar(&json!({"policies": [PERMIT]})), ""),
            (cedar(&json!({"Policies": [PERMIT], "entities_json": "[]"})), ""),
            (cedar(&json!({"policies": [PERMIT], "later": 1})), "config.later: no such member"),
            (
                cedar(&json!({"policies": [PERMIT], "group_claim": "g", "entities_jsn": "[]"})),
                "config.entities_jsn: no such member; did you mean entities_json? \
                 config.group_claim: no such member; did you mean group_claim_name?",
            ),
            (
                http(&json!({"http": {"url": "https://pdp", "insecure": true}, "claim_mapping": "mpe"})),
                "config.http.insecure: no such member",
            ),
            (json!({"type": "", "config": {}}), "type must not be empty; use cedarv1 or httpv1"),
            (json!({"type": "opa", "config": {}}), "type \"opa\" is not a known authorizer; use cedarv1 or httpv1"),
            (cedar(&json!({})), "config.policies must have at least one policy"),
            (cedar(&json!({"policies": []})), "config.policies must have at least one policy"),
            (
                cedar(&json!({"policies": [PERMIT, "permit(principal, action, resource)"]})),
                "config.policies[1] is no Cedar policy: unexpected end of input",
            ),
            (cedar(&json!({"policies": "one"})), "config.policies: expected a list, found a text"),
            (cedar(&json!({"policies": [PERMIT], "group_entity_type": "Team_2"})), ""),
            (
                cedar(&json!({"policies": [PERMIT], "group_entity_type": "Hive::Team"})),
                "config.group_entity_type \"Hive::Team\" must be a name of letters, digits and _",
            ),
            (
                cedar(&json!({"policies": [PERMIT], "group_entity_type": "my team"})),
                "config.group_entity_type \"my team\" must be a name of letters, digits and _",
            ),
            (http(&json!({"http": endpoint, "claim_mapping": "standard"})), ""),
            (http(&json!({"http": endpoint, "claim_mapping": "mpe", "context": {"include_args": true}})), ""),
            (http(&json!({})), "config.http must be set"),
            (http(&json!({"http": {}, "claim_mapping": "mpe"})), "config.http.url must not be empty"),
            (
                http(&json!({"http": {"url": "pdp:9000"}, "claim_mapping": "mpe"})),
                "config.http.url \"pdp:9000\" must use https, not pdp",
            ),
            (
                http(&json!({"http": {"url": "http://169.254.169.254"}, "claim_mapping": "mpe"})),
                "config.http.url \"http://169.254.169.254\" is at a link-local or reserved address, which no proxy asks",
            ),
            (http(&json!({"http": {"url": "http://127.0.0.1:9000"}, "claim_mapping": "mpe"})), ""),
            (http(&json!({"http": endpoint})), "config.claim_mapping \"\" must be mpe or standard"),
            (
                http(&json!({"http": endpoint, "claim_mapping": "other"})),
                "config.claim_mapping \"other\" must be mpe or standard",
            ),
        ]);
    }

    #[test]
    fn an_object_without_a_spec_is_invalid() {
        let object: MCPAuthzConfig = serde_json::from_value(json!({"metadata": {"name": "c"}})).unwrap();
        assert_eq!(object.validate().unwrap_err().to_string(), "type must not be empty; use cedarv1 or httpv1");
    }
}
