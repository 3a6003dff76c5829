//! Signing requests with temporary AWS credentials.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

/// The AWS service that requests are signed for when none is named.
pub const DEFAULT_SERVICE: &str = "aws-mcp";
/// The claim that role mappings look at when none is named.
pub const DEFAULT_ROLE_CLAIM: &str = "groups";
/// The claim that names the AWS session when none is named.
pub const DEFAULT_SESSION_NAME_CLAIM: &str = "sub";
/// How long AWS credentials are good for when nothing is said, in seconds.
pub const DEFAULT_SESSION_DURATION: i32 = 3600;

/// Temporary AWS credentials that the token of a user is good for (AssumeRoleWithWebIdentity). Requests are signed
/// with them (SigV4); a request that cannot be signed is refused.
#[derive(Clone, Debug, SmartDefault, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsSts {
    /// The ARN of the role for users that no mapping fits. Without it they are refused. Either this or a mapping is
    /// needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^arn:(aws|aws-cn|aws-us-gov):iam::\d{12}:role/[\w+=,.@\-_/]+$"))]
    pub fallback_role_arn: Option<String>,
    /// The AWS region, for example `eu-central-1`.
    #[schemars(length(min = 1), regex(pattern = r"^[a-z]{2}(-[a-z]+)+-\d+$"))]
    pub region: String,
    /// The claim, a list, in which role mappings look for their value.
    #[serde(default = "default_role_claim")]
    #[default(default_role_claim())]
    pub role_claim: String,
    /// Which users get which role.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub role_mappings: Vec<RoleMapping>,
    /// The AWS service that requests are signed for.
    #[serde(default = "default_service")]
    #[default(default_service())]
    pub service: String,
    /// How long the credentials are good for, in seconds: from a quarter of an hour to twelve hours.
    #[serde(default = "default_session_duration")]
    #[default(DEFAULT_SESSION_DURATION)]
    #[schemars(range(min = 900, max = 43200))]
    pub session_duration: i32,
    /// The claim whose value names the session in AWS logs. Its value must be 2 to 64 characters that AWS accepts; a
    /// user with another one is refused.
    #[serde(default = "default_session_name_claim")]
    #[default(default_session_name_claim())]
    pub session_name_claim: String,
    /// The provider of the embedded authorization server whose token is used instead of the client's. Only in a
    /// VirtualMCPServer, where it defaults to the first provider, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject_provider_name: Option<String>,
}

fn default_role_claim() -> String {
    DEFAULT_ROLE_CLAIM.to_owned()
}

fn default_service() -> String {
    DEFAULT_SERVICE.to_owned()
}

fn default_session_duration() -> i32 {
    DEFAULT_SESSION_DURATION
}

fn default_session_name_claim() -> String {
    DEFAULT_SESSION_NAME_CLAIM.to_owned()
}

/// A role, and the users that get it. Set either claim or matcher.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoleMapping {
    /// A value that must be in the role claim, such as the name of a group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub claim: Option<String>,
    /// A CEL expression over `claims` that is true for users that get the role. An error while it is evaluated
    /// counts as no.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub matcher: Option<String>,
    /// Which mapping counts when several fit: the one with the lowest number, and the first of equals. A mapping
    /// without a number comes last.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub priority: Option<i32>,
    /// The ARN of the role that such a user takes on.
    #[schemars(regex(pattern = r"^arn:(aws|aws-cn|aws-us-gov):iam::\d{12}:role/[\w+=,.@\-_/]+$"))]
    pub role_arn: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_left_out_is_what_the_default_has() {
        assert_eq!(serde_json::from_value::<AwsSts>(json!({ "region": "" })).unwrap(), AwsSts::default());
    }
}
