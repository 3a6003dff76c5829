//! What makes an MCPTelemetryConfig valid.

use std::sync::LazyLock;

use skep_api::kinds::MCPTelemetryConfig;
use skep_api::kinds::ca_bundle::CABundleRef;
use skep_api::kinds::mcp_telemetry_config::OpenTelemetry;
use skep_api::names::finalizers;

use super::rules::Rules;
use super::{Complaint, ConfigKind};
use crate::ca_bundle;

static RULES: LazyLock<Rules> = LazyLock::new(Rules::of::<MCPTelemetryConfig>);

impl ConfigKind for MCPTelemetryConfig {
    const FINALIZER: &'static str = finalizers::MCP_TELEMETRY_CONFIG;

    fn judge(&self) -> Result<(), Complaint> {
        let Some(telemetry) = &self.spec.open_telemetry else { return Ok(()) };
        check_endpoint(telemetry)?;
        check_headers(telemetry)?;
        RULES.check(&self.spec)?;
        if let Some(bundle) = &telemetry.ca_bundle_ref {
            check_bundle(bundle, telemetry.insecure)?;
        }
        Ok(())
    }
}

fn check_endpoint(telemetry: &OpenTelemetry) -> Result<(), String> {
    let traced = telemetry.tracing.as_ref().is_some_and(|tracing| tracing.enabled);
    let measured = telemetry.metrics.is_some_and(|metrics| metrics.enabled);
    if telemetry.endpoint.as_ref().is_some_and(|endpoint| !endpoint.is_empty()) && !traced && !measured {
        return Err("endpoint requires at least one of tracing or metrics to be enabled".to_owned());
    }
    Ok(())
}

fn check_headers(telemetry: &OpenTelemetry) -> Result<(), String> {
    for (index, header) in telemetry.sensitive_headers.iter().enumerate() {
        let members = [
            ("name", &header.name),
            ("secretKeyRef.name", &header.secret_key_ref.name),
            ("secretKeyRef.key", &header.secret_key_ref.key),
        ];
        if let Some((member, _)) = members.iter().find(|(_, value)| value.is_empty()) {
            return Err(format!("openTelemetry.sensitiveHeaders[{index}].{member} must not be empty"));
        }
    }
    Ok(())
}

fn check_bundle(bundle: &CABundleRef, insecure: bool) -> Result<(), String> {
    const FIELD: &str = "openTelemetry.caBundleRef";
    if insecure {
        return Err(format!("{FIELD} cannot be combined with insecure: without TLS there is no certificate to check"));
    }
    ca_bundle::check(bundle).map(drop).map_err(|cause| format!("{FIELD}: {cause}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use skep_api::kinds::MCPTelemetryConfig;

    use crate::config::judge;

    #[test]
    fn specs_are_judged() {
        let open = |telemetry: Value| json!({"openTelemetry": telemetry});
        let header = |name: &str, secret: &str, key: &str| json!({"sensitiveHeaders": [{"name": name, "secretKeyRef": {"name": secret, "key": key}}]});
        let bundle = |name: &str| json!({"caBundleRef": {"configMapRef": {"name": name, "key": "ca.crt"}}});
        let both = json!({"headers": {"a": "1"}, "sensitiveHeaders": [{"name": "a", "secretKeyRef": {"name": "s", "key": "k"}}]});
        let insecure = json!({"insecure": true, "caBundleRef": {"configMapRef": {"name": "c", "key": "k"}}});
        judge::<MCPTelemetryConfig>([
            (json!({}), ""),
            (json!({"prometheus": {"enabled": true}}), ""),
            (open(json!({})), ""),
            (open(json!({"endpoint": ""})), ""),
            (open(json!({"endpoint": "c:4318", "tracing": {"enabled": true}})), ""),
            (open(json!({"endpoint": "c:4318", "metrics": {"enabled": true}})), ""),
            (
                open(json!({"endpoint": "c:4318", "tracing": {"enabled": false}})),
                "endpoint requires at least one of tracing or metrics to be enabled",
            ),
            (open(header("a", "s", "k")), ""),
            (open(header("", "s", "k")), "openTelemetry.sensitiveHeaders[0].name must not be empty"),
            (open(header("a", "", "k")), "openTelemetry.sensitiveHeaders[0].secretKeyRef.name must not be empty"),
            (open(header("a", "s", "")), "openTelemetry.sensitiveHeaders[0].secretKeyRef.key must not be empty"),
            (open(both), "openTelemetry: a header name cannot appear in both headers and sensitiveHeaders"),
            (open(bundle(&"c".repeat(48))), ""),
            (
                open(bundle(&"c".repeat(49))),
                "openTelemetry.caBundleRef: configMapRef.name \"ccccccccccccccccccccccccccccccccccccccccccccccccc\" is too \
                 long (49 chars); maximum is 48 characters to fit in Kubernetes volume name",
            ),
            (open(bundle("")), "openTelemetry.caBundleRef: configMapRef.name must be specified"),
            (
                open(json!({"caBundleRef": {}})),
                "openTelemetry.caBundleRef: configMapRef must be specified in caBundleRef",
            ),
            (
                open(insecure),
                "openTelemetry.caBundleRef cannot be combined with insecure: without TLS there is no certificate to check",
            ),
        ]);
    }
}
