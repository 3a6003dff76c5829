//! The standard streams and the terminal of a process, seen from outside.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::unix::pipe;

use crate::sys::Pollable;

/// What a process reads that has no input.
pub(super) const NOTHING: &str = "/dev/null";

/// Both sides of the standard streams of a process.
#[derive(Debug)]
pub(crate) struct Streams {
    pub stdin: Option<pipe::Sender>,
    pub stdout: Option<pipe::Receiver>,
    pub stderr: Option<pipe::Receiver>,
    /// What the process gets: input, output and errors, or nothing when it gets a terminal.
    pub far: Vec<OwnedFd>,
}

impl Streams {
    /// New streams, with an input or without one.
    pub fn open(stdin: bool, tty: bool) -> io::Result<Self> {
        if tty {
            return Ok(Self { stdin: None, stdout: None, stderr: None, far: Vec::new() });
        }
        let (far_stdin, stdin) = if stdin {
            let (far, near) = pipe_with(PipeFlags::CLOEXEC)?;
            (far, Some(pipe::Sender::from_owned_fd(near)?))
        } else {
            (File::open(NOTHING)?.into(), None)
        };
        let (stdout, far_stdout) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stderr, far_stderr) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Self {
            stdin,
            stdout: Some(pipe::Receiver::from_owned_fd(stdout)?),
            stderr: Some(pipe::Receiver::from_owned_fd(stderr)?),
            far: vec![far_stdin, far_stdout, far_stderr],
        })
    }

    /// What the process gets.
    pub fn far(&self) -> Vec<BorrowedFd<'_>> {
        self.far.iter().map(OwnedFd::as_fd).collect()
    }
}

/// The near side of a terminal. Reading gives what the container prints, writing is what it reads. Clones share it.
#[derive(Debug, Clone)]
pub struct Terminal {
    inner: Arc<Pollable>,
}

impl Terminal {
    pub(super) fn new(descriptor: OwnedFd) -> io::Result<Self> {
        fcntl_setfl(&descriptor, fcntl_getfl(&descriptor)? | OFlags::NONBLOCK)?;
        Ok(Self { inner: Arc::new(Pollable::new(descriptor)?) })
    }

    /// Tells the container the size of its terminal.
    pub fn resize(&self, columns: u16, rows: u16) -> io::Result<()> {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        Ok(tcsetwinsize(self.inner.get_ref(), size)?)
    }
}

impl AsyncRead for Terminal {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.inner.poll_read_ready(context))?;
            let unfilled = buffer.initialize_unfilled();
            let Ok(read) = ready.try_io(|terminal| Ok(rustix::io::read(terminal.get_ref(), &mut *unfilled)?)) else {
                continue;
            };
            return Poll::Ready(match read {
                Ok(count) => {
                    buffer.advance(count);
                    Ok(())
                }
                // This is how a terminal tells that nobody has its far side open any more.
                Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => Ok(()),
                Err(error) => Err(error),
            });
        }
    }
}

impl AsyncWrite for Terminal {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = ready!(self.inner.poll_write_ready(context))?;
            if let Ok(written) = ready.try_io(|terminal| Ok(rustix::io::write(terminal.get_ref(), bytes)?)) {
                return Poll::Ready(written);
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
