//! Roles in AWS, and who gets which.

use skep_api::kinds::outgoing_auth::aws_sts::{AwsSts, RoleMapping};

use crate::config::expression;

pub(super) fn check(roles: &AwsSts) -> Result<(), String> {
    if roles.region.is_empty() {
        return Err("awsSts.region must not be empty".to_owned());
    }
    let fallback = roles.fallback_role_arn.as_ref().is_some_and(|role| !role.is_empty());
    if !fallback && roles.role_mappings.is_empty() {
        return Err("awsSts.fallbackRoleArn or at least one of awsSts.roleMappings must be set".to_owned());
    }
    for (index, mapping) in roles.role_mappings.iter().enumerate() {
        check_mapping(mapping).map_err(|complaint| format!("awsSts.roleMappings[{index}]{complaint}"))?;
    }
    if !(900..=43_200).contains(&roles.session_duration) {
        return Err(format!("awsSts.sessionDuration {} must be from 900 to 43200 seconds", roles.session_duration));
    }
    Ok(())
}

fn check_mapping(mapping: &RoleMapping) -> Result<(), String> {
    if mapping.role_arn.is_empty() {
        return Err(".roleArn must not be empty".to_owned());
    }
    let given = |value: &Option<String>| value.as_ref().is_some_and(|value| !value.is_empty());
    if given(&mapping.claim) == given(&mapping.matcher) {
        return Err(": exactly one of claim or matcher must be set".to_owned());
    }
    match mapping.matcher.as_ref().filter(|matcher| !matcher.is_empty()) {
        Some(matcher) => expression::check(matcher).map_err(|complaint| format!(".matcher {complaint}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use skep_api::kinds::MCPExternalAuthConfig;

    use crate::config::{complaint_about, judge};

    fn with(roles: &Value) -> Value {
        json!({"type": "awsSts", "awsSts": roles})
    }

    fn mapping(mapping: &Value) -> Value {
        with(&json!({"region": "eu-central-1", "roleMappings": [mapping]}))
    }

    #[test]
    fn specs_are_judged() {
        let choice = "awsSts.roleMappings[0]: exactly one of claim or matcher must be set";
        judge::<MCPExternalAuthConfig>([
            (mapping(&json!({"claim": "admins", "roleArn": "r"})), ""),
            (mapping(&json!({"matcher": "claims.sub == 'x'", "roleArn": "r"})), ""),
            (mapping(&json!({"claim": "admins", "roleArn": ""})), "awsSts.roleMappings[0].roleArn must not be empty"),
            (mapping(&json!({"roleArn": "r"})), choice),
            (mapping(&json!({"claim": "a", "matcher": "true", "roleArn": "r"})), choice),
            (with(&json!({"region": "", "fallbackRoleArn": "r"})), "awsSts.region must not be empty"),
            (
                with(&json!({"region": "eu-central-1"})),
                "awsSts.fallbackRoleArn or at least one of awsSts.roleMappings must be set",
            ),
            (
                with(&json!({"region": "eu-central-1", "fallbackRoleArn": "r", "sessionDuration": 899})),
                "awsSts.sessionDuration 899 must be from 900 to 43200 seconds",
            ),
            (with(&json!({"region": "eu-central-1", "fallbackRoleArn": "r", "sessionDuration": 43200})), ""),
            (
                with(&json!({"region": "eu-central-1", "fallbackRoleArn": "r", "sessionDuration": 43201})),
                "awsSts.sessionDuration 43201 must be from 900 to 43200 seconds",
            ),
        ]);
        let told = complaint_about::<MCPExternalAuthConfig>(&mapping(&json!({"matcher": "claims.", "roleArn": "r"})));
        assert!(told.starts_with("awsSts.roleMappings[0].matcher is not a CEL expression: "), "{told}");
    }
}
