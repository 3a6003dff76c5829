//! Tokens of a provider that somebody else wrote.

use serde_json::Value;
use skep_proxy::middleware::OidcSettings;

use super::issuer::AUDIENCE;
use super::{call_with, guarded};
use crate::http::Request;
use crate::node::Node;
use crate::provider::{self, CLIENT_SECRET, SCRIPT};

/// The provider, in a process of its own.
struct Provider(Node);

impl Provider {
    fn start(test: &str) -> Option<Self> {
        Some(Self(Node::run(&provider::install(test)?, SCRIPT)))
    }

    /// A token that it issues for a resource.
    async fn token(&self, resource: &str) -> String {
        let mut answer = Request::new("POST", "/token")
            .header("Content-Type", "application/x-www-form-urlencoded")
            .header("Authorization", "Basic YmVlOmhvbmV5")
            .body(provider::form(resource))
            .send(&self.0.address)
            .await;
        let issued: Value = answer.json().await;
        issued["access_token"].as_str().unwrap_or_else(|| panic!("{issued}")).to_owned()
    }

    fn settings(&self) -> OidcSettings {
        OidcSettings {
            issuer: format!("http://{}", self.0.address),
            audience: AUDIENCE.to_owned(),
            introspection_url: format!("http://{}/token/introspection", self.0.address),
            client_id: "bee".to_owned(),
            client_secret: CLIENT_SECRET.to_owned(),
            allows_private: true,
            allows_http: true,
            ..OidcSettings::default()
        }
    }
}

#[tokio::test]
async fn tokens_of_a_real_provider_are_understood() {
    let Some(provider) = Provider::start("tokens_of_a_real_provider_are_understood") else { return };
    let proxy = guarded(&provider.settings()).await;
    let (signed, opaque) = (provider.token("mcp").await, provider.token("opaque").await);
    assert!(signed.contains('.') && !opaque.contains('.'), "{signed} {opaque}");
    assert_eq!(call_with(&proxy, &signed).await.status, 200, "discovery, its key set, its signature");
    assert_eq!(call_with(&proxy, &opaque).await.status, 200, "introspection");
    assert_eq!(call_with(&proxy, &format!("{opaque}x")).await.status, 401);
    let (head, rest) = signed.rsplit_once('.').unwrap();
    let turned: String = rest.chars().rev().collect();
    assert_eq!(call_with(&proxy, &format!("{head}.{turned}")).await.status, 401);
    let elsewhere = OidcSettings { audience: "https://other.example".to_owned(), ..provider.settings() };
    let elsewhere = guarded(&elsewhere).await;
    for token in [&signed, &opaque] {
        let mut refused = call_with(&elsewhere, token).await;
        assert_eq!((refused.status, refused.text().await.contains("invalid audience")), (401, true));
    }
}
