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
    let fits = match wanted {
        "" => true,
        "DirectoryOrCreate" => {
            fs::create_dir_all(&path)?;
            path.is_dir()
        }
        "FileOrCreate" => {
            if !path.exists() {
                fs::File::create(&path)?;
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
