//! What goes to and fro between a client and a process, whatever carries it.

use bytes::Bytes;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Status, StatusCause, StatusDetails};
use serde::Deserialize;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

use crate::container::{Exit, Terminal};
use crate::log::Source;

/// How many pieces may wait in either direction.
pub(super) const WAITING: usize = 32;

/// What a client sends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Input {
    Data(Bytes),
    /// There will be no more data.
    End,
    Resize(Size),
}

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Size {
    pub(super) width: u16,
    pub(super) height: u16,
}

/// The side of the process. Dropping `output` tells the client that nothing more is printed.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) input: mpsc::Receiver<Input>,
    pub(super) output: mpsc::Sender<(Source, Bytes)>,
}

/// How it ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Success,
    Exit(Exit),
    Failed(String),
}

impl Verdict {
    /// The document with which a conversation ends.
    pub(super) fn status(&self) -> Status {
        let failure = Status { status: Some("Failure".to_owned()), ..Status::default() };
        match self {
            Self::Success | Self::Exit(Exit { code: 0, .. }) => {
                Status { status: Some("Success".to_owned()), ..Status::default() }
            }
            Self::Exit(Exit { code, .. }) => Status {
                message: Some(format!("command terminated with non-zero exit code: exit status {code}")),
                reason: Some("NonZeroExitCode".to_owned()),
                details: Some(because(Some("ExitCode"), code.to_string())),
                ..failure
            },
            Self::Failed(why) => Status {
                message: Some(format!("Internal error occurred: {why}")),
                reason: Some("InternalError".to_owned()),
                details: Some(because(None, why.clone())),
                code: Some(500),
                ..failure
            },
        }
    }
}

fn because(reason: Option<&str>, message: String) -> StatusDetails {
    let cause = StatusCause { reason: reason.map(str::to_owned), message: Some(message), field: None };
    StatusDetails { causes: Some(vec![cause]), ..StatusDetails::default() }
}

/// Passes on what the client sends until it sends no more, or nobody takes it. What has no place to go is dropped, so
/// that the client can go on.
pub(super) async fn listen(
    input: &mut mpsc::Receiver<Input>,
    mut place: Option<impl AsyncWrite + Unpin>,
    terminal: Option<&Terminal>,
) {
    while let Some(said) = input.recv().await {
        match said {
            Input::Data(bytes) => {
                if let Some(open) = &mut place
                    && open.write_all(&bytes).await.is_err()
                {
                    place = None;
                }
            }
            Input::End => place = None,
            Input::Resize(size) => resize(terminal, size),
        }
    }
}

/// Tells a terminal its new size.
pub(super) fn resize(terminal: Option<&Terminal>, size: Size) {
    let Some(terminal) = terminal else { return };
    if let Err(error) = terminal.resize(size.width, size.height) {
        tracing::debug!(%error, "size of a terminal not changed");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(verdict: &Verdict) -> serde_json::Value {
        serde_json::to_value(verdict.status()).unwrap()
    }

    #[test]
    fn clients_learn_the_exit_code_from_the_causes() {
        let success = document(&Verdict::Exit(Exit { code: 0, signal: None }));
        assert_eq!(success["status"], "Success");
        assert_eq!(success, document(&Verdict::Success));
        let failure = document(&Verdict::Exit(Exit { code: 3, signal: None }));
        assert_eq!((&failure["status"], &failure["reason"]), (&json!("Failure"), &json!("NonZeroExitCode")));
        assert_eq!(failure["details"]["causes"], json!([{"reason": "ExitCode", "message": "3"}]));
    }

    #[test]
    fn a_command_that_does_not_start_is_an_internal_error() {
        let failure = document(&Verdict::Failed("no such thing".to_owned()));
        assert_eq!(failure["message"], "Internal error occurred: no such thing");
        assert_eq!((&failure["reason"], &failure["code"]), (&json!("InternalError"), &json!(500)));
    }
}
