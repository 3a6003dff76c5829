//! Where records go.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use parking_lot::Mutex;

use super::settings::AuditError;

/// A place that takes lines.
#[derive(Debug)]
pub(super) enum Sink {
    Output,
    File(Mutex<File>),
}

impl Sink {
    /// A file that only its owner reads, or standard output.
    pub(super) fn open(file: Option<&Path>) -> Result<Self, AuditError> {
        let Some(path) = file else { return Ok(Self::Output) };
        let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
        let opened = opened.map_err(|error| {
            let (file, cause) = (path.display().to_string(), error.to_string());
            AuditError::File { file, cause }
        })?;
        Ok(Self::File(Mutex::new(opened)))
    }

    /// Writes a line, in one piece.
    pub(super) fn write(&self, mut line: String) {
        line.push('\n');
        let written = match self {
            Self::Output => {
                let mut output = io::stdout().lock();
                output.write_all(line.as_bytes()).and_then(|()| output.flush())
            }
            Self::File(file) => file.lock().write_all(line.as_bytes()),
        };
        if let Err(error) = written {
            tracing::error!(%error, "an audit record cannot be written");
        }
    }
}
