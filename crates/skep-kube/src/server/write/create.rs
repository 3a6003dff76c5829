//! POST to a collection.

use axum::body::Body;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::super::State;
use super::super::exchange::Exchange;
use super::super::metadata;
use super::super::read;
use super::super::registry::Origin;
use super::draft::{self, Ownership};
use super::{body, refused};
use crate::names::{NameRule, generate_name, validate_object_name};
use crate::status::{ApiError, Reason};
use crate::store::{CommitError, Key};

/// How many names are tried for an object that has none, as on the real server.
const NAMES: usize = 8;

pub async fn create(state: &State, exchange: &mut Exchange) -> Result<Response<Body>, ApiError> {
    let mut object = body::object(exchange)?;
    body::check_namespace(exchange, &mut object)?;
    let manager = draft::manager(exchange);
    let created = create_object(state, exchange, object, Ownership::Update { manager: &manager }).await?;
    Ok(exchange.reply_object(StatusCode::CREATED, &created))
}

/// Creates an object whose body has been read. Whoever asked for a change must be allowed to create, too.
pub async fn create_object(
    state: &State,
    exchange: &Exchange,
    object: Value,
    ownership: Ownership<'_>,
) -> Result<Value, ApiError> {
    create_named(state, exchange, object, ownership, generate_name).await
}

/// As [`create_object`], with the names that `generate` makes for an object that has none: another one for as long as
/// somebody else has it already.
async fn create_named(
    state: &State,
    exchange: &Exchange,
    mut object: Value,
    ownership: Ownership<'_>,
    mut generate: impl FnMut(&str) -> String,
) -> Result<Value, ApiError> {
    if !metadata::text(&object, "resourceVersion").is_empty() {
        return Err(ApiError::new(Reason::Unknown, "resourceVersion should not be set on objects to be created"));
    }
    check_namespace_is_alive(state, exchange, metadata::name(&object))?;
    let base = metadata::text(&object, "generateName").to_owned();
    let is_nameless = metadata::name(&object).is_empty() && !base.is_empty();
    let mut attempts = if is_nameless { NAMES } else { 1 };
    loop {
        if is_nameless {
            metadata::set(&mut object, "name", Some(json!(generate(&base))));
        }
        check_name(exchange, &object)?;
        attempts -= 1;
        let name = metadata::name(&object).to_owned();
        let candidate = if attempts > 0 { object.clone() } else { std::mem::take(&mut object) };
        match create_once(state, exchange, candidate, ownership).await {
            Err(error) if error.reason == Reason::AlreadyExists && attempts > 0 => {}
            Err(error) if error.reason == Reason::AlreadyExists && !base.is_empty() => {
                return Err(ApiError::no_unique_name(&exchange.resource.name(), &name));
            }
            outcome => return outcome,
        }
    }
}

async fn create_once(
    state: &State,
    exchange: &Exchange,
    object: Value,
    ownership: Ownership<'_>,
) -> Result<Value, ApiError> {
    let draft = draft::finish(state, exchange, object, None, "", ownership)?;
    if exchange.method != Method::POST {
        state.authorize_creation(exchange)?;
    }
    exchange.resource.check_conversion(&exchange.path.version, &exchange.resource.storage_version)?;
    let name = metadata::name(&draft.object).to_owned();
    // A rehearsal must notice what the store would.
    if state.store.get(&read::key(exchange, &name)).is_some() {
        return Err(refused(exchange, &name, &CommitError::AlreadyExists));
    }
    draft::store(state, exchange, draft).await
}

/// Objects live in namespaces that exist and are not on their way out.
fn check_namespace_is_alive(state: &State, exchange: &Exchange, name: &str) -> Result<(), ApiError> {
    if !exchange.resource.namespaced {
        return Ok(());
    }
    let namespace = exchange.namespace();
    let resource = crate::status::ResourceName::new("", "namespaces");
    let record = state
        .store
        .get(&Key::new("/namespaces", "", namespace))
        .ok_or_else(|| ApiError::not_found(&resource, namespace))?;
    let object: Value = serde_json::from_slice(&record.object.bytes()).unwrap_or_default();
    if metadata::is_being_deleted(&object) {
        let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut error = ApiError::forbidden(&exchange.resource.name(), name, &why);
        error.causes.push(crate::status::Cause {
            reason: "NamespaceTerminating".into(),
            message: format!("namespace {namespace} is being terminated"),
            field: Some("metadata.namespace".into()),
        });
        return Err(error);
    }
    Ok(())
}

fn check_name(exchange: &Exchange, object: &Value) -> Result<(), ApiError> {
    // Built-in kinds have rules of their own, which are checked with everything else.
    if exchange.resource.origin != Origin::Custom && !metadata::name(object).is_empty() {
        return Ok(());
    }
    let base = metadata::text(object, "generateName");
    let errors = validate_object_name(metadata::name(object), base, NameRule::Dns1123Subdomain);
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(&exchange.resource.kind_name(), metadata::name(object), &errors))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::HeaderMap;

    use super::super::super::Server;
    use super::super::super::path::ResourcePath;
    use super::*;
    use crate::auth::tokens::{SigningKey, TokenAuthority};
    use crate::store::Store;

    /// Names, some of which are taken: `taken` times the same, then another one.
    fn names(taken: usize) -> impl FnMut(&str) -> String {
        let mut made = 0;
        move |base| {
            made += 1;
            if made <= taken { format!("{base}taken") } else { format!("{base}free") }
        }
    }

    #[tokio::test]
    async fn another_name_is_made_when_somebody_has_it() {
        let tokens = TokenAuthority::new(SigningKey::generate().unwrap());
        let server = Server::new(Store::open(None).unwrap(), tokens, "127.0.0.1:6443").await.unwrap();
        let state = &server.state;
        let path = ResourcePath {
            version: "v1".into(),
            namespace: Some("default".into()),
            resource: "secrets".into(),
            ..ResourcePath::default()
        };
        let secrets = state.registry.find("", "secrets").unwrap();
        let exchange = Exchange::new(Method::POST, path, secrets, "", HeaderMap::new(), Bytes::new()).unwrap();
        let create = async |taken| {
            let object = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "generateName": "a-" } });
            create_named(state, &exchange, object, Ownership::Settled, names(taken)).await
        };
        assert_eq!(metadata::name(&create(NAMES).await.unwrap()), "a-taken");
        assert_eq!(metadata::name(&create(NAMES - 1).await.unwrap()), "a-free");
        let error = create(NAMES).await.unwrap_err();
        assert_eq!(error, ApiError::no_unique_name(&exchange.resource.name(), "a-taken"));
    }
}
