use std::collections::HashMap;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::auth::identity::{Certificate, Unauthorized, authenticate};
use crate::auth::user::User;

const NOW: i64 = 1_800_000_000;

#[derive(Default)]
struct Objects(HashMap<(BoundKind, String), ObjectState>);

impl Objects {
    fn with(mut self, kind: BoundKind, key: &str, document: &Value) -> Self {
        self.0.insert((kind, key.to_owned()), ObjectState::of(document));
        self
    }
}

impl BoundObjects for Objects {
    fn find(&self, kind: BoundKind, namespace: &str, name: &str) -> Option<ObjectState> {
        self.0.get(&(kind, format!("{namespace}/{name}"))).cloned()
    }
}

fn objects() -> Objects {
    Objects::default()
        .with(BoundKind::ServiceAccount, "default/web", &json!({ "metadata": { "uid": "account-uid" } }))
        .with(
            BoundKind::Pod,
            "default/p",
            &json!({
            "metadata": { "uid": "pod-uid" }, "spec": { "serviceAccountName": "web", "nodeName": "n" } }),
        )
        .with(
            BoundKind::Pod,
            "default/other",
            &json!({
            "metadata": { "uid": "pod-uid" }, "spec": { "serviceAccountName": "default" } }),
        )
        .with(BoundKind::Secret, "default/s", &json!({ "metadata": { "uid": "secret-uid" } }))
        .with(BoundKind::Node, "/n", &json!({ "metadata": { "uid": "node-uid" } }))
}

fn authority() -> TokenAuthority {
    TokenAuthority::new(SigningKey::generate().unwrap())
}

fn issue(authority: &TokenAuthority, spec: &Value) -> (Value, String) {
    let request = json!({ "spec": spec });
    let issued = authority.issue("default", "web", &request, &objects(), NOW).unwrap_or_else(|error| panic!("{error}"));
    let token = issued.document["status"]["token"].as_str().unwrap().to_owned();
    (issued.document, token)
}

fn payload(token: &str) -> Value {
    let payload = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap()
}

fn refusal(spec: &Value) -> String {
    match authority().issue("default", "web", &json!({ "spec": spec }), &objects(), NOW) {
        Ok(_) => panic!("issued: {spec}"),
        Err(error) => error.message,
    }
}

#[test]
fn a_plain_request_gets_an_hour() {
    let authority = authority();
    let (document, token) = issue(&authority, &json!({}));
    assert_eq!(
        document["spec"],
        json!({
            "audiences": ["https://kubernetes.default.svc"], "expirationSeconds": 3600, "boundObjectRef": null,
        })
    );
    assert_eq!(
        document["metadata"],
        json!({
            "name": "web", "namespace": "default", "uid": "account-uid", "creationTimestamp": "2027-01-15T08:00:00Z",
        })
    );
    assert_eq!(document["status"]["expirationTimestamp"], "2027-01-15T09:00:00Z");
    let mut claims = payload(&token);
    assert_eq!(claims["jti"].take().as_str().unwrap().len(), 36);
    assert_eq!(
        claims,
        json!({
            "aud": ["https://kubernetes.default.svc"], "exp": NOW + 3600, "iat": NOW, "nbf": NOW, "jti": null,
            "iss": "https://kubernetes.default.svc", "sub": "system:serviceaccount:default:web",
            "kubernetes.io": { "namespace": "default", "serviceaccount": { "name": "web", "uid": "account-uid" } },
        })
    );
}

