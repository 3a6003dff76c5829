//! The environment of a container: service variables, then `envFrom`, then `env`, later ones winning.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{ConfigMap, Container, EnvVarSource, Pod, Secret, Service};
use kube::ResourceExt as _;

use super::expand::expand;
use super::field::{self, Place};

/// The ConfigMaps and Secrets that a container's environment names, as far as they exist.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    pub(crate) config_maps: BTreeMap<String, ConfigMap>,
    pub(crate) secrets: BTreeMap<String, Secret>,
}

/// What keeps a container from being created; the words are the kubelet's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EnvironmentError {
    #[error("configmap {0:?} not found")]
    NoConfigMap(String),
    #[error("secret {0:?} not found")]
    NoSecret(String),
    #[error("couldn't find key {key} in {kind} {namespace}/{name}")]
    NoKey { kind: &'static str, namespace: String, name: String, key: String },
    #[error("unsupported fieldPath: {0}")]
    NoField(String),
    #[error("secret {name:?} has a value for {key:?} that is not text")]
    NotText { name: String, key: String },
}

/// The names of the ConfigMaps and of the Secrets that the environment needs.
pub(crate) fn references(container: &Container) -> (BTreeSet<String>, BTreeSet<String>) {
    let mut config_maps = BTreeSet::new();
    let mut secrets = BTreeSet::new();
    for source in container.env_from.iter().flatten() {
        config_maps.extend(source.config_map_ref.iter().map(|reference| reference.name.clone()));
        secrets.extend(source.secret_ref.iter().map(|reference| reference.name.clone()));
    }
    for source in container.env.iter().flatten().filter_map(|variable| variable.value_from.as_ref()) {
        config_maps.extend(source.config_map_key_ref.iter().map(|reference| reference.name.clone()));
        secrets.extend(source.secret_key_ref.iter().map(|reference| reference.name.clone()));
    }
    (config_maps, secrets)
}

/// Builds the environment. `services` are the variables of [`service_variables`].
pub(crate) fn build(
    pod: &Pod,
    container: &Container,
    sources: &Sources,
    services: BTreeMap<String, String>,
    place: &Place,
) -> Result<BTreeMap<String, String>, EnvironmentError> {
    let mut environment = services;
    for source in container.env_from.iter().flatten() {
        let prefix = source.prefix.as_deref().unwrap_or_default();
        let mut take = |key: &str, value: String| environment.insert(format!("{prefix}{key}"), value);
        if let Some(reference) = &source.config_map_ref {
            match sources.config_maps.get(&reference.name) {
                Some(map) => map.data.iter().flatten().for_each(|(key, value)| drop(take(key, value.clone()))),
                None if reference.optional == Some(true) => {}
                None => return Err(EnvironmentError::NoConfigMap(reference.name.clone())),
            }
        }
        if let Some(reference) = &source.secret_ref {
            match sources.secrets.get(&reference.name) {
                Some(secret) => {
                    for key in secret.data.iter().flatten().map(|(key, _)| key) {
                        take(key, text(secret, &reference.name, key)?.unwrap_or_default());
                    }
                }
                None if reference.optional == Some(true) => {}
                None => return Err(EnvironmentError::NoSecret(reference.name.clone())),
            }
        }
    }
    for variable in container.env.iter().flatten() {
        let value = if let Some(source) = &variable.value_from {
            referenced(pod, container, source, sources, place)?
        } else {
            let value = variable.value.as_deref().unwrap_or_default();
            Some(expand(value, |name| environment.get(name).cloned()))
        };
        if let Some(value) = value {
            environment.insert(variable.name.clone(), value);
        }
    }
    Ok(environment)
}

