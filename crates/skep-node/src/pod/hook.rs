//! What is done right after a container has started and right before it is stopped.

use std::net::IpAddr;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, LifecycleHandler};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::context::Live;
use super::probe::{self, HttpRequest, Question};
use crate::container::ExecSpec;

/// How much of what a command prints is told when it fails.
const LONGEST_MESSAGE: u64 = 10 * 1024;

/// Carries out a hook within `limit`.
pub(super) async fn run(
    hook: &LifecycleHandler,
    container: &Container,
    live: &Live,
    address: IpAddr,
    limit: Duration,
) -> Result<(), String> {
    let work = async {
        if let Some(action) = &hook.exec {
            return exec(live, action.command.clone().unwrap_or_default()).await.map(drop);
        }
        if let Some(action) = &hook.http_get {
            let request = HttpRequest::new(action, container, address).map_err(|error| error.to_string())?;
            return probe::ask(&Question::Http(request), limit).await;
        }
        if let Some(action) = &hook.sleep {
            tokio::time::sleep(Duration::from_secs(u64::try_from(action.seconds).unwrap_or(0))).await;
        }
        Ok(())
    };
    match tokio::time::timeout(limit, work).await {
        Ok(outcome) => outcome,
        Err(_) => Err(format!("not finished within {} s", limit.as_secs())),
    }
}

/// Runs a command in the container. What it prints is part of the reason when it fails.
pub(super) async fn exec(live: &Live, argv: Vec<String>) -> Result<(), String> {
    let spec = ExecSpec { argv, env: live.env.to_vec(), stdin: false, tty: false };
    let mut process = live.container.exec(&spec).await.map_err(|error| error.to_string())?;
    let (out, side) = (process.take_stdout(), process.take_stderr());
    let (exit, mut printed, side) = tokio::join!(process.wait(), beginning(out), beginning(side));
    if exit.code == 0 {
        return Ok(());
    }
    printed.extend(side);
    let text = String::from_utf8_lossy(&printed).trim().to_owned();
    Err(if text.is_empty() { format!("command exited with {}", exit.code) } else { text })
}

/// The beginning of what comes. The rest is heard out: a command whose words nobody takes would fail, or wait for ever.
async fn beginning(stream: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut kept = Vec::new();
    if let Some(mut stream) = stream {
        // What cannot be read is not part of the message.
        let _ = (&mut stream).take(LONGEST_MESSAGE).read_to_end(&mut kept).await;
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_beginning_is_kept_but_all_is_taken() {
        use tokio::io::AsyncWriteExt as _;
        let (mut mouth, ear) = tokio::io::duplex(64);
        let speak = async move {
            let all = mouth.write_all(&vec![b'x'; 200_000]).await;
            drop(mouth);
            all
        };
        let (said, kept) = tokio::join!(speak, beginning(Some(ear)));
        assert!(said.is_ok(), "{said:?}");
        assert_eq!(u64::try_from(kept.len()).unwrap(), LONGEST_MESSAGE);
    }
}
