//! What those are told who prove nothing, and what everybody may know.

use std::collections::BTreeMap;

use jsonwebtoken::Algorithm;
use serde_json::json;
use skep_proxy::middleware::{Authentication, Chain, ForwardHeaders, Oidc, OidcSettings, Step};

use super::issuer::{AUDIENCE, Issuer, Key};
use super::{call_with, check_refused, guarded};
use crate::http::{Request, call, modern};
use crate::inside::{BARRED_ADDRESSES, BARRED_FORMS, OWN_ADDRESSES, OWN_FORMS};
use crate::middleware::{Guarded, with_tools};
use crate::transparent::server::{Server, reply, with_sessions};

fn settings() -> OidcSettings {
    OidcSettings { issuer: "https://issuer.example".to_owned(), ..OidcSettings::default() }
}

#[tokio::test]
async fn a_request_without_a_token_is_told_where_to_get_one() {
    let settings = OidcSettings {
        resource_url: AUDIENCE.to_owned(),
        scopes: vec!["openid".to_owned(), "mcp".to_owned()],
        ..settings()
    };
    let guarded = guarded(&settings).await;
    let place = "https://hive.example/.well-known/oauth-protected-resource/mcp";
    for (header, told) in [
        (None, "authorization header required"),
        (Some("Basic dTpw"), "invalid authorization header format, expected 'Bearer <token>'"),
        (Some("bearer abc"), "invalid authorization header format, expected 'Bearer <token>'"),
        (Some("Bearer"), "invalid authorization header format, expected 'Bearer <token>'"),
        (Some("Bearer \t"), "invalid authorization header format, expected 'Bearer <token>'"),
    ] {
        let post = Request::post(&call(1, "feed"));
        let post = if let Some(header) = header { post.header("Authorization", header) } else { post };
        let mut refused = guarded.send(post).await;
        assert_eq!((refused.status, refused.header("content-type")), (401, Some("application/json")));
        let expected = format!(
            "Bearer realm=\"https://issuer.example\", resource_metadata=\"{place}\", scope=\"openid mcp\", \
             error=\"invalid_request\", error_description=\"{told}\""
        );
        assert_eq!(refused.header("www-authenticate"), Some(expected.as_str()));
        assert_eq!(refused.json().await, json!({"error": "invalid_request", "error_description": told}));
    }
    let twice = Request::post(&call(1, "feed")).header("Authorization", "Bearer a").header("Authorization", "Bearer b");
    assert_eq!(guarded.send(twice).await.status, 401);
    for request in
        [Request::new("GET", "/mcp"), Request::new("GET", "/sse?access_token=t"), Request::new("DELETE", "/x")]
    {
        assert_eq!(guarded.send(request).await.status, 401);
    }
    assert!(guarded.server.seen().is_empty());
    assert_eq!(guarded.send(Request::new("GET", "/health")).await.status, 200);
}

#[tokio::test]
async fn auth_traps_12_and_13_the_document_about_the_resource_is_for_everybody() {
    let guarded = guarded(&OidcSettings { resource_url: AUDIENCE.to_owned(), ..settings() }).await;
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp/"] {
        let mut answer = guarded.send(Request::new("GET", path)).await;
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, Some("*")));
        let document = answer.json().await;
        let expected = json!({
            "resource": AUDIENCE,
            "authorization_servers": ["https://issuer.example"],
            "bearer_methods_supported": ["header"],
            "scopes_supported": ["openid"],
        });
        assert_eq!(document, expected);
    }
    let asked =
        Request::new("OPTIONS", "/.well-known/oauth-protected-resource").header("Origin", "https://page.example");
    let told = guarded.send(asked).await;
    assert_eq!((told.status, told.header("access-control-allow-origin")), (204, Some("https://page.example")));
    assert_eq!(told.header("access-control-allow-methods"), Some("GET, OPTIONS"));
    let challenged = guarded.send(Request::post(&call(1, "feed"))).await;
    assert!(!challenged.header("www-authenticate").unwrap().contains("scope="));
    let mut other = guarded.send(Request::new("GET", "/.well-known/openid-configuration")).await;
    assert_eq!((other.status, other.json().await), (404, json!({"error": "not_found"})));
    assert!(guarded.server.seen().is_empty());
}

#[tokio::test]
async fn a_resource_that_does_not_know_its_address_has_no_document() {
    let guarded = guarded(&settings()).await;
    let mut answer = guarded.send(Request::new("GET", "/.well-known/oauth-protected-resource")).await;
    assert_eq!((answer.status, answer.text().await.as_str()), (404, ""));
    guarded.middleware.replace(Chain::new(vec![Step::Authenticate(Authentication::Local)]));
    let mut answer = guarded.send(Request::new("GET", "/.well-known/oauth-protected-resource")).await;
    assert_eq!((answer.status, answer.json().await), (404, json!({"error": "not_found"})));
}

#[tokio::test]
async fn nobody_is_asked_where_everybody_is_the_same() {
    for everybody in [Authentication::Local, Authentication::Anonymous] {
        let guarded = Guarded::new(vec![Step::Authenticate(everybody)], with_tools).await;
        assert_eq!(guarded.send(Request::post(&call(1, "feed"))).await.status, 200);
    }
}

