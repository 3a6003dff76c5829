//! Where a container sees its volumes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Container;

use super::Ready;
use super::atomic::is_plain;
use crate::container::Mount;
use crate::pod::expand::expand;

/// Why a container cannot have its mounts.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MountError {
    #[error("volume {0:?} is not defined in the pod")]
    NoVolume(String),
    #[error("subPath {path:?} of volume {volume:?} leaves the volume")]
    Outside { volume: String, path: String },
    #[error("failed to prepare subPath {path:?} of volume {volume:?}: {cause}")]
    SubPath { volume: String, path: String, cause: std::io::Error },
}

/// The mounts of a container, in the order of depth: a mount inside another must come after it.
pub(crate) fn mounts(
    container: &Container,
    volumes: &BTreeMap<String, Ready>,
    environment: &BTreeMap<String, String>,
) -> Result<Vec<Mount>, MountError> {
    let mut mounts = Vec::new();
    for wanted in container.volume_mounts.iter().flatten() {
        let volume = volumes.get(&wanted.name).ok_or_else(|| MountError::NoVolume(wanted.name.clone()))?;
        let expanded = wanted.sub_path_expr.as_deref().filter(|path| !path.is_empty());
        let expanded = expanded.map(|path| expand(path, |name| environment.get(name).cloned()));
        let sub_path = expanded.or_else(|| wanted.sub_path.clone()).filter(|path| !path.is_empty());
        let source = match sub_path {
            None => volume.path.clone(),
            Some(path) => inside(&wanted.name, volume, &path)?,
        };
        mounts.push(Mount {
            source,
            target: Path::new("/").join(&wanted.mount_path),
            read_only: volume.read_only || wanted.read_only == Some(true),
        });
    }
    mounts.sort_by_key(|mount| mount.target.components().count());
    Ok(mounts)
}

fn inside(name: &str, volume: &Ready, path: &str) -> Result<PathBuf, MountError> {
    let outside = || MountError::Outside { volume: name.to_owned(), path: path.to_owned() };
    let failed = |cause: std::io::Error| MountError::SubPath { volume: name.to_owned(), path: path.to_owned(), cause };
    let relative = Path::new(path);
    if !is_plain(relative) {
        return Err(outside());
    }
    let source = volume.path.join(relative);
    if volume.grows && fs::symlink_metadata(&source).is_err() {
        fs::create_dir_all(&source).map_err(failed)?;
    }
    // The link is followed now: a subPath does not change while the container lives.
    let source = source.canonicalize().map_err(failed)?;
    let root = volume.path.canonicalize().map_err(failed)?;
    if source.starts_with(&root) { Ok(source) } else { Err(outside()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tempfile::TempDir;

    use super::*;

    fn mounted(folder: &Path, grows: bool, mount: &serde_json::Value) -> Result<Vec<Mount>, String> {
        let container = serde_json::from_value(json!({"name": "c", "volumeMounts": [mount]})).unwrap();
        let ready = Ready { path: folder.to_owned(), read_only: false, grows };
        let environment = BTreeMap::from([("POD".to_owned(), "p-0".to_owned())]);
        mounts(&container, &BTreeMap::from([("v".to_owned(), ready)]), &environment).map_err(|error| error.to_string())
    }

    #[test]
    fn parts_of_a_volume() {
        let folder = TempDir::new().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let mount = |path: &str| json!({"name": "v", "mountPath": "/data", "subPath": path});
        assert_eq!(mounted(&folder, true, &mount("a/b")).unwrap()[0].source, folder.join("a/b"));
        assert!(folder.join("a/b").is_dir());
        let expression = json!({"name": "v", "mountPath": "/data", "subPathExpr": "$(POD)", "readOnly": true});
        let found = mounted(&folder, true, &expression).unwrap();
        assert_eq!(found[0].source, folder.join("p-0"));
        assert!(found[0].read_only);
        assert!(mounted(&folder, false, &mount("absent")).unwrap_err().contains("failed to prepare subPath"));
        std::os::unix::fs::symlink("/etc", folder.join("link")).unwrap();
        for path in ["../x", "/etc", "link/passwd"] {
            assert!(mounted(&folder, true, &mount(path)).unwrap_err().ends_with("leaves the volume"), "{path}");
        }
        let error = mounted(&folder, true, &json!({"name": "w", "mountPath": "/w"})).unwrap_err();
        assert_eq!(error, "volume \"w\" is not defined in the pod");
    }

    #[test]
    fn deeper_mounts_come_later() {
        let folder = TempDir::new().unwrap();
        let ready = Ready { path: folder.path().to_owned(), read_only: true, grows: false };
        let container = serde_json::from_value(json!({"name": "c", "volumeMounts": [
            {"name": "v", "mountPath": "/a/b"}, {"name": "v", "mountPath": "/a"}]}))
        .unwrap();
        let volumes = BTreeMap::from([("v".to_owned(), ready)]);
        let targets: Vec<_> =
            mounts(&container, &volumes, &BTreeMap::new()).unwrap().into_iter().map(|mount| mount.target).collect();
        assert_eq!(targets, [Path::new("/a"), Path::new("/a/b")]);
    }
}
