//! Why the chain refuses a request, and what the client is told then. Reasons beyond these words go to the log.

use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};
use serde_json::json;
use skep_mcp::Id;
use skep_mcp::fault::{Fault, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST};

use crate::answer::{self, Answer};

/// The code of calls over their limit, deliberately outside of the range that the protocol reserves.
const RATE_LIMITED: i64 = 429;
/// The code of a refusal by policy, which is none of the protocol's.
const POLICY: i64 = 403;

/// A reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The body has more bytes than it may have.
    TooLarge,
    /// The tool is hidden, or there is none of that name.
    NoSuchTool,
    /// The same, for a client that takes no JSON.
    NoSuchToolUnsaid,
    /// A call that does not say of what.
    NoTool,
    /// A tool was called too often. One more call is good in so many seconds.
    RateLimited { seconds: u64 },
    /// A list could not be read, so that it cannot be told what may be shown of it.
    UnreadableList,
    /// It is no message, or one that could be read in two ways, where somebody has to decide about messages.
    NoMessage,
    /// The caller may not do that.
    Unauthorized,
    /// A callback that may only refuse has refused, or failed.
    DeniedByPolicy,
    /// A callback that may change messages has refused.
    DeniedByWebhook,
    /// The same, because it cannot take the message.
    UnprocessableByWebhook,
    /// A callback that may change messages has failed.
    WebhookFailed,
    /// A callback wants a change that cannot be made.
    PatchFromWebhook(&'static str),
    /// Callbacks have made several messages of one.
    BatchFromWebhook,
    /// Callbacks have made something of a message that is none.
    NoRequestFromWebhook,
    /// The message is larger than what callbacks are asked about.
    TooLargeForWebhooks,
    /// There is no token for the server.
    TokenNotExchanged,
    /// There is one, which cannot be sent.
    TokenNotPlaced,
    /// Nobody knows who calls, where the server gets credentials by that.
    Unauthenticated,
    /// The caller comes without the token that its credentials are given for.
    NoBearer,
    /// No role is for the caller.
    NoRole,
    /// The caller's token does not say what to call its session.
    NoSessionName,
    /// It says something that cannot be the name of one.
    InvalidSessionName,
    /// AWS gives no credentials for the caller.
    NoAwsCredentials,
    /// The request cannot be signed.
    NotSigned,
    /// The proxy itself is at fault.
    Panicked,
}

/// How a refusal is told.
enum Words {
    Nothing,
    Text(&'static str),
    Fault(i64, &'static str),
}

impl Refusal {
    /// The table.
    fn row(self) -> (StatusCode, Words) {
        match self {
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, Words::Text("Request Entity Too Large")),
            Self::NoSuchTool => (StatusCode::OK, Words::Fault(INVALID_PARAMS, "tool not found")),
            Self::NoSuchToolUnsaid | Self::NoTool => (StatusCode::BAD_REQUEST, Words::Nothing),
            Self::RateLimited { .. } => {
                (StatusCode::TOO_MANY_REQUESTS, Words::Fault(RATE_LIMITED, "Rate limit exceeded"))
            }
            Self::UnreadableList => (StatusCode::INTERNAL_SERVER_ERROR, Words::Fault(INTERNAL_ERROR, "internal error")),
            Self::NoMessage => (StatusCode::BAD_REQUEST, Words::Text("Invalid or malformed MCP request")),
            Self::Unauthorized => (StatusCode::FORBIDDEN, Words::Fault(POLICY, "Unauthorized")),
            Self::DeniedByPolicy => (StatusCode::FORBIDDEN, Words::Fault(POLICY, "Request denied by policy")),
            Self::DeniedByWebhook => (StatusCode::FORBIDDEN, Words::Fault(POLICY, "Request denied by webhook policy")),
            Self::UnprocessableByWebhook => {
                (StatusCode::UNPROCESSABLE_ENTITY, Words::Fault(POLICY, "Request denied by webhook policy"))
            }
            Self::WebhookFailed => (StatusCode::INTERNAL_SERVER_ERROR, Words::Fault(INTERNAL_ERROR, "Webhook error")),
            Self::PatchFromWebhook(told) => (StatusCode::INTERNAL_SERVER_ERROR, Words::Fault(INTERNAL_ERROR, told)),
            Self::BatchFromWebhook => {
                (StatusCode::BAD_REQUEST, Words::Fault(INVALID_REQUEST, "Webhook produced a batch of requests"))
            }
            Self::NoRequestFromWebhook => {
                let told = "Webhook produced an invalid MCP request";
                (StatusCode::INTERNAL_SERVER_ERROR, Words::Fault(INTERNAL_ERROR, told))
            }
            Self::TooLargeForWebhooks => {
                (StatusCode::PAYLOAD_TOO_LARGE, Words::Fault(INVALID_REQUEST, "Request body exceeds maximum size"))
            }
            Self::TokenNotExchanged => (StatusCode::UNAUTHORIZED, Words::Text("Token exchange failed")),
            Self::TokenNotPlaced => (StatusCode::INTERNAL_SERVER_ERROR, Words::Text("Token injection failed")),
            Self::Unauthenticated => (StatusCode::UNAUTHORIZED, Words::Text("Authentication required")),
            Self::NoBearer => (StatusCode::UNAUTHORIZED, Words::Text("Bearer token required")),
            Self::NoRole => (StatusCode::FORBIDDEN, Words::Text("Failed to determine IAM role")),
            Self::NoSessionName => (StatusCode::UNAUTHORIZED, Words::Text("Missing session name claim")),
            Self::InvalidSessionName => (StatusCode::UNAUTHORIZED, Words::Text("Invalid session name")),
            Self::NoAwsCredentials => (StatusCode::UNAUTHORIZED, Words::Text("AWS credential exchange failed")),
            Self::NotSigned => (StatusCode::INTERNAL_SERVER_ERROR, Words::Text("Request signing failed")),
            Self::Panicked => (StatusCode::INTERNAL_SERVER_ERROR, Words::Text("Internal Server Error")),
        }
    }

    /// The answer to the request of that id.
    pub(crate) fn answer(self, id: Option<&Id>) -> Answer {
        let mut answer = match self.row() {
            (status, Words::Nothing) => answer::empty(status),
            (status, Words::Text(text)) => answer::text(status, text),
            (status, Words::Fault(code, message)) => answer::fault(status, &self.fault(code, message), id),
        };
        if let Self::RateLimited { seconds } = self {
            answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        answer
    }

    fn fault(self, code: i64, message: &'static str) -> Fault {
        let fault = Fault::new(code, message);
        match self {
            Self::RateLimited { seconds } => fault.with_data(json!({"retryAfterSeconds": seconds})),
            _ => fault,
        }
    }

    /// What a stream says in its place, whose status is told already.
    pub(crate) fn message(self, id: Option<&Id>) -> String {
        match self.row() {
            (_, Words::Fault(code, message)) => self.fault(code, message).answer(id),
            (_, Words::Nothing | Words::Text(_)) => Fault::new(INTERNAL_ERROR, "internal error").answer(id),
        }
    }
}
