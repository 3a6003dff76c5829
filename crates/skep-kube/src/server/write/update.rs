//! PUT of an object or of its status.

use axum::body::Body;
use http::{Response, StatusCode};
use serde_json::Value;

use super::super::State;
use super::super::exchange::Exchange;
use super::super::metadata;
use super::super::read;
use super::super::registry::{Origin, Resource};
use super::create::create_object;
use super::delete::finalize;
use super::draft::{self, Ownership};
use super::{Attempts, body};
use crate::status::{ApiError, FieldError, Reason};

pub async fn update(state: &State, exchange: &mut Exchange) -> Result<Response<Body>, ApiError> {
    let mut new = body::object(exchange)?;
    body::check_name(exchange, &new)?;
    body::check_namespace(exchange, &mut new)?;
    let manager = draft::manager(exchange);
    let ownership = Ownership::Update { manager: &manager };
    let subresource = exchange.path.subresource.clone().unwrap_or_default();
    let Some(record) = state.store.get(&read::key(exchange, exchange.name())) else {
        if !subresource.is_empty() || !exchange.resource.is_created_by_updates() {
            return Err(ApiError::not_found(&exchange.resource.name(), exchange.name()));
        }
        check_uid(exchange, &new, &Value::Null)?;
        revision(&new)?;
        metadata::set(&mut new, "resourceVersion", None);
        let created = create_object(state, exchange, new, ownership).await?;
        return Ok(exchange.reply_object(StatusCode::CREATED, &created));
    };
    let mut attempts = Attempts::start();
    let mut found = Ok(record);
    loop {
        let record = found?;
        let old = read::load(exchange, &record)?;
        check_uid(exchange, &new, &old)?;
        check_revision(exchange, &new, &old)?;
        let draft = draft::finish(state, exchange, new.clone(), Some((&record, &old)), &subresource, ownership)?;
        match finalize(state, exchange, draft).await {
            Err(error) if revision(&new)? == 0 && attempts.go_on(&error) => {
                attempts.take_turn(&state.queues, &read::key(exchange, exchange.name())).await;
                found = read::find(state, exchange);
            }
            updated => return Ok(exchange.reply_object(StatusCode::OK, &updated?)),
        }
    }
}

/// A writer that knows which object it means must be right.
pub fn check_uid(exchange: &Exchange, new: &Value, old: &Value) -> Result<(), ApiError> {
    let (believed, actual) = (metadata::uid(new), metadata::uid(old));
    if believed.is_empty() || believed == actual {
        return Ok(());
    }
    Err(mistaken(exchange, "UID", believed, actual))
}

/// The refusal of a write that believes something else about the object than is so.
pub fn mistaken(exchange: &Exchange, what: &str, believed: &str, actual: &str) -> ApiError {
    let key = exchange.resource.registry_key(exchange.namespace(), exchange.name());
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: \
         {what} in precondition: {believed}, {what} in object meta: {actual}"
    );
    ApiError::conflict(&exchange.resource.name(), exchange.name(), &why)
}

/// The revision that an object claims to have; 0 when it claims none.
pub fn revision(object: &Value) -> Result<u64, ApiError> {
    let text = metadata::text(object, "resourceVersion");
    if text.is_empty() {
        return Ok(0);
    }
    text.parse()
        .map_err(|_| ApiError::new(Reason::Unknown, format!("strconv.ParseUint: parsing {text:?}: invalid syntax")))
}

/// What the writer has read must still be so. Some kinds insist that it has read something.
pub fn check_revision(exchange: &Exchange, new: &Value, old: &Value) -> Result<(), ApiError> {
    let (believed, actual) = (revision(new)?, revision(old)?);
    if believed == 0 && exchange.resource.is_updated_by_readers_only() {
        let error = FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
        return Err(ApiError::invalid(&exchange.resource.name(), exchange.name(), &[error]));
    }
    if believed != 0 && believed != actual {
        return Err(ApiError::modified(&exchange.resource.name(), exchange.name()));
    }
    Ok(())
}

impl Resource {
    /// Whether a PUT makes the object when it is not there.
    fn is_created_by_updates(&self) -> bool {
        let Origin::BuiltIn(kind) = self.origin else { return false };
        let always =
            ["ClusterRole", "ClusterRoleBinding", "Endpoints", "Event", "Lease", "Role", "RoleBinding", "Service"];
        always.contains(&kind.kind)
    }

    /// Whether a PUT must say which revision of the object it replaces.
    fn is_updated_by_readers_only(&self) -> bool {
        match self.origin {
            Origin::Custom => true,
            Origin::BuiltIn(kind) => ["CustomResourceDefinition", "Lease", "PodDisruptionBudget"].contains(&kind.kind),
        }
    }

    /// The name under which the real server keeps an object, which it shows to clients at times.
    fn registry_key(&self, namespace: &str, name: &str) -> String {
        let place = match (self.origin, self.plural.as_str()) {
            (Origin::BuiltIn(_), "endpoints") => "services/endpoints".to_owned(),
            (Origin::BuiltIn(_), "ingresses") => "ingress".to_owned(),
            (Origin::BuiltIn(_), "nodes") => "minions".to_owned(),
            (Origin::BuiltIn(_), "services") => "services/specs".to_owned(),
            (Origin::BuiltIn(_), "customresourcedefinitions") | (Origin::Custom, _) => {
                format!("{}/{}", self.group, self.plural)
            }
            (Origin::BuiltIn(_), plural) => plural.to_owned(),
        };
        let parts = ["/registry", &place, namespace, name];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
    }
}
