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
