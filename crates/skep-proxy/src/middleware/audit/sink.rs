//! Where records go.

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::settings::AuditError;
use crate::lapses::{TOLD_EVERY, Untold};

/// Room for a line, as much as most of them need.
const ROOM: usize = 4 << 10;
thread_local! {
    /// Where a line is put together.
    static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// So many bytes may wait to be written. What comes beyond that is lost; where nothing waits, everything has room.
const MOST: usize = 8 << 20;
/// So long lines are gathered before they are written: waking somebody for each costs more than a request may.
const GATHERING: Duration = Duration::from_millis(2);
/// So long whoever gives a sink up waits for what was not written yet.
const LAST: Duration = Duration::from_secs(1);

/// A place that takes lines. A thread of its own writes them, so that nobody else waits for a place that is slow or takes
/// nothing any more; and a slow disk gets few large pieces instead of many small ones.
#[derive(Debug)]
pub(super) struct Sink(Arc<Desk>);

/// Where lines are left for whoever writes.
#[derive(Debug, Default)]
struct Desk {
    waiting: Mutex<Waiting>,
    /// There is something to write, or never again.
    has_come: Condvar,
    /// Everything is written.
    is_written: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: Vec<u8>,
    /// So many bytes are being written.
    writing: usize,
    /// The lines that were lost.
    lost: Untold,
    /// Nothing more will come.
    is_over: bool,
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
        let desk = Arc::new(Desk::default());
        let writer = Arc::clone(&desk);
        let thread = std::thread::Builder::new().name("audit".to_owned());
        thread.spawn(move || writer.run(place)).map_err(|error| AuditError::Thread(error.to_string()))?;
        Ok(Self(desk))
    }

    /// Has a line written, in one piece. Does not wait for that.
    pub(super) fn write(&self, record: impl FnOnce(&mut Vec<u8>)) {
        LINE.with_borrow_mut(|line| {
            line.clear();
            line.shrink_to(ROOM);
            record(line);
            line.push(b'\n');
            self.add(line);
        });
    }

    fn add(&self, line: &[u8]) {
        let (is_first, lost) = {
            let mut waiting = self.0.waiting.lock();
            let is_first = waiting.lines.is_empty();
            if !waiting.is_empty() && waiting.lines.len() + waiting.writing + line.len() > MOST {
                waiting.lost.add();
            } else {
                waiting.lines.extend_from_slice(line);
            }
            (is_first, waiting.lost.take(TOLD_EVERY))
        };
        if is_first {
            self.0.has_come.notify_one();
        }
        tell(lost);
    }

    /// Waits until everything is written, for so long at most. Whether it is.
    pub(super) fn flush(&self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        let mut waiting = self.0.waiting.lock();
        while !waiting.is_empty() && !self.0.is_written.wait_until(&mut waiting, until).timed_out() {}
        waiting.is_empty()
    }
}

/// What was not written until then is written still, for as long as the process lasts.
impl Drop for Sink {
    fn drop(&mut self) {
        self.0.waiting.lock().is_over = true;
        self.0.has_come.notify_one();
        self.flush(LAST);
    }
}

impl Desk {
    /// Writes what comes, until nothing more will.
    fn run(&self, mut place: Place) {
        while let Some(lines) = self.take() {
            if let Err(error) = place.write(&lines) {
                tracing::error!(%error, "audit records cannot be written");
            }
            let lost = {
                let mut waiting = self.waiting.lock();
                waiting.writing = 0;
                if waiting.is_empty() {
                    self.is_written.notify_all();
                }
                waiting.lost.take(TOLD_EVERY)
            };
            tell(lost);
        }
        let lost = self.waiting.lock().lost.take(Duration::ZERO);
        tell(lost);
    }

    /// Waits for lines, and takes all that are there. Nothing when no more will come.
    fn take(&self) -> Option<Vec<u8>> {
        let mut waiting = self.waiting.lock();
        while waiting.lines.is_empty() {
            if waiting.is_over {
                return None;
            }
            self.has_come.wait(&mut waiting);
        }
        if !waiting.is_over {
            // Whoever comes meanwhile need not wake anybody.
            MutexGuard::unlocked(&mut waiting, || std::thread::sleep(GATHERING));
        }
        waiting.writing = waiting.lines.len();
        Some(std::mem::take(&mut waiting.lines))
    }
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.writing == 0
    }
}

fn tell(lost: Option<u64>) {
    if let Some(lost) = lost {
        tracing::error!(lost, "audit records are lost: what they are written to does not take them fast enough");
    }
}

impl Place {
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        match self {
            Self::Output => {
                let mut output = io::stdout().lock();
                output.write_all(lines)?;
                output.flush()
            }
            Self::File(file) => file.write_all(lines),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    /// Far more than anything here takes.
    const PATIENCE: Duration = Duration::from_mins(1);

    fn json(record: &impl serde::Serialize) -> impl FnOnce(&mut Vec<u8>) {
        |line| serde_json::to_writer(line, record).unwrap()
    }

    #[test]
    fn every_line_is_written_once_and_in_one_piece() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit.log");
        let sink = Sink::open(Some(&file)).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let sink = &sink;
                scope.spawn(move || (0..500).for_each(|line| sink.write(json(&(thread, line, "x".repeat(line % 97))))));
            }
        });
        assert!(sink.flush(PATIENCE));
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

    #[test]
    fn a_line_is_never_too_large_where_nothing_waits() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit.log");
        let sink = Sink::open(Some(&file)).unwrap();
        for _ in 0..2 {
            sink.write(json(&"x".repeat(2 * MOST)));
            assert!(sink.flush(PATIENCE));
        }
        let written = std::fs::read_to_string(file).unwrap();
        assert_eq!(written.lines().map(str::len).collect::<Vec<_>>(), [2 * MOST + 2; 2]);
    }

    #[test]
    fn nobody_waits_for_a_reader_that_does_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, path.as_path(), rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
        // Each end waits for the other one to be opened, unless somebody has both.
        let both = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let sink = Sink::open(Some(&path)).unwrap();
        let mut reader = File::open(&path).unwrap();
        drop(both);
        let text = "x".repeat(1 << 16);
        let began = Instant::now();
        for line in 0..320_usize {
            sink.write(json(&(line, &text)));
        }
        assert!(began.elapsed() < PATIENCE / 2, "20 MiB: {:?}", began.elapsed());
        assert!(!sink.flush(Duration::from_millis(10)), "nobody has read it");
        let reading = std::thread::spawn(move || {
            let mut read = String::new();
            reader.read_to_string(&mut read).unwrap();
            read
        });
        assert!(sink.flush(PATIENCE));
        sink.write(json(&(320, "there is room again")));
        drop(sink);
        let read = reading.join().unwrap();
        assert!(read.ends_with('\n'));
        let lines: Vec<(usize, String)> = read.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (last, lines) = lines.split_last().unwrap();
        assert_eq!((last.0, last.1.as_str()), (320, "there is room again"));
        assert!((100..200).contains(&lines.len()), "what finds no room is lost: {}", lines.len());
        assert!(lines.iter().all(|(_, line)| *line == text) && lines.is_sorted_by_key(|(line, _)| *line));
    }
}
