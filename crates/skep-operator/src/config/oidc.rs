//! What makes an MCPOIDCConfig valid.

use skep_api::conditions::reasons;
use skep_api::kinds::MCPOIDCConfig;
use skep_api::kinds::mcp_oidc_config::{InlineOIDC, KubernetesServiceAccountOIDC, OIDCSource};
use skep_api::names::finalizers;

use super::address::{self, Plain, Reach};
use super::{Complaint, ConfigKind, for_empty};

impl ConfigKind for MCPOIDCConfig {
    const FINALIZER: &'static str = finalizers::MCP_OIDC_CONFIG;
    const REASONS: (&'static str, &'static str) = (reasons::CONFIG_VALID, reasons::CONFIG_INVALID);

    fn judge(&self) -> Result<(), Complaint> {
        let spec = &self.spec;
        let sources = [
            (
                "kubernetesServiceAccount",
                OIDCSource::KubernetesServiceAccount,
                spec.kubernetes_service_account.is_some(),
            ),
            ("inline", OIDCSource::Inline, spec.inline.is_some()),
        ];
        for (name, source, is_set) in sources {
            if is_set != (spec.type_ == source) {
                let message = format!("{name} configuration must be set if and only if type is '{name}'");
                return Err(for_empty(spec, message).into());
            }
        }
        if let Some(inline) = &spec.inline {
            check_inline(inline)?;
        }
        if let Some(cluster) = &spec.kubernetes_service_account {
            check_cluster(cluster)?;
        }
        Ok(())
    }
}

/// What a proxy could not start with, or could never find a key with.
fn check_inline(inline: &InlineOIDC) -> Result<(), String> {
    let key_set = inline.jwks_url.as_deref().unwrap_or_default();
    if inline.issuer.is_empty() && key_set.is_empty() {
        return Err(
            "inline.issuer must be set: tokens are checked with its keys; without it set inline.jwksUrl".to_owned()
        );
    }
    let introspection = inline.introspection_url.as_deref().unwrap_or_default();
    let plain = if inline.insecure_allow_http {
        Plain::Allowed
    } else {
        Plain::Switched("set inline.insecureAllowHTTP to true to allow http during development")
    };
    let reach = if inline.jwks_allow_private_ip || inline.protected_resource_allow_private_ip {
        Reach::Private
    } else {
        Reach::Public("set inline.jwksAllowPrivateIP to true to allow it")
    };
    address::check("inline.issuer", &inline.issuer, plain, issuer_reach(key_set, reach))?;
    address::check("inline.jwksUrl", key_set, plain, reach)?;
    address::check("inline.introspectionUrl", introspection, plain, reach)
}

/// There is no switch here: the credential of the pod itself goes to these addresses.
fn check_cluster(cluster: &KubernetesServiceAccountOIDC) -> Result<(), String> {
    let key_set = cluster.jwks_url.as_deref().unwrap_or_default();
    let introspection = cluster.introspection_url.as_deref().unwrap_or_default();
    let (plain, reach) = if cluster.use_cluster_auth.unwrap_or(true) {
        (Plain::Refused, Reach::Private)
    } else {
        (Plain::Refused, Reach::Public("set kubernetesServiceAccount.useClusterAuth to true to allow it"))
    };
    address::check("kubernetesServiceAccount.issuer", &cluster.issuer, plain, issuer_reach(key_set, reach))?;
    address::check("kubernetesServiceAccount.jwksUrl", key_set, plain, reach)?;
    address::check("kubernetesServiceAccount.introspectionUrl", introspection, plain, reach)
}

