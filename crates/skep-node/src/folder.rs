//! Folders that are nobody else's business.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;

/// Containers of other users have to pass through, but do not see what is there.
pub(crate) const MODE: u32 = 0o711;

/// Makes a folder that only this user can look into, or makes it so.
pub fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(MODE).create(folder)?;
    fs::set_permissions(folder, Permissions::from_mode(MODE))
}
