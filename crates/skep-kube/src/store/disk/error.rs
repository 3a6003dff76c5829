//! Why a data folder cannot be opened, in words for the person who must do something about it.

use std::io;
use std::path::PathBuf;

/// Nothing in the folder was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{} is not a folder", path.display())]
    NotAFolder { path: PathBuf },
    #[error("{} is not a data folder: it holds {found}", path.display())]
    Foreign { path: PathBuf, found: String },
    #[error("{} was written by a newer version: its format is {found}, this one knows {supported}", path.display())]
    Newer { path: PathBuf, found: u64, supported: u64 },
    #[error("{} is in use by another process", path.display())]
    Locked { path: PathBuf },
    #[error("{} is damaged: {cause}", path.display())]
    Damaged { path: PathBuf, cause: String },
    #[error("cannot read or write {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
}

impl OpenError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotAFolder { .. } => "name a folder, or one that does not exist yet",
            Self::Foreign { .. } => "name an empty folder, or one that does not exist yet",
            Self::Newer { .. } => "use the newer version, or another folder",
            Self::Locked { .. } => "stop the other process, or use another folder",
            Self::Damaged { .. } => "restore the folder from a backup, or move it away to start with an empty one",
            Self::Unreadable { .. } => "check the permissions and the disk",
        }
    }
}
