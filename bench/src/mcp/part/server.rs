//! An MCP server that speaks streamable HTTP and does as little as it can.

use std::convert::Infallible;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Empty, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// How much the tool `large` answers.
const LARGE: usize = 1 << 20;
/// In how many bytes it comes.
const CHUNK: usize = 16 << 10;

type Body = BoxBody<Bytes, Infallible>;

pub(super) async fn serve(listener: TcpListener) -> anyhow::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = service_fn(async |request| Ok::<_, Infallible>(answer(request).await));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn answer(request: Request<Incoming>) -> Response<Body> {
    match *request.method() {
        // Nothing is ever said on the stream of a session.
        Method::GET => events(StreamBody::new(futures::stream::pending()).boxed()),
        Method::POST => match request.collect().await.map(|body| serde_json::from_slice::<Value>(&body.to_bytes())) {
            Ok(Ok(message)) => take(&message),
            _ => status(StatusCode::BAD_REQUEST),
        },
        _ => status(StatusCode::NO_CONTENT),
    }
}

fn take(message: &Value) -> Response<Body> {
    let Some(id) = message.get("id") else { return status(StatusCode::ACCEPTED) };
    let text = json!({"jsonrpc": "2.0", "id": id, "result": result_of(message)}).to_string();
    if message["params"]["name"] == "large" {
        let event = Bytes::from(format!("event: message\ndata: {text}\n\n"));
        let chunks: Vec<Bytes> =
            (0..event.len()).step_by(CHUNK).map(|start| event.slice(start..event.len().min(start + CHUNK))).collect();
        let chunks = chunks.into_iter().map(|chunk| Ok(Frame::data(chunk)));
        return events(StreamBody::new(futures::stream::iter(chunks)).boxed());
    }
    let mut response = Response::new(Full::new(Bytes::from(text)).boxed());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if message["method"] == "initialize"
        && let Ok(session) = HeaderValue::from_str(&uuid::Uuid::new_v4().to_string())
    {
        response.headers_mut().insert("mcp-session-id", session);
    }
    response
}

/// What the server answers a request with.
pub(super) fn result_of(message: &Value) -> Value {
    if message["method"] == "initialize" {
        let server = json!({"name": "skep-bench", "version": "1"});
        let version = &message["params"]["protocolVersion"];
        return json!({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server});
    }
    let text = match message["params"]["name"].as_str() {
        Some("large") => "x".repeat(LARGE).into(),
        _ => message["params"]["arguments"]["message"].clone(),
    };
    json!({"content": [{"type": "text", "text": text}]})
}

fn events(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}

fn status(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Empty::new().boxed());
    *response.status_mut() = status;
    response
}
