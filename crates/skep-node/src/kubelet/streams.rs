//! A conversation over SPDY: a stream for each of what a process reads and prints, one for the verdict, and one for the
//! size of the terminal. Older clients speak it, and API servers that do not know better.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::conversation::{Conversation, Input, Size, Verdict, WAITING};
use super::remote::Wanted;
use super::spdy::{self, Stream, Voice};
use crate::log::Source;

/// The one whose verdict is a document. Clients have known it since Kubernetes 1.4.
pub(super) const PROTOCOLS: [&str; 1] = ["v4.channel.k8s.io"];

/// How long a client may take to open all of its streams.
const OPENING: Duration = Duration::from_secs(30);
/// How long the client may take to hear the end.
const FAREWELL: Duration = Duration::from_secs(5);
/// The longest message about the size of a terminal.
const LONGEST_SIZE: usize = 1_024;

/// Holds the conversation that `work` has with the client. When the client leaves, `work` is dropped.
pub(super) async fn hold<W, F>(connection: impl AsyncRead + AsyncWrite + Unpin, wanted: Wanted, work: W)
where
    W: FnOnce(Conversation) -> F,
    F: Future<Output = Verdict>,
{
    let (opened, mut streams) = mpsc::channel(1);
    let talk = async {
        if let Ok(Some(all)) = timeout(OPENING, All::take(&mut streams, wanted)).await {
            all.converse(work).await;
        }
    };
    let carry = async {
        // However it ends, it is over.
        let _ = spdy::serve(connection, opened).await;
    };
    tokio::pin!(carry);
    tokio::select! {
        () = talk => {
            // The last words are on their way; the client hangs up when it has them.
            let _ = timeout(FAREWELL, carry).await;
        }
        () = &mut carry => {}
    }
}

/// The streams of a client.
#[derive(Default)]
struct All {
    verdict: Option<Stream>,
    stdin: Option<Stream>,
    stdout: Option<Stream>,
    stderr: Option<Stream>,
    resize: Option<Stream>,
}

impl All {
    /// Waits for everything that was announced; none when the client leaves before.
    async fn take(streams: &mut mpsc::Receiver<Stream>, wanted: Wanted) -> Option<Self> {
        let mut all = Self::default();
        while !all.is_complete(wanted) {
            let stream = streams.recv().await?;
            let place = match stream.header("streamType") {
                Some("error") => &mut all.verdict,
                Some("stdin") => &mut all.stdin,
                Some("stdout") => &mut all.stdout,
                Some("stderr") => &mut all.stderr,
                Some("resize") => &mut all.resize,
                _ => continue,
            };
            *place = Some(stream);
        }
        Some(all)
    }

    fn is_complete(&self, wanted: Wanted) -> bool {
        let is_there = |wanted: bool, stream: &Option<Stream>| !wanted || stream.is_some();
        self.verdict.is_some()
            && is_there(wanted.stdin, &self.stdin)
            && is_there(wanted.stdout, &self.stdout)
            && is_there(wanted.stderr, &self.stderr)
            && is_there(wanted.tty, &self.resize)
    }

    async fn converse<W, F>(self, work: W)
    where
        W: FnOnce(Conversation) -> F,
        F: Future<Output = Verdict>,
    {
        let Self { verdict, stdin, stdout, stderr, resize } = self;
        let (heard, input) = mpsc::channel(WAITING);
        let (output, said) = mpsc::channel(WAITING);
        let voices = (stdout.map(|stream| stream.voice), stderr.map(|stream| stream.voice));
        let listen = async {
            tokio::join!(hear(stdin, &heard), watch_size(resize, &heard));
            std::future::pending::<()>().await;
        };
        let finish = async { tokio::join!(work(Conversation { input, output }), speak(&voices, said)).0 };
        let end = tokio::select! {
            end = finish => end,
            () = listen => return,
        };
        let document = serde_json::to_vec(&end.status()).unwrap_or_default();
        let Some(Stream { voice, .. }) = verdict else { return };
        for voice in [voices.0, voices.1].into_iter().flatten() {
            voice.end().await;
        }
        voice.say(Bytes::from(document)).await;
        voice.end().await;
    }
}

async fn hear(stdin: Option<Stream>, heard: &mpsc::Sender<Input>) {
    let Some(mut stdin) = stdin else { return };
    while let Some(bytes) = stdin.input.recv().await {
        if heard.send(Input::Data(bytes)).await.is_err() {
            return;
        }
    }
    // Whoever reads may have ended already.
    let _ = heard.send(Input::End).await;
}

/// Documents follow each other, whole or in pieces.
async fn watch_size(resize: Option<Stream>, heard: &mpsc::Sender<Input>) {
    let Some(mut resize) = resize else { return };
    let mut text = BytesMut::new();
    while let Some(bytes) = resize.input.recv().await {
        text.extend_from_slice(&bytes);
        let mut documents = serde_json::Deserializer::from_slice(&text).into_iter::<Size>();
        let sizes: Vec<Size> = documents.by_ref().map_while(Result::ok).collect();
        let read = documents.byte_offset();
        let _ = text.split_to(read);
        for size in sizes {
            if heard.send(Input::Resize(size)).await.is_err() {
                return;
            }
        }
        if text.len() > LONGEST_SIZE {
            return;
        }
    }
}

async fn speak((stdout, stderr): &(Option<Voice>, Option<Voice>), mut said: mpsc::Receiver<(Source, Bytes)>) {
    while let Some((source, bytes)) = said.recv().await {
        let voice = match source {
            Source::Output => stdout,
            Source::Error => stderr,
        };
        if let Some(voice) = voice
            && !voice.say(bytes).await
        {
            return;
        }
    }
}
