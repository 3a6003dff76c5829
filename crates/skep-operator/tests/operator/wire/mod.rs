//! The way between the operator and the API server: what passes is written down, can be stopped, and can be spoilt.

mod faults;
mod record;

pub use faults::Faults;
pub use record::{Record, Sent};

use std::io;

use bytes::Bytes;
use futures::StreamExt as _;
use http::{HeaderValue, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, BodyStream, Full, StreamBody};
use kube::Client;
use kube::client::Body;
use skep_operator::metrics::Asked;
use tower::BoxError;

use crate::rights;
use faults::Fault;

type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

/// A client that behaves as the given one would if it were `user`, faults aside, and writes down what it is asked for.
pub fn client(inner: Client, user: &str, namespace: &str, faults: Faults) -> (Client, Record) {
    let record = Record::default();
    let remembered = record.clone();
    let user = HeaderValue::from_str(user).unwrap();
    let service = tower::service_fn(move |mut request: Request<Body>| {
        let (inner, record, faults) = (inner.clone(), remembered.clone(), faults.clone());
        request.headers_mut().insert("impersonate-user", user.clone());
        async move {
            let asked = Asked::of(&request);
            let (parts, body) = request.into_parts();
            let bytes: Bytes = body.collect().await?.to_bytes();
            let sent = Sent::new(asked, &parts, &bytes);
            let fault = faults.next(&sent);
            let number = record.note(sent.clone()).await;
            let answer = spoil(fault, &inner, Request::from_parts(parts, Body::from(bytes))).await?;
            if answer.extensions().get::<Spoilt>().is_none() {
                rights::note(&sent, answer.status());
            }
            record.answered(number, answer.status().as_u16());
            Ok::<_, BoxError>(answer)
        }
    });
    (Client::new(service, namespace), record)
}

/// Sends a request, or does not, as the fault says.
async fn spoil(fault: Fault, inner: &Client, request: Request<Body>) -> Result<Answer, BoxError> {
    match fault {
        Fault::None => send(inner, request).await,
        Fault::Delay(time) => {
            tokio::time::sleep(time).await;
            send(inner, request).await
        }
        Fault::Hang => std::future::pending().await,
        Fault::Stall(time) => {
            tokio::time::sleep(time).await;
            Err(io::Error::from(io::ErrorKind::TimedOut).into())
        }
        Fault::Reset => Err(io::Error::from(io::ErrorKind::ConnectionReset).into()),
        Fault::Refuse(code, reason) => Ok(refusal(code, reason, &[])),
        Fault::Terminating => Ok(refusal(403, "Forbidden", &["NamespaceTerminating"])),
        Fault::Lose => {
            send(inner, request).await?;
            Err(io::Error::from(io::ErrorKind::ConnectionReset).into())
        }
        Fault::Cut(time) => Ok(send(inner, request).await?.map(|body| {
            let frames = BodyStream::new(body).take_until(tokio::time::sleep(time));
            StreamBody::new(frames).boxed_unsync()
        })),
    }
}

async fn send(inner: &Client, request: Request<Body>) -> Result<Answer, BoxError> {
    Ok(inner.send(request).await?.map(|body| body.map_err(BoxError::from).boxed_unsync()))
}

/// An answer that no server has given.
#[derive(Clone, Copy)]
struct Spoilt;

fn refusal(code: u16, reason: &str, causes: &[&str]) -> Answer {
    let causes: Vec<_> = causes.iter().map(|cause| serde_json::json!({"reason": cause})).collect();
    let status = serde_json::json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "reason": reason, "message": "spoilt by the test", "details": {"causes": causes}});
    let mut response = Response::new(Full::from(status.to_string()).map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
    response.extensions_mut().insert(Spoilt);
    response
}
