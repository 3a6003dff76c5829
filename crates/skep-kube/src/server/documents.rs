//! What is served besides resources: discovery, health, schemas, the version, and what others need to check tokens.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::extract::Request;
use http::header::{ACCEPT, CACHE_CONTROL, CONNECTION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use serde_json::{Value, json};

use super::exchange::header;
use super::path::Target;
use super::registry::{Origin, Registry, Resource};
use super::{State, caching, discovery, health, negotiate, openapi};
use crate::auth::tokens::discovery::{CONFIGURATION_PATH, KEY_SET_PATH};
use crate::status::ApiError;

/// The answer about anything that is no resource.
pub fn answer(state: &State, target: &Target, request: &Request) -> Result<Response<Body>, ApiError> {
    check_method(state, target, request.method())?;
    match target {
        Target::Other(segments) if *segments == ["openapi", "v2"] => Ok(all_schemas(state, request.headers())),
        Target::Other(segments) => other(state, segments, request),
        discovered => discovery(state, discovered, request.headers()),
    }
}

/// Some of these can only be read; the others give the same answer to whatever is asked, as on the real server.
fn check_method(state: &State, target: &Target, method: &Method) -> Result<(), ApiError> {
    let is_only_read = match target {
        Target::LegacyVersions => true,
        Target::GroupVersion { group, version } => {
            let resources = state.registry.all();
            resources.iter().any(|known| is_built_in(known, group) && known.version(version).is_some())
        }
        Target::Other(segments) => {
            let path = format!("/{}", segments.join("/"));
            ["/version", KEY_SET_PATH, CONFIGURATION_PATH].contains(&path.as_str())
        }
        Target::Groups | Target::Group(_) | Target::Resource(_) => false,
    };
    if is_only_read && method != Method::GET { Err(ApiError::method_not_allowed()) } else { Ok(()) }
}

fn discovery(state: &State, target: &Target, headers: &HeaderMap) -> Result<Response<Body>, ApiError> {
    let registry = &state.registry;
    let is_aggregated = negotiate::is_discovery_aggregated(header(headers, ACCEPT.as_str()))?;
    let aggregated = |value: &Value| {
        let content_type = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        caching::tagged(headers, content_type, value.to_string(), caching::PUBLIC)
    };
    Ok(match target {
        Target::LegacyVersions if is_aggregated => aggregated(&discovery::aggregated(registry, true)),
        Target::Groups if is_aggregated => aggregated(&discovery::aggregated(registry, false)),
        Target::LegacyVersions => document(&discovery::legacy_versions(registry, &state.address)),
        Target::Groups => document(&discovery::groups(registry)),
        Target::Group(group) => discovery::group(registry, group).map_or_else(no_page, |found| document(&found)),
        Target::GroupVersion { group, version } => match discovery::resources(registry, group, version) {
            Some(found) => document(&found),
            None => nowhere(registry, group)?,
        },
        Target::Resource(_) | Target::Other(_) => no_page(),
    })
}

fn document(value: &Value) -> Response<Body> {
    respond(StatusCode::OK, "application/json", value.to_string())
}

pub(super) fn respond(status: StatusCode, content_type: &str, body: impl Into<Body>) -> Response<Body> {
    Response::builder().status(status).header(CONTENT_TYPE, content_type).body(body.into()).unwrap_or_default()
}

fn no_page() -> Response<Body> {
    respond(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", "404 page not found\n")
}

/// A path that leads nowhere below a group: whoever serves the built-in groups says so in a document.
pub fn nowhere(registry: &Registry, group: &str) -> Result<Response<Body>, ApiError> {
    if registry.all().iter().any(|known| is_built_in(known, group)) {
        Err(ApiError::no_such_path())
    } else {
        Ok(no_page())
    }
}

fn is_built_in(known: &Resource, group: &str) -> bool {
    known.group == group && known.origin != Origin::Custom
}

/// The answer to a path that cannot be read.
pub fn bad_request() -> Response<Body> {
    let mut response = respond(StatusCode::BAD_REQUEST, "text/plain; charset=utf-8", "400 Bad Request");
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

fn other(state: &State, segments: &[String], request: &Request) -> Result<Response<Body>, ApiError> {
    let (headers, query) = (request.headers(), request.uri().query().unwrap_or_default());
    Ok(match segments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] | ["index.html"] => respond(StatusCode::OK, "application/json", format!("{:#}", paths(state))),
        [question @ ("healthz" | "livez" | "readyz"), check @ ..] if check.len() < 2 => {
            health::answer(state, question, check.first().copied(), query).unwrap_or_else(no_page)
        }
        // The real server does not say that this is JSON.
        ["openapi", "v3"] => {
            let index = openapi::index(&state.registry);
            respond(StatusCode::OK, "text/plain; charset=utf-8", index.to_string())
        }
        ["openapi", "v3", "api", version] => schemas(state, "", version, headers),
        ["openapi", "v3", "apis", group, version] => schemas(state, group, version, headers),
        ["openapi", "v3", ..] => no_schemas(),
        ["version"] => document(&json!({
            "major": "1", "minor": "36", "gitVersion": concat!("v1.36.3+skep-", env!("CARGO_PKG_VERSION")),
            "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z",
            "goVersion": "", "compiler": "rustc", "platform": "linux/amd64",
        })),
        ["version", ..] => return Err(ApiError::no_such_path()),
        _ => about_issuer(state, segments).unwrap_or_else(no_page),
    })
}

/// Where there is something to read.
fn paths(state: &State) -> Value {
    let fixed = ["/api", "/apis", "/apis/", "/openapi/v2", "/openapi/v3", "/openapi/v3/", "/version"];
    let fixed = fixed.into_iter().chain([CONFIGURATION_PATH, KEY_SET_PATH]).map(str::to_owned);
    let mut paths: BTreeSet<String> = fixed.chain(health::paths()).collect();
    for (group, versions) in state.registry.groups() {
        let root = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
        paths.extend(versions.iter().map(|version| format!("{root}/{version}")));
        paths.insert(root);
    }
    json!({ "paths": paths })
}

/// What others need to check the tokens that are issued here.
fn about_issuer(state: &State, segments: &[String]) -> Option<Response<Body>> {
    let tokens = &state.access.tokens;
    let (content_type, document) = match format!("/{}", segments.join("/")).as_str() {
        KEY_SET_PATH => ("application/jwk-set+json", tokens.key_set()),
        CONFIGURATION_PATH => ("application/json", tokens.openid_configuration()),
        _ => return None,
    };
    let mut response = respond(StatusCode::OK, content_type, document.to_string());
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    Some(response)
}

/// The schemas of everything. Go programs want them as a message.
fn all_schemas(state: &State, headers: &HeaderMap) -> Response<Body> {
    let schemas = openapi::v2::document(&state.registry);
    let message = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    if header(headers, ACCEPT.as_str()).is_some_and(|accept| accept.contains(message)) {
        let content_type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
        return caching::tagged(headers, content_type, openapi::v2::encode(&schemas), caching::PRIVATE);
    }
    caching::tagged(headers, "application/json", schemas.to_string(), caching::PRIVATE)
}

fn schemas(state: &State, group: &str, version: &str, headers: &HeaderMap) -> Response<Body> {
    openapi::document(&state.registry, group, version).map_or_else(no_schemas, |found| {
        caching::tagged(headers, "application/json", found.to_string(), caching::PRIVATE)
    })
}

/// Nothing, not even words.
fn no_schemas() -> Response<Body> {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}
