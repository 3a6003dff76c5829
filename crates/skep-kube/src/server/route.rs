//! From a request to what answers it.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use bytes::Bytes;
use futures::FutureExt as _;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Response};

use super::connect::{self, Part};
use super::exchange::{self, Exchange, failure, header};
use super::limits::{is_lasting, is_read};
use super::negotiate;
use super::options::{self, Options};
use super::path::{self, ResourcePath, Target};
use super::registry::Origin;
use super::write::Expected;
use super::{Server, State, caching, crd, documents, read, reviews, watching, write};
use crate::auth::User;
use crate::auth::identity::Certificate;
use crate::auth::user::{AUTHENTICATED_GROUP, MASTERS_GROUP};
use crate::status::{ApiError, Reason};

impl Server {
    /// The server as a router, for a listener or for a client in the same process.
    pub fn router(&self) -> Router {
        let state = self.state.clone();
        Router::new().fallback(move |request: Request| {
            let state = state.clone();
            async move { Ok::<_, Infallible>(surely(state, request).await) }
        })
    }

    /// A client in the same process, with all rights.
    pub fn client(&self) -> kube::Client {
        self.client_of(Certificate::Good(User::new("system:admin", &[MASTERS_GROUP, AUTHENTICATED_GROUP])))
    }

    /// A client in the same process that is taken for the holder of a certificate.
    pub fn client_of(&self, certificate: Certificate) -> kube::Client {
        let router = self.router();
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let (router, certificate) = (router.clone(), certificate.clone());
            async move {
                use tower::ServiceExt as _;
                let mut request = request.map(Body::new);
                request.extensions_mut().insert(certificate);
                router.oneshot(request).await
            }
        });
        kube::Client::new(service, "default")
    }
}

/// Answers a request whatever happens. What changes something goes on when the client goes away, so that what follows
/// a write is done; and a mistake of ours costs no more than the request that it was made in.
async fn surely(state: Arc<State>, request: Request) -> Response<Body> {
    let encoding = negotiate::failure_encoding(header(request.headers(), ACCEPT.as_str()));
    let is_read = is_read(request.method());
    let answered = settle(is_read, Box::pin(async move { answer(&state, request).await })).await;
    let mut response = answered.unwrap_or_else(|| {
        let what = "This request caused apiserver to panic. Look in the logs for details.";
        failure(&ApiError::new(Reason::InternalError, what), encoding)
    });
    caching::forbid(&mut response);
    response
}

/// None: it has panicked.
async fn settle<T: Send + 'static>(is_read: bool, work: impl Future<Output = T> + Send + 'static) -> Option<T> {
    if is_read { AssertUnwindSafe(work).catch_unwind().await.ok() } else { tokio::spawn(work).await.ok() }
}

async fn answer(state: &Arc<State>, request: Request) -> Response<Body> {
    let encoding = negotiate::failure_encoding(header(request.headers(), ACCEPT.as_str()));
    try_answer(state, request).await.unwrap_or_else(|error| failure(&error, encoding))
}

async fn try_answer(state: &Arc<State>, request: Request) -> Result<Response<Body>, ApiError> {
    crd::catch_up(state);
    let Some(path) = path::decoded(request.uri().path()) else { return Ok(documents::bad_request()) };
    let target = path::parse(&path);
    let (parts, body) = request.into_parts();
    let query = parts.uri.query().unwrap_or_default();
    let watches = Options::parse(query).is_ok_and(|options| options.watch);
    if !is_lasting(&target, &parts.method, watches) {
        options::check_timeout(query)?;
    }
    let user = state.user_of(&parts)?;
    state.authorize(&user, &parts, &path, &target)?;
    let _permit = state.in_flight.admit(&user, &target, &parts.method, watches)?;
    let request = Request::from_parts(parts, body);
    Ok(match target {
        Target::Resource(path) => match reviews::question(&path) {
            Some(expected) if request.method() == Method::POST => {
                question(state, &user, &path, &expected, request).await?
            }
            _ => about_resource(state, user, path, request).await?,
        },
        other => documents::answer(state, &other, &request)?,
    })
}

async fn question(
    state: &State,
    user: &User,
    path: &ResourcePath,
    expected: &Expected<'_>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let (parts, body) = request.into_parts();
    let encoding = negotiate::answer(header(&parts.headers, ACCEPT.as_str()), false)?.encoding;
    let body = exchange::body(body, state.limits.body).await?;
    let answer = async {
        let question = write::read_body(&body, header(&parts.headers, CONTENT_TYPE.as_str()), expected)?;
        reviews::answer(state, user, path, &question.value, encoding)
    };
    state.aside.run(body.len(), answer).await
}

/// How large the object is that a request names.
fn stored_size(state: &State, exchange: &Exchange) -> usize {
    let Some(name) = &exchange.path.name else { return 0 };
    state.store.get(&read::key(exchange, name)).map_or(0, |record| record.object.len())
}

