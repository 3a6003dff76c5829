//! TokenRequest: a new token for an account, if what it shall be bound to exists.

use jsonwebtoken::{Algorithm, Header};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::TokenAuthority;
use super::claims::{Claims, KubernetesClaims, ObjectReference};
use super::objects::{BoundKind, BoundObjects, ObjectState, timestamp};
use crate::auth::user::service_account_user_name;
use crate::go_text::quoted;
use crate::status::{ApiError, FieldError, ResourceName};

const DEFAULT_SECONDS: i64 = 3600;
const SHORTEST_SECONDS: i64 = 600;
const LONGEST_SECONDS: i64 = 1 << 32;
/// What pods ask for when nobody said otherwise. Such tokens live a year, because old clients never read them again.
const EXTENDED_REQUEST_SECONDS: i64 = 3607;
const EXTENDED_SECONDS: i64 = 365 * 24 * 3600;

/// The answer to a TokenRequest. It holds a token, so it has no `Debug`.
#[expect(missing_debug_implementations, reason = "the document holds a token, which must not get into logs")]
pub struct IssuedToken {
    /// The TokenRequest with its status.
    pub document: Value,
    /// For a Warning header.
    pub warning: Option<String>,
}

impl TokenAuthority {
    /// Answers a TokenRequest for a service account. `request` has been decoded; its spec may be missing.
    pub fn issue(
        &self,
        namespace: &str,
        account: &str,
        request: &Value,
        objects: &dyn BoundObjects,
        now: i64,
    ) -> Result<IssuedToken, ApiError> {
        let metadata = checked_metadata(namespace, account, request)?;
        let state = objects
            .find(BoundKind::ServiceAccount, namespace, account)
            .ok_or_else(|| ApiError::not_found(&core(BoundKind::ServiceAccount.plural()), account))?;
        let Wanted { audiences, mut seconds, reference } = self.wanted(request)?;
        let mut kubernetes = KubernetesClaims {
            namespace: namespace.to_owned(),
            node: None,
            pod: None,
            secret: None,
            serviceaccount: ObjectReference { name: account.to_owned(), uid: state.uid.clone() },
            warnafter: None,
        };
        bind(&mut kubernetes, &reference, objects)?;
        let mut warning = None;
        if let Some(longest) = self.longest_seconds.filter(|longest| seconds > *longest) {
            warning = Some(format!("requested expiration of {seconds} seconds shortened to {longest} seconds"));
            seconds = longest;
        }
        let mut life = seconds;
        if seconds == EXTENDED_REQUEST_SECONDS && kubernetes.pod.is_some() && audiences == self.audiences {
            life = EXTENDED_SECONDS;
            kubernetes.warnafter = Some(now + seconds);
        }
        let claims = Claims {
            aud: audiences.clone(),
            exp: now + life,
            iat: now,
            iss: self.issuer.clone(),
            jti: Uuid::new_v4().to_string(),
            kubernetes,
            nbf: now,
            sub: service_account_user_name(namespace, account),
        };
        let token = self.sign(&claims)?;
        let metadata = answer_metadata(metadata, namespace, account, &state, now);
        let document = json!({
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": metadata,
            "spec": { "audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": reference },
            "status": { "token": token, "expirationTimestamp": timestamp(now + seconds) },
        });
        Ok(IssuedToken { document, warning })
    }

    /// Signs claims.
    pub fn sign(&self, claims: &Claims) -> Result<String, ApiError> {
        let mut header = Header::new(Algorithm::ES256);
        header.typ = None;
        header.kid = Some(self.key.id().to_owned());
        jsonwebtoken::encode(&header, claims, &self.key.encoding)
            .map_err(|_| ApiError::internal("cannot sign the token"))
    }

