//! A request that changes the protocol of its connection is passed on to the node, and then whatever follows it.

use axum::body::Body;
use http::header::{AUTHORIZATION, CONNECTION, HOST, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};

use super::location::Location;
use crate::server::State;
use crate::status::{ApiError, Reason};

/// Introduces who a request is to be taken for; that is settled here and none of the node's business.
const IMPERSONATION: &str = "impersonate-";

pub(super) async fn pass(state: &State, location: &Location, mut parts: Parts) -> Result<Response<Body>, ApiError> {
    // A client in the same process, or on HTTP/2, has no connection that could change.
    let near = parts.extensions.remove::<OnUpgrade>().filter(|_| is_upgrade(&parts.headers));
    let near = near.ok_or_else(|| ApiError::bad_request("Upgrade request required"))?;
    let nodes = state.nodes()?;
    let failed = |text: String| ApiError::new(Reason::Unknown, text);
    let request = request(location, parts).map_err(|error| failed(error.to_string()))?;
    let answer = nodes.send(location, request).await;
    let mut answer = answer.map_err(|error| failed(format!("error dialing backend: {error}")))?;
    match answer.status() {
        StatusCode::SWITCHING_PROTOCOLS => {
            let far = hyper::upgrade::on(&mut answer);
            nodes.keep(async move {
                if let (Ok(near), Ok(far)) = tokio::join!(near, far) {
                    carry(TokioIo::new(near), TokioIo::new(far)).await;
                }
            });
            Ok(answer.map(|_| Body::empty()))
        }
        status if status.is_client_error() || status.is_server_error() => Ok(pass_back(answer)),
        status => Err(failed(format!("invalid upgrade response: status code {}", status.as_u16()))),
    }
}

fn is_upgrade(headers: &HeaderMap) -> bool {
    let values = headers.get_all(CONNECTION).into_iter().filter_map(|value| value.to_str().ok());
    let mut words = values.flat_map(|value| value.split(','));
    words.any(|word| word.trim().eq_ignore_ascii_case("upgrade")) && headers.contains_key(UPGRADE)
}

fn request(location: &Location, parts: Parts) -> Result<Request<Body>, http::Error> {
    let mut request = Request::builder().method(parts.method).uri(&location.path_and_query).body(Body::empty())?;
    *request.headers_mut() = parts.headers;
    let headers = request.headers_mut();
    headers.remove(AUTHORIZATION);
    let personal: Vec<_> = headers.keys().filter(|name| name.as_str().starts_with(IMPERSONATION)).cloned().collect();
    for name in personal {
        headers.remove(name);
    }
    headers.insert(HOST, HeaderValue::from_str(&location.authority())?);
    Ok(request)
}

fn pass_back(answer: Response<Incoming>) -> Response<Body> {
    let (mut head, body) = answer.into_parts();
    // How the body is framed is between two neighbours.
    for name in [CONNECTION, http::header::TRANSFER_ENCODING] {
        head.headers.remove(name);
    }
    Response::from_parts(head, Body::new(body))
}

/// Carries bytes until either side is done: no protocol here goes on with one side only.
async fn carry<A, B>(near: A, far: B)
where
    A: AsyncRead + AsyncWrite,
    B: AsyncRead + AsyncWrite,
{
    let (mut near_source, mut near_sink) = tokio::io::split(near);
    let (mut far_source, mut far_sink) = tokio::io::split(far);
    let there = tokio::io::copy(&mut near_source, &mut far_sink);
    let back = tokio::io::copy(&mut far_source, &mut near_sink);
    tokio::select! {
        _ = there => {}
        _ = back => {}
    }
    // Says goodbye properly, if somebody is left to hear it.
    let _ = tokio::join!(near_sink.shutdown(), far_sink.shutdown());
}
