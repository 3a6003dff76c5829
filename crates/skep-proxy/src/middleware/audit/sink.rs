//! Where records go.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use parking_lot::Mutex;
use serde::Serialize;

use super::settings::AuditError;

/// Room for a line.
const ROOM: usize = 1 << 10;
/// So much may wait for whoever writes. Beyond that requests wait, too.
const MOST: usize = 1 << 20;

/// A place that takes lines. Whoever finds it free writes, and then also what others have left meanwhile: they need not wait
/// for each other, and a slow disk gets few large pieces instead of many small ones.
#[derive(Debug)]
pub(super) struct Sink {
    waiting: Mutex<Vec<u8>>,
    place: Mutex<Place>,
}

#[derive(Debug)]
enum Place {
    Output,
    File(File),
}

impl Sink {
    /// A file that only its owner reads, or standard output.
    pub(super) fn open(file: Option<&Path>) -> Result<Self, AuditError> {
        let place = match file {
            None => Place::Output,
            Some(path) => {
                let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
                let untold =
                    |error: io::Error| AuditError::File { file: path.display().to_string(), cause: error.to_string() };
                Place::File(opened.map_err(untold)?)
            }
        };
        Ok(Self { waiting: Mutex::default(), place: Mutex::new(place) })
    }

    /// Writes a line, in one piece.
    pub(super) fn write(&self, record: &impl Serialize) {
        let mut line = Vec::with_capacity(ROOM);
        if let Err(error) = serde_json::to_writer(&mut line, record) {
            return tracing::error!(%error, "an audit record cannot be written");
        }
        line.push(b'\n');
        let is_much = {
            let mut waiting = self.waiting.lock();
            waiting.extend_from_slice(&line);
            waiting.len() > MOST
        };
        if is_much {
            self.place.lock().take(&self.waiting);
        }
        // Whoever writes may have looked for the last time just before this line came.
        while !self.waiting.lock().is_empty()
            && let Some(mut place) = self.place.try_lock()
        {
            place.take(&self.waiting);
        }
    }
}

impl Place {
    /// Writes what waits.
    fn take(&mut self, waiting: &Mutex<Vec<u8>>) {
        let lines = std::mem::take(&mut *waiting.lock());
        let written = match self {
            Self::Output => {
                let mut output = io::stdout().lock();
                output.write_all(&lines).and_then(|()| output.flush())
            }
            Self::File(file) => file.write_all(&lines),
        };
        if let Err(error) = written {
            tracing::error!(%error, "audit records cannot be written");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_written_once_and_in_one_piece() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit.log");
        let sink = Sink::open(Some(&file)).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let sink = &sink;
                scope.spawn(move || (0..500).for_each(|line| sink.write(&(thread, line, "x".repeat(line % 97)))));
            }
        });
        let written = std::fs::read_to_string(file).unwrap();
        let mut lines: Vec<(usize, usize, String)> =
            written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(lines.iter().all(|(_, line, text)| text.len() == line % 97));
        for thread in 0..4 {
            let own = lines.iter().filter(|(by, ..)| *by == thread).map(|(_, line, _)| *line);
            assert!(own.eq(0..500), "the lines of one thread keep their order");
        }
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(lines.len(), 2000);
    }
}
