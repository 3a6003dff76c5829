//! How the proxy proves itself to a remote server.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::config::document::{Members, Misfit, Part, object};
use crate::raw::RawValue;
use crate::sensitive::Sensitive;

object! {
    /// The proxy's own login at a remote server: a bearer token, or OAuth credentials. `client_secret` and
    /// `bearer_token` are references such as `<secret id>,target=bearer_token`, or plain texts.
    pub struct RemoteAuthConfig from modernise {
        omit authorize_url: String,
        omit bearer_token: Sensitive,
        omit bearer_token_file: String,
        omit cached_cimd_client_id: String,
        omit cached_client_id: String,
        omit cached_client_secret_ref: String,
        omit cached_dcr_callback_port: i32,
        omit cached_refresh_token_ref: String,
        omit cached_reg_client_uri: String,
        omit cached_reg_token_ref: String,
        always cached_secret_expiry: TimeText,
        omit cached_token_auth_method: String,
        always cached_token_expiry: TimeText,
        omit callback_port: i32,
        omit client_id: String,
        omit client_secret: Sensitive,
        omit client_secret_file: String,
        /// Only for interactive commands, which write it; carried.
        omit env_vars: RawValue,
        /// Only for interactive commands, which write it; carried.
        omit headers: RawValue,
        omit issuer: String,
        omit oauth_params: BTreeMap<String, Sensitive>,
        omit resource: String,
        omit scope_param_name: String,
        omit scopes: Vec<String>,
        omit skip_browser: bool,
        /// How long a login may take, in nanoseconds.
        omit timeout: i64,
        omit token_url: String,
        always use_pkce: bool,
    }
}

/// What the names of the older form become. Letter case does not matter when they are looked up.
const OLDER_NAMES: [(&str, &str); 16] = [
    ("AuthorizeURL", "authorize_url"),
    ("BearerToken", "bearer_token"),
    ("BearerTokenFile", "bearer_token_file"),
    ("CallbackPort", "callback_port"),
    ("ClientID", "client_id"),
    ("ClientSecret", "client_secret"),
    ("ClientSecretFile", "client_secret_file"),
    ("EnvVars", "env_vars"),
    ("Headers", "headers"),
    ("Issuer", "issuer"),
    ("OAuthParams", "oauth_params"),
    ("Scopes", "scopes"),
    ("SkipBrowser", "skip_browser"),
    ("Timeout", "timeout"),
    ("TokenURL", "token_url"),
    ("UsePKCE", "use_pkce"),
];

/// An object with the member `ClientID` is in the older form, in Pascal case. It is written in the newer one.
fn modernise(members: &mut Members) {
    if members.contains("ClientID") {
        for (older, newer) in OLDER_NAMES {
            members.rename(older, newer);
        }
    }
}

/// A point in time in RFC 3339, kept as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeText(pub String);

impl TimeText {
    /// Go's zero time, which stands for no time at all.
    pub const UNSET: &str = "0001-01-01T00:00:00Z";

    pub fn is_unset(&self) -> bool {
        self.0 == Self::UNSET
    }
}

impl Default for TimeText {
    fn default() -> Self {
        Self(Self::UNSET.to_owned())
    }
}

impl Serialize for TimeText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl Part for TimeText {
    fn from_value(value: Value) -> Result<Self, Misfit> {
        String::from_value(value).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::document::read;

    #[test]
    fn a_bearer_token_is_written_as_the_operator_does() {
        let config =
            RemoteAuthConfig { bearer_token: "my-secret,target=bearer_token".into(), ..RemoteAuthConfig::default() };
        let expected = json!({
            "bearer_token": "my-secret,target=bearer_token",
            "cached_secret_expiry": "0001-01-01T00:00:00Z",
            "cached_token_expiry": "0001-01-01T00:00:00Z",
            "use_pkce": false,
        });
        assert_eq!(serde_json::to_value(&config).unwrap(), expected);
        assert!(config.cached_token_expiry.is_unset());
        assert!(!format!("{config:?}").contains("my-secret"));
    }

    #[test]
    fn auth_trap_91_the_time_of_nobody_is_none() {
        let config: RemoteAuthConfig = read(json!({ "cached_token_expiry": "0001-01-01T00:00:00Z" })).unwrap();
        assert!(config.cached_token_expiry.is_unset() && config.cached_secret_expiry.is_unset());
        let config: RemoteAuthConfig = read(json!({ "cached_token_expiry": "2026-11-16T00:00:00Z" })).unwrap();
        assert!(!config.cached_token_expiry.is_unset());
    }

    #[test]
    fn pascal_case_without_client_id_is_not_the_older_form() {
        let config: RemoteAuthConfig = read(json!({ "BearerToken": "x" })).unwrap();
        assert!(config.bearer_token.is_empty());
        assert_eq!(config.other.0["BearerToken"], "x");
    }
}
