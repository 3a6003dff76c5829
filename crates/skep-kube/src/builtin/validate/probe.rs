//! Probes and lifecycle hooks.

use super::super::place::{At, not_negative, one_of, port_or_name};
use crate::status::FieldError;

/// `grace` is how many seconds the pod has to end.
pub(super) fn probes(container: &At<'_>, grace: i64) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let lifecycle = container.member("lifecycle");
    for name in ["postStart", "preStop"] {
        let hook = lifecycle.member(name);
        if hook.is_set() {
            errors.extend(handler(&hook, grace));
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = container.member(name);
        if !probe.is_set() {
            continue;
        }
        errors.extend(handler(&probe, grace));
        for number in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
        {
            errors.extend(not_negative(&probe.member(number)));
        }
        let own_grace = probe.member("terminationGracePeriodSeconds");
        if own_grace.value.as_i64().is_some_and(|seconds| seconds <= 0) {
            errors.push(own_grace.invalid("must be greater than 0"));
        }
        if name == "readinessProbe" && own_grace.is_set() {
            errors.push(own_grace.invalid("must not be set for readinessProbes"));
        }
        let threshold = probe.member("successThreshold");
        if name != "readinessProbe" && threshold.value.as_i64().is_some_and(|number| number != 1) {
            errors.push(threshold.invalid("must be 1"));
        }
    }
    errors
}

fn handler(place: &At<'_>, grace: i64) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut found = 0;
    for kind in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let action = place.member(kind);
        if !action.is_set() {
            continue;
        }
        found += 1;
        if found > 1 {
            errors.push(action.forbidden("may not specify more than 1 handler type"));
            continue;
        }
        match kind {
            "exec" => {
                let command = action.member("command");
                if command.value.as_array().is_none_or(Vec::is_empty) {
                    errors.push(command.required(""));
                }
            }
            "httpGet" => errors.extend(http_get(&action)),
            "tcpSocket" | "grpc" => errors.extend(port_or_name(&action.member("port"))),
            _ => errors.extend(sleep(&action, grace)),
        }
    }
    if found == 0 {
        errors.push(place.required("must specify a handler type"));
    }
    errors
}

fn sleep(action: &At<'_>, grace: i64) -> Option<FieldError> {
    let seconds = action.number("seconds").unwrap_or_default();
    let detail = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
    (!(0..=grace).contains(&seconds)).then(|| action.invalid_as(seconds, &detail))
}

fn http_get(action: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if action.text("path").is_empty() {
        errors.push(action.member("path").required(""));
    }
    errors.extend(port_or_name(&action.member("port")));
    errors.extend(one_of(&action.member("scheme"), &["HTTP", "HTTPS"]));
    for header in action.items("httpHeaders") {
        let name = header.member("name");
        let valid = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if name.own_text().is_empty() || !name.own_text().bytes().all(valid) {
            let detail = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
            // The real server leaves the index and the member out.
            errors.push(action.member("httpHeaders").invalid_as(name.own_text(), detail));
        }
    }
    errors
}