/// An issuer whose keys are elsewhere is not asked for anything.
fn issuer_reach<'a>(key_set: &str, reach: Reach<'a>) -> Reach<'a> {
    if key_set.is_empty() { reach } else { Reach::Unasked }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use skep_api::kinds::MCPOIDCConfig;

    use crate::config::judge;

    #[expect(clippy::needless_pass_by_value, reason = "it is made for this")]
    fn inline(inline: Value) -> Value {
        json!({"type": "inline", "inline": inline})
    }

    #[expect(clippy::needless_pass_by_value, reason = "it is made for this")]
    fn cluster(cluster: Value) -> Value {
        json!({"type": "kubernetesServiceAccount", "kubernetesServiceAccount": cluster})
    }

    #[test]
    fn specs_are_judged() {
        judge::<MCPOIDCConfig>([
            (json!({"type": "kubernetesServiceAccount", "kubernetesServiceAccount": {}}), ""),
            (
                json!({"type": "kubernetesServiceAccount"}),
                "kubernetesServiceAccount configuration must be set if and only if type is 'kubernetesServiceAccount'",
            ),
            (
                json!({"type": "inline"}),
                "inline configuration must be set if and only if type is 'inline', which it is when the spec says no type",
            ),
            (inline(json!({"issuer": "https://issuer.example"})), ""),
            (
                inline(json!({"issuer": ""})),
                "inline.issuer must be set: tokens are checked with its keys; without it set inline.jwksUrl",
            ),
            (inline(json!({"issuer": "", "jwksUrl": "https://keys.example"})), ""),
            (
                inline(json!({"issuer": "https://issuer.example", "introspectionUrl": "http://issuer.example/i"})),
                "inline.introspectionUrl \"http://issuer.example/i\" must use https; set inline.insecureAllowHTTP to true to \
                 allow http during development",
            ),
            (
                inline(json!({"issuer": "https://issuer.example", "introspectionUrl": "/introspect"})),
                "inline.introspectionUrl \"/introspect\" is not a URL: relative URL without a base",
            ),
            (
                cluster(json!({"issuer": "http://kubernetes.default.svc"})),
                "kubernetesServiceAccount.issuer \"http://kubernetes.default.svc\" must use https",
            ),
            (
                cluster(json!({"jwksUrl": "keys"})),
                "kubernetesServiceAccount.jwksUrl \"keys\" is not a URL: relative URL without a base",
            ),
            (
                cluster(json!({"introspectionUrl": "ftp://kubernetes/i"})),
                "kubernetesServiceAccount.introspectionUrl \"ftp://kubernetes/i\" must use https, not ftp",
            ),
            (
                inline(json!({"issuer": "http://issuer.example"})),
                "inline.issuer \"http://issuer.example\" must use https; set inline.insecureAllowHTTP to true to allow \
                 http during development",
            ),
            (inline(json!({"issuer": "http://issuer.example", "insecureAllowHTTP": true})), ""),
            (
                inline(json!({"issuer": "issuer.example"})),
                "inline.issuer \"issuer.example\" is not a URL: relative URL without a base",
            ),
            (
                inline(json!({"issuer": "ftp://issuer.example"})),
                "inline.issuer \"ftp://issuer.example\" must use https, not ftp",
            ),
            (
                inline(json!({"issuer": "https://issuer.example", "jwksUrl": "http://keys"})),
                "inline.jwksUrl \"http://keys\" must use https; set inline.insecureAllowHTTP to true to allow http during \
                 development",
            ),
            (inline(json!({"issuer": "https://"})), "inline.issuer \"https://\" is not a URL: empty host"),
        ]);
    }

    #[test]
    fn addresses_inside_are_asked_only_where_somebody_says_so() {
        judge::<MCPOIDCConfig>([
            (
                inline(json!({"issuer": "https://10.0.0.5"})),
                "inline.issuer \"https://10.0.0.5\" is at a private address; set inline.jwksAllowPrivateIP to true to \
                 allow it",
            ),
            (inline(json!({"issuer": "https://10.0.0.5", "jwksAllowPrivateIP": true})), ""),
            (inline(json!({"issuer": "https://10.0.0.5", "protectedResourceAllowPrivateIP": true})), ""),
            (inline(json!({"issuer": "https://10.0.0.5", "jwksUrl": "https://keys.example"})), ""),
            (
                inline(json!({"issuer": "https://issuer.example", "jwksUrl": "https://10.0.0.5/keys"})),
                "inline.jwksUrl \"https://10.0.0.5/keys\" is at a private address; set inline.jwksAllowPrivateIP to true to \
                 allow it",
            ),
            (
                inline(json!({"issuer": "https://169.254.169.254", "jwksAllowPrivateIP": true})),
                "inline.issuer \"https://169.254.169.254\" is at a link-local or reserved address, which no proxy asks",
            ),
            (cluster(json!({"issuer": "https://10.96.0.1"})), ""),
            (
                cluster(json!({"issuer": "https://10.96.0.1", "useClusterAuth": false})),
                "kubernetesServiceAccount.issuer \"https://10.96.0.1\" is at a private address; set \
                 kubernetesServiceAccount.useClusterAuth to true to allow it",
            ),
        ]);
    }

    #[test]
    fn an_object_without_a_spec_is_invalid() {
        use crate::config::ConfigKind as _;
        let object: MCPOIDCConfig = serde_json::from_value(json!({"metadata": {"name": "c"}})).unwrap();
        assert!(object.validate().is_err());
    }
}
