//! Pods, and the specs of pods in templates.

use std::collections::HashSet;

use super::super::place::{At, one_of};
use super::affinity::affinity;
use super::container::{self, Volumes};
use super::profile::profiles;
use super::{resources, spreading, volume};
use crate::names::{
    ADDRESS_FORM, address, dns1123_label, dns1123_search, dns1123_subdomain, label_value, qualified_name,
};
use crate::status::FieldError;

const IDENTIFIER: &str = "must be between 0 and 2147483647, inclusive";

pub(super) fn pod(root: &At<'_>) -> Vec<FieldError> {
    let spec = root.member("spec");
    let mut errors = pod_spec(&spec);
    if !spec.items("schedulingGates").is_empty() && !spec.text("nodeName").is_empty() {
        errors.push(spec.member("nodeName").forbidden("cannot be set until all schedulingGates have been cleared"));
    }
    errors
}

pub(super) fn pod_spec(spec: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let volumes: Volumes<'_> = volume::volumes(spec, &mut errors);
    errors.extend(container::containers(spec, &volumes));
    errors.extend(one_of(&spec.member("restartPolicy"), &["Always", "OnFailure", "Never"]));
    errors.extend(one_of(&spec.member("dnsPolicy"), &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]));
    errors.extend(spec.member("nodeSelector").labels());
    errors.extend(security(&spec.member("securityContext")));
    if spec.flag("shareProcessNamespace") && spec.flag("hostPID") {
        let shared = spec.deep("securityContext.shareProcessNamespace");
        errors.push(shared.invalid_as(true, "ShareProcessNamespace and HostPID cannot both be enabled"));
    }
    errors.extend(affinity(&spec.member("affinity")));
    errors.extend(dns(&spec.member("dnsConfig"), spec.text("dnsPolicy")));
    errors.extend(gates(spec));
    errors.extend(spreading::spreading(spec));
    errors.extend(users(spec));
    errors.extend(node_names(spec));
    for toleration in spec.items("tolerations") {
        errors.extend(tolerate(&toleration));
    }
    for alias in spec.items("hostAliases") {
        let ip = alias.member("ip");
        if address(ip.own_text()).is_none() {
            errors.extend(ip.each(vec![ADDRESS_FORM.to_owned()]));
        }
        for name in alias.items("hostnames") {
            errors.extend(name.each(dns1123_subdomain(name.own_text())));
        }
    }
    errors.extend(resources::of_pod(&spec.member("resources")));
    errors.extend(resources::overhead(&spec.member("overhead")));
    errors.extend(system(&spec.member("os")));
    errors
}

/// What is in order and yet not what was meant, most likely.
pub(super) fn warnings(spec: &At<'_>) -> Vec<String> {
    let mut warnings = spreading::warnings(spec);
    warnings.extend(volume::warnings(spec));
    warnings
}

/// What a pod waits for before it is ready, and before it gets a node.
fn gates(spec: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for gate in spec.items("readinessGates") {
        let type_ = gate.member("conditionType");
        errors.extend(type_.each(qualified_name(type_.own_text())));
    }
    let mut seen = HashSet::new();
    for gate in spec.items("schedulingGates") {
        let name = gate.text("name");
        errors.extend(qualified_name(name).iter().map(|problem| gate.invalid_as(name, problem)));
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(gate.path.as_str(), name));
        }
    }
    errors
}

