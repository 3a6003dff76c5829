//! A record as it is written.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

#[derive(Serialize)]
pub(super) struct Record<'a> {
    pub(super) time: &'a str,
    pub(super) level: &'static str,
    pub(super) msg: &'static str,
    pub(super) audit_id: &'a str,
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) logged_at: &'a str,
    pub(super) outcome: &'a str,
    pub(super) component: &'a str,
    pub(super) source: &'a Source,
    pub(super) subjects: Subjects<'a>,
    pub(super) target: Target<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) delegation: Option<Value>,
    pub(super) metadata: Metadata<'a>,
    #[serde(skip_serializing_if = "Data::is_empty")]
    pub(super) data: Data,
}

/// Where a request came from.
#[derive(Serialize)]
pub(super) struct Source {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) value: String,
    pub(super) extra: SourceExtra,
}

#[derive(Serialize)]
pub(super) struct SourceExtra {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) user_agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) request_id: Option<String>,
}

/// Who asked.
#[derive(Serialize)]
pub(super) struct Subjects<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) user_id: Option<&'a str>,
    pub(super) user: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) client_name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) client_version: &'a str,
}

/// What was asked for.
#[derive(Serialize)]
pub(super) struct Target<'a> {
    pub(super) endpoint: &'a str,
    pub(super) method: &'a str,
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<Cow<'a, str>>,
}

#[derive(Serialize)]
pub(super) struct Metadata<'a> {
    pub(super) extra: Extra<'a>,
}

#[derive(Serialize)]
pub(super) struct Extra<'a> {
    #[serde(flatten)]
    pub(super) course: Course<'a>,
    /// Whether the request was refused because it named a session that is somebody else's.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) session_of_another: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Course<'a> {
    /// How a stream began.
    Stream { transport: &'a str, user_agent: Option<&'a str> },
    /// How a request was answered.
    Answer {
        duration_ms: u128,
        transport: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        response_size_bytes: Option<usize>,
        #[serde(skip_serializing_if = "Option::is_none")]
        jsonrpc_error_code: Option<i64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        jsonrpc_error_message: Option<String>,
    },
}

/// What was said.
#[derive(Default, Serialize)]
pub(super) struct Data {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) request: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) response: Option<Value>,
}

impl Data {
    fn is_empty(&self) -> bool {
        self.request.is_none() && self.response.is_none()
    }
}
