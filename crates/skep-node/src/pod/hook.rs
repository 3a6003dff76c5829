//! What is done right after a container has started and right before it is stopped.

use std::net::IpAddr;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, LifecycleHandler};

use super::context::Live;
use super::probe::{self, HttpRequest, Question};
use crate::container::ExecSpec;

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
    use tokio::io::AsyncReadExt as _;
    const LONGEST: u64 = 10 * 1024;

    let spec = ExecSpec { argv, env: live.env.to_vec(), stdin: false, tty: false };
    let mut process = live.container.exec(&spec).await.map_err(|error| error.to_string())?;
    let mut printed = Vec::new();
    let mut side = Vec::new();
    let (out, error) = (process.take_stdout(), process.take_stderr());
    let read = async {
        if let Some(out) = out {
            // What cannot be read is not part of the message.
            let _ = out.take(LONGEST).read_to_end(&mut printed).await;
        }
    };
    let read_side = async {
        if let Some(error) = error {
            let _ = error.take(LONGEST).read_to_end(&mut side).await;
        }
    };
    let (exit, (), ()) = tokio::join!(process.wait(), read, read_side);
    if exit.code == 0 {
        return Ok(());
    }
    printed.extend(side);
    let text = String::from_utf8_lossy(&printed).trim().to_owned();
    Err(if text.is_empty() { format!("command exited with {}", exit.code) } else { text })
}
