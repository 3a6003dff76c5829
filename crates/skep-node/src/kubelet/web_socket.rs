//! A conversation over a WebSocket: the first byte of each message names the stream that the rest belongs to.

use std::time::Duration;

use bytes::Bytes;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt as _, StreamExt as _};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::conversation::{Conversation, Input, Verdict, WAITING};
use super::idle::Activity;
use super::upgrade::Socket;
use crate::log::Source;

/// The newest first. In the older one a client cannot say that its input has ended.
pub(super) const PROTOCOLS: [&str; 2] = ["v5.channel.k8s.io", "v4.channel.k8s.io"];

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const VERDICT: u8 = 3;
const RESIZE: u8 = 4;
/// Followed by the number of a stream.
const END_OF: u8 = 255;

/// How long the client may take to say goodbye, too.
const FAREWELL: Duration = Duration::from_secs(5);

/// Holds the conversation that `work` has with the client. When the client leaves, `work` is dropped.
pub(super) async fn hold<W, F>(socket: Socket, work: W)
where
    W: FnOnce(Conversation) -> F,
    F: Future<Output = Verdict>,
{
    let activity = Activity::new();
    let (mut mouth, mut ear) = socket.split();
    let (heard, input) = mpsc::channel(WAITING);
    let (output, said) = mpsc::channel(WAITING);
    let finish = async {
        // Tells the client that somebody is there.
        mouth.send(message(STDOUT, &[])).await?;
        let work = async { Ok(work(Conversation { input, output }).await) };
        let (verdict, ()) = tokio::try_join!(work, speak(&mut mouth, said, &activity))?;
        end(&mut mouth, &verdict).await
    };
    let left = tokio::select! {
        finished = finish => finished.is_err(),
        () = listen(&mut ear, &heard, &activity) => true,
        () = activity.ceased() => true,
    };
    if !left {
        // A connection that is closed with something unread in it takes back what was said last.
        let _ = tokio::time::timeout(FAREWELL, listen(&mut ear, &heard, &activity)).await;
    }
}

type Mouth = SplitSink<Socket, Message>;
type SocketError = tokio_tungstenite::tungstenite::Error;

async fn speak(
    mouth: &mut Mouth,
    mut said: mpsc::Receiver<(Source, Bytes)>,
    activity: &Activity,
) -> Result<(), SocketError> {
    while let Some((source, bytes)) = said.recv().await {
        let channel = match source {
            Source::Output => STDOUT,
            Source::Error => STDERR,
        };
        mouth.send(message(channel, &bytes)).await?;
        activity.note();
    }
    Ok(())
}

async fn end(mouth: &mut Mouth, verdict: &Verdict) -> Result<(), SocketError> {
    let document = serde_json::to_vec(&verdict.status()).unwrap_or_default();
    mouth.send(message(VERDICT, &document)).await?;
    mouth.send(Message::Close(Some(CloseFrame { code: CloseCode::Normal, reason: "".into() }))).await
}

/// Hears the client out. What nobody takes any more is dropped.
async fn listen(ear: &mut SplitStream<Socket>, heard: &mpsc::Sender<Input>, activity: &Activity) {
    while let Some(Ok(message)) = ear.next().await {
        activity.note();
        let bytes = match message {
            Message::Binary(bytes) => bytes,
            Message::Text(text) => text.into(),
            Message::Close(_) => return,
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => continue,
        };
        if let Some(input) = read(bytes) {
            let _ = heard.send(input).await;
        }
    }
}

fn message(channel: u8, bytes: &[u8]) -> Message {
    let mut text = Vec::with_capacity(bytes.len() + 1);
    text.push(channel);
    text.extend_from_slice(bytes);
    Message::Binary(text.into())
}

/// What a message of the client says; none when it says nothing.
fn read(mut message: Bytes) -> Option<Input> {
    if message.is_empty() {
        return None;
    }
    let rest = message.split_off(1);
    match message[0] {
        STDIN if !rest.is_empty() => Some(Input::Data(rest)),
        RESIZE => serde_json::from_slice(&rest).ok().map(Input::Resize),
        END_OF if *rest == [STDIN] => Some(Input::End),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::conversation::Size;
    use super::*;

    fn said(bytes: &'static [u8]) -> Option<Input> {
        read(Bytes::from_static(bytes))
    }

    #[test]
    fn the_first_byte_is_the_stream() {
        assert_eq!(said(b"\x00abc"), Some(Input::Data(Bytes::from_static(b"abc"))));
        assert_eq!(said(b"\xff\x00"), Some(Input::End));
        let size = Size { width: 80, height: 24 };
        assert_eq!(said(b"\x04{\"Width\":80,\"Height\":24}"), Some(Input::Resize(size)));
    }

    #[test]
    fn what_means_nothing_is_nothing() {
        for bytes in [&b""[..], b"\x00", b"\x01no", b"\x04{", b"\x04{\"Width\":99999}", b"\xff", b"\xff\x01", b"\x09x"]
        {
            assert_eq!(said(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn messages_to_the_client_name_their_stream() {
        assert_eq!(message(STDERR, b"oh"), Message::Binary(Bytes::from_static(b"\x02oh")));
    }
}
