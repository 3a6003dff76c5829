//! Volumes without namespaces: links in a folder of which Skep's own programs are told.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::{Mount, StartError, VOLUME_ROOT_VARIABLE};

/// Links every mount below the folder that the environment names. A program that was not told of such a folder would
/// look for its volumes in vain, and is refused.
pub(super) fn link(mounts: &[Mount], env: &[(String, String)]) -> Result<(), StartError> {
    let root = env.iter().find_map(|(name, value)| (name == VOLUME_ROOT_VARIABLE).then_some(Path::new(value)));
    for mount in mounts {
        let linked = root
            .ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, "mounts need namespaces, which are off"))
            .and_then(|root| link_one(mount, root));
        linked.map_err(|error| StartError::Mount {
            source_path: mount.source.clone(),
            target: mount.target.clone(),
            cause: error.to_string(),
        })?;
    }
    Ok(())
}

fn link_one(mount: &Mount, root: &Path) -> io::Result<()> {
    let place = root.join(mount.target.strip_prefix("/").map_err(io::Error::other)?);
    if let Some(folder) = place.parent() {
        fs::create_dir_all(folder)?;
    }
    match fs::remove_file(&place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    symlink(&mount.source, &place)
}
