//! Writing a log.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use k8s_openapi::jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::line::{self, LONGEST, Source};
use super::rotated;

/// How much is kept of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogLimits {
    pub(crate) file_size: u64,
    pub(crate) files: usize,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self { file_size: 10 * 1024 * 1024, files: 5 }
    }
}

/// How far a log has come, for readers that follow it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Counts up with every write.
    pub writes: u64,
    /// Counts up when the file starts anew.
    pub rotations: u64,
    /// Nothing more will come.
    pub closed: bool,
}

/// The log of one run. Both output streams write to it.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    limits: LogLimits,
    file: Mutex<Open>,
    progress: watch::Sender<Progress>,
}

#[derive(Debug)]
struct Open {
    file: File,
    size: u64,
}

impl Log {
    pub(crate) fn create(path: &Path, limits: LogLimits) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let file = open(path)?;
        let size = file.metadata()?.len();
        let progress = watch::Sender::new(Progress::default());
        Ok(Self { path: path.to_owned(), limits, file: Mutex::new(Open { file, size }), progress })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn follow(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Writes complete lines and keeps the rest in `pending` until its end comes, or until it is too long to wait.
    pub(crate) fn take(&self, source: Source, pending: &mut Vec<u8>, chunk: &[u8]) -> io::Result<()> {
        let now = Timestamp::now();
        let mut buffer = Vec::with_capacity(chunk.len() + 64);
        pending.extend_from_slice(chunk);
        let mut rest = pending.as_slice();
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let mut text = &rest[..end];
            while text.len() > LONGEST {
                line::write(&mut buffer, now, source, &text[..LONGEST], true);
                text = &text[LONGEST..];
            }
            line::write(&mut buffer, now, source, text, false);
            rest = &rest[end + 1..];
        }
        while rest.len() >= LONGEST {
            line::write(&mut buffer, now, source, &rest[..LONGEST], true);
            rest = &rest[LONGEST..];
        }
        *pending = rest.to_vec();
        self.append(&buffer)
    }

    /// Writes what had no line end when the stream ended.
    pub(crate) fn finish(&self, source: Source, pending: &mut Vec<u8>) -> io::Result<()> {
        if pending.is_empty() {
            return Ok(());
        }
        let mut buffer = Vec::new();
        line::write(&mut buffer, Timestamp::now(), source, &std::mem::take(pending), true);
        self.append(&buffer)
    }

    /// Tells followers that nothing more will come.
    pub(crate) fn close(&self) {
        self.progress.send_modify(|progress| progress.closed = true);
    }

    fn append(&self, lines: &[u8]) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let mut open = self.file.lock();
        open.file.write_all(lines)?;
        open.size += lines.len() as u64;
        let full = open.size >= self.limits.file_size;
        if full {
            for age in (0..self.limits.files.saturating_sub(1)).rev() {
                let from = rotated(&self.path, age);
                if from.exists() {
                    fs::rename(&from, rotated(&self.path, age + 1))?;
                }
            }
            *open = Open { file: open_new(&self.path)?, size: 0 };
        }
        drop(open);
        self.progress.send_modify(|progress| {
            progress.writes += 1;
            progress.rotations += u64::from(full);
        });
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(path)
}

fn open_new(path: &Path) -> io::Result<File> {
    // With a single file there is nothing to rename it to: it is emptied.
    File::create(path)?;
    open(path)
}
