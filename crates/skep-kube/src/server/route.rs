//! From a request to what answers it.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use http::header::CONTENT_TYPE;
use http::{Method, Response, StatusCode};
use serde_json::json;

use super::exchange::{self, Exchange, failure, header};
use super::path::{self, ResourcePath, Target};
use super::registry::Origin;
use super::{Server, State, discovery, openapi, read, reviews, watching, write};
use crate::auth::User;
use crate::auth::identity::Certificate;
use crate::auth::user::{AUTHENTICATED_GROUP, MASTERS_GROUP};
use crate::status::ApiError;

/// Asks for all of discovery at once.
const AGGREGATED: &str = "as=APIGroupDiscoveryList";

impl Server {
    /// The server as a router, for a listener or for a client in the same process.
    pub fn router(&self) -> Router {
        let state = self.state.clone();
        Router::new().fallback(move |request: Request| {
            let state = state.clone();
            async move { Ok::<_, Infallible>(answer(&state, request).await) }
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

async fn answer(state: &Arc<State>, request: Request) -> Response<Body> {
    let target = path::parse(request.uri().path());
    let (parts, body) = request.into_parts();
    let user = match state.user_of(&parts).and_then(|user| state.authorize(&user, &parts, &target).map(|()| user)) {
        Ok(user) => user,
        Err(error) => return failure(&error),
    };
    let wants_aggregated = header(&parts.headers, "accept").is_some_and(|accept| accept.contains(AGGREGATED));
    let request = Request::from_parts(parts, body);
    match target {
        Target::Resource(path) if reviews::is_question(&path) && request.method() == Method::POST => {
            match exchange::body(request.into_body()).await.and_then(|body| reviews::answer(state, &user, &path, &body))
            {
                Ok(response) => response,
                Err(error) => failure(&error),
            }
        }
        Target::Resource(path) => match about_resource(state, user, path, request).await {
            Ok(response) => response,
            Err(error) => failure(&error),
        },
        Target::LegacyVersions if wants_aggregated => aggregated(&discovery::aggregated(&state.registry, true)),
        Target::Groups if wants_aggregated => aggregated(&discovery::aggregated(&state.registry, false)),
        Target::LegacyVersions => document(&discovery::legacy_versions(&state.registry, &state.address)),
        Target::Groups => document(&discovery::groups(&state.registry)),
        Target::Group(group) => {
            discovery::group(&state.registry, &group).map_or_else(no_page, |found| document(&found))
        }
        Target::GroupVersion { group, version } => {
            discovery::resources(&state.registry, &group, &version).map_or_else(no_page, |found| document(&found))
        }
        Target::Other(segments) => other(state, &segments),
    }
}

fn document(value: &serde_json::Value) -> Response<Body> {
    respond(StatusCode::OK, "application/json", value.to_string())
}

fn aggregated(value: &serde_json::Value) -> Response<Body> {
    respond(StatusCode::OK, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", value.to_string())
}

fn respond(status: StatusCode, content_type: &str, body: impl Into<Body>) -> Response<Body> {
    Response::builder().status(status).header(CONTENT_TYPE, content_type).body(body.into()).unwrap_or_default()
}

fn no_page() -> Response<Body> {
    respond(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", "404 page not found\n")
}

fn other(state: &State, segments: &[String]) -> Response<Body> {
    match segments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["healthz" | "livez" | "readyz", ..] => respond(StatusCode::OK, "text/plain; charset=utf-8", "ok"),
        ["openapi", "v3"] => document(&openapi::index(&state.registry)),
        ["openapi", "v3", "api", version] => schemas(state, "", version),
        ["openapi", "v3", "apis", group, version] => schemas(state, group, version),
        ["version"] => document(&json!({
            "major": "1", "minor": "36", "gitVersion": concat!("v1.36.3+skep-", env!("CARGO_PKG_VERSION")),
            "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z",
            "goVersion": "", "compiler": "rustc", "platform": "linux/amd64",
        })),
        _ => no_page(),
    }
}

fn schemas(state: &State, group: &str, version: &str) -> Response<Body> {
    openapi::document(&state.registry, group, version).map_or_else(no_page, |found| document(&found))
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
        let is_custom =
            state.registry.all().iter().any(|known| known.group == path.group && known.origin == Origin::Custom);
        return Ok(if is_custom { no_page() } else { failure(&ApiError::no_such_path()) });
    };
    if resource.namespaced != path.namespace.is_some() {
        // A collection can be read across namespaces, and that is all.
        if path.name.is_some() || path.namespace.is_some() {
            return Err(ApiError::no_such_path());
        }
        if request.method() != Method::GET {
            return Err(ApiError::method_not_allowed());
        }
    }
    let (parts, body) = request.into_parts();
    let body = exchange::body(body).await?;
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let mut exchange = Exchange::new(parts.method, path, resource, &query, parts.headers, body)?;
    exchange.user = user;
    dispatch(state, &mut exchange).await.unwrap_or_else(|| watch_or_refuse(state, exchange))
}

/// Everything but watches, which take the request with them.
async fn dispatch(state: &State, exchange: &mut Exchange) -> Option<Result<Response<Body>, ApiError>> {
    let method = exchange.method.clone();
    let has_name = exchange.path.name.is_some();
    let part = exchange.path.subresource.clone();
    if let Some(part) = part.as_deref()
        && !exchange.version().is_ok_and(|version| version.subresource(part).is_some())
    {
        return Some(Err(ApiError::no_such_path()));
    }
    let options_kind = match method {
        Method::POST => "CreateOptions",
        Method::PUT => "UpdateOptions",
        Method::PATCH => "PatchOptions",
        Method::DELETE => "DeleteOptions",
        _ => "ListOptions",
    };
    if let Err(error) = exchange.options.check(options_kind) {
        return Some(Err(error));
    }
    Some(match (method, has_name, part.as_deref()) {
        (Method::GET, true, None | Some("status")) => read::get(state, exchange),
        (Method::GET, false, _) if !exchange.options.watch => read::list(state, exchange),
        (Method::POST, false, _) => write::create(state, exchange).await,
        (Method::PUT, true, None | Some("status" | "finalize")) => write::update(state, exchange).await,
        (Method::PATCH, true, None | Some("status")) => write::patch(state, exchange).await,
        (Method::DELETE, true, None) => write::delete(state, exchange).await,
        (Method::DELETE, false, _) => write::delete_collection(state, exchange).await,
        (Method::POST, true, Some("binding")) => write::bind(state, exchange).await,
        (Method::GET, true, Some("scale")) => write::get_scale(state, exchange),
        (Method::PUT, true, Some("scale")) => write::update_scale(state, exchange).await,
        (Method::PATCH, true, Some("scale")) => write::patch_scale(state, exchange).await,
        _ => return None,
    })
}

fn watch_or_refuse(state: &State, exchange: Exchange) -> Result<Response<Body>, ApiError> {
    if exchange.method == Method::GET && exchange.path.name.is_none() && exchange.options.watch {
        return watching::watch(state, exchange);
    }
    Err(ApiError::method_not_allowed())
}
