//! The details of each way to sign in to a backend.
//!
//! The operator writes the names of environment variables (`…Env`) and never the secrets themselves; the members
//! that hold a secret in clear text are for files written by hand.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::document::null_is_empty;
use crate::raw::RawObject;
use crate::sensitive::Sensitive;

/// Signing requests with credentials of an AWS role that the caller's token is exchanged for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsSts {
    /// The role that is taken when no mapping applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback_role_arn: Option<String>,
    /// The AWS region whose STS endpoint is asked, for example `eu-central-1`.
    pub region: String,
    /// The claim of the caller's token that mappings look at. Defaults to groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role_claim: Option<String>,
    /// Which callers take which role.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub role_mappings: Vec<RoleMapping>,
    /// The AWS service that requests are signed for. Defaults to aws-mcp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// How long the credentials are valid, in seconds. Defaults to 3600.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_duration: Option<i32>,
    /// The claim of the caller's token that names the AWS session. Defaults to sub.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_name_claim: Option<String>,
    /// The upstream identity provider whose token is exchanged. Without it the caller's own token is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject_provider_name: Option<String>,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}

/// A role and the callers who take it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoleMapping {
    /// The value that the role claim must have or contain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
    /// A CEL expression over the claims of the caller's token that must hold. Instead of claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matcher: Option<String>,
    /// Which mapping wins when several apply: the one with the lowest number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = null))]
    pub priority: Option<i64>,
    /// The ARN of the role that such a user takes on.
    pub role_arn: String,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}

/// A fixed header on every request, health checks included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeaderInjection {
    /// The name of the header.
    pub header_name: String,
    /// Its value in clear text. Not together with headerValueEnv.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_value: Option<Sensitive>,
    /// The environment variable that holds its value. Not together with headerValue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_value_env: Option<String>,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}

/// A token that lets the server act on behalf of the caller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Obo {
    /// The audience that the token is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
    /// How many seconds before its end a token is renewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_skew_seconds: Option<i32>,
    /// The client as which the server asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The secret of that client in clear text. Prefer clientSecretEnv.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<Sensitive>,
    /// The environment variable that holds the secret of that client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret_env: Option<String>,
    /// The scopes that the token is asked for.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub scopes: Vec<String>,
    /// The upstream identity provider whose token is presented. Without it the caller's own token is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject_token_provider_name: Option<String>,
    /// The address of the token endpoint that is asked.
    pub token_url: String,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}

impl Obo {
    /// The declared members, by their names on the wire.
    pub const MEMBERS: &[&str] = &[
        "audience",
        "cacheSkewSeconds",
        "clientId",
        "clientSecret",
        "clientSecretEnv",
        "scopes",
        "subjectTokenProviderName",
        "tokenUrl",
    ];
}

/// A token that the caller's is exchanged for (RFC 8693).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenExchange {
    /// The audience that the token is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
    /// The client as which the server asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The secret of that client in clear text. Prefer clientSecretEnv.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<Sensitive>,
    /// The environment variable that holds the secret of that client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret_env: Option<String>,
    /// The scopes that the token is asked for.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub scopes: Vec<String>,
    /// The upstream identity provider whose token is exchanged. Without it the caller's own token is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject_provider_name: Option<String>,
    /// The type of the token that is exchanged: access_token, id_token, jwt or the full URN of one of them.
    /// Defaults to access_token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject_token_type: Option<String>,
    /// The address of the token endpoint that is asked.
    pub token_url: String,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}

/// The token that the caller obtained from an upstream identity provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpstreamInject {
    /// The name of the upstream identity provider.
    pub provider_name: String,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}

/// A token of another organisation's authorization server: the identity provider vouches for the caller with an
/// identity assertion, and the target trades the assertion for its own token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Xaa {
    /// The client as which the server asks the identity provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idp_client_id: Option<String>,
    /// The secret of that client in clear text. Prefer idpClientSecretEnv.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idp_client_secret: Option<Sensitive>,
    /// The environment variable that holds the secret of that client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idp_client_secret_env: Option<String>,
    /// The token endpoint of the identity provider. It must be https unless it is on this machine.
    pub idp_token_url: String,
    /// Whether the token endpoint of the target may be plain http.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insecure_target_token_url: Option<bool>,
    /// The scopes that the token is asked for.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub scopes: Vec<String>,
    /// The upstream identity provider whose ID token is presented.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject_provider_name: Option<String>,
    /// The type of the token that is presented. Empty, or the full URN of an ID token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject_token_type: Option<String>,
    /// The authorization server of the target, as the audience of the assertion.
    pub target_audience: String,
    /// The client as which the server asks the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_client_id: Option<String>,
    /// The secret of that client in clear text. Prefer targetClientSecretEnv.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_client_secret: Option<Sensitive>,
    /// The environment variable that holds the secret of that client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_client_secret_env: Option<String>,
    /// The address of the backend, as the resource of the assertion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_resource: Option<String>,
    /// The token endpoint of the target. It must be https unless insecureTargetTokenUrl is true.
    pub target_token_url: String,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}
