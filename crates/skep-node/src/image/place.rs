//! Where programs of this machine are.

use std::path::{Path, PathBuf};

/// The file of a program, looked up in `PATH`, links followed.
pub fn find(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Path::new(program).canonicalize().ok();
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())?.canonicalize().ok()
}

/// Whether containers would not see a folder: it is in the home folder of the user.
pub(super) fn is_hidden(path: &Path) -> bool {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute() && home != Path::new("/"));
    home.is_some_and(|home| path.starts_with(home.canonicalize().unwrap_or(home)))
}
