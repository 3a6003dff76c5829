//! Signing requests to AWS with the credentials of a role.

use crate::config::document::object;

object! {
    /// How a caller's token becomes AWS credentials.
    pub struct AwsStsConfig {
        /// The role of callers that no mapping matches.
        omit fallback_role_arn: String,
        always region: String,
        /// The claim that mappings by value look into.
        omit role_claim: String,
        omit role_mappings: Vec<RoleMapping>,
        always service: String,
        /// In seconds.
        omit session_duration: Option<i64>,
        omit session_name_claim: String,
        omit subject_provider_name: String,
    }
}

object! {
    /// The role of the callers with some claim.
    pub struct RoleMapping {
        /// A value that the role claim must contain.
        omit claim: String,
        /// A CEL expression over `claims`.
        omit matcher: String,
        /// The lowest number wins; a mapping without one comes last.
        omit priority: Option<i64>,
        always role_arn: String,
    }
}
