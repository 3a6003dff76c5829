//! What makes an MCPOIDCConfig valid.

use skep_api::conditions::reasons;
use skep_api::kinds::MCPOIDCConfig;
use skep_api::kinds::mcp_oidc_config::{InlineOIDC, OIDCSource};
use skep_api::names::finalizers;
use url::Url;

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
            check_urls(inline)?;
        }
        Ok(())
    }
}

fn check_urls(inline: &InlineOIDC) -> Result<(), String> {
    let urls = [("inline.issuer", Some(&inline.issuer)), ("inline.jwksUrl", inline.jwks_url.as_ref())];
    for (field, url) in urls {
        let Some(url) = url.filter(|url| !url.is_empty()) else { continue };
        let parsed = Url::parse(url).map_err(|error| format!("{field} {url:?} is not a URL: {error}"))?;
        match parsed.scheme() {
            "https" => {}
            "http" if inline.insecure_allow_http => {}
            "http" => {
                return Err(format!(
                    "{field} {url:?} must use https; set inline.insecureAllowHTTP to true to allow http during development"
                ));
            }
            other => return Err(format!("{field} {url:?} must use https, not {other}")),
        }
        if !parsed.has_host() {
            return Err(format!("{field} {url:?} must have a host"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use skep_api::kinds::MCPOIDCConfig;

    use crate::config::judge;

    #[test]
    fn specs_are_judged() {
        let inline = |inline: Value| json!({"type": "inline", "inline": inline});
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
            (inline(json!({"issuer": ""})), ""),
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
    fn an_object_without_a_spec_is_invalid() {
        use crate::config::ConfigKind as _;
        let object: MCPOIDCConfig = serde_json::from_value(json!({"metadata": {"name": "c"}})).unwrap();
        assert!(object.validate().is_err());
    }
}