#[tokio::test]
async fn auth_trap_15_an_issuer_inside_is_not_asked_unless_that_is_allowed() {
    let issuer = Issuer::start(&[&Key::new("k", Algorithm::ES256)]).await;
    let closed = OidcSettings { allows_private: false, ..issuer.settings() };
    let plain = OidcSettings { allows_http: false, ..issuer.settings() };
    for (settings, switch) in [(closed, "AllowPrivateIP"), (plain, "InsecureAllowHTTP")] {
        let elsewhere = OidcSettings { key_set_url: "https://keys.example".to_owned(), ..settings.clone() };
        for (settings, member) in [
            (OidcSettings { key_set_url: format!("{}/keys", issuer.url), ..settings.clone() }, "JWKSURL"),
            (OidcSettings { introspection_url: format!("{}/introspect", issuer.url), ..elsewhere }, "IntrospectionURL"),
            (settings, "Issuer"),
        ] {
            let said = Oidc::new(&settings).unwrap_err().to_string();
            assert!(said.starts_with(&format!("{member}: ")), "{said}");
            assert!(said.ends_with(&format!("; set {switch} to allow it")), "{said}");
        }
    }
    assert_eq!(issuer.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn users_share_no_session_at_the_server_whatever_it_is_told_about_them() {
    let key = Key::new("k", Algorithm::ES256);
    let issuer = Issuer::start(&[&key]).await;
    let headers: BTreeMap<String, String> = [("Authorization".to_owned(), "Bearer ours".to_owned())].into();
    let ours = ForwardHeaders::new(&headers).unwrap();
    for hiding in [Step::StripCredentials, Step::ForwardHeaders(ours)] {
        let oidc = Box::new(Oidc::new(&issuer.settings()).unwrap());
        let steps = vec![Step::Authenticate(Authentication::Oidc(oidc)), hiding];
        let guarded = Guarded::new(steps, with_sessions("s")).await;
        let mut sessions = Vec::new();
        for user in ["ann", "bob", "ann"] {
            let mut claims = issuer.claims();
            claims["sub"] = json!(user);
            let call = modern(1, "tools/call", json!({"name": "feed", "arguments": {}}));
            let mut answer = guarded.send(call.header("Authorization", &format!("Bearer {}", key.sign(&claims)))).await;
            sessions.push(answer.json().await["result"]["session"].as_str().unwrap().to_owned());
        }
        assert_eq!(sessions[0], sessions[2]);
        assert_ne!(sessions[0], sessions[1]);
    }
}

#[tokio::test]
async fn auth_trap_15_no_way_to_write_an_address_makes_us_ask_inside() {
    let key = Key::new("k", Algorithm::ES256);
    let issuer = Issuer::start(&[&key]).await;
    let token = key.sign(&issuer.claims());
    let port = issuer.server.address.rsplit(':').next().unwrap();
    for host in [OWN_ADDRESSES, OWN_FORMS, BARRED_ADDRESSES, BARRED_FORMS].concat() {
        let closed = OidcSettings {
            allows_private: false,
            key_set_url: format!("http://{host}:{port}/keys"),
            introspection_url: format!("http://{host}:{port}/introspect"),
            ..issuer.settings()
        };
        if let Err(error) = Oidc::new(&closed) {
            // It is an address as everybody writes it.
            assert!([OWN_ADDRESSES, BARRED_ADDRESSES].concat().contains(&host), "{host}: {error}");
            let hint = if OWN_ADDRESSES.contains(&host) { "; set AllowPrivateIP to allow it" } else { "" };
            let told = "is at a private, link-local or reserved address, which is not allowed";
            assert_eq!(error.to_string(), format!("JWKSURL: {host} {told}{hint}"));
            continue;
        }
        assert!([OWN_FORMS, BARRED_FORMS].concat().contains(&host), "{host}");
        let guarded = guarded(&closed).await;
        for (shown, told) in [(&*token, "failed to fetch JWKS"), ("opaque", "failed to introspect opaque token")] {
            check_refused(host, call_with(&guarded, shown).await, &issuer.url, told).await;
        }
        assert!(guarded.server.seen().is_empty(), "{host}");
    }
    assert_eq!(issuer.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn auth_trap_15_no_redirect_makes_us_ask_where_clouds_answer() {
    let key = Key::new("k", Algorithm::ES256);
    let issuer = Issuer::start(&[&key]).await;
    let token = key.sign(&issuer.claims());
    let places =
        [BARRED_ADDRESSES, BARRED_FORMS, &["169.254.169.254.", "2852039166.", "%31%36%39.254.169.254"]].concat();
    for to in places.iter().flat_map(|host| [format!("http://{host}/keys"), format!("//{host}/keys")]) {
        let location = to.clone();
        let elsewhere = Server::start(move |_| reply(302, &[("location", &location)], "")).await;
        let settings = OidcSettings { key_set_url: format!("http://{}/keys", elsewhere.address), ..issuer.settings() };
        let guarded = guarded(&settings).await;
        check_refused(&to, call_with(&guarded, &token).await, &issuer.url, "failed to fetch JWKS").await;
        assert_eq!(elsewhere.seen().len(), 1, "{to}");
        assert!(guarded.server.seen().is_empty(), "{to}");
    }
}
