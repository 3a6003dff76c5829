//! A connection and its streams.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};

use super::frame::{Frame, REFUSED, Reader};
use super::headers::{self, Headers};
use crate::kubelet::conversation::WAITING;
use crate::kubelet::idle::Activity;

/// How many streams a client may have open: two for every connection that is forwarded.
const MOST_STREAMS: usize = 1_000;

/// A stream that the client has opened. Dropping it forgets it.
pub(in crate::kubelet) struct Stream {
    pub(in crate::kubelet) headers: Headers,
    /// What the client sends, to its end.
    pub(in crate::kubelet) input: mpsc::Receiver<Bytes>,
    pub(in crate::kubelet) voice: Voice,
    /// Ready when the client wants to hear no more of it, or has gone.
    pub(in crate::kubelet) given_up: oneshot::Receiver<()>,
}

/// The way to the client on one stream.
pub(in crate::kubelet) struct Voice {
    id: u32,
    frames: mpsc::Sender<Frame>,
    streams: Streams,
}

/// What the connection keeps of a stream: the way to it while the client may still send, and its end.
struct Entry {
    input: Option<mpsc::Sender<Bytes>>,
    _given_up: oneshot::Sender<()>,
}

type Streams = Arc<Mutex<HashMap<u32, Entry>>>;

impl Stream {
    /// A header of the stream, whatever its case.
    pub(in crate::kubelet) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

impl Voice {
    /// Sends data; false when the connection is gone.
    pub(in crate::kubelet) async fn say(&self, bytes: Bytes) -> bool {
        self.frames.send(Frame::Data { stream: self.id, bytes, last: false }).await.is_ok()
    }

    /// Whether the client has given the stream up.
    pub(in crate::kubelet) fn is_gone(&self) -> bool {
        !self.streams.lock().contains_key(&self.id)
    }

    /// Says that there is no more to come.
    pub(in crate::kubelet) async fn end(&self) {
        let last = Frame::Data { stream: self.id, bytes: Bytes::new(), last: true };
        // Without a connection, there is nothing to end.
        let _ = self.frames.send(last).await;
    }
}

impl Drop for Voice {
    fn drop(&mut self) {
        self.streams.lock().remove(&self.id);
    }
}

/// Serves a connection until it ends, giving its streams to `opened`.
pub(in crate::kubelet) async fn serve(
    connection: impl AsyncRead + AsyncWrite + Unpin,
    opened: mpsc::Sender<Stream>,
) -> io::Result<()> {
    let (source, mut sink) = tokio::io::split(connection);
    let (frames, mut outgoing) = mpsc::channel::<Frame>(WAITING);
    let activity = Activity::new();
    let speak = async {
        while let Some(frame) = outgoing.recv().await {
            sink.write_all(&frame.write()).await?;
            sink.flush().await?;
            activity.note();
        }
        Ok(())
    };
    let mut listener = Listener {
        frames,
        opened,
        streams: Streams::default(),
        reader: headers::Reader::new(),
        writer: headers::Writer::new()?,
    };
    let mut incoming = Reader::new(source);
    let listen = async {
        while let Some(frame) = incoming.next().await? {
            activity.note();
            if !listener.take(frame).await? {
                break;
            }
        }
        Ok(())
    };
    let ended = tokio::select! {
        ended = listen => ended,
        ended = speak => ended,
        () = activity.ceased() => Ok(()),
    };
    // All streams are given up with the connection.
    listener.streams.lock().clear();
    ended
}

struct Listener {
    frames: mpsc::Sender<Frame>,
    opened: mpsc::Sender<Stream>,
    streams: Streams,
    reader: headers::Reader,
    writer: headers::Writer,
}

impl Listener {
    /// Does what a frame says; false when nothing follows.
    async fn take(&mut self, frame: Frame) -> io::Result<bool> {
        match frame {
            Frame::Open { stream, headers, last } => return self.open(stream, &headers, last).await,
            // The compression has to see all headers, even those that say nothing here.
            Frame::Reply { headers, .. } | Frame::Headers { headers } => _ = self.reader.read(&headers)?,
            Frame::Data { stream, bytes, last } => self.pass_on(stream, bytes, last).await,
            Frame::Reset { stream, .. } => drop(self.streams.lock().remove(&stream)),
            Frame::Ping(id) => return Ok(self.frames.send(Frame::Ping(id)).await.is_ok()),
            Frame::GoAway | Frame::Other => {}
        }
        Ok(true)
    }

