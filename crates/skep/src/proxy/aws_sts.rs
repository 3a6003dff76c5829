//! Credentials of AWS for callers, as a document and the environment say it.

use skep_api::config::run_config::middleware::AwsStsParameters;
use skep_api::config::run_config::{MiddlewareConfig, RoleMapping, RunConfig};
use skep_api::kinds::outgoing_auth::aws_sts as defaults;
use skep_api::names::env::runner;
use skep_proxy::middleware::{self, AwsSts, AwsStsSettings, RoleTest};

use super::{Variables, outgoing};

/// Gets credentials as an entry says.
pub(super) fn credentials(
    config: &RunConfig,
    entry: &MiddlewareConfig,
    variables: Variables<'_>,
) -> Result<AwsSts, String> {
    let parameters: AwsStsParameters = entry.read_parameters().map_err(|error| error.to_string())?;
    if config.remote_url.is_empty() {
        return Err("it needs a remote_url: only servers of somebody else check signatures of AWS".to_owned());
    }
    if parameters.target_url != config.remote_url {
        return Err(format!("target_url {:?} must be the remote_url, where requests go", parameters.target_url));
    }
    let settings = parameters.aws_sts_config.ok_or("aws_sts_config is missing")?;
    outgoing::refuse_provider("subject_provider_name", &settings.subject_provider_name)?;
    let or = |value: String, default: &str| if value.is_empty() { default.to_owned() } else { value };
    AwsSts::new(AwsStsSettings {
        region: settings.region,
        service: or(settings.service, defaults::DEFAULT_SERVICE),
        fallback_role: settings.fallback_role_arn,
        role_mappings: settings.role_mappings.into_iter().enumerate().map(mapping).collect::<Result<_, _>>()?,
        role_claim: or(settings.role_claim, defaults::DEFAULT_ROLE_CLAIM),
        session_name_claim: or(settings.session_name_claim, defaults::DEFAULT_SESSION_NAME_CLAIM),
        session_duration: settings.session_duration.unwrap_or(defaults::DEFAULT_SESSION_DURATION.into()),
        endpoint: variables(runner::AWS_STS_ENDPOINT).unwrap_or_default(),
    })
    .map_err(|error| error.to_string())
}

fn mapping((index, mapping): (usize, RoleMapping)) -> Result<middleware::RoleMapping, String> {
    let test = match (mapping.claim.is_empty(), mapping.matcher.is_empty()) {
        (false, true) => RoleTest::Claim(mapping.claim),
        (true, false) => RoleTest::Matcher(mapping.matcher),
        _ => return Err(format!("role_mappings[{index}]: exactly one of claim or matcher must be set")),
    };
    Ok(middleware::RoleMapping { test, role: mapping.role_arn, priority: mapping.priority })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use skep_api::config::run_config::MiddlewareType;

    use super::*;

    const URL: &str = "https://mcp.example.com/mcp";

    fn made(member: &str, value: Value, target: &str) -> Result<String, String> {
        let mut settings =
            json!({"region": "eu-central-1", "service": "", "fallback_role_arn": "arn:aws:iam::123456789012:role/r"});
        settings[member] = value;
        let parameters = json!({"aws_sts_config": settings, "target_url": target});
        let entry = MiddlewareConfig::new(MiddlewareType::AwsSts, &parameters).unwrap();
        let config = json!({"transport": "sse", "remote_url": URL}).to_string();
        let config = RunConfig::from_json(&config).unwrap();
        credentials(&config, &entry, &|_| None).map(|made| format!("{made:?}"))
    }

    #[test]
    fn what_is_left_out_is_what_the_operator_writes() {
        let made = made("role_claim", json!(""), URL).unwrap();
        for default in ["sts.eu-central-1.amazonaws.com", "aws-mcp", "groups", "\"sub\"", "3600"] {
            assert!(made.contains(default), "{default}: {made}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let role = "arn:aws:iam::123456789012:role/r";
        for (member, value, told) in [
            ("region", json!("eu-central-1.evil.example/"), "region \"eu-central-1.evil.example/\" must"),
            ("region", json!(""), "region \"\" must"),
            ("service", json!("a/b"), "service \"a/b\" must"),
            ("session_duration", json!(899), "session_duration 899 must be from 900 to 43200 seconds"),
            ("fallback_role_arn", json!("r"), "fallback_role_arn: \"r\" is no ARN"),
            ("fallback_role_arn", json!(""), "neither a fallback_role_arn nor"),
            ("role_mappings", json!([{"role_arn": role}]), "role_mappings[0]: exactly one of claim or matcher"),
            (
                "role_mappings",
                json!([{"role_arn": role, "matcher": "claims."}]),
                "role_mappings[0].matcher is not a CEL",
            ),
            ("role_mappings", json!([{"role_arn": "x", "claim": "a"}]), "role_mappings[0].role_arn: \"x\""),
            ("subject_provider_name", json!("github"), "needs an auth server"),
        ] {
            let said = made(member, value, URL).unwrap_err();
            assert!(said.contains(told), "{member}: {said}");
        }
        assert!(made("service", json!(""), "https://evil.example/").unwrap_err().contains("must be the remote_url"));
    }
}
