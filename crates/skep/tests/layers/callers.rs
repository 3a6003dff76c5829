//! Those who call, and whoever gives them their tokens.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::objects;
use crate::http::Request;
use crate::place::{Place, eventually, speaks};
use crate::provider::{self, CLIENT_SECRET};

/// Those who call, by the tokens that the provider has given them.
pub(super) struct Callers {
    pub(super) keeper: String,
    /// Another one with the same rights.
    pub(super) helper: String,
    pub(super) guest: String,
    /// A token that says nothing by itself.
    pub(super) opaque: String,
    /// One for another server.
    pub(super) elsewhere: String,
}

impl Callers {
    pub(super) async fn start(place: &Place, packages: &Path) -> Self {
        for object in objects::needed(packages) {
            place.apply(&object).await;
        }
        let address = place.offer("provider", &json!({"app": "provider"}), 8080).await;
        eventually("the provider is there", || async { speaks(&address, "/.well-known/openid-configuration") }).await;
        let token = |client: &str, resource: &str| {
            let credentials = STANDARD.encode(format!("{client}:{CLIENT_SECRET}"));
            let request = Request::new("POST", "/token")
                .header("Content-Type", "application/x-www-form-urlencoded")
                .header("Authorization", &format!("Basic {credentials}"));
            let issued = request.body(&provider::form(resource)).send(&address).json();
            issued["access_token"].as_str().unwrap_or_else(|| panic!("{issued}")).to_owned()
        };
        Self {
            keeper: token("keeper", "mcp"),
            helper: token("helper", "mcp"),
            guest: token("guest", "mcp"),
            opaque: token("keeper", "opaque"),
            elsewhere: token("keeper", "elsewhere"),
        }
    }
}