/// A pod whose users are not those of the host cannot share with the host what they could reach there.
fn users(spec: &At<'_>) -> Vec<FieldError> {
    if spec.value["hostUsers"] != false {
        return Vec::new();
    }
    let shared = [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")];
    let set = shared.into_iter().filter(|(name, _)| spec.flag(name));
    set.map(|(_, shown)| spec.member(shown).forbidden("when `hostUsers` is false")).collect()
}

fn system(os: &At<'_>) -> Option<FieldError> {
    if !os.is_set() {
        return None;
    }
    match os.text("name") {
        "" => Some(os.member("name").required("")),
        "linux" | "windows" => None,
        other => Some(FieldError::not_supported(os.path.as_str(), other, &["linux", "windows"])),
    }
}

fn node_names(spec: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (name, rule) in [
        ("serviceAccountName", dns1123_subdomain as fn(&str) -> Vec<String>),
        ("nodeName", dns1123_subdomain),
        ("hostname", dns1123_label),
        ("subdomain", dns1123_label),
        ("priorityClassName", dns1123_subdomain),
    ] {
        let place = spec.member(name);
        if !place.own_text().is_empty() {
            errors.extend(place.each(rule(place.own_text())));
        }
    }
    let deadline = spec.member("activeDeadlineSeconds");
    if deadline.value.as_i64().is_some_and(|seconds| !(1..=i64::from(i32::MAX)).contains(&seconds)) {
        errors.push(deadline.invalid("must be between 1 and 2147483647, inclusive"));
    }
    errors
}

fn security(context: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let identifiers = ["fsGroup", "runAsUser", "runAsGroup"].map(|name| context.member(name));
    for place in identifiers.into_iter().chain(context.items("supplementalGroups")) {
        errors.extend(identifier(&place));
    }
    for (name, supported) in [
        ("fsGroupChangePolicy", ["Always", "OnRootMismatch"].as_slice()),
        ("supplementalGroupsPolicy", &["Merge", "Strict"]),
        ("seLinuxChangePolicy", &["Recursive"]),
    ] {
        errors.extend(one_of(&context.member(name), supported));
    }
    errors.extend(profiles(context));
    let mut seen = HashSet::new();
    for sysctl in context.items("sysctls") {
        let name = sysctl.member("name");
        let part = |text: &str| {
            let edges = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
            edges(text.as_bytes().first())
                && edges(text.as_bytes().last())
                && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte))
        };
        if name.own_text().is_empty() {
            errors.push(name.required(""));
        } else if name.own_text().len() > 253 || !name.own_text().split(['.', '/']).all(part) {
            let detail = r"must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
            errors.push(name.invalid(detail));
        } else if !seen.insert(name.own_text()) {
            errors.push(name.duplicate());
        }
    }
    errors
}

/// The number of a user or group.
pub(super) fn identifier(place: &At<'_>) -> Option<FieldError> {
    let number = place.value.as_i64()?;
    (!(0..=i64::from(i32::MAX)).contains(&number)).then(|| place.invalid(IDENTIFIER))
}

fn dns(config: &At<'_>, policy: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let servers = config.items("nameservers");
    if policy == "None" {
        if !config.is_set() {
            return vec![config.required("must provide `dnsConfig` when `dnsPolicy` is None")];
        }
        if servers.is_empty() {
            errors.push(
                config
                    .member("nameservers")
                    .required("must provide at least one DNS nameserver when `dnsPolicy` is None"),
            );
        }
    }
    let mut limit = |name: &str, most: usize, what: &str| {
        let list = config.member(name);
        if config.items(name).len() > most {
            errors.push(list.invalid(&format!("must not have more than {most} {what}")));
        }
    };
    limit("nameservers", 3, "nameservers");
    limit("searches", 32, "search paths");
    for server in servers {
        if address(server.own_text()).is_none() {
            errors.extend(server.each(vec![ADDRESS_FORM.to_owned()]));
        }
    }
    for search in config.items("searches") {
        let name = search.own_text();
        if name != "." {
            errors.extend(search.each(dns1123_search(name.strip_suffix('.').unwrap_or(name))));
        }
    }
    for option in config.items("options") {
        if option.text("name").is_empty() {
            errors.push(option.required("must not be empty"));
        }
    }
    errors
}

fn tolerate(toleration: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let key = toleration.member("key");
    let operator = toleration.member("operator");
    let effect = toleration.member("effect");
    if !key.own_text().is_empty() {
        errors.extend(key.each(qualified_name(key.own_text())));
    }
    if key.own_text().is_empty() && operator.own_text() != "Exists" {
        let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.push(operator.invalid_as(operator.own_text(), detail));
    }
    if toleration.has("tolerationSeconds") && effect.own_text() != "NoExecute" {
        errors.push(effect.invalid_as(effect.own_text(), "effect must be 'NoExecute' when `tolerationSeconds` is set"));
    }
    match operator.own_text() {
        "" | "Equal" => {
            let messages = label_value(toleration.text("value"));
            if let Some(first) = messages.first() {
                errors.push(operator.invalid_as(toleration.text("value"), first));
            }
        }
        "Exists" => {
            if !toleration.text("value").is_empty() {
                errors.push(
                    operator.invalid_as(toleration.text("value"), "value must be empty when `operator` is 'Exists'"),
                );
            }
        }
        // Known, but for a feature that is off.
        "Lt" | "Gt" => errors.push(operator.unsupported(&["Equal", "Exists", "Lt", "Gt"])),
        _ => errors.push(operator.unsupported(&["Equal", "Exists"])),
    }
    if !matches!(effect.own_text(), "" | "NoSchedule" | "PreferNoSchedule" | "NoExecute") {
        errors.push(effect.unsupported(&["NoSchedule", "PreferNoSchedule", "NoExecute"]));
    }
    errors
}
