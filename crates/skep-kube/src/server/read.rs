//! Reading: one object, or a list of them.

use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::State;
use super::codec::{self, Shown};
use super::exchange::Exchange;
use super::options::{Options, VersionMatch};
use super::registry::Origin;
use super::representation::{self, Items};
use crate::builtin;
use crate::selector::{FieldSelector, FieldSupport, LabelSelector};
use crate::status::{ApiError, Cause, FieldError, Reason, ResourceName};
use crate::store::{Key, Page, Record, RevisionError, Selection};

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
}

impl Selectors {
    pub fn of(exchange: &Exchange) -> Result<Self, ApiError> {
        let labels = LabelSelector::parse(&exchange.options.label_selector)
            .map_err(|error| ApiError::bad_request(error.to_string()))?;
        let support = match exchange.resource.origin {
            Origin::BuiltIn(_) => FieldSupport::built_in(&exchange.resource.group, &exchange.resource.plural),
            Origin::Custom => FieldSupport::custom(exchange.version()?.selectable_fields.iter().map(String::as_str)),
        };
        let fields = FieldSelector::parse(&exchange.options.field_selector)
            .and_then(|fields| fields.check(&support))
            .map_err(|error| ApiError::bad_request(error.to_string()))?;
        Ok(Self { labels, fields, support })
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
        let object: Value = serde_json::from_slice(&record.object).unwrap_or_default();
        self.fields.matches(&object, &self.support)
    }
}

/// GET of a collection.
pub fn list(state: &State, exchange: &Exchange) -> Result<Response<Body>, ApiError> {
    let selectors = Selectors::of(exchange)?;
    let position = Position::of(state, exchange)?;
    let resource = exchange.resource.storage_name();
    // A selector may leave out any number of objects, so the limit is counted here and not by the store.
    let limit = exchange.options.limit.and_then(|limit| usize::try_from(limit).ok());
    let selection = Selection {
        resource: &resource,
        namespace: exchange.path.namespace.as_deref(),
        after: position.after.as_ref().map(|(namespace, name)| (namespace.as_str(), name.as_str())),
        limit: if selectors.is_everything() { limit } else { None },
    };
    let page = match position.revision {
        Some(revision) => state.store.list_at(revision, &selection).map_err(|error| too_old(error, &position))?,
        None => state.store.list(&selection),
    };
    let items = select(page, &selectors, limit);
    let document = representation::many(exchange, &items)?;
    Ok(exchange.reply(StatusCode::OK, document))
}

fn select(page: Page, selectors: &Selectors, limit: Option<usize>) -> Items {
    let revision = page.revision;
    if selectors.is_everything() {
        let continue_ =
            (page.remaining > 0).then(|| page.records.last().map(|last| token(revision, &last.key))).flatten();
        let remaining = continue_.is_some().then_some(page.remaining);
        return Items { records: page.records, revision, continue_, remaining };
    }
    let mut records: Vec<_> = page.records.into_iter().filter(|record| selectors.matches(record)).collect();
    let more = limit.is_some_and(|limit| records.len() > limit);
    if let Some(limit) = limit {
        records.truncate(limit);
    }
    let continue_ = more.then(|| records.last().map(|last| token(revision, &last.key))).flatten();
    // How many follow is not told of a selected list.
    Items { records, revision, continue_, remaining: None }
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
        check_version_match(options)?;
        if let Some(token) = &options.continue_ {
            if options.resource_version.as_deref().is_some_and(|version| version != "0") {
                return Err(ApiError::bad_request("specifying resource version is not allowed when using continue"));
            }
            return read_token(token).ok_or_else(|| {
                ApiError::bad_request("continue key is not valid: encoded continue token is not valid")
            });
        }
        let revision = match options.resource_version.as_deref() {
            None => None,
            Some(text) => Some(
                revision(text).map_err(|error| ApiError::bad_request(format!("invalid resource version: {error}")))?,
            ),
        };
        check_not_too_large(state, revision)?;
        match (options.resource_version_match, revision) {
            (Some(VersionMatch::Exact), Some(revision)) => Ok(Self { revision: Some(revision), after: None }),
            // A limited list at a revision, without a word on how to match it, is the exact one.
            (None, Some(revision)) if revision > 0 && options.limit.is_some() => {
                Ok(Self { revision: Some(revision), after: None })
            }
            _ => Ok(Self::default()),
        }
    }
}

/// What is said about revisions must make sense together.
fn check_version_match(options: &Options) -> Result<(), ApiError> {
    let forbidden = |why: &str| Err(FieldError::forbidden("resourceVersionMatch", why));
    let is_zero = options.resource_version.as_deref() == Some("0");
    let checked = match (options.resource_version_match, &options.resource_version) {
        _ if options.send_initial_events.is_some() => {
            Err(FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
        }
        (Some(_), _) if options.continue_.is_some() => {
            forbidden("resourceVersionMatch is forbidden when continue is provided")
        }
        (Some(_), None) => forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided"),
        (Some(VersionMatch::Exact), _) if is_zero => {
            forbidden("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"")
        }
        _ => Ok(()),
    };
    checked.map_err(|error| ApiError::invalid(&ResourceName::new("meta.k8s.io", "ListOptions"), "", &[error]))
}

/// A revision that has not happened cannot be waited for: only this server makes them.
fn check_not_too_large(state: &State, revision: Option<u64>) -> Result<(), ApiError> {
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

/// A resourceVersion in a request.
pub fn revision(text: &str) -> Result<u64, ApiError> {
    text.parse().map_err(|_| {
        ApiError::bad_request(format!(
            "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
        ))
    })
}

fn token(revision: u64, last: &Key) -> String {
    let document =
        json!({ "v": "meta.k8s.io/v1", "rv": revision, "start": format!("{}/{}", last.namespace, last.name) });
    URL_SAFE_NO_PAD.encode(document.to_string())
}

fn read_token(token: &str) -> Option<Position> {
    let document: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
    let (namespace, name) = document["start"].as_str()?.split_once('/')?;
    Some(Position { revision: document["rv"].as_u64(), after: Some((namespace.to_owned(), name.to_owned())) })
}

fn too_old(error: RevisionError, position: &Position) -> ApiError {
    if position.after.is_some() {
        return ApiError::expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new list \
             without the continue parameter.",
        );
    }
    ApiError::expired(error.to_string())
}

/// How objects of a request's resource are shown.
pub fn shown<'a>(api_version: &'a str, exchange: &'a Exchange) -> Shown<'a> {
    Shown { api_version, kind: &exchange.resource.kind }
}

/// The object that a record holds, in the version of the request.
pub fn load(exchange: &Exchange, record: &Record) -> Result<Value, ApiError> {
    let mut object = codec::load(record, shown(&exchange.api_version(), exchange))
        .map_err(|error| ApiError::internal(&error.to_string()))?;
    if exchange.resource.is_second_face_of_events() {
        builtin::event_from_core(&mut object);
    }
    Ok(object)
}