/// The value of a reference, or nothing for an optional one whose target is not there.
fn referenced(
    pod: &Pod,
    container: &Container,
    source: &EnvVarSource,
    sources: &Sources,
    place: &Place,
) -> Result<Option<String>, EnvironmentError> {
    let no_key = |kind, name: &str, key: &str| EnvironmentError::NoKey {
        kind,
        namespace: pod.namespace().unwrap_or_default(),
        name: name.to_owned(),
        key: key.to_owned(),
    };
    if let Some(field) = &source.field_ref {
        let value = field::of_pod(pod, place, &field.field_path);
        return value.map(Some).ok_or_else(|| EnvironmentError::NoField(field.field_path.clone()));
    }
    if let Some(field) = &source.resource_field_ref {
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        let named = field.container_name.as_deref().filter(|name| !name.is_empty());
        let owner = named.and_then(|name| containers.into_iter().find(|other| other.name == name));
        let value = field::of_container(owner.unwrap_or(container), place, field);
        return value.map(Some).ok_or_else(|| EnvironmentError::NoField(field.resource.clone()));
    }
    if let Some(reference) = &source.config_map_key_ref {
        let optional = reference.optional == Some(true);
        let Some(map) = sources.config_maps.get(&reference.name) else {
            return if optional { Ok(None) } else { Err(EnvironmentError::NoConfigMap(reference.name.clone())) };
        };
        let value = map.data.as_ref().and_then(|data| data.get(&reference.key)).cloned();
        return match value {
            None if !optional => Err(no_key("ConfigMap", &reference.name, &reference.key)),
            value => Ok(value),
        };
    }
    if let Some(reference) = &source.secret_key_ref {
        let optional = reference.optional == Some(true);
        let Some(secret) = sources.secrets.get(&reference.name) else {
            return if optional { Ok(None) } else { Err(EnvironmentError::NoSecret(reference.name.clone())) };
        };
        return match text(secret, &reference.name, &reference.key)? {
            None if !optional => Err(no_key("Secret", &reference.name, &reference.key)),
            value => Ok(value),
        };
    }
    Ok(None)
}

fn text(secret: &Secret, name: &str, key: &str) -> Result<Option<String>, EnvironmentError> {
    let Some(bytes) = secret.data.as_ref().and_then(|data| data.get(key)) else { return Ok(None) };
    let text = String::from_utf8(bytes.0.clone());
    text.map(Some).map_err(|_| EnvironmentError::NotText { name: name.to_owned(), key: key.to_owned() })
}

/// The variables that tell of Services: those of the pod's own namespace when it wants them, and the API server always.
pub(crate) fn service_variables<'a>(
    services: impl IntoIterator<Item = &'a Service>,
    namespace: &str,
    links: bool,
) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    for service in services {
        let is_api = service.namespace().as_deref() == Some("default") && service.name_any() == "kubernetes";
        let is_linked = links && service.namespace().as_deref() == Some(namespace);
        if !is_api && !is_linked {
            continue;
        }
        let Some(spec) = &service.spec else { continue };
        let Some(address) = spec.cluster_ip.as_deref().filter(|address| !matches!(*address, "" | "None")) else {
            continue;
        };
        let Some(first) = spec.ports.iter().flatten().next() else { continue };
        let name = service.name_any().to_uppercase().replace('-', "_");
        let mut set = |suffix: String, value: String| variables.insert(format!("{name}_{suffix}"), value);
        set("SERVICE_HOST".into(), address.to_owned());
        set("SERVICE_PORT".into(), first.port.to_string());
        let protocol_of = |protocol: Option<&str>| protocol.unwrap_or("TCP").to_owned();
        let url = |protocol: &str, port: i32| format!("{}://{address}:{port}", protocol.to_lowercase());
        set("PORT".into(), url(&protocol_of(first.protocol.as_deref()), first.port));
        for port in spec.ports.iter().flatten() {
            if let Some(port_name) = port.name.as_deref().filter(|name| !name.is_empty()) {
                set(format!("SERVICE_PORT_{}", port_name.to_uppercase().replace('-', "_")), port.port.to_string());
            }
            let protocol = protocol_of(port.protocol.as_deref());
            let prefix = format!("PORT_{}_{protocol}", port.port);
            set(prefix.clone(), url(&protocol, port.port));
            set(format!("{prefix}_PROTO"), protocol.to_lowercase());
            set(format!("{prefix}_PORT"), port.port.to_string());
            set(format!("{prefix}_ADDR"), address.to_owned());
        }
    }
    variables
}

#[cfg(test)]
#[path = "environment_tests.rs"]
mod tests;
