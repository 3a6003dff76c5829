//! HTTP callbacks that see, allow or change requests.

use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::config::document::{Misfit, Part, object, word};
use crate::duration;

object! {
    /// One callback.
    pub struct WebhookConfig {
        always failure_policy: FailurePolicy,
        /// The key of the signature: an absolute path to a file, or the id of a secret.
        omit hmac_secret_ref: String,
        always name: String,
        always timeout: WebhookTimeout,
        omit tls_config: Option<WebhookTls>,
        always url: String,
    }
}

object! {
    /// How a callback is reached over TLS.
    pub struct WebhookTls {
        omit ca_bundle_path: String,
        omit client_cert_path: String,
        omit client_key_path: String,
        omit insecure_skip_verify: bool,
    }
}

word! {
    /// What happens to a request when a callback cannot be reached.
    pub enum FailurePolicy {
        /// It is refused.
        Fail = "fail",
        /// It goes on.
        Ignore = "ignore",
    }
}

/// How long a callback may take. Written as a number of nanoseconds; read as that, as a text such as `5s`, or as null.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WebhookTimeout {
    /// 0 means unset. A negative number can be read; it is refused at start.
    pub nanoseconds: i64,
}

impl WebhookTimeout {
    pub const DEFAULT: Duration = Duration::from_secs(10);

    /// The time itself; `None` for a negative number.
    pub fn effective(self) -> Option<Duration> {
        match u64::try_from(self.nanoseconds) {
            Ok(0) => Some(Self::DEFAULT),
            Ok(nanoseconds) => Some(Duration::from_nanos(nanoseconds)),
            Err(_) => None,
        }
    }
}

impl From<Duration> for WebhookTimeout {
    fn from(duration: Duration) -> Self {
        Self { nanoseconds: i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX) }
    }
}

impl Serialize for WebhookTimeout {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.nanoseconds)
    }
}

impl Part for WebhookTimeout {
    fn from_value(value: Value) -> Result<Self, Misfit> {
        let timeout = match &value {
            Value::String(text) => duration::parse(text).ok().map(Self::from),
            value => value.as_i64().map(|nanoseconds| Self { nanoseconds }),
        };
        timeout.ok_or_else(|| Misfit::new("nanoseconds or a duration such as 5s", &value))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::document::read;

    #[test]
    fn timeouts_are_read_in_four_forms_and_written_in_one() {
        for (form, nanoseconds) in [
            (json!({ "timeout": 5_000_000_000_i64 }), 5_000_000_000_i64),
            (json!({ "timeout": "1.5s" }), 1_500_000_000),
            (json!({ "timeout": null }), 0),
            (json!({}), 0),
        ] {
            let webhook: WebhookConfig = read(form.clone()).unwrap();
            assert_eq!(serde_json::to_value(&webhook).unwrap()["timeout"], nanoseconds, "{form}");
        }
        for form in [json!(true), json!("soon"), json!(0.5)] {
            let misfit = read::<WebhookConfig>(json!({ "timeout": form })).unwrap_err();
            assert_eq!(misfit.path, "timeout");
        }
    }

    #[test]
    fn unset_is_ten_seconds() {
        assert_eq!(WebhookTimeout::default().effective(), Some(Duration::from_secs(10)));
        assert_eq!(WebhookTimeout { nanoseconds: 7 }.effective(), Some(Duration::from_nanos(7)));
        assert_eq!(WebhookTimeout { nanoseconds: -1 }.effective(), None);
    }
}
