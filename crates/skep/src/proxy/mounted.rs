//! Files of the volumes of a pod.

use std::path::{Path, PathBuf};

use skep_node::container::VOLUME_ROOT_VARIABLE;

use super::Variables;

/// A file of a volume. Without namespaces the volumes of a pod are below a folder of their own.
pub(super) fn mounted(path: &str, variables: Variables<'_>) -> PathBuf {
    let root = variables(VOLUME_ROOT_VARIABLE).map(PathBuf::from);
    let below = Path::new(path).strip_prefix("/").ok();
    let within = root.zip(below).map(|(root, below)| root.join(below)).filter(|within| within.exists());
    within.unwrap_or_else(|| PathBuf::from(path))
}

/// The same for a file that need not be there yet: it goes where its folder is.
pub(super) fn mounted_new(path: &str, variables: Variables<'_>) -> PathBuf {
    let (folder, file) = (Path::new(path).parent().and_then(Path::to_str), Path::new(path).file_name());
    match folder.zip(file) {
        Some((folder, file)) => mounted(folder, variables).join(file),
        None => PathBuf::from(path),
    }
}
