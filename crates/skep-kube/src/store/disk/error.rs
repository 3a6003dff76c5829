//! Why a data folder cannot be opened, in words for the person who must do something about it.

use std::io;
use std::path::PathBuf;

/// When a folder is opened, nothing in it was changed. Writes fail for the same reasons.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{} is not a folder", path.display())]
    NotAFolder { path: PathBuf },
    #[error("{} is not a data folder: it holds {found}", path.display())]
    Foreign { path: PathBuf, found: String },
    #[error("{} was written by a newer version: its format is {found}, this one knows {supported}", path.display())]
    Newer { path: PathBuf, found: u64, supported: u64 },
    #[error("the store that belongs into {} is missing", path.display())]
    Missing { path: PathBuf },
    #[error("{} is in use by another process", path.display())]
    Locked { path: PathBuf },
    #[error("{} is damaged: {cause}", path.display())]
    Damaged { path: PathBuf, cause: String },
    #[error("cannot read or write {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("the disk did not keep what was written to {}", path.display())]
    Uncertain { path: PathBuf },
}

impl OpenError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotAFolder { .. } => "name a folder, or one that does not exist yet",
            Self::Foreign { .. } => "name an empty folder, or one that does not exist yet",
            Self::Newer { .. } => "use the newer version, or another folder",
            Self::Locked { .. } => "stop the other process, or use another folder",
            Self::Missing { .. } => "put it back from a backup, or begin anew with another data folder",
            Self::Damaged { .. } => "restore the folder from a backup, or begin anew with another data folder",
            Self::Unreadable { .. } => "check the permissions and the disk",
            Self::Uncertain { .. } => "check the disk, then start again",
        }
    }

    /// What it comes down to, for those whom it does not concern where the folder is.
    pub(crate) fn cause(&self) -> String {
        match self {
            Self::Unreadable { source, .. } => source.to_string(),
            Self::Damaged { cause, .. } => format!("it is damaged: {cause}"),
            Self::Uncertain { .. } => "the disk did not keep what was written".to_owned(),
            other => other.to_string(),
        }
    }
}
