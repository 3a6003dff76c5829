//! What containers print, on disk: one file per run, rotated, in the format of container runtimes.

mod line;
mod read;
mod write;

use std::path::{Path, PathBuf};

pub(crate) use line::Source;
pub use read::{LogQuery, read};
pub use write::Progress;
pub(crate) use write::{Log, LogLimits};

/// The file of one run of a container, below the folder of the pod's logs.
pub(crate) fn path(folder: &Path, container: &str, run: i32) -> PathBuf {
    folder.join(container).join(format!("{run}.log"))
}

/// A rotated file: the higher the number, the older.
fn rotated(path: &Path, age: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    if age > 0 {
        name.push(format!(".{age}"));
    }
    name.into()
}

#[cfg(test)]
mod tests;