async fn about_resource(
    state: &Arc<State>,
    user: User,
    path: ResourcePath,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let Some(resource) =
        state.registry.find(&path.group, &path.resource).filter(|resource| resource.version(&path.version).is_some())
    else {
        return documents::nowhere(&state.registry, &path.group);
    };
    if resource.namespaced != path.namespace.is_some() {
        // A collection can be read across namespaces, and that is all.
        let can_be_read = path.name.is_none() && path.namespace.is_none() && resource.allows("list");
        let is_read = request.method() == Method::GET;
        if !can_be_read || (!is_read && resource.origin == Origin::Custom) {
            return documents::nowhere(&state.registry, &path.group);
        }
        if !is_read {
            return Err(ApiError::method_not_allowed());
        }
    }
    let (parts, body) = request.into_parts();
    if let Some(part) = Part::of(&path) {
        let query = parts.uri.query().unwrap_or_default();
        let mut exchange =
            Exchange::new(parts.method.clone(), path, resource, query, parts.headers.clone(), Bytes::new())?;
        exchange.user = user;
        check_verb(&exchange)?;
        return connect::answer(state, &exchange, part, parts).await;
    }
    let encoding = negotiate::failure_encoding(header(&parts.headers, ACCEPT.as_str()));
    let body = exchange::body(body, state.limits.body).await?;
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let mut exchange = Exchange::new(parts.method, path, resource, &query, parts.headers, body)?;
    exchange.user = user;
    let bytes = exchange.body.len().max(stored_size(state, &exchange));
    let answered = state.aside.run(bytes, dispatch(state, &mut exchange)).await;
    let warnings = exchange.take_warnings();
    let answered = answered.unwrap_or_else(|| stream_or_refuse(state, exchange));
    let mut response = answered.unwrap_or_else(|error| failure(&error, encoding));
    exchange::tell_warnings(&mut response, &warnings);
    Ok(response)
}

/// Whether a request is one that its resource knows.
fn check_verb(exchange: &Exchange) -> Result<(), ApiError> {
    let (path, resource) = (&exchange.path, &exchange.resource);
    let verb = path.verb(&exchange.method, exchange.options.watch);
    if path.watch && verb != "watch" {
        return Err(ApiError::method_not_allowed());
    }
    let is_allowed = match path.subresource.as_deref() {
        Some(name) => match exchange.version()?.subresource(name) {
            Some(part) if !path.watch && path.rest.is_empty() => part.allows(verb),
            // The server of custom resources takes the question for one about the object.
            None if resource.origin == Origin::Custom => {
                return Err(ApiError::not_found(&resource.name(), exchange.name()));
            }
            _ => return Err(ApiError::no_such_path()),
        },
        // What cannot be read has no names.
        None if path.name.is_some() && !resource.allows("get") => return Err(ApiError::no_such_path()),
        // A definition that goes away offers less than it takes; what becomes of a write is said where it is done.
        None => resource.is_terminating || resource.allows(verb),
    };
    match resource.origin {
        _ if is_allowed => Ok(()),
        Origin::Custom => Err(ApiError::method_not_supported(&resource.name(), verb)),
        Origin::BuiltIn(_) => Err(ApiError::method_not_allowed()),
    }
}

/// Everything but lists and watches, which take the request with them.
async fn dispatch(state: &State, exchange: &mut Exchange) -> Option<Result<Response<Body>, ApiError>> {
    let method = exchange.method.clone();
    let has_name = exchange.path.name.is_some();
    let part = exchange.path.subresource.clone();
    let options_kind = match method {
        Method::POST => Some("CreateOptions"),
        Method::PUT => Some("UpdateOptions"),
        Method::PATCH => Some("PatchOptions"),
        Method::DELETE => Some("DeleteOptions"),
        _ => None,
    };
    let checked = check_verb(exchange).and_then(|()| options_kind.map_or(Ok(()), |kind| exchange.options.check(kind)));
    if let Err(error) = checked {
        return Some(Err(error));
    }
    Some(match (method, has_name, part.as_deref()) {
        (Method::GET, true, None | Some("status" | "ephemeralcontainers")) if !exchange.path.watch => {
            read::get(state, exchange)
        }
        (Method::POST, false, _) => write::create(state, exchange).await,
        (Method::PUT, true, None | Some("status" | "finalize" | "ephemeralcontainers")) => {
            write::update(state, exchange).await
        }
        (Method::PATCH, true, None | Some("status" | "ephemeralcontainers")) => write::patch(state, exchange).await,
        (Method::DELETE, true, None) => write::delete(state, exchange).await,
        (Method::DELETE, false, _) => write::delete_collection(state, exchange).await,
        (Method::POST, true, Some("binding")) => write::bind(state, exchange).await,
        (Method::POST, true, Some("eviction")) => write::evict(state, exchange).await,
        (Method::GET, true, Some("scale")) => write::get_scale(state, exchange),
        (Method::PUT, true, Some("scale")) => write::update_scale(state, exchange).await,
        (Method::PATCH, true, Some("scale")) => write::patch_scale(state, exchange).await,
        _ => return None,
    })
}

fn stream_or_refuse(state: &State, exchange: Exchange) -> Result<Response<Body>, ApiError> {
    let verb = exchange.path.verb(&exchange.method, exchange.options.watch);
    match verb {
        "watch" if exchange.method == Method::GET => return watching::watch(state, exchange),
        "list" if exchange.method == Method::GET => return read::list(state, exchange),
        _ => {}
    }
    if exchange.resource.origin == Origin::Custom {
        return Err(ApiError::method_not_supported(&exchange.resource.name(), verb));
    }
    Err(ApiError::method_not_allowed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_ends_one_request_only() {
        for is_read in [true, false] {
            let mistake = async { panic!("a mistake of ours") };
            assert!(settle::<()>(is_read, mistake).await.is_none());
            assert_eq!(settle(is_read, async { 5 }).await, Some(5));
        }
    }

    #[tokio::test]
    async fn a_write_goes_on_without_its_client() {
        let (signal, awaited) = tokio::sync::oneshot::channel::<()>();
        let (done, finished) = tokio::sync::oneshot::channel();
        let work = settle(false, async move {
            let _ = awaited.await;
            let _ = done.send(());
        });
        assert!(work.now_or_never().is_none());
        signal.send(()).unwrap();
        finished.await.unwrap();
    }
}
