//! PATCH of an object or of its status, in all four forms.

use axum::body::Body;
use http::{Response, StatusCode};
use serde_json::Value;

use super::super::State;
use super::super::exchange::Exchange;
use super::super::metadata;
use super::super::read;
use super::super::registry::Origin;
use super::delete::finalize;
use super::draft::{self, Ownership};
use super::expected::Expected;
use super::update::check_revision;
use super::{Attempts, body, configuration};
use crate::apply;
use crate::decode::UnusualNumbers;
use crate::patch::{self, PatchError, PatchKind, Patched};
use crate::status::{ApiError, Reason, ResourceName};

pub(super) const APPLY: &str = "application/apply-patch+yaml";

pub async fn patch(state: &State, exchange: &mut Exchange) -> Result<Response<Body>, ApiError> {
    let media_type = media_type(exchange)?;
    if media_type == APPLY {
        return configuration::apply(state, exchange).await;
    }
    let kind = PatchKind::of_content_type(&media_type)
        .filter(|kind| exchange.resource.origin != Origin::Custom || *kind != PatchKind::Strategic)
        .ok_or_else(|| match exchange.resource.origin {
            Origin::Custom => ApiError::new(Reason::UnsupportedMediaType, patch::UNSUPPORTED_FOR_CUSTOM_RESOURCES),
            Origin::BuiltIn(_) => ApiError::unsupported_patch(),
        })?;
    let mut attempts = Attempts::start();
    loop {
        match patch_once(state, exchange, kind).await {
            // The object changed under a patch that did not insist on a revision: it may fit the new one too.
            Err(Retry::Changed(error)) if attempts.go_on(&error) => {
                attempts.take_turn(&state.queues, &read::key(exchange, exchange.name())).await;
            }
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
    let patched = patch::apply(kind, &exchange.body, &old, Some(&schema)).map_err(ApiError::from)?;
    let insists = metadata::text(&patched.object, "resourceVersion") != metadata::text(&old, "resourceVersion");
    let mut new = read_patched(exchange, patched)?;
    body::check_name(exchange, &new)?;
    body::check_namespace(exchange, &mut new)?;
    check_revision(exchange, &new, &old)?;
    let manager = draft::manager(exchange);
    let subresource = exchange.path.subresource.clone().unwrap_or_default();
    let ownership = Ownership::Update { manager: &manager };
    let draft = draft::finish(state, exchange, new, Some((&record, &old)), &subresource, ownership)?;
    finalize(state, exchange, draft).await.map_err(|error| {
        if error.reason == Reason::Conflict && !insists { Retry::Changed(error) } else { Retry::Final(error) }
    })
}

/// Reads what a patch has made as if it had come in a body.
fn read_patched(exchange: &mut Exchange, mut patched: Patched) -> Result<Value, ApiError> {
    let refuse = |shown: String, problem: String| ApiError::from(PatchError::Unconvertible { shown, problem });
    let text = patched.object.to_string();
    let read = Expected::of(exchange).check(&mut patched.object, &UnusualNumbers::default(), || text.clone());
    read.map_err(|misread| refuse(patched.shown(), misread.problem))?;
    // Of what is written to the status, the rest does not count.
    if exchange.resource.origin == Origin::Custom && exchange.path.subresource.is_none() {
        body::check_custom_kind(exchange, &patched.object)?;
    }
    let shown = patched.shown();
    let Patched { object: mut new, oddities, .. } = patched;
    body::tidy(exchange, &mut new, oddities).map_err(|problem| refuse(shown, problem))?;
    Ok(new)
}

/// What kind of patch it is, when its options fit that.
pub(super) fn media_type(exchange: &Exchange) -> Result<String, ApiError> {
    let media_type = exchange.content_type().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    check_options(exchange, media_type == APPLY)?;
    Ok(media_type.to_owned())
}

fn check_options(exchange: &Exchange, is_apply: bool) -> Result<(), ApiError> {
    let manager = exchange.options.field_manager.as_deref().unwrap_or_default();
    let errors = apply::field_manager::validate_patch_options(is_apply, exchange.options.force, manager);
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(&ResourceName::new("meta.k8s.io", "PatchOptions"), "", &errors))
}