#[test]
fn a_pod_token_lives_longer_than_it_says() {
    let authority = authority();
    let reference = json!({ "kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "pod-uid" });
    let (document, token) = issue(&authority, &json!({ "expirationSeconds": 3607, "boundObjectRef": reference }));
    assert_eq!(document["status"]["expirationTimestamp"], "2027-01-15T09:00:07Z");
    let claims = payload(&token);
    assert_eq!(claims["exp"], NOW + 31_536_000);
    assert_eq!(
        claims["kubernetes.io"],
        json!({
            "namespace": "default", "node": { "name": "n", "uid": "node-uid" }, "pod": { "name": "p", "uid": "pod-uid" },
            "serviceaccount": { "name": "web", "uid": "account-uid" }, "warnafter": NOW + 3607,
        })
    );
    let verified = authority.verify(&token, &[], &objects(), NOW + 3608).unwrap();
    assert!(verified.stale);
    let user = verified.user;
    assert_eq!(user.name, "system:serviceaccount:default:web");
    assert_eq!(user.uid.as_deref(), Some("account-uid"));
    assert_eq!(user.groups, ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]);
    let extra: Vec<&str> = user.extra.keys().map(String::as_str).collect();
    assert_eq!(
        extra,
        [
            "authentication.kubernetes.io/credential-id",
            "authentication.kubernetes.io/node-name",
            "authentication.kubernetes.io/node-uid",
            "authentication.kubernetes.io/pod-name",
            "authentication.kubernetes.io/pod-uid",
        ]
    );
}

#[test]
fn requests_that_are_refused() {
    let bound =
        |kind: &str, name: &str| json!({ "boundObjectRef": { "kind": kind, "apiVersion": "v1", "name": name } });
    for (spec, message) in [
        (
            json!({ "expirationSeconds": 599 }),
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes",
        ),
        (
            json!({ "expirationSeconds": 4_294_967_297_i64 }),
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds",
        ),
        (bound("Pod", "q"), "pods \"q\" not found"),
        (bound("Pod", ""), "Name parameter required."),
        (bound("Secret", "q"), "secrets \"q\" not found"),
        (bound("Node", "q"), "nodes \"q\" not found"),
        (bound("", "q"), "cannot bind token to object of type /v1, Kind="),
        (
            bound("Pod", "other"),
            "cannot bind token for serviceaccount \"web\" to pod running with different serviceaccount name.",
        ),
        (
            json!({ "boundObjectRef": { "kind": "Deployment", "apiVersion": "apps/v1", "name": "p" } }),
            "cannot bind token to object of type apps/v1, Kind=Deployment",
        ),
        (
            json!({ "boundObjectRef": { "kind": "Pod", "name": "p", "uid": "bad" } }),
            "Operation cannot be fulfilled on Pod \"p\": the UID in the bound object reference (bad) does not match the UID in record. The object might have been deleted and then recreated",
        ),
    ] {
        assert_eq!(refusal(&spec), message);
    }
    let missing = authority().issue("default", "nope", &json!({}), &objects(), NOW).err().unwrap();
    assert_eq!(missing.message, "serviceaccounts \"nope\" not found");
    let named = json!({ "metadata": { "name": "other" } });
    let named = authority().issue("default", "web", &named, &objects(), NOW).err().unwrap();
    assert_eq!(
        named.message,
        "TokenRequest.authentication.k8s.io \"web\" is invalid: metadata.name: Invalid value: \"other\": must match the \
         service account name if specified"
    );
}

#[test]
fn a_longest_life_shortens_with_a_warning() {
    let authority = authority().with_longest_life(7200);
    let request = json!({ "spec": { "expirationSeconds": 86_400 } });
    let issued = authority.issue("default", "web", &request, &objects(), NOW).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(issued.document["spec"]["expirationSeconds"], 7200);
    assert_eq!(issued.warning.as_deref(), Some("requested expiration of 86400 seconds shortened to 7200 seconds"));
}

#[test]
fn audiences_must_meet() {
    let authority = authority();
    let (_, token) = issue(&authority, &json!({ "audiences": ["a", "b"] }));
    let wanted: Vec<String> = ["b", "c", "a"].map(str::to_owned).to_vec();
    assert_eq!(authority.verify(&token, &wanted, &objects(), NOW).unwrap().audiences, ["b", "a"]);
    let error = authority.verify(&token, &[], &objects(), NOW).unwrap_err();
    assert_eq!(
        error.review_text(),
        "[invalid bearer token, token audiences [\"a\" \"b\"] is invalid for the target audiences \
         [\"https://kubernetes.default.svc\"]]"
    );
}

#[test]
fn tokens_die_with_what_they_are_bound_to() {
    let authority = authority();
    let verify = |token: &str, objects: &Objects| authority.verify(token, &[], objects, NOW).map(|_| ());
    for (kind, key, reference) in [
        (BoundKind::Pod, "default/p", json!({ "kind": "Pod", "name": "p" })),
        (BoundKind::Secret, "default/s", json!({ "kind": "Secret", "name": "s" })),
        (BoundKind::Node, "/n", json!({ "kind": "Node", "name": "n" })),
    ] {
        let (_, token) = issue(&authority, &json!({ "boundObjectRef": reference }));
        assert_eq!(verify(&token, &objects()), Ok(()));
        let mut gone = objects();
        gone.0.remove(&(kind, key.to_owned()));
        assert_eq!(verify(&token, &gone), Err(TokenError::Invalidated), "{key}");
        let leaving = |seconds: i64| {
            let mut objects = objects();
            objects.0.get_mut(&(kind, key.to_owned())).unwrap().deleted_at = Some(NOW - seconds);
            objects
        };
        assert_eq!(verify(&token, &leaving(59)), Ok(()));
        assert_eq!(verify(&token, &leaving(61)), Err(TokenError::Invalidated));
        let mut replaced = objects();
        replaced.0.get_mut(&(kind, key.to_owned())).unwrap().uid = "new".to_owned();
        assert!(matches!(verify(&token, &replaced), Err(TokenError::Replaced { .. })), "{key}");
    }
    let (_, token) = issue(&authority, &json!({}));
    let mut replaced = objects();
    replaced.0.get_mut(&(BoundKind::ServiceAccount, "default/web".to_owned())).unwrap().uid = "new".to_owned();
    assert_eq!(
        verify(&token, &replaced).unwrap_err().review_text(),
        "[invalid bearer token, service account UID (new) does not match claim (account-uid)]"
    );
    assert_eq!(
        verify(&token, &Objects::default()).unwrap_err().review_text(),
        "[invalid bearer token, serviceaccounts \"web\" not found]"
    );
}

fn encoded(value: &Value) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(value.to_string())
}

