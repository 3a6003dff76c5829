//! Reading: one object, or a list of them.

use axum::body::Body;
use http::{Response, StatusCode};
use serde_json::Value;

use super::State;
use super::codec::{self, Shown};
use super::continue_token::ContinueToken;
use super::exchange::Exchange;
use super::listing::{self, Items};
use super::options::{Options, VersionMatch};
use super::registry::Origin;
use super::representation;
use crate::builtin;
use crate::go_text::number_problem;
use crate::selector::{FieldSelector, FieldSupport, LabelSelector};
use crate::status::{ApiError, Cause, Reason};
use crate::store::{Key, Page, Record, Selection};

/// The key of an object in the store.
pub fn key(exchange: &Exchange, name: &str) -> Key {
    Key::new(exchange.resource.storage_name(), exchange.namespace(), name)
}

/// GET of one object.
pub fn get(state: &State, exchange: &Exchange) -> Result<Response<Body>, ApiError> {
    let asked = exchange.options.resource_version.as_deref().map(revision).transpose()?;
    check_not_too_large(state, asked)?;
    let record = find(state, exchange)?;
    let document = representation::one(exchange, &record)?;
    Ok(exchange.reply(StatusCode::OK, document))
}

/// The object that a request names.
pub fn find(state: &State, exchange: &Exchange) -> Result<std::sync::Arc<Record>, ApiError> {
    state
        .store
        .get(&key(exchange, exchange.name()))
        .ok_or_else(|| ApiError::not_found(&exchange.resource.name(), exchange.name()))
}

/// Which objects a request is about.
#[derive(Debug)]
pub struct Selectors {
    pub labels: LabelSelector,
    pub fields: FieldSelector,
    support: FieldSupport,
    /// Whether fields have other names than in the store.
    is_second_face: bool,
}

impl Selectors {
    pub fn of(exchange: &Exchange) -> Result<Self, ApiError> {
        let labels = LabelSelector::parse(&exchange.options.label_selector)
            .map_err(|error| ApiError::bad_request(error.to_string()))?;
        let support = match exchange.resource.origin {
            Origin::BuiltIn(_) => FieldSupport::built_in(&exchange.resource.group, &exchange.resource.plural),
            Origin::Custom => FieldSupport::custom(exchange.version()?.selectable_fields.iter().map(String::as_str)),
        };
        let mut fields = FieldSelector::parse(&exchange.options.field_selector)
            .and_then(|fields| fields.check(&support))
            .map_err(|error| ApiError::bad_request(error.to_string()))?;
        // The path of a watch can name its one object, and then the selector must not name another.
        if let Some(name) = &exchange.path.name {
            if fields.is_everything() {
                fields = FieldSelector::of_name(name);
            } else if fields.name() != Some(name) {
                return Err(ApiError::bad_request("fieldSelector metadata.name doesn't match requested name"));
            }
        }
        let is_second_face = exchange.resource.is_second_face_of_events();
        Ok(Self { labels, fields, support, is_second_face })
    }

    pub fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    /// Whether an object is selected. Fields are looked up in the object itself, which has to be parsed for it.
    pub fn matches(&self, record: &Record) -> bool {
        let labels = self.labels.is_everything()
            || self
                .labels
                .requirements()
                .iter()
                .all(|requirement| requirement.matches(record.labels.get(requirement.key())));
        labels && (self.fields.is_everything() || self.fields_match(record))
    }

    fn fields_match(&self, record: &Record) -> bool {
        let mut object: Value = serde_json::from_slice(&record.object.bytes()).unwrap_or_default();
        if self.is_second_face {
            builtin::event_from_core(&mut object);
        }
        self.fields.matches(&object, &self.support)
    }
}

/// GET of a collection.
pub fn list(state: &State, exchange: Exchange) -> Result<Response<Body>, ApiError> {
    let selectors = Selectors::of(&exchange)?;
    let position = Position::of(state, &exchange)?;
    let resource = exchange.resource.storage_name();
    // A selector may leave out any number of objects, so the limit is counted here and not by the store.
    let limit = limit(&exchange.options);
    let selection = Selection {
        resource: &resource,
        namespace: exchange.path.namespace.as_deref(),
        after: position.after.as_ref().map(|(namespace, name)| (namespace.as_str(), name.as_str())),
        limit: if selectors.is_everything() { limit } else { None },
    };
    let page = match position.revision {
        Some(revision) => state.store.list_at(revision, &selection).map_err(|_| too_old(&position))?,
        None => state.store.list(&selection),
    };
    if !page.records.is_empty() {
        // Found out before the first byte of the list is on its way.
        check_can_be_shown(&exchange)?;
    }
    listing::reply(exchange, select(page, &selectors, limit))
}

/// How many objects a page may have. Who takes any revision gets all objects, as from the real server's cache.
fn limit(options: &Options) -> Option<usize> {
    let takes_any_revision = options.resource_version.as_deref() == Some("0") && options.continue_.is_none();
    options.limit.filter(|_| !takes_any_revision).and_then(|limit| usize::try_from(limit).ok())
}

