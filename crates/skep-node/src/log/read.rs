//! Reading a log back: from some point on, as text, and further while it grows.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures::Stream;
use k8s_openapi::jiff::Timestamp;
use tokio::sync::{mpsc, watch};

use super::line;
use super::rotated;
use super::write::Progress;

/// How much of a log is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// Only the last so many lines of what is there.
    pub tail: Option<usize>,
    /// Only lines from this moment on.
    pub since: Option<Timestamp>,
    /// Stop after so many bytes.
    pub limit: Option<u64>,
    /// Each line with its time in front.
    pub timestamps: bool,
}

/// The most that is sent at a time, and how many such pieces may wait for the reader.
const PIECE: usize = 64 * 1024;
const WAITING: usize = 4;

/// Reads the log at `path`, and goes on while `live` says that more will come.
pub fn read(
    path: PathBuf,
    query: LogQuery,
    live: Option<watch::Receiver<Progress>>,
) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let (sender, mut receiver) = mpsc::channel(WAITING);
    // Files are read on a thread of their own; it ends when the reader goes away or the log is complete.
    tokio::task::spawn_blocking(move || {
        let sent = Reader { query, sent: 0, sender: sender.clone() }.run(&path, live);
        if let Err(Stop::Failed(error)) = sent {
            let _ = sender.blocking_send(Err(error));
        }
    });
    futures::stream::poll_fn(move |context| receiver.poll_recv(context))
}

/// Why reading ends early.
enum Stop {
    /// Nobody reads any more, or all that was asked for was sent.
    Enough,
    Failed(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

struct Reader {
    query: LogQuery,
    sent: u64,
    sender: mpsc::Sender<io::Result<Bytes>>,
}

impl Reader {
    fn run(mut self, path: &Path, mut live: Option<watch::Receiver<Progress>>) -> Result<(), Stop> {
        // Marked before reading: what is written in between is read twice over as "no change", never missed.
        let mut seen = live.as_mut().map(|live| *live.borrow_and_update());
        let mut current = self.existing(path)?;
        let (Some(live), Some(seen)) = (live.as_mut(), seen.as_mut()) else { return Ok(()) };
        while !seen.closed {
            let now = wait(live, &self.sender)?;
            self.rest(&mut current)?;
            if now.rotations != seen.rotations {
                // Only one rotation back can be caught up with; a reader slower than that has lost lines anyway.
                current = BufReader::new(File::open(path)?);
                self.rest(&mut current)?;
            }
            *seen = now;
        }
        Ok(())
    }

    /// Sends what is there, oldest file first, and leaves the newest open for what follows.
    fn existing(&mut self, path: &Path) -> Result<BufReader<File>, Stop> {
        let newest = File::open(path)?;
        let older = (1..).map(|age| rotated(path, age)).take_while(|path| path.exists());
        let mut files: Vec<File> = older.filter_map(|path| File::open(path).ok()).collect();
        files.reverse();
        let mut last = BufReader::new(newest);
        let Some(tail) = self.query.tail else {
            for file in files {
                self.rest(&mut BufReader::new(file))?;
            }
            self.rest(&mut last)?;
            return Ok(last);
        };
        let mut lines: VecDeque<Vec<u8>> = VecDeque::new();
        let mut keep = |reader: &mut BufReader<File>| -> io::Result<()> {
            while let Some(line) = next(reader)? {
                lines.push_back(line);
                while lines.len() > tail {
                    lines.pop_front();
                }
            }
            Ok(())
        };
        for file in files {
            keep(&mut BufReader::new(file))?;
        }
        keep(&mut last)?;
        let mut text = Vec::new();
        for line in lines {
            self.render(&line, &mut text)?;
        }
        self.send(text)?;
        Ok(last)
    }

    /// Sends everything up to the end of the file.
    fn rest(&mut self, reader: &mut BufReader<File>) -> Result<(), Stop> {
        let mut text = Vec::new();
        while let Some(line) = next(reader)? {
            self.render(&line, &mut text)?;
        }
        self.send(text)
    }

    fn render(&mut self, raw: &[u8], text: &mut Vec<u8>) -> Result<(), Stop> {
        let Some(line) = line::parse(raw) else { return Ok(()) };
        if let Some(since) = self.query.since
            && line.time.parse::<Timestamp>().is_ok_and(|time| time < since)
        {
            return Ok(());
        }
        if self.query.timestamps {
            text.extend_from_slice(line.time.as_bytes());
            text.push(b' ');
        }
        text.extend_from_slice(line.text);
        if !line.part {
            text.push(b'\n');
        }
        if text.len() >= PIECE { self.send(std::mem::take(text)) } else { Ok(()) }
    }

    fn send(&mut self, mut text: Vec<u8>) -> Result<(), Stop> {
        if let Some(limit) = self.query.limit {
            let left = usize::try_from(limit.saturating_sub(self.sent)).unwrap_or(usize::MAX);
            text.truncate(left);
        }
        self.sent += text.len() as u64;
        if !text.is_empty() && self.sender.blocking_send(Ok(Bytes::from(text))).is_err() {
            return Err(Stop::Enough);
        }
        if self.query.limit.is_some_and(|limit| self.sent >= limit) { Err(Stop::Enough) } else { Ok(()) }
    }
}

/// The next complete line; an incomplete one stays for the next time.
fn next(reader: &mut BufReader<File>) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let read = reader.read_until(b'\n', &mut line)?;
    if line.pop_if(|byte| *byte == b'\n').is_some() {
        return Ok(Some(line));
    }
    let back = i64::try_from(read).unwrap_or(0);
    reader.seek_relative(-back)?;
    Ok(None)
}

/// Waits for more, or for the end of whoever reads.
fn wait(live: &mut watch::Receiver<Progress>, sender: &mpsc::Sender<io::Result<Bytes>>) -> Result<Progress, Stop> {
    let runtime = tokio::runtime::Handle::current();
    runtime.block_on(async {
        tokio::select! {
            () = sender.closed() => Err(Stop::Enough),
            changed = live.changed() => match changed {
                Ok(()) => Ok(*live.borrow_and_update()),
                // The writer is gone without a word: that is an end, too.
                Err(_) => Ok(Progress { closed: true, ..*live.borrow() }),
            }
        }
    })
}
