//! What makes an MCPTelemetryConfig valid.

use std::sync::LazyLock;

use http::{HeaderValue, Uri};
use skep_api::kinds::MCPTelemetryConfig;
use skep_api::kinds::ca_bundle::CABundleRef;
use skep_api::kinds::mcp_telemetry_config::OpenTelemetry;
use skep_api::names::finalizers;
use url::Url;

use super::address::{self, Reach};
use super::rules::Rules;
use super::{Complaint, ConfigKind};
use crate::{ca_bundle, header_names};

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
    let Some(endpoint) = telemetry.endpoint.as_deref().filter(|endpoint| !endpoint.is_empty()) else { return Ok(()) };
    if !traced && !measured {
        return Err("endpoint requires at least one of tracing or metrics to be enabled".to_owned());
    }
    check_collector(endpoint, telemetry.insecure)
}

/// Whether there is an address for each kind of things that a collector is told.
fn check_collector(endpoint: &str, insecure: bool) -> Result<(), String> {
    const FIELD: &str = "openTelemetry.endpoint";
    let place = endpoint.strip_prefix("https://").or_else(|| endpoint.strip_prefix("http://")).unwrap_or(endpoint);
    let scheme = if insecure { "http" } else { "https" };
    let address = format!("{scheme}://{}/v1/traces", place.trim_end_matches('/'));
    let uri: Option<Uri> = address.parse().ok();
    let has_place = |uri: &Uri| uri.host().is_some_and(|host| !host.is_empty()) && uri.query().is_none();
    let parsed = Url::parse(&address).ok().filter(|parsed| parsed.fragment().is_none());
    let parsed = parsed.filter(|_| uri.as_ref().is_some_and(has_place));
    let parsed = parsed.ok_or_else(|| format!("{FIELD} {endpoint:?} is not of the form HOST:PORT[/BASE]"))?;
    address::check_user(FIELD, &parsed)?;
    address::check_reach(FIELD, &address, &parsed, Reach::Private)
}

/// What values say is not repeated.
fn check_headers(telemetry: &OpenTelemetry) -> Result<(), String> {
    for (name, value) in &telemetry.headers {
        header_names::check_name(name).map_err(|cause| format!("openTelemetry.headers: {cause}"))?;
        if HeaderValue::from_str(value.expose()).is_err() {
            return Err(format!(
                "openTelemetry.headers: the value of {name} has characters that a header cannot hold, such as line breaks"
            ));
        }
    }
    for (index, header) in telemetry.sensitive_headers.iter().enumerate() {
        let members = [
            ("name", &header.name),
            ("secretKeyRef.name", &header.secret_key_ref.name),
            ("secretKeyRef.key", &header.secret_key_ref.key),
        ];
        if let Some((member, _)) = members.iter().find(|(_, value)| value.is_empty()) {
            return Err(format!("openTelemetry.sensitiveHeaders[{index}].{member} must not be empty"));
        }
        header_names::check_name(&header.name)
            .map_err(|cause| format!("openTelemetry.sensitiveHeaders[{index}].name: {cause}"))?;
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
        let traced = |endpoint: &str| json!({"endpoint": endpoint, "tracing": {"enabled": true}});
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
            (open(traced("https://c:4318/base/")), ""),
            (open(traced("10.0.0.5:4318")), ""),
            (open(traced("c?x=1")), "openTelemetry.endpoint \"c?x=1\" is not of the form HOST:PORT[/BASE]"),
            (open(traced("a b")), "openTelemetry.endpoint \"a b\" is not of the form HOST:PORT[/BASE]"),
            (open(traced("https://")), "openTelemetry.endpoint \"https://\" is not of the form HOST:PORT[/BASE]"),
            (open(traced("c:port")), "openTelemetry.endpoint \"c:port\" is not of the form HOST:PORT[/BASE]"),
            (
                open(traced("169.254.169.254:80")),
                "openTelemetry.endpoint \"https://169.254.169.254:80/v1/traces\" is at a link-local or reserved address, \
                 which no proxy asks",
            ),
            (
                open(traced("user:hunter2@c:4318")),
                "openTelemetry.endpoint must not have a user or a password in it: a proxy does not send them",
            ),
            (open(json!({"headers": {"X-Team": "bees"}})), ""),
            (
                open(json!({"headers": {"a b": "1"}})),
                "openTelemetry.headers: \"a b\" is no name of a header; use letters, digits and hyphens",
            ),
            (
                open(json!({"headers": {"X-Key": "hunter2\n"}})),
                "openTelemetry.headers: the value of X-Key has characters that a header cannot hold, such as line breaks",
            ),
            (
                open(header("a b", "s", "k")),
                "openTelemetry.sensitiveHeaders[0].name: \"a b\" is no name of a header; use letters, digits and hyphens",
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
