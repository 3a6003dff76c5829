//! What containers print, on disk: one file per run, rotated, in the format of container runtimes.

mod line;
mod read;
mod write;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub(crate) use line::Source;
pub use read::{LogQuery, read};
pub use write::Progress;
pub(crate) use write::{Log, LogLimits};

/// The file of one run of a container, below the folder of the pod's logs.
pub(crate) fn path(folder: &Path, container: &str, run: i32) -> PathBuf {
    folder.join(container).join(format!("{run}.log"))
}

/// Removes the logs of a container's runs before the last one: what somebody may ask for is this run and the one before.
pub(crate) fn forget_older(folder: &Path, container: &str, run: i32) -> io::Result<()> {
    for entry in fs::read_dir(folder.join(container))? {
        let entry = entry?;
        let number = entry.file_name().to_str().and_then(|name| name.split_once('.')?.0.parse::<i32>().ok());
        if number.is_some_and(|number| number < run.saturating_sub(1)) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
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
