//! Closing a connection without tearing it: a socket that is closed with bytes in it that nobody has read is reset, and
//! the reset can overtake the last answer.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// How long the client gets to read the last answer and close its side.
const PATIENCE: Duration = Duration::from_secs(1);

/// A stream that, once it has said its last word, listens until the other side has closed, too.
#[derive(Debug)]
pub struct Lingering {
    stream: TcpStream,
    /// There from the last word on.
    until: Option<Pin<Box<Sleep>>>,
}

impl Lingering {
    pub fn new(stream: TcpStream) -> Self {
        Self { stream, until: None }
    }

    /// Reads and forgets until the other side has closed or the time is up.
    fn poll_silence(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let until = self.until.get_or_insert_with(|| Box::pin(tokio::time::sleep(PATIENCE)));
        if until.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let mut forgotten = [0; 8192];
        loop {
            let mut buffer = ReadBuf::new(&mut forgotten);
            let read = ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                return Poll::Ready(());
            }
        }
    }
}

impl AsyncRead for Lingering {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Lingering {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.until.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
        }
        self.poll_silence(context).map(Ok)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
