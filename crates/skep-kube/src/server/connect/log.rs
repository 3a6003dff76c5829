//! The log of a container, as its node sends it.

use axum::body::Body;
use http::header::{CONTENT_TYPE, HOST};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;

use super::location;
use super::log_options::LogOptions;
use crate::server::State;
use crate::server::exchange::Exchange;
use crate::status::{ApiError, Reason};

/// How much is read of what a node says against it.
const LONGEST_REFUSAL: usize = 50_000;

pub(super) async fn answer(state: &State, exchange: &Exchange, query: &str) -> Result<Response<Body>, ApiError> {
    let options = LogOptions::read(query)?;
    options.check(exchange.name())?;
    let location = location::of_log(state, exchange, options.container.as_deref(), &options.parameters())?;
    let Some(location) = location else { return Ok(respond(StatusCode::NO_CONTENT, Body::empty())) };
    let unreachable =
        |why: &dyn std::fmt::Display| ApiError::new(Reason::Unknown, format!("Get {:?}: {why}", location.url()));
    let request = Request::get(&location.path_and_query).header(HOST, location.authority()).body(Body::empty());
    let request = request.map_err(|error| unreachable(&error))?;
    let answer = state.nodes()?.send(&location, request).await.map_err(|error| unreachable(&error))?;
    if answer.status().is_success() {
        let mut response = respond(StatusCode::OK, Body::new(answer.into_body()));
        response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("text/plain"));
        return Ok(response);
    }
    Err(refusal(exchange, answer).await)
}

fn respond(status: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}

/// What a node says against it, as an error of the API.
async fn refusal(exchange: &Exchange, answer: Response<Incoming>) -> ApiError {
    let status = answer.status();
    let read = Limited::new(answer.into_body(), LONGEST_REFUSAL).collect().await;
    let text = read.map(|body| String::from_utf8_lossy(&body.to_bytes()).into_owned()).unwrap_or_default();
    match status {
        StatusCode::INTERNAL_SERVER_ERROR => ApiError::internal(&text),
        StatusCode::BAD_REQUEST => ApiError::bad_request(text),
        other => {
            let (reason, said) = match other {
                StatusCode::UNAUTHORIZED => {
                    (Reason::Unauthorized, "the server has asked for the client to provide credentials")
                }
                StatusCode::FORBIDDEN => (Reason::Forbidden, text.as_str()),
                StatusCode::NOT_FOUND => (Reason::NotFound, "the server could not find the requested resource"),
                StatusCode::UNPROCESSABLE_ENTITY => {
                    (Reason::Invalid, "the server rejected our request due to an error in our request")
                }
                _ => (Reason::InternalError, text.as_str()),
            };
            let (part, name) = (exchange.resource.part_name("log"), exchange.name());
            let mut error = ApiError::new(reason, format!("{said} ( {part} {name})"));
            error.name = Some(name.to_owned());
            error.resource = Some(part);
            error
        }
    }
}
