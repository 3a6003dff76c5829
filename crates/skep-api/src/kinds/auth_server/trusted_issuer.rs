//! Issuers elsewhere whose tokens can be exchanged for tokens of the embedded authorization server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An issuer elsewhere, and what its tokens are good for here. Delegate clients can exchange them (RFC 8693), and
/// with jwtBearerGrant their subjects can redeem them directly (RFC 7523).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!has(self.allowedDelegateClients) || !('*' in self.allowedDelegateClients) || size(self.allowedDelegateClients) == 1",
        "message": "allowedDelegateClients must not combine the wildcard \"*\" with specific client IDs",
    },
    {
        "rule": "!(has(self.allowMayAct) && self.allowMayAct && '*' in self.allowedDelegateClients)",
        "message": "allowMayAct must not be enabled when allowedDelegateClients contains the wildcard \"*\"",
    },
    {
        "rule": "!has(self.actorClaim) || !(self.actorClaim in ['sub', 'iss', 'aud', 'exp', 'iat', 'nbf', 'jti', 'name', 'email', 'scope', 'scp', 'may_act'])",
        "message": "actorClaim must name a readable claim; use client_id or a non-reserved claim such as azp, appid, or cid",
    },
    {
        "rule": "!(has(self.allowPrivateIPs) && self.allowPrivateIPs) || (has(self.jwksUrl) && self.jwksUrl != \"\")",
        "message": "allowPrivateIPs requires jwksUrl to be set explicitly",
    },
    {
        "rule": "(has(self.jwtBearerGrant) && !((has(self.actorClaim) && size(self.actorClaim) > 0) || (has(self.actorMatcher) && size(self.actorMatcher) > 0) || (has(self.allowMayAct) && self.allowMayAct) || (has(self.allowedActors) && size(self.allowedActors) > 0))) || (has(self.expectedAudience) && size(self.expectedAudience) > 0)",
        "message": "expectedAudience is required unless jwtBearerGrant is configured without actorClaim, actorMatcher, allowMayAct, or allowedActors",
    },
    {
        "rule": "!((has(self.expectedAudience) && size(self.expectedAudience) > 0) || (has(self.actorClaim) && size(self.actorClaim) > 0) || (has(self.actorMatcher) && size(self.actorMatcher) > 0) || (has(self.allowMayAct) && self.allowMayAct)) || (has(self.allowedDelegateClients) && size(self.allowedDelegateClients) > 0)",
        "message": "allowedDelegateClients is required when expectedAudience, actorClaim, actorMatcher, or allowMayAct is set",
    },
]))]
pub struct TrustedIssuer {
    /// The claim of a token that names the program it was issued to, which is compared with allowedActors. Claims
    /// with a meaning of their own, such as sub, are refused. Defaults to azp.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub actor_claim: Option<String>,
    /// A CEL expression over `claims` that is true for tokens that may be exchanged, beside those of allowedActors.
    /// An error while it is evaluated counts as no.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub actor_matcher: Option<String>,
    /// Whether a token may say in its may_act claim who may act for its subject.
    #[serde(default)]
    pub allow_may_act: bool,
    /// Whether the signing keys may be fetched from a private address. Needs jwksUrl.
    #[serde(rename = "allowPrivateIPs", skip_serializing_if = "Option::is_none")]
    pub allow_private_ips: Option<bool>,
    /// Values of the actor claim whose tokens may be exchanged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 50),
        inner(length(min = 1, max = 256)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub allowed_actors: Vec<String>,
    /// The delegate clients that may exchange tokens of this issuer, or `*` alone for all of them. Required with
    /// expectedAudience.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 50),
        inner(length(min = 1, max = 256)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub allowed_delegate_clients: Vec<String>,
    /// The audience that a token must carry to be exchanged. It can be left out only when jwtBearerGrant is the one
    /// use of this issuer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048))]
    pub expected_audience: Option<String>,
    /// Whether the issuer and its keys may have plain http addresses. For development only: whoever can change the
    /// traffic can forge tokens.
    #[serde(rename = "insecureAllowHTTP", skip_serializing_if = "Option::is_none")]
    pub insecure_allow_http: Option<bool>,
    /// The issuer exactly as its tokens name it; a slash at the end matters. It must not be this server's own.
    #[schemars(length(min = 1, max = 2048))]
    pub issuer_url: String,
    /// Where the issuer publishes its signing keys. Without it they are found through the issuer's discovery
    /// document.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub jwks_url: Option<String>,
    /// Lets programs redeem a token of this issuer for an access token without a delegate client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwt_bearer_grant: Option<JwtBearerGrant>,
}

/// Who may redeem a signed assertion for an access token (RFC 7523), and for which resources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "duration(self.maxAssertionAge) > duration('0s')",
        "message": "maxAssertionAge must be greater than zero",
    },
    {
        "rule": "self.subjectBindings.all(binding, self.subjectBindings.filter(other, other.subject == binding.subject).size() == 1)",
        "message": "subjectBindings must not contain duplicate subjects",
    },
]))]
pub struct JwtBearerGrant {
    /// Audiences of which an assertion must carry one. They must differ from the audiences that this server issues
    /// tokens for. Defaults to the address of its token endpoint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 50),
        inner(length(min = 1, max = 2048), regex(pattern = r"^https?://[^[:space:]]+$")),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub accepted_audiences: Vec<String>,
    /// The longest time that may lie between the issue of an assertion and its expiry, for example `5m`.
    pub max_assertion_age: String,
    /// The subjects that may redeem assertions, each listed once.
    #[schemars(length(min = 1, max = 50), extend("x-kubernetes-list-type" = "atomic"))]
    pub subject_bindings: Vec<SubjectBinding>,
}

/// One subject, and the resources it may get tokens for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubjectBinding {
    /// The resources that the subject may name in its request. They must be among the audiences that this server
    /// issues tokens for.
    #[schemars(
        length(min = 1, max = 50),
        inner(length(min = 1, max = 2048), regex(pattern = r"^https?://[^[:space:]]+$")),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub allowed_resources: Vec<String>,
    /// The subject exactly as the assertion names it. There are no wildcards.
    #[schemars(length(min = 1, max = 256), regex(pattern = r"^[^*]+$"))]
    pub subject: String,
}
