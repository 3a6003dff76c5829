//! PATCH of an object or of its status, in all four forms.

use axum::body::Body;
use http::{Response, StatusCode};
use serde_json::Value;

use super::super::State;
use super::super::exchange::Exchange;
use super::super::metadata;
use super::super::read;
use super::super::registry::Origin;
use super::create::create_object;
use super::delete::finalize;
use super::draft::{self, Ownership};
use super::update::check_preconditions;
use super::{ATTEMPTS, body, now};
use crate::apply;
use crate::decode::decode_strict;
use crate::patch::{self, PatchKind};
use crate::schema::prune;
use crate::status::{ApiError, Reason, ResourceName};

const APPLY: &str = "application/apply-patch+yaml";

pub async fn patch(state: &State, exchange: &mut Exchange) -> Result<Response<Body>, ApiError> {
    let media_type =
        exchange.content_type().unwrap_or_default().split(';').next().unwrap_or_default().trim().to_owned();
    let is_apply = media_type == APPLY;
    check_options(exchange, is_apply)?;
    if is_apply {
        return apply_configuration(state, exchange).await;
    }
    let kind = PatchKind::of_content_type(&media_type)
        .filter(|kind| exchange.resource.origin != Origin::Custom || *kind != PatchKind::Strategic)
        .ok_or_else(|| {
            let text = match exchange.resource.origin {
                Origin::Custom => patch::UNSUPPORTED_FOR_CUSTOM_RESOURCES,
                Origin::BuiltIn(_) => patch::UNSUPPORTED_MEDIA_TYPE,
            };
            ApiError::new(Reason::UnsupportedMediaType, text)
        })?;
    let mut attempt = 1;
    loop {
        match patch_once(state, exchange, kind).await {
            // The object changed under a patch that did not insist on a revision: it may fit the new one too.
            Err(Retry::Changed(_)) if attempt < ATTEMPTS => attempt += 1,
            Err(Retry::Changed(error) | Retry::Final(error)) => return Err(error),
            Ok(patched) => return Ok(exchange.reply_object(StatusCode::OK, &patched)),
        }
    }
}

/// A failed attempt, and whether another one makes sense.
enum Retry {
    Changed(ApiError),
    Final(ApiError),
}

impl From<ApiError> for Retry {
    fn from(error: ApiError) -> Self {
        Self::Final(error)
    }
}

async fn patch_once(state: &State, exchange: &mut Exchange, kind: PatchKind) -> Result<Value, Retry> {
    let record = read::find(state, exchange)?;
    let old = read::load(exchange, &record)?;
    let schema = exchange.version()?.schema.clone();
    let mut new = patch::apply(kind, &exchange.body, &old, Some(&schema)).map_err(ApiError::from)?;
    let insists = metadata::text(&new, "resourceVersion") != metadata::text(&old, "resourceVersion");
    body::tidy(exchange, &mut new, Vec::new())?;
    keep_identity(exchange, &new)?;
    check_preconditions(exchange, &new, &old)?;
    let manager = draft::manager(exchange);
    let subresource = exchange.path.subresource.clone().unwrap_or_default();
    let ownership = Ownership::Update { manager: &manager };
    let draft = draft::finish(state, exchange, new, Some((&record, &old)), &subresource, ownership)?;
    finalize(state, exchange, draft).await.map_err(|error| {
        if error.reason == Reason::Conflict && !insists { Retry::Changed(error) } else { Retry::Final(error) }
    })
}

/// A patch cannot turn an object into another one.
fn keep_identity(exchange: &Exchange, new: &Value) -> Result<(), ApiError> {
    if metadata::name(new) != exchange.name() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({}) does not match the name on the URL ({})",
            metadata::name(new),
            exchange.name()
        )));
    }
    Ok(())
}

fn check_options(exchange: &Exchange, is_apply: bool) -> Result<(), ApiError> {
    let manager = exchange.options.field_manager.as_deref().unwrap_or_default();
    let errors = apply::field_manager::validate_patch_options(is_apply, exchange.options.force, manager);
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(&ResourceName::new("meta.k8s.io", "PatchOptions"), "", &errors))
}

