//! What belongs into a volume that is made of API objects.

use std::collections::BTreeMap;
use std::path::PathBuf;

use k8s_openapi::api::core::v1::{ConfigMap, DownwardAPIVolumeFile, KeyToPath, Pod, Secret};

use super::atomic::{FileContent, Files};
use crate::pod::field::{self, Place};

/// What keeps a volume from being made; the words are the kubelet's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ContentError {
    #[error("configmap {0:?} not found")]
    ConfigMap(String),
    #[error("secret {0:?} not found")]
    Secret(String),
    #[error("references non-existent {kind} key: {key}")]
    Key { kind: &'static str, key: String },
    #[error("unsupported fieldPath: {0}")]
    Field(String),
}

/// All that a ConfigMap or Secret holds.
pub(crate) fn of_config_map(map: &ConfigMap) -> BTreeMap<String, Vec<u8>> {
    let text = map.data.iter().flatten().map(|(key, value)| (key.clone(), value.clone().into_bytes()));
    let binary = map.binary_data.iter().flatten().map(|(key, value)| (key.clone(), value.0.clone()));
    text.chain(binary).collect()
}

pub(crate) fn of_secret(secret: &Secret) -> BTreeMap<String, Vec<u8>> {
    secret.data.iter().flatten().map(|(key, value)| (key.clone(), value.0.clone())).collect()
}

/// The files for the keys of an object: those that `items` picks, or all of them.
pub(crate) fn pick(
    kind: &'static str,
    values: BTreeMap<String, Vec<u8>>,
    items: Option<&[KeyToPath]>,
    mode: u32,
    optional: bool,
) -> Result<Files, ContentError> {
    let Some(items) = items.filter(|items| !items.is_empty()) else {
        let files = values.into_iter().map(|(key, bytes)| (PathBuf::from(key), FileContent { bytes, mode }));
        return Ok(files.collect());
    };
    let mut files = Files::new();
    for item in items {
        match values.get(&item.key) {
            Some(bytes) => {
                let mode = mode_of(item.mode, mode);
                files.insert(PathBuf::from(&item.path), FileContent { bytes: bytes.clone(), mode });
            }
            None if optional => {}
            None => return Err(ContentError::Key { kind, key: item.key.clone() }),
        }
    }
    Ok(files)
}

pub(crate) fn of_downward(
    pod: &Pod,
    place: &Place,
    items: &[DownwardAPIVolumeFile],
    mode: u32,
) -> Result<Files, ContentError> {
    let mut files = Files::new();
    for item in items {
        let text = if let Some(field) = &item.field_ref {
            let value = field::of_pod(pod, place, &field.field_path);
            value.ok_or_else(|| ContentError::Field(field.field_path.clone()))?
        } else if let Some(selected) = &item.resource_field_ref {
            let mut containers = pod.spec.iter().flat_map(|spec| &spec.containers);
            let container = containers.find(|container| Some(&container.name) == selected.container_name.as_ref());
            let value = container.and_then(|container| field::of_container(container, place, selected));
            value.ok_or_else(|| ContentError::Field(selected.resource.clone()))?
        } else {
            String::new()
        };
        let content = FileContent { bytes: text.into_bytes(), mode: mode_of(item.mode, mode) };
        files.insert(PathBuf::from(&item.path), content);
    }
    Ok(files)
}

pub(crate) fn mode_of(mode: Option<i32>, default: u32) -> u32 {
    mode.and_then(|mode| u32::try_from(mode).ok()).map_or(default, |mode| mode & 0o777)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_picked() {
        let map: ConfigMap =
            serde_json::from_value(json!({"data": {"a": "1", "b": "2"}, "binaryData": {"c": "/w=="}})).unwrap();
        let all = pick("config", of_config_map(&map), None, 0o644, false).unwrap();
        assert_eq!(all.len(), 3);
        assert_eq!(all[&PathBuf::from("c")].bytes, [0xff]);
        let items: Vec<KeyToPath> = serde_json::from_value(json!([{"key": "a", "path": "x/y", "mode": 256}])).unwrap();
        let some = pick("config", of_config_map(&map), Some(&items), 0o644, false).unwrap();
        assert_eq!(some[&PathBuf::from("x/y")], FileContent { bytes: b"1".to_vec(), mode: 0o400 });
        let items: Vec<KeyToPath> = serde_json::from_value(json!([{"key": "z", "path": "z"}])).unwrap();
        let error = pick("config", of_config_map(&map), Some(&items), 0o644, false).unwrap_err();
        assert_eq!(error.to_string(), "references non-existent config key: z");
        assert!(pick("config", of_config_map(&map), Some(&items), 0o644, true).unwrap().is_empty());
    }
}
