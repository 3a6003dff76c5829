//! MCPOIDCConfig: how tokens of clients are checked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::ca_bundle::CABundleRef;
use super::config_status::{ConfigStatus, REFERENCES_COLUMN, VALID_COLUMN};
use super::references::SecretKeyRef;
use crate::kind::{Column, Versions, kind};
use crate::names::service_account_files;

kind! {
    /// MCPOIDCConfig says how the tokens of clients are checked: who issues them and where the keys are found.
    /// Workloads name it in their oidcConfigRef, where each of them adds the audience and the scopes of its own.
    MCPOIDCConfig(MCPOIDCConfigSpec, ConfigStatus) {
        plural: "mcpoidcconfigs",
        short_names: &["mcpoidc"],
        versions: Versions::BetaAndDeprecatedAlpha,
        columns: &[Column::string("Source", ".spec.type"), VALID_COLUMN, REFERENCES_COLUMN, Column::AGE],
        scale: None,
    }
}

/// Who issues the tokens of clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "self.type == 'kubernetesServiceAccount' ? has(self.kubernetesServiceAccount) : !has(self.kubernetesServiceAccount)",
        "message": "kubernetesServiceAccount must be set when type is 'kubernetesServiceAccount', and must not be set otherwise",
    },
    {
        "rule": "self.type == 'inline' ? has(self.inline) : !has(self.inline)",
        "message": "inline must be set when type is 'inline', and must not be set otherwise",
    },
]))]
pub struct MCPOIDCConfigSpec {
    /// An OpenID Connect provider. Set it when type is inline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inline: Option<InlineOIDC>,
    /// The cluster as the issuer. Set it when type is kubernetesServiceAccount; an empty object will do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes_service_account: Option<KubernetesServiceAccountOIDC>,
    /// What kind of issuer it is.
    #[serde(rename = "type")]
    pub type_: OIDCSource,
}

/// Kinds of issuers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OIDCSource {
    /// The cluster: clients are pods that come with the token of their service account.
    KubernetesServiceAccount,
    /// An OpenID Connect provider that is described in this object.
    #[default]
    Inline,
}

/// An OpenID Connect provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InlineOIDC {
    /// The authorities that vouch for the provider's certificate. Defaults to those that the system trusts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_bundle_ref: Option<CABundleRef>,
    /// The client as which the proxy asks the introspection endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The key of a Secret that holds the secret of that client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret_ref: Option<SecretKeyRef>,
    /// Whether the provider may have plain http addresses. For development only: whoever can change the traffic can
    /// forge tokens.
    #[serde(rename = "insecureAllowHTTP", default)]
    pub insecure_allow_http: bool,
    /// The endpoint that says whether a token is good (RFC 7662). Set it when tokens are not JWTs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub introspection_url: Option<String>,
    /// The issuer exactly as tokens name it. Everything else is discovered from there.
    pub issuer: String,
    /// Whether the provider may have a private address. The same as protectedResourceAllowPrivateIP: either of the
    /// two is enough.
    #[serde(rename = "jwksAllowPrivateIP", default)]
    pub jwks_allow_private_ip: bool,
    /// A file in the proxy's container that holds a bearer token for requests to the provider, when its keys are
    /// not public.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwks_auth_token_path: Option<String>,
    /// Where the provider publishes its signing keys. Without it they are found through the discovery document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwks_url: Option<String>,
    /// Whether the provider may have a private address. The same as jwksAllowPrivateIP: either of the two is enough.
    #[serde(rename = "protectedResourceAllowPrivateIP", default)]
    pub protected_resource_allow_private_ip: bool,
}

/// The cluster as the issuer of service-account tokens.
#[derive(Clone, Debug, SmartDefault, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesServiceAccountOIDC {
    /// The endpoint that says whether a token is good. Seldom needed, as these tokens are JWTs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub introspection_url: Option<String>,
    /// The issuer of the cluster's tokens.
    #[serde(default = "default_cluster_issuer")]
    #[default(default_cluster_issuer())]
    pub issuer: String,
    /// Where the cluster publishes its signing keys. Without it they are found through the discovery document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwks_url: Option<String>,
    /// The namespace of the service account that is meant. A remark for readers: it is not checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The service account that is meant. A remark for readers: tokens of any service account with the right
    /// audience pass. Say in a policy who may do what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account: Option<String>,
    /// Whether the proxy talks to the issuer with the CA certificate and the token of its own pod, and at a private
    /// address. Defaults to true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub use_cluster_auth: Option<bool>,
}

fn default_cluster_issuer() -> String {
    service_account_files::DEFAULT_ISSUER.to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_left_out_is_what_the_default_has() {
        let account = serde_json::from_value::<KubernetesServiceAccountOIDC>(json!({})).unwrap();
        assert_eq!(account, KubernetesServiceAccountOIDC::default());
        assert_eq!(serde_json::from_value::<InlineOIDC>(json!({ "issuer": "" })).unwrap(), InlineOIDC::default());
    }
}