/// Server-side apply.
async fn apply_configuration(state: &State, exchange: &mut Exchange) -> Result<Response<Body>, ApiError> {
    let configuration = configuration(exchange)?;
    let manager = draft::manager(exchange);
    let subresource = exchange.path.subresource.clone().unwrap_or_default();
    let force = exchange.options.force.unwrap_or_default();
    for attempt in 1.. {
        let Some(record) = state.store.get(&read::key(exchange, exchange.name())) else {
            if !subresource.is_empty() {
                return Err(ApiError::not_found(&exchange.resource.name(), exchange.name()));
            }
            let object = merge(exchange, None, &configuration, &manager, force, "")?;
            match create_object(state, exchange, object, Ownership::Settled).await {
                // Somebody else was faster: merge into what they made.
                Err(error) if error.reason == Reason::AlreadyExists && attempt < ATTEMPTS => continue,
                created => return Ok(exchange.reply_object(StatusCode::CREATED, &created?)),
            }
        };
        let old = read::load(exchange, &record)?;
        check_applied_preconditions(exchange, &configuration, &old)?;
        let new = merge(exchange, Some(&old), &configuration, &manager, force, &subresource)?;
        let draft = draft::finish(state, exchange, new, Some((&record, &old)), &subresource, Ownership::Settled)?;
        match finalize(state, exchange, draft).await {
            Err(error) if error.reason == Reason::Conflict && attempt < ATTEMPTS => {}
            applied => return Ok(exchange.reply_object(StatusCode::OK, &applied?)),
        }
    }
    Err(ApiError::modified(&exchange.resource.name(), exchange.name()))
}

fn check_applied_preconditions(exchange: &Exchange, configuration: &Value, old: &Value) -> Result<(), ApiError> {
    let insists =
        !metadata::text(configuration, "resourceVersion").is_empty() || !metadata::uid(configuration).is_empty();
    if insists { check_preconditions(exchange, configuration, old) } else { Ok(()) }
}

fn merge(
    exchange: &Exchange,
    old: Option<&Value>,
    configuration: &Value,
    manager: &str,
    force: bool,
    subresource: &str,
) -> Result<Value, ApiError> {
    let merged = draft::with_target(exchange, subresource, |target| {
        apply::apply(target, old, configuration, manager, force, &now())
    })?;
    Ok(merged?)
}

/// The applied configuration, YAML or JSON.
fn configuration(exchange: &mut Exchange) -> Result<Value, ApiError> {
    let (mut configuration, duplicates) = if let Ok(decoded) = decode_strict(&exchange.body) {
        decoded
    } else {
        let text = String::from_utf8_lossy(&exchange.body).into_owned();
        let read = crate::yaml::read(&text);
        (read.map_err(|error| ApiError::bad_request(format!("error decoding YAML: {error}")))?, Vec::new())
    };
    if !configuration.is_object() {
        return Err(ApiError::bad_request("error decoding YAML: the configuration is not an object"));
    }
    let expected = exchange.api_version();
    if configuration["apiVersion"] != expected.as_str() || configuration["kind"] != exchange.resource.kind.as_str() {
        return Err(ApiError::bad_request(format!(
            "{}, Kind={} does not match the expected {expected}, Kind={}",
            configuration["apiVersion"].as_str().unwrap_or_default(),
            configuration["kind"].as_str().unwrap_or_default(),
            exchange.resource.kind
        )));
    }
    if exchange.options.field_validation == super::super::options::FieldValidation::Ignore {
        let schema = exchange.version()?.schema.clone();
        prune(&schema, &mut configuration);
    } else {
        body::tidy(exchange, &mut configuration, duplicates)?;
    }
    if exchange.resource.namespaced {
        metadata::set(&mut configuration, "namespace", Some(exchange.namespace().into()));
    }
    if metadata::name(&configuration).is_empty() {
        metadata::set(&mut configuration, "name", Some(exchange.name().into()));
    }
    keep_identity(exchange, &configuration)?;
    Ok(configuration)
}
