//! A client at the streams of a container that runs already.

use super::conversation::{Conversation, Input, Verdict, resize};
use super::remote::Wanted;
use crate::log::Source;
use crate::pod::{Attachment, Live, Streams};

/// Stays until the container ends or, by dropping this, the client leaves.
pub(super) async fn run(live: Live, wanted: Wanted, conversation: Conversation) -> Verdict {
    let Live { container: _, streams, stdin_once, .. } = live;
    let Attachment { output: mut printed, input: place, terminal } = streams.attach();
    let mut visitor = wanted.stdin.then(|| Visitor { streams: &streams, stdin_once });
    let Conversation { mut input, output } = conversation;
    let tell = async {
        while let Some((source, bytes)) = printed.recv().await {
            let is_wanted = match source {
                Source::Output => wanted.stdout,
                Source::Error => wanted.stderr,
            };
            if is_wanted && output.send((source, bytes)).await.is_err() {
                break;
            }
        }
    };
    let hear = async {
        let mut place = place.filter(|_| wanted.stdin);
        while let Some(said) = input.recv().await {
            match said {
                Input::Data(bytes) => {
                    if let Some(open) = &place
                        && open.send(bytes).await.is_err()
                    {
                        place = None;
                    }
                }
                Input::End => {
                    place = None;
                    visitor = None;
                }
                Input::Resize(size) => resize(terminal.as_ref(), size),
            }
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = tell => {}
        () = hear => {}
    }
    Verdict::Success
}

/// Somebody who writes to the container. When the first one leaves, a container may want to read no more.
struct Visitor<'a> {
    streams: &'a Streams,
    stdin_once: bool,
}

impl Drop for Visitor<'_> {
    fn drop(&mut self) {
        if self.stdin_once {
            self.streams.close_input();
        }
    }
}
