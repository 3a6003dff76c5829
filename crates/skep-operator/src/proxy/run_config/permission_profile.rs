//! What a server may touch.

use skep_api::config::run_config::PermissionProfile as Profile;
use skep_api::kinds::mcp_server::{HostVolume, PermissionProfile, PermissionProfileSource};
use skep_api::names::mcp_server;

/// Where the profile came from: the name of a builtin one, or the file that a ConfigMap is mounted as.
pub(super) fn name_or_path(profile: Option<&PermissionProfile>) -> String {
    match profile {
        None => String::new(),
        Some(profile) => match profile.type_ {
            PermissionProfileSource::Builtin => profile.name.clone(),
            PermissionProfileSource::ConfigMap => mcp_server::permission_profile(&super::text(profile.key.as_deref())),
        },
    }
}

/// The profile itself, with the volumes among what it allows. One in a ConfigMap is not known here: its file is there
/// only in the proxy's pod, where the volumes are added from the document's own list.
pub(super) fn contents(profile: Option<&PermissionProfile>, volumes: &[HostVolume]) -> Result<Option<Profile>, String> {
    let name = match profile {
        None => Profile::NETWORK,
        Some(PermissionProfile { type_: PermissionProfileSource::Builtin, name, .. }) => name.as_str(),
        Some(PermissionProfile { type_: PermissionProfileSource::ConfigMap, key, name }) => {
            return match key.as_deref() {
                None | Some("") => {
                    Err(format!("permissionProfile.key must name the key of ConfigMap {name} that holds the profile"))
                }
                Some(_) => Ok(None),
            };
        }
    };
    let mut contents = Profile::builtin(name).ok_or_else(|| {
        format!(
            "permissionProfile.name {name:?} is not a builtin profile; use none or network, or set type to configmap"
        )
    })?;
    let mut targets = Vec::new();
    for volume in volumes {
        if targets.contains(&&volume.mount_path) {
            continue;
        }
        targets.push(&volume.mount_path);
        let mount = format!("{}:{}", volume.host_path, volume.mount_path);
        if volume.read_only { &mut contents.read } else { &mut contents.write }.push(mount);
    }
    Ok(Some(contents))
}

/// A volume as the document lists it.
pub(super) fn volume(volume: &HostVolume) -> String {
    let suffix = if volume.read_only { ":ro" } else { "" };
    format!("{}:{}{suffix}", volume.host_path, volume.mount_path)
}
