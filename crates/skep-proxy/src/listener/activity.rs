//! What goes on on one connection: whether requests are under way, and since when nothing is.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::Place;
use super::calls::Call;
use crate::body::{Body, BodyError};

/// How a connection begins that has many requests at a time.
const MULTIPLEXED: &[u8] = b"PRI";
/// No head of a request is on its way, or nothing waits to be read.
const NEVER: u64 = u64::MAX;

/// How long a request may be on its way when the listener stops, and how often that is looked at.
const MOMENT: Duration = Duration::from_millis(500);
const TICK: Duration = Duration::from_millis(10);

/// What is known about a connection. Times are milliseconds since its beginning.
#[derive(Debug)]
pub(super) struct Activity {
    begun: Instant,
    /// Requests whose answers were not sent in full.
    under_way: AtomicUsize,
    /// When the head of the next request began to come. The first one is expected from the beginning on.
    head: AtomicU64,
    /// When the last answer was sent.
    idle: AtomicU64,
    /// Since when the client has read nothing of what there is for it.
    unread: AtomicU64,
    /// Whether what comes need not be a request.
    is_multiplexed: AtomicBool,
}

/// Why a connection has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overdue {
    /// A request took too long to say what it wants.
    Head,
    /// Nobody asked anything.
    Idle,
    /// The client does not read what it asked for.
    Unread,
}

impl Activity {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            begun: Instant::now(),
            under_way: AtomicUsize::new(0),
            head: AtomicU64::new(0),
            idle: AtomicU64::new(0),
            unread: AtomicU64::new(NEVER),
            is_multiplexed: AtomicBool::new(false),
        })
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(NEVER)
    }

    /// Something came from the client.
    fn came(&self) {
        let is_between = self.under_way.load(Ordering::Relaxed) == 0 && !self.is_multiplexed.load(Ordering::Relaxed);
        if is_between && self.head.load(Ordering::Relaxed) == NEVER {
            self.head.store(self.now(), Ordering::Relaxed);
        }
    }

    /// Something was written for the client, or cannot be before it has read some of the rest.
    fn wrote<T>(&self, polled: &Poll<T>) {
        // It is written when it changes, and not for each piece.
        let is_unread = self.unread.load(Ordering::Relaxed) != NEVER;
        if polled.is_pending() != is_unread {
            self.unread.store(if is_unread { NEVER } else { self.now() }, Ordering::Relaxed);
        }
    }

    /// The head of a request is there.
    pub(super) fn begin(self: &Arc<Self>) -> UnderWay {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        self.head.store(NEVER, Ordering::Relaxed);
        UnderWay(Arc::clone(self))
    }

    /// Waits until the head that is expected is there, though not for long, and tells whether it is.
    pub(super) async fn settled(&self) -> bool {
        let until = Instant::now() + MOMENT;
        let is_there = || self.head.load(Ordering::Relaxed) == NEVER;
        while !is_there() && Instant::now() < until {
            tokio::time::sleep(TICK).await;
        }
        is_there()
    }

    /// Waits until a head has taken longer than `head`, or nothing was asked or read for `idle`.
    pub(super) async fn overdue(&self, head: Duration, idle: Duration) -> Overdue {
        loop {
            let (under_way, unread) = (self.under_way.load(Ordering::Relaxed), self.unread.load(Ordering::Relaxed));
            let (since, limit, why) = match self.head.load(Ordering::Relaxed) {
                _ if unread != NEVER => (unread, idle, Overdue::Unread),
                _ if under_way > 0 => (self.now(), head, Overdue::Idle),
                NEVER => (self.idle.load(Ordering::Relaxed), idle, Overdue::Idle),
                since => (since, head, Overdue::Head),
            };
            let left = limit.saturating_sub(Duration::from_millis(self.now().saturating_sub(since)));
            if left.is_zero() {
                return why;
            }
            // Whatever begins meanwhile has at least this long.
            tokio::time::sleep(left.min(head).min(idle)).await;
        }
    }
}

/// A request, until its answer was sent.
#[derive(Debug)]
pub(super) struct UnderWay(Arc<Activity>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.idle.store(self.0.now(), Ordering::Relaxed);
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An answer while it is sent.
#[derive(Debug)]
pub(super) struct Sending {
    pub(super) body: Body,
    pub(super) _under_way: UnderWay,
    pub(super) _call: Call,
    pub(super) _place: Place,
}

impl http_body::Body for Sending {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A connection that notes when something comes.
#[derive(Debug)]
pub(super) struct Noted<S> {
    stream: S,
    activity: Arc<Activity>,
    is_begun: bool,
}

impl<S> Noted<S> {
    pub(super) fn new(stream: S, activity: Arc<Activity>) -> Self {
        Self { stream, activity, is_begun: false }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Noted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        let came = buffer.filled().get(before..).unwrap_or_default();
        if !came.is_empty() {
            if !std::mem::replace(&mut self.is_begun, true) {
                self.activity.is_multiplexed.store(came.starts_with(MULTIPLEXED), Ordering::Relaxed);
            }
            self.activity.came();
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Noted<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, data: &[u8]) -> Poll<std::io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, data);
        self.activity.wrote(&polled);
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.activity.wrote(&polled);
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: Duration = Duration::from_secs(10);
    const IDLE: Duration = Duration::from_mins(2);

    async fn ended(activity: &Activity) -> (Overdue, u64) {
        let why = activity.overdue(HEAD, IDLE).await;
        (why, activity.begun.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_has_its_time_whenever_it_begins_and_silence_has_more() {
        let activity = Activity::new();
        assert_eq!(ended(&activity).await, (Overdue::Head, 10), "the first is expected at once");

        let activity = Activity::new();
        drop(activity.begin());
        assert_eq!(ended(&activity).await, (Overdue::Idle, 120));

        let activity = Activity::new();
        let under_way = activity.begin();
        let ending = async {
            tokio::time::sleep(Duration::from_mins(10)).await;
            drop(under_way);
            tokio::time::sleep(Duration::from_secs(33)).await;
            activity.came();
            tokio::time::sleep(Duration::from_secs(5)).await;
            activity.came();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = ending => {}
            ended = ended(&activity) => assert_eq!(ended, (Overdue::Head, 643)),
        }

        let activity = Activity::new();
        activity.is_multiplexed.store(true, Ordering::Relaxed);
        drop(activity.begin());
        activity.came();
        assert_eq!(ended(&activity).await, (Overdue::Idle, 120), "what comes there need not be a request");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_reads_nothing_of_its_answer_is_cut_off_and_who_reads_slowly_is_not() {
        let activity = Activity::new();
        let _under_way = activity.begin();
        let slowly = async {
            for _ in 0..10 {
                activity.wrote(&Poll::<()>::Pending);
                tokio::time::sleep(Duration::from_secs(110)).await;
                activity.wrote(&Poll::Ready(()));
            }
            activity.wrote(&Poll::<()>::Pending);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = slowly => {}
            ended = ended(&activity) => assert_eq!(ended, (Overdue::Unread, 1220)),
        }
    }
}