    async fn open(&mut self, id: u32, headers: &[u8], last: bool) -> io::Result<bool> {
        let headers = self.reader.read(headers)?;
        let (input, received) = mpsc::channel(WAITING);
        let (given_up, gone) = oneshot::channel();
        let is_refused = {
            let mut streams = self.streams.lock();
            let is_refused = streams.len() >= MOST_STREAMS || streams.contains_key(&id);
            if !is_refused {
                streams.insert(id, Entry { input: (!last).then_some(input), _given_up: given_up });
            }
            is_refused
        };
        if is_refused {
            return Ok(self.frames.send(Frame::Reset { stream: id, status: REFUSED }).await.is_ok());
        }
        let reply = Frame::Reply { stream: id, headers: self.writer.write(&[])?.into() };
        let voice = Voice { id, frames: self.frames.clone(), streams: self.streams.clone() };
        let stream = Stream { headers, input: received, voice, given_up: gone };
        Ok(self.frames.send(reply).await.is_ok() && self.opened.send(stream).await.is_ok())
    }

    async fn pass_on(&self, id: u32, bytes: Bytes, last: bool) {
        let input = {
            let mut streams = self.streams.lock();
            let Some(entry) = streams.get_mut(&id) else { return };
            if last { entry.input.take() } else { entry.input.clone() }
        };
        if let Some(input) = input.filter(|_| !bytes.is_empty()) {
            // Whoever has the stream may have heard enough.
            let _ = input.send(bytes).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Client {
        frames: Reader<tokio::io::ReadHalf<tokio::io::DuplexStream>>,
        sink: tokio::io::WriteHalf<tokio::io::DuplexStream>,
        headers: headers::Writer,
    }

    impl Client {
        async fn send(&mut self, frame: Frame) {
            self.sink.write_all(&frame.write()).await.unwrap();
        }

        async fn open(&mut self, stream: u32) {
            let headers = self.headers.write(&[("port", "80")]).unwrap().into();
            self.send(Frame::Open { stream, headers, last: false }).await;
        }

        async fn hear(&mut self) -> Option<Frame> {
            self.frames.next().await.unwrap()
        }
    }

    fn connect() -> (Client, mpsc::Receiver<Stream>) {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let (opened, streams) = mpsc::channel(WAITING);
        tokio::spawn(serve(far, opened));
        let (source, sink) = tokio::io::split(near);
        (Client { frames: Reader::new(source), sink, headers: headers::Writer::new().unwrap() }, streams)
    }

    fn data(stream: u32, text: &'static str, last: bool) -> Frame {
        Frame::Data { stream, bytes: Bytes::from_static(text.as_bytes()), last }
    }

    #[tokio::test]
    async fn a_stream_goes_both_ways_and_ends_on_each_side_alone() {
        let (mut client, mut streams) = connect();
        client.open(1).await;
        client.send(data(1, "hello", true)).await;
        let mut stream = streams.recv().await.unwrap();
        assert_eq!(stream.header("Port"), Some("80"));
        assert!(matches!(client.hear().await, Some(Frame::Reply { stream: 1, .. })));
        assert_eq!(stream.input.recv().await.unwrap(), "hello");
        assert_eq!(stream.input.recv().await, None);
        assert!(stream.voice.say(Bytes::from_static(b"hi")).await);
        stream.voice.end().await;
        assert_eq!(client.hear().await, Some(data(1, "hi", false)));
        assert_eq!(client.hear().await, Some(data(1, "", true)));
    }

    #[tokio::test]
    async fn pings_are_answered_and_streams_given_up() {
        let (mut client, mut streams) = connect();
        client.open(1).await;
        client.open(1).await;
        let stream = streams.recv().await.unwrap();
        assert!(matches!(client.hear().await, Some(Frame::Reply { stream: 1, .. })));
        assert_eq!(client.hear().await, Some(Frame::Reset { stream: 1, status: REFUSED }), "it is there already");
        client.send(Frame::Reset { stream: 1, status: 5 }).await;
        assert!(stream.given_up.await.is_err());
        client.send(Frame::Ping(9)).await;
        assert_eq!(client.hear().await, Some(Frame::Ping(9)));
    }

    #[tokio::test]
    async fn the_end_of_the_connection_is_that_of_its_streams() {
        let (mut client, mut streams) = connect();
        client.open(1).await;
        let stream = streams.recv().await.unwrap();
        drop(client);
        assert!(stream.given_up.await.is_err());
        assert!(streams.recv().await.is_none());
    }
}