fn select(page: Page, selectors: &Selectors, limit: Option<usize>) -> Items {
    let revision = page.revision;
    if selectors.is_everything() {
        let continue_ =
            (page.remaining > 0).then(|| page.records.last().map(|last| continue_after(revision, &last.key))).flatten();
        let remaining = continue_.is_some().then_some(page.remaining);
        return Items { records: page.records, revision, continue_, remaining };
    }
    let mut records: Vec<_> = page.records.into_iter().filter(|record| selectors.matches(record)).collect();
    let more = limit.is_some_and(|limit| records.len() > limit);
    if let Some(limit) = limit {
        records.truncate(limit);
    }
    let continue_ = more.then(|| records.last().map(|last| continue_after(revision, &last.key))).flatten();
    // How many follow is not told of a selected list.
    Items { records, revision, continue_, remaining: None }
}

fn continue_after(revision: u64, last: &Key) -> String {
    ContinueToken { revision: Some(revision), namespace: last.namespace.to_string(), name: last.name.to_string() }
        .write()
}

/// Where a list begins, and at which revision it must be true.
#[derive(Debug, Default)]
struct Position {
    revision: Option<u64>,
    after: Option<(String, String)>,
}

impl Position {
    fn of(state: &State, exchange: &Exchange) -> Result<Self, ApiError> {
        let options = &exchange.options;
        options.check_list()?;
        if let Some(token) = &options.continue_ {
            let ContinueToken { revision, namespace, name } = ContinueToken::read(token).map_err(|error| {
                ApiError::bad_request(format!("invalid continue token: continue key is not valid: {error}"))
            })?;
            if options.resource_version.as_deref().is_some_and(|version| version != "0") {
                return Err(ApiError::bad_request("specifying resource version is not allowed when using continue"));
            }
            return Ok(Self { revision, after: Some((namespace, name)) });
        }
        let revision = match options.resource_version.as_deref() {
            None => None,
            Some(text) => Some(
                revision(text).map_err(|error| ApiError::bad_request(format!("invalid resource version: {error}")))?,
            ),
        };
        check_not_too_large(state, revision)?;
        match (&options.resource_version_match, revision) {
            (Some(VersionMatch::Exact), Some(revision)) => Ok(Self { revision: Some(revision), after: None }),
            // A limited list at a revision, without a word on how to match it, is the exact one.
            (None, Some(revision)) if revision > 0 && options.limit.is_some() => {
                Ok(Self { revision: Some(revision), after: None })
            }
            _ => Ok(Self::default()),
        }
    }
}

/// A revision that has not happened cannot be waited for: only this server makes them.
pub fn check_not_too_large(state: &State, revision: Option<u64>) -> Result<(), ApiError> {
    let current = state.store.revision();
    let Some(revision) = revision.filter(|revision| *revision > current) else {
        return Ok(());
    };
    let message = format!("Timeout: Too large resource version: {revision}, current: {current}");
    let mut error = ApiError::new(Reason::Timeout, message);
    error.causes.push(Cause {
        reason: "ResourceVersionTooLarge".into(),
        message: "Too large resource version".into(),
        field: None,
    });
    error.retry_after_seconds = Some(1);
    Err(error)
}

/// A resourceVersion in a request. The real server takes a bad one for a mistake of its own, except in lists.
pub fn revision(text: &str) -> Result<u64, ApiError> {
    text.parse().map_err(|error| {
        let problem = number_problem(&error);
        let message =
            format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: {problem}");
        ApiError::new(Reason::Unknown, message)
    })
}

/// A list that was begun can be gone on with in the present, if the client puts up with what that means.
fn too_old(position: &Position) -> ApiError {
    let Some((namespace, name)) = position.after.clone() else {
        return ApiError::expired("The resourceVersion for the provided list is too old.");
    };
    let mut error = ApiError::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list \
         without the continue parameter, or use the continue token in this response to retrieve the remainder of the \
         results. Continuing with the provided token results in an inconsistent list - objects that were created, \
         modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    );
    error.continue_ = Some(ContinueToken { revision: None, namespace, name }.write());
    error
}

/// How objects of a request's resource are shown.
pub fn shown<'a>(api_version: &'a str, exchange: &'a Exchange) -> Shown<'a> {
    Shown { api_version, kind: &exchange.resource.kind }
}

/// Whether what is stored can be had in the version of the request.
fn check_can_be_shown(exchange: &Exchange) -> Result<(), ApiError> {
    exchange.resource.check_conversion(&exchange.resource.storage_version, &exchange.path.version)
}

/// Whether a record is shown as it is stored.
pub fn is_shown_as_stored(exchange: &Exchange, record: &Record) -> bool {
    !exchange.resource.is_second_face_of_events() && !exchange.resource.reshapes(record)
}

/// The object that a record holds, in the version of the request.
pub fn load(exchange: &Exchange, record: &Record) -> Result<Value, ApiError> {
    check_can_be_shown(exchange)?;
    let mut object = codec::load(record, shown(&exchange.api_version(), exchange))
        .map_err(|error| ApiError::internal(&error.to_string()))?;
    if exchange.resource.is_second_face_of_events() {
        builtin::event_from_core(&mut object);
    }
    if exchange.resource.reshapes(record)
        && let Ok(version) = exchange.version()
    {
        exchange.resource.reshape(version, &mut object);
    }
    Ok(object)
}