#[test]
fn hostile_tokens_are_refused() {
    let authority = authority();
    let (_, good) = issue(&authority, &json!({}));
    let parts: Vec<&str> = good.split('.').collect();
    let claims = payload(&good);
    let resigned = |change: &dyn Fn(&mut Value)| {
        let mut changed = claims.clone();
        change(&mut changed);
        authority.sign(&serde_json::from_value(changed).unwrap()).unwrap()
    };
    let with = |field: &'static str, value: Value| resigned(&move |claims| claims[field] = value.clone());
    let unsigned = |header: &Value, claims: &Value| format!("{}.{}.", encoded(header), encoded(claims));
    let mut elevated = claims.clone();
    elevated["sub"] = json!("system:serviceaccount:kube-system:admin");
    let hmac = {
        // The public key as a shared secret: the classic confusion of algorithms.
        let header = jsonwebtoken::Header::new(jsonwebtoken::Algorithm::HS256);
        let secret = jsonwebtoken::EncodingKey::from_secret(authority.key_set().to_string().as_bytes());
        jsonwebtoken::encode(&header, &claims, &secret).unwrap()
    };
    let other_key = TokenAuthority::new(SigningKey::generate().unwrap());
    let by_other_key = other_key.sign(&serde_json::from_value(claims.clone()).unwrap()).unwrap();
    let tokens: Vec<(&str, String)> = vec![
        ("alg none", unsigned(&json!({ "alg": "none" }), &claims)),
        ("alg none, other case", unsigned(&json!({ "alg": "nOnE" }), &claims)),
        ("alg missing", unsigned(&json!({}), &claims)),
        ("alg HS256 with the public key", hmac),
        ("other key", by_other_key),
        ("other key with our kid in the header", {
            let header = json!({ "alg": "ES256", "kid": authority.key.id() });
            format!("{}.{}.{}", encoded(&header), parts[1], "A".repeat(86))
        }),
        ("key in the header", unsigned(&json!({ "alg": "ES256", "jwk": authority.key_set()["keys"][0] }), &claims)),
        ("changed claims", format!("{}.{}.{}", parts[0], encoded(&elevated), parts[2])),
        ("no signature", format!("{}.{}.", parts[0], parts[1])),
        ("short signature", format!("{}.{}.{}", parts[0], parts[1], &parts[2][..10])),
        ("zero signature", format!("{}.{}.{}", parts[0], parts[1], "A".repeat(86))),
        ("expired", with("exp", json!(NOW - 61))),
        ("from the future", with("nbf", json!(NOW + 61))),
        ("issued in the future", with("iat", json!(NOW + 61))),
        ("other audience", with("aud", json!(["other"]))),
        ("no audience", with("aud", json!([]))),
        ("other issuer", with("iss", json!("https://evil.example"))),
        ("huge", "a".repeat(1 << 20)),
        ("huge with dots", format!("{}.{}.{}", "a".repeat(1 << 20), parts[1], parts[2])),
        ("only dots", "...".to_owned()),
        ("two parts", format!("{}.{}", parts[0], parts[1])),
        ("four parts", format!("{good}.x")),
        ("five parts, as encrypted ones have", "a.b.c.d.e".to_owned()),
        ("not base64", format!("!!!.{}.???", parts[1])),
        ("claims are a list", format!("{}.{}.{}", parts[0], encoded(&json!([])), parts[2])),
        ("deep claims", format!("{}.{}.{}", parts[0], BASE64_URL_SAFE_NO_PAD.encode("[".repeat(9_000)), parts[2])),
        ("not text", "\u{0}\u{1}é".to_owned()),
        ("space", " ".to_owned()),
    ];
    for (what, token) in &tokens {
        let refused = authority.verify(token, &[], &objects(), NOW);
        assert!(refused.is_err(), "{what} was taken for {refused:?}");
        let error = refused.unwrap_err();
        let header = format!("Bearer {token}");
        let answer = authenticate(&Certificate::Absent, Some(&header), &authority, &objects(), NOW);
        // A header that holds no token at all is no credential, so it is nobody's.
        let nobody = token.trim().is_empty();
        assert_eq!(answer, if nobody { Ok(User::anonymous()) } else { Err(Unauthorized) }, "{what}");
        if token.len() > 8 {
            assert!(!format!("{error:?} {error} {}", error.review_text()).contains(token.as_str()), "{what}");
        }
    }
    // The tolerance of a minute is there.
    assert!(authority.verify(&with("exp", json!(NOW - 59)), &[], &objects(), NOW).is_ok());
    assert!(authority.verify(&with("nbf", json!(NOW + 59)), &[], &objects(), NOW).is_ok());
    assert!(authority.verify(&with("exp", json!(i64::MAX)), &[], &objects(), NOW).is_ok());
    assert!(authority.verify(&with("exp", json!(i64::MIN)), &[], &objects(), NOW).is_err());
}

#[test]
fn keys_are_not_shown() {
    let key = SigningKey::generate().unwrap();
    let secret: String = key.to_pem().lines().nth(1).unwrap().to_owned();
    let authority = TokenAuthority::new(key);
    assert!(!format!("{authority:?}").contains(&secret));
    let error = SigningKey::from_pem(&format!("-----BEGIN PRIVATE KEY-----\n{secret}\n-----END PRIVATE KEY-----\n"));
    assert!(!format!("{error:?}").contains(&secret));
    assert!(SigningKey::from_pem("").is_err());
}

proptest! {
    #[test]
    fn noise_never_panics(token in "\\PC{0,200}", parts in prop::collection::vec("[A-Za-z0-9_=-]{0,60}", 0..5)) {
        let authority = authority();
        prop_assert!(authority.verify(&token, &[], &objects(), NOW).is_err());
        prop_assert!(authority.verify(&parts.join("."), &[], &objects(), NOW).is_err());
    }
}