    fn wanted(&self, request: &Value) -> Result<Wanted, ApiError> {
        let spec = request.get("spec").unwrap_or(&Value::Null);
        let audiences: Vec<String> = texts(spec.get("audiences"));
        let audiences = if audiences.is_empty() { self.audiences.clone() } else { audiences };
        let seconds = spec.get("expirationSeconds").and_then(Value::as_i64).unwrap_or(DEFAULT_SECONDS);
        let problem = if seconds < SHORTEST_SECONDS {
            Some("may not specify a duration less than 10 minutes")
        } else if seconds > LONGEST_SECONDS {
            Some("may not specify a duration larger than 2^32 seconds")
        } else {
            None
        };
        if let Some(problem) = problem {
            let error = FieldError::invalid("spec.expirationSeconds", seconds, problem);
            return Err(ApiError::invalid(&request_kind(), "", &[error]));
        }
        Ok(Wanted { audiences, seconds, reference: spec.get("boundObjectRef").cloned().unwrap_or(Value::Null) })
    }
}

/// The spec of a request, with its defaults.
struct Wanted {
    audiences: Vec<String>,
    seconds: i64,
    reference: Value,
}

fn request_kind() -> ResourceName {
    ResourceName::new("authentication.k8s.io", "TokenRequest")
}

fn core(plural: &str) -> ResourceName {
    ResourceName::new("", plural)
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

fn checked_metadata(namespace: &str, account: &str, request: &Value) -> Result<Map<String, Value>, ApiError> {
    let metadata = request.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    let given = |field: &str| metadata.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    if given("namespace").is_some_and(|given| given != namespace) {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    if let Some(name) = given("name").filter(|name| *name != account) {
        let error = FieldError::invalid("metadata.name", name, "must match the service account name if specified");
        return Err(ApiError::invalid(&request_kind(), account, &[error]));
    }
    Ok(metadata)
}

fn answer_metadata(
    mut metadata: Map<String, Value>,
    namespace: &str,
    account: &str,
    state: &ObjectState,
    now: i64,
) -> Value {
    metadata.insert("name".into(), account.into());
    metadata.insert("namespace".into(), namespace.into());
    metadata.insert("uid".into(), state.uid.as_str().into());
    metadata.insert("creationTimestamp".into(), timestamp(now).into());
    Value::Object(metadata)
}

/// Puts the object that the token shall be bound to into the claims.
fn bind(claims: &mut KubernetesClaims, reference: &Value, objects: &dyn BoundObjects) -> Result<(), ApiError> {
    if reference.is_null() {
        return Ok(());
    }
    let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
    let kind = match (text("apiVersion"), text("kind")) {
        ("" | "v1", "Pod") => BoundKind::Pod,
        ("" | "v1", "Secret") => BoundKind::Secret,
        ("" | "v1", "Node") => BoundKind::Node,
        (version, kind) => {
            let version = if version.contains('/') { version.to_owned() } else { format!("/{version}") };
            return Err(ApiError::bad_request(format!("cannot bind token to object of type {version}, Kind={kind}")));
        }
    };
    let name = text("name");
    if name.is_empty() {
        return Err(ApiError::bad_request("Name parameter required."));
    }
    let namespace = if kind == BoundKind::Node { "" } else { claims.namespace.as_str() };
    let state = objects.find(kind, namespace, name).ok_or_else(|| ApiError::not_found(&core(kind.plural()), name))?;
    let account = &claims.serviceaccount.name;
    if kind == BoundKind::Pod && state.service_account.as_ref() != Some(account) {
        return Err(ApiError::bad_request(format!(
            "cannot bind token for serviceaccount {} to pod running with different serviceaccount name.",
            quoted(account)
        )));
    }
    let uid = text("uid");
    if !uid.is_empty() && uid != state.uid {
        let why = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have \
             been deleted and then recreated"
        );
        return Err(ApiError::conflict(&core(kind.name()), name, &why));
    }
    let bound = ObjectReference { name: name.to_owned(), uid: state.uid };
    match kind {
        BoundKind::Pod => {
            // A pod's node goes into the token too, as far as it is known.
            claims.node = state.node.map(|node| ObjectReference {
                uid: objects.find(BoundKind::Node, "", &node).map(|node| node.uid).unwrap_or_default(),
                name: node,
            });
            claims.pod = Some(bound);
        }
        BoundKind::Secret => claims.secret = Some(bound),
        BoundKind::Node | BoundKind::ServiceAccount => claims.node = Some(bound),
    }
    Ok(())
}
