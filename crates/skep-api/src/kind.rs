//! What makes a Rust type a Skep kind: the root object, its identity, and what its CRD says beyond the schema.
//!
//! `kube::CustomResource` is not used because the wire contract differs from what it derives: `spec` may be
//! absent, one schema is served as two versions, and optional members are not nullable
//! (see docs/adr/0001-own-kind-macro.md).

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::names::annotations;

/// The API group of every kind.
pub const GROUP: &str = "toolhive.stacklok.dev";
/// The version that controllers read and write, except for [`Versions::AlphaOnly`] kinds.
pub const V1BETA1: &str = "v1beta1";
/// The deprecated twin of [`V1BETA1`] with the same schema.
pub const V1ALPHA1: &str = "v1alpha1";

/// A kind of the API group: a typed root object plus the facts its CRD is made of.
pub trait Kind:
    kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Serialize
    + DeserializeOwned
    + Clone
    + std::fmt::Debug
    + Default
    + PartialEq
    + Send
    + Sync
    + 'static
{
    /// The desired state, as users write it.
    type Spec: JsonSchema + Serialize + DeserializeOwned + Default + PartialEq;
    /// The observed state, as the controller of the kind writes it.
    type Status: JsonSchema + Serialize + DeserializeOwned + Default + PartialEq;

    /// Identity and presentation of the kind.
    const DEFINITION: Definition;

    /// The desired state.
    fn spec(&self) -> &Self::Spec;
    /// The observed state, absent until a controller has written it.
    fn status(&self) -> Option<&Self::Status>;
}

/// Everything a CRD says that is not the schema of `spec` and `status`.
#[derive(Debug, Clone, Copy)]
pub struct Definition {
    pub kind: &'static str,
    pub plural: &'static str,
    pub short_names: &'static [&'static str],
    pub description: &'static str,
    pub versions: Versions,
    pub columns: &'static [Column],
    pub scale: Option<Scale>,
}

impl Definition {
    /// The name of the kind's CustomResourceDefinition object.
    pub fn crd_name(&self) -> String {
        format!("{}.{GROUP}", self.plural)
    }

    /// The lower-case singular name.
    pub fn singular(&self) -> String {
        self.kind.to_lowercase()
    }

    /// The version that is stored, and that Skep reads and writes.
    pub const fn storage_version(&self) -> &'static str {
        match self.versions {
            Versions::BetaAndDeprecatedAlpha | Versions::Deprecated(_) => V1BETA1,
            Versions::AlphaOnly => V1ALPHA1,
        }
    }
}

/// Which versions a kind is served in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Versions {
    /// `v1beta1` is stored; `v1alpha1` is served with a deprecation warning.
    BetaAndDeprecatedAlpha,
    /// As above, but the whole kind is on its way out: both versions carry this warning.
    Deprecated(&'static str),
    /// Only `v1alpha1` exists.
    AlphaOnly,
}

/// A column of `kubectl get`.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    pub name: &'static str,
    pub type_: &'static str,
    pub json_path: &'static str,
}

impl Column {
    /// The age column that every kind ends or nearly ends with.
    pub const AGE: Self = Self::date("Age", ".metadata.creationTimestamp");

    pub const fn string(name: &'static str, json_path: &'static str) -> Self {
        Self { name, type_: "string", json_path }
    }

    pub const fn integer(name: &'static str, json_path: &'static str) -> Self {
        Self { name, type_: "integer", json_path }
    }

    pub const fn boolean(name: &'static str, json_path: &'static str) -> Self {
        Self { name, type_: "boolean", json_path }
    }

    pub const fn date(name: &'static str, json_path: &'static str) -> Self {
        Self { name, type_: "date", json_path }
    }
}

/// The scale subresource of a kind.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    pub spec_replicas_path: &'static str,
    pub status_replicas_path: &'static str,
    pub label_selector_path: &'static str,
}

/// The root object on the wire. Borrowed, so that serialising copies nothing.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Root<'a, S, T> {
    pub(crate) api_version: String,
    pub(crate) kind: &'a str,
    pub(crate) metadata: &'a ObjectMeta,
    pub(crate) spec: &'a S,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<&'a T>,
}

/// What `Debug` shows of the metadata. `kubectl apply` leaves a copy of the whole object there, secrets included.
pub(crate) fn without_last_applied(metadata: &ObjectMeta) -> ObjectMeta {
    let mut metadata = metadata.clone();
    if let Some(annotations) = &mut metadata.annotations {
        annotations.remove(annotations::KUBECTL_LAST_APPLIED);
    }
    metadata
}

/// Declares the root object of a kind and ties it to its [`Definition`].
macro_rules! kind {
    (
        $(#[doc = $doc:literal])+
        $name:ident($spec:ty, $status:ty) {
            plural: $plural:literal,
            short_names: $short_names:expr,
            versions: $versions:expr,
            columns: $columns:expr,
            scale: $scale:expr $(,)?
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Default, PartialEq, serde::Deserialize)]
        pub struct $name {
            #[serde(default)]
            pub metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
            #[serde(default)]
            pub spec: $spec,
            #[serde(default)]
            pub status: Option<$status>,
        }

        impl $name {
            /// An object of this kind that has a name and a desired state and nothing else.
            pub fn new(name: &str, spec: $spec) -> Self {
                let metadata = k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                    name: Some(name.to_owned()),
                    ..Default::default()
                };
                Self { metadata, spec, status: None }
            }
        }

        impl $crate::kind::Kind for $name {
            type Spec = $spec;
            type Status = $status;

            const DEFINITION: $crate::kind::Definition = $crate::kind::Definition {
                kind: stringify!($name),
                plural: $plural,
                short_names: $short_names,
                description: concat!($($doc, "\n"),+),
                versions: $versions,
                columns: $columns,
                scale: $scale,
            };

            fn spec(&self) -> &Self::Spec {
                &self.spec
            }

            fn status(&self) -> Option<&Self::Status> {
                self.status.as_ref()
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter
                    .debug_struct(stringify!($name))
                    .field("metadata", &$crate::kind::without_last_applied(&self.metadata))
                    .field("spec", &self.spec)
                    .field("status", &self.status)
                    .finish()
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let root = $crate::kind::Root {
                    api_version: <Self as kube::Resource>::api_version(&()).into_owned(),
                    kind: stringify!($name),
                    metadata: &self.metadata,
                    spec: &self.spec,
                    status: self.status.as_ref(),
                };
                serde::Serialize::serialize(&root, serializer)
            }
        }

        impl kube::Resource for $name {
            type DynamicType = ();
            type Scope = k8s_openapi::NamespaceResourceScope;

            fn kind(&(): &()) -> std::borrow::Cow<'_, str> {
                stringify!($name).into()
            }

            fn group(&(): &()) -> std::borrow::Cow<'_, str> {
                $crate::kind::GROUP.into()
            }

            fn version(&(): &()) -> std::borrow::Cow<'_, str> {
                <Self as $crate::kind::Kind>::DEFINITION.storage_version().into()
            }

            fn plural(&(): &()) -> std::borrow::Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &mut self.metadata
            }
        }
    };
}
pub(crate) use kind;
