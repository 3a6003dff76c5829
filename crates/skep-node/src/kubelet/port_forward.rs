//! Ports of pods: for each connection, a client opens a stream for its bytes and one for what goes wrong with it.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use bytes::Bytes;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::refusal::Refusal;
use super::spdy::{self, Stream};
use super::upgrade::{SPDY, Upgrade, asks_for};
use super::{Kubelet, tunnel};
use crate::node::Pods;

const PROTOCOLS: [&str; 1] = ["portforward.k8s.io"];
const TUNNELLED: [&str; 1] = ["SPDY/3.1+portforward.k8s.io"];
const CHUNK: usize = 32 * 1024;

pub(super) async fn open(
    State(kubelet): State<Kubelet>,
    Path((namespace, name)): Path<(String, String)>,
    mut request: Request,
) -> Result<Response, Refusal> {
    let pod = kubelet.pods.find(&namespace, &name).ok_or_else(|| Refusal::not_found("pod does not exist"))?;
    if !kubelet.pods.is_running(&pod) {
        return Err(Refusal::failed(format!("pod not found (\"{name}_{namespace}\")")));
    }
    let pods = kubelet.pods.clone();
    if asks_for(request.headers(), "websocket") {
        let (upgrade, answer) = Upgrade::to_web_socket(&mut request, &TUNNELLED)?;
        kubelet.visit(async move {
            let Some(socket) = upgrade.web_socket().await else { return };
            let (connection, carry) = tunnel::through(socket);
            tokio::join!(carry, serve(connection, pods, pod));
        });
        return Ok(answer);
    }
    if !asks_for(request.headers(), SPDY) {
        return Err(Refusal::bad_request("unable to upgrade: missing upgrade headers in request"));
    }
    let (upgrade, answer) = Upgrade::to_spdy(&mut request, &PROTOCOLS)?;
    kubelet.visit(async move {
        if let Some(connection) = upgrade.raw().await {
            serve(connection, pods, pod).await;
        }
    });
    Ok(answer)
}

async fn serve(connection: impl AsyncRead + AsyncWrite + Unpin, pods: Arc<Pods>, pod: Arc<Pod>) {
    let (opened, streams) = mpsc::channel(1);
    let (ended, ()) = tokio::join!(spdy::serve(connection, opened), pair(streams, &pods, &pod));
    if let Err(error) = ended {
        tracing::debug!(%error, pod = pod.name_any(), "forwarding of ports ended");
    }
}

/// Brings together the streams of each connection. Those that wait for their other half are few: the number of streams
/// is limited.
async fn pair(mut streams: mpsc::Receiver<Stream>, pods: &Arc<Pods>, pod: &Arc<Pod>) {
    let mut halves: HashMap<String, Stream> = HashMap::new();
    let mut forwards = JoinSet::new();
    while let Some(stream) = streams.recv().await {
        while forwards.try_join_next().is_some() {}
        halves.retain(|_, half| !half.voice.is_gone());
        let request = stream.header("requestID").unwrap_or_default().to_owned();
        let is_error = |stream: &Stream| stream.header("streamType") == Some("error");
        match halves.remove(&request) {
            None => drop(halves.insert(request, stream)),
            Some(other) => {
                let (errors, data) = if is_error(&other) { (other, stream) } else { (stream, other) };
                forwards.spawn(forward(pods.clone(), pod.clone(), errors, data));
            }
        }
    }
}

/// Forwards one connection. The client waits for the end of both streams.
async fn forward(pods: Arc<Pods>, pod: Arc<Pod>, errors: Stream, mut data: Stream) {
    match connect(&pods, &pod, &data).await {
        Ok(connection) => carry(connection, &mut data).await,
        Err(why) => {
            errors.voice.say(Bytes::from(why)).await;
            data.voice.end().await;
        }
    }
    errors.voice.end().await;
}

async fn connect(pods: &Pods, pod: &Pod, data: &Stream) -> Result<TcpStream, String> {
    let wanted = data.header("port").unwrap_or_default();
    let port = wanted.parse().ok().filter(|port| *port > 0);
    let port: u16 = port.ok_or_else(|| format!("unable to parse port {wanted:?}"))?;
    pods.connect(pod, port).await.map_err(|error| {
        let (name, uid) = (pod.name_any(), pod.uid().unwrap_or_default());
        format!("error forwarding port {port} to pod {name}, uid {uid}: failed to connect to localhost:{port}: {error}")
    })
}

/// Carries bytes both ways, until both have ended or the client gives up.
async fn carry(connection: TcpStream, data: &mut Stream) {
    let Stream { headers: _, input, voice, given_up } = data;
    let (mut source, mut sink) = connection.into_split();
    let into = async {
        while let Some(bytes) = input.recv().await {
            if sink.write_all(&bytes).await.is_err() {
                return;
            }
        }
        // The process may have closed its side before.
        let _ = sink.shutdown().await;
    };
    let out = async {
        let mut buffer = vec![0; CHUNK];
        while let Ok(length @ 1..) = source.read(&mut buffer).await {
            if !voice.say(Bytes::copy_from_slice(&buffer[..length])).await {
                return;
            }
        }
        voice.end().await;
    };
    tokio::select! {
        _ = async { tokio::join!(into, out) } => {}
        _ = given_up => {}
    }
}
