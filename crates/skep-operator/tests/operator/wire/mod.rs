//! The way between the operator and the API server: what passes is written down, can be stopped, and can be spoilt.

mod faults;
mod record;

pub use faults::{Faults, Random};
pub use record::{Record, Sent};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use tower::BoxError;

use faults::Fault;

/// A client that behaves as the given one, faults aside, and writes down what it is asked for.
pub fn client(inner: Client, namespace: &str, faults: Faults) -> (Client, Record) {
    let record = Record::default();
    let remembered = record.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (inner, record, faults) = (inner.clone(), remembered.clone(), faults.clone());
        async move {
            let (parts, body) = request.into_parts();
            let bytes: Bytes = body.collect().await?.to_bytes();
            let sent = Sent::new(&parts, &bytes);
            let fault = faults.next(&sent);
            let number = record.note(sent).await;
            let request = Request::from_parts(parts, Body::from(bytes));
            let answer = match fault {
                Fault::None => inner.send(request).await?,
                Fault::Delay(time) => {
                    tokio::time::sleep(time).await;
                    inner.send(request).await?
                }
                Fault::Hang => std::future::pending().await,
                Fault::Refuse => refusal(500, "InternalError"),
                Fault::Conflict => refusal(409, "Conflict"),
                Fault::Lose => {
                    inner.send(request).await?;
                    refusal(500, "InternalError")
                }
            };
            record.answered(number, answer.status().as_u16());
            Ok::<_, BoxError>(answer)
        }
    });
    (Client::new(service, namespace), record)
}

fn refusal(code: u16, reason: &str) -> Response<Body> {
    let status = serde_json::json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "reason": reason, "message": "spoilt by the test"});
    let mut response = Response::new(Body::from(status.to_string().into_bytes()));
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
    response
}
