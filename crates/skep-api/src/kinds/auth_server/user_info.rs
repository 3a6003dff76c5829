//! Asking an identity provider who a user is.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sensitive::Sensitive;

/// An endpoint that says who the user of an access token is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserInfo {
    /// Headers to add to the request. They win over those that are sent anyway.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub additional_headers: BTreeMap<String, Sensitive>,
    /// The address of the endpoint.
    #[schemars(regex(pattern = r"^https?://.*$"))]
    pub endpoint_url: String,
    /// Which members of the answer are what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_mapping: Option<UserInfoFields>,
    /// The method of the request. Defaults to GET.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_method: Option<UserInfoMethod>,
}

/// Methods with which a user-info endpoint can be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum UserInfoMethod {
    #[default]
    Get,
    Post,
}

/// Which members of a user-info answer are what. The first of each list that is present and not empty counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserInfoFields {
    /// Members that may hold the email address. Defaults to email.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub email_fields: Vec<String>,
    /// Members that may hold the name. Defaults to name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub name_fields: Vec<String>,
    /// Members that may identify the user. Defaults to sub.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub subject_fields: Vec<String>,
}
