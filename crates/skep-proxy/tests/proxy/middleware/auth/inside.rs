//! What the log says about issuers whose names lead inside.

use jsonwebtoken::Algorithm;
use skep_proxy::middleware::OidcSettings;

use super::issuer::{Issuer, Key};
use super::{call_with, guarded};
use crate::warnings::Warnings;

#[tokio::test]
async fn the_log_says_what_would_let_an_issuer_inside_be_asked() {
    let key = Key::new("k", Algorithm::ES256);
    let issuer = Issuer::start(&[&key]).await;
    let port = issuer.server.address.rsplit(':').next().unwrap();
    // The second one is where clouds answer machines about themselves, which nobody can allow.
    for (host, is_allowable) in [("localhost", true), ("2852039166", false)] {
        let settings = OidcSettings {
            allows_private: false,
            key_set_url: format!("http://{host}:{port}/keys"),
            introspection_url: format!("http://{host}:{port}/introspect"),
            ..issuer.settings()
        };
        let guarded = guarded(&settings).await;
        let warnings = Warnings::listen();
        for token in [&*key.sign(&issuer.claims()), "opaque"] {
            assert_eq!(call_with(&guarded, token).await.status, 401, "{host}");
            let told = warnings.take().join("\n");
            assert!(told.contains("reserved address, which is not allowed"), "{told}");
            assert_eq!(told.contains("; set AllowPrivateIP (jwksAllowPrivateIP of"), is_allowable, "{told}");
        }
    }
}
