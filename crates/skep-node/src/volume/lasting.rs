//! Folders that outlive pods: those of the machine, and those of claims.

use std::fs;
use std::path::PathBuf;

use k8s_openapi::api::core::v1::{HostPathVolumeSource, PersistentVolume, PersistentVolumeClaim};
use kube::{Api, Client, ResourceExt as _};

use super::{Ready, VolumeError};

/// Names who made a volume for its claim.
const PROVISIONED: &str = "pv.kubernetes.io/provisioned-by";

/// A path of the machine, if it is what it should be.
pub(super) fn host(source: &HostPathVolumeSource) -> Result<Ready, VolumeError> {
    let path = PathBuf::from(&source.path);
    let wanted = source.type_.as_deref().unwrap_or_default();
    let not_made = |cause| VolumeError::NotMade { path: source.path.clone(), cause };
    let fits = match wanted {
        // Of a path that may be anything a folder is made when it is nothing, as container engines do.
        "" => {
            if !path.exists() {
                fs::create_dir_all(&path).map_err(not_made)?;
            }
            true
        }
        "DirectoryOrCreate" => {
            fs::create_dir_all(&path).map_err(not_made)?;
            path.is_dir()
        }
        "FileOrCreate" => {
            if !path.exists() {
                fs::File::create(&path).map_err(not_made)?;
            }
            path.is_file()
        }
        "Directory" => path.is_dir(),
        "File" => path.is_file(),
        // Sockets and devices: there is nothing to make, and nothing to confuse them with.
        _ => path.exists() && !path.is_dir() && !path.is_file(),
    };
    if !fits {
        return Err(VolumeError::HostPath { path: source.path.clone(), wanted: wanted.to_owned() });
    }
    Ok(Ready { path, read_only: false, grows: true })
}

/// The folder of a claim, and whether it was made for this claim: others are somebody's own.
pub(super) async fn claim(client: &Client, namespace: &str, name: &str) -> Result<(PathBuf, bool), VolumeError> {
    let failed = |error: kube::Error| VolumeError::Api(Box::new(error));
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), namespace);
    let claim = claims.get(name).await.map_err(failed)?;
    let volume = claim.spec.and_then(|spec| spec.volume_name).filter(|volume| !volume.is_empty());
    let volume = volume.ok_or_else(|| VolumeError::Unbound(name.to_owned()))?;
    let volume = Api::<PersistentVolume>::all(client.clone()).get(&volume).await.map_err(failed)?;
    let made_for_it = volume.annotations().contains_key(PROVISIONED);
    let spec = volume.spec.unwrap_or_default();
    let host = spec.host_path.map(|source| source.path);
    let local = spec.local.map(|source| source.path);
    let path = host.or(local).map(PathBuf::from).ok_or(VolumeError::Unsupported)?;
    Ok((path, made_for_it))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(path: &std::path::Path, type_: Option<&str>) -> Result<PathBuf, String> {
        let source = HostPathVolumeSource { path: path.display().to_string(), type_: type_.map(str::to_owned) };
        host(&source).map(|ready| ready.path).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_missing_becomes_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        for (name, type_) in [("a/deep", None), ("b", Some("")), ("c", Some("DirectoryOrCreate"))] {
            let path = folder.path().join(name);
            assert_eq!(made(&path, type_), Ok(path.clone()));
            assert!(path.is_dir(), "{name}");
        }
        let file = folder.path().join("file");
        assert!(made(&file, Some("FileOrCreate")).is_ok() && file.is_file());
        assert_eq!(made(&file, None), Ok(file.clone()), "what is there stays what it is");
        assert!(file.is_file());
        assert!(made(&folder.path().join("absent"), Some("Directory")).unwrap_err().contains("is not a Directory"));
        let told = made(&file.join("below"), None).unwrap_err();
        assert!(told.starts_with("cannot make ") && told.contains("file/below"), "{told}");
    }
}
