//! Requests for a conversation with a process: `exec` and `attach`.

use axum::extract::{Path, Query, Request, State};
use axum::response::Response;

use super::conversation::{Conversation, Verdict};
use super::refusal::Refusal;
use super::upgrade::{SPDY, Upgrade, asks_for};
use super::{Kubelet, attach as attaching, exec as executing, streams, web_socket};
use crate::pod::Live;

/// The streams that a client wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) stdin: bool,
    pub(super) stdout: bool,
    pub(super) stderr: bool,
    pub(super) tty: bool,
}

type Pairs = Vec<(String, String)>;
type Names = (String, String, String);

pub(super) async fn exec(
    State(kubelet): State<Kubelet>,
    Path((namespace, pod, container)): Path<Names>,
    Query(pairs): Query<Pairs>,
    request: Request,
) -> Result<Response, Refusal> {
    let wanted = Wanted::read(&pairs)?;
    let live = live(&kubelet, &namespace, &pod, &container)?;
    let live = live.ok_or_else(|| Refusal::failed(format!("container not found ({container:?})")))?;
    let argv: Vec<String> = pairs.into_iter().filter(|(name, _)| name == "command").map(|(_, word)| word).collect();
    talk(&kubelet, request, wanted, move |conversation| executing::run(live, argv, wanted, conversation))
}

pub(super) async fn attach(
    State(kubelet): State<Kubelet>,
    Path((namespace, pod, container)): Path<Names>,
    Query(pairs): Query<Pairs>,
    request: Request,
) -> Result<Response, Refusal> {
    let wanted = Wanted::read(&pairs)?;
    let live = live(&kubelet, &namespace, &pod, &container)?;
    let not_there = || Refusal::failed(format!("container {container} not found in pod {pod}_{namespace}"));
    let live = live.ok_or_else(not_there)?;
    talk(&kubelet, request, wanted, move |conversation| attaching::run(live, wanted, conversation))
}

/// The container, if it runs.
fn live(kubelet: &Kubelet, namespace: &str, pod: &str, container: &str) -> Result<Option<Live>, Refusal> {
    let pod = kubelet.pods.find(namespace, pod).ok_or_else(|| Refusal::not_found("pod does not exist"))?;
    Ok(kubelet.pods.live(&pod, container))
}

/// Agrees on a protocol and begins the conversation.
fn talk<W, F>(kubelet: &Kubelet, mut request: Request, wanted: Wanted, work: W) -> Result<Response, Refusal>
where
    W: FnOnce(Conversation) -> F + Send + 'static,
    F: Future<Output = Verdict> + Send,
{
    if asks_for(request.headers(), SPDY) {
        let (upgrade, answer) = Upgrade::to_spdy(&mut request, &streams::PROTOCOLS)?;
        kubelet.visit(async move {
            if let Some(connection) = upgrade.raw().await {
                streams::hold(connection, wanted, work).await;
            }
        });
        return Ok(answer);
    }
    let (upgrade, answer) = Upgrade::to_web_socket(&mut request, &web_socket::PROTOCOLS)?;
    kubelet.visit(async move {
        if let Some(socket) = upgrade.web_socket().await {
            web_socket::hold(socket, work).await;
        }
    });
    Ok(answer)
}

impl Wanted {
    fn read(pairs: &[(String, String)]) -> Result<Self, Refusal> {
        let is_set = |wanted: &str| pairs.iter().any(|(name, value)| name == wanted && value == "1");
        let tty = is_set("tty");
        // A terminal has one output only.
        let wanted = Self { stdin: is_set("input"), stdout: is_set("output"), stderr: is_set("error") && !tty, tty };
        if !wanted.stdin && !wanted.stdout && !wanted.stderr {
            return Err(Refusal::bad_request("you must specify at least 1 of stdin, stdout, stderr"));
        }
        Ok(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &[&str]) -> Result<Wanted, Refusal> {
        Wanted::read(&query.iter().map(|name| ((*name).to_owned(), "1".to_owned())).collect::<Vec<_>>())
    }

    #[test]
    fn a_terminal_has_no_stream_for_errors() {
        let plain = read(&["input", "output", "error"]).unwrap();
        assert_eq!(plain, Wanted { stdin: true, stdout: true, stderr: true, tty: false });
        assert!(!read(&["output", "error", "tty"]).unwrap().stderr);
        assert!(read(&["tty"]).is_err());
    }
}
