//! The objects that tokens speak of, as far as tokens care.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

/// The kinds of objects that tokens refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BoundKind {
    ServiceAccount,
    Pod,
    Secret,
    Node,
}

impl BoundKind {
    pub const fn name(self) -> &'static str {
        match self {
            Self::ServiceAccount => "ServiceAccount",
            Self::Pod => "Pod",
            Self::Secret => "Secret",
            Self::Node => "Node",
        }
    }

    pub const fn plural(self) -> &'static str {
        match self {
            Self::ServiceAccount => "serviceaccounts",
            Self::Pod => "pods",
            Self::Secret => "secrets",
            Self::Node => "nodes",
        }
    }
}

/// Looks up objects. The namespace is empty for nodes.
pub trait BoundObjects {
    fn find(&self, kind: BoundKind, namespace: &str, name: &str) -> Option<ObjectState>;
}

/// What of an object matters to tokens.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectState {
    pub uid: String,
    /// When it was or will be deleted, in seconds since 1970.
    pub deleted_at: Option<i64>,
    /// Of a pod: the account it runs as.
    pub service_account: Option<String>,
    /// Of a pod: the node it is bound to.
    pub node: Option<String>,
}

impl ObjectState {
    pub fn of(document: &Value) -> Self {
        let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let deleted = document.pointer("/metadata/deletionTimestamp").filter(|value| !value.is_null());
        Self {
            uid: text("/metadata/uid").unwrap_or_default(),
            // A time that cannot be read counts as long ago: the object is on its way out in any case.
            deleted_at: deleted.map(|time| {
                serde_json::from_value::<Time>(time.clone()).map_or(0, |Time(timestamp)| timestamp.as_second())
            }),
            service_account: text("/spec/serviceAccountName"),
            node: text("/spec/nodeName").filter(|node| !node.is_empty()),
        }
    }
}

/// Seconds since 1970 as documents write them.
pub(in crate::auth) fn timestamp(seconds: i64) -> String {
    Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH).to_string()
}
