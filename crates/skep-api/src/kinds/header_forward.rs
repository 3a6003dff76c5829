//! Headers that are added to requests on their way to a remote server.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::references::SecretKeyRef;
use crate::sensitive::Sensitive;

/// Headers that are added to every request to the remote server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeaderForward {
    /// Headers whose values come from Secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["headerName"]))]
    pub add_headers_from_secret: Vec<HeaderFromSecret>,
    /// Headers with literal values. They are stored and shown in clear text: keep credentials out of here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub add_plaintext_headers: BTreeMap<String, Sensitive>,
}

/// A header whose value comes from a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeaderFromSecret {
    /// The name of the header.
    #[schemars(length(min = 1, max = 255))]
    pub header_name: String,
    /// The key of a Secret that holds the value.
    pub value_secret_ref: SecretKeyRef,
}
