//! Tokens that are not what they say.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

use super::issuer::{AUDIENCE, Issuer, Key, now};
use super::{call_with, guarded};

#[tokio::test]
async fn tokens_of_the_issuer_pass() {
    for algorithm in [Algorithm::RS256, Algorithm::RS384, Algorithm::RS512, Algorithm::ES256, Algorithm::ES384] {
        let key = Key::new("k", algorithm);
        let issuer = Issuer::start(&[&key]).await;
        let guarded = guarded(&issuer.settings()).await;
        let mut claims = issuer.claims();
        claims["aud"] = json!(["other", AUDIENCE]);
        claims["act"] = json!("makes no sense");
        let mut answer = call_with(&guarded, &key.sign(&claims)).await;
        assert_eq!(
            (answer.status, answer.json().await["result"]["called"].clone()),
            (200, json!("feed")),
            "{algorithm:?}"
        );
    }
}

/// Signs something else than the library lets us.
fn forge(key: &Key, header: &Value, claims: &str) -> String {
    written(key, &header.to_string(), claims)
}

/// The same, with a header that need not be what JSON can say.
fn headed(key: &Key, header: &str, claims: &Value) -> String {
    written(key, header, &claims.to_string())
}

fn written(key: &Key, header: &str, claims: &str) -> String {
    let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
    let signature = jsonwebtoken::crypto::sign(signed.as_bytes(), &key.private, key.algorithm).unwrap();
    format!("{signed}.{signature}")
}

fn with(claims: &Value, member: &str, value: Value) -> Value {
    let mut claims = claims.clone();
    claims[member] = value;
    claims
}

/// The good token with its header replaced and its signature kept, removed or made with the public key.
fn header_tricks(key: &Key, claims: &Value) -> Vec<(&'static str, String, &'static str)> {
    let good = key.sign(claims);
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let body = signed.split_once('.').unwrap().1;
    let head = |header: Value| URL_SAFE_NO_PAD.encode(header.to_string());
    let none = head(json!({"alg": "none", "kid": "k"}));
    let mut by_hmac = Header::new(Algorithm::HS256);
    by_hmac.kid = Some("k".to_owned());
    let secret = EncodingKey::from_secret(key.pem.as_bytes());
    let confused = jsonwebtoken::encode(&by_hmac, claims, &secret).unwrap();
    let method = "unexpected signing method";
    vec![
        ("alg none without a signature", format!("{none}.{body}."), method),
        ("alg none with a signature", format!("{none}.{body}.{signature}"), method),
        ("alg NONE", format!("{}.{body}.", head(json!({"alg": "NONE", "kid": "k"}))), method),
        ("the public key as a secret", confused, method),
        ("no alg", format!("{}.{body}.{signature}", head(json!({"kid": "k"}))), method),
        ("a list of algs", format!("{}.{body}.{signature}", head(json!({"alg": ["RS256"], "kid": "k"}))), method),
        (
            "another alg of the family",
            format!("{}.{body}.{signature}", head(json!({"alg": "RS512", "kid": "k"}))),
            "token signature is invalid",
        ),
        (
            "an alg of another family",
            format!("{}.{body}.{signature}", head(json!({"alg": "ES256", "kid": "k"}))),
            "token signature is invalid",
        ),
        ("no signature", format!("{signed}."), "token signature is invalid"),
        ("half a signature", format!("{signed}.{}", &signature[..168]), "token signature is invalid"),
        (
            "other claims under the signature",
            format!(
                "{}.{}.{signature}",
                signed.split_once('.').unwrap().0,
                URL_SAFE_NO_PAD.encode(with(claims, "sub", json!("root")).to_string())
            ),
            "token signature is invalid",
        ),
        (
            "a key in the header",
            forge(key, &json!({"alg": "RS256", "jwk": key.public}), &claims.to_string()),
            "missing kid",
        ),
        (
            "what nobody understands",
            forge(key, &json!({"alg": "RS256", "kid": "k", "crit": ["x"], "x": 1}), &claims.to_string()),
            "extensions that are not understood",
        ),
    ]
}

#[tokio::test]
async fn tokens_that_lie_are_refused() {
    let key = Key::new("k", Algorithm::RS256);
    let stranger = Key::new("k", Algorithm::RS256);
    let curve = Key::new("c", Algorithm::ES256);
    let issuer = Issuer::start(&[&key, &curve]).await;
    let guarded = guarded(&issuer.settings()).await;
    let claims = issuer.claims();
    let header = json!({"alg": "RS256", "kid": "k"});
    let elsewhere = "https://evil.example/keys";
    let mut tokens = header_tricks(&key, &claims);
    let mut misnamed = curve.clone();
    misnamed.id = "k".to_owned();
    let mut injected = stranger.clone();
    injected.id = "../../keys?kid=k' OR '1'='1".to_owned();
    tokens.extend([
        ("a key of somebody else", stranger.sign(&claims), "token signature is invalid"),
        (
            "a key of somebody else, with itself",
            forge(&stranger, &json!({"alg": "RS256", "kid": "k", "jwk": stranger.public}), &claims.to_string()),
            "token signature is invalid",
        ),
        (
            "a key of somebody else, and where it is",
            forge(
                &stranger,
                &json!({"alg": "RS256", "kid": "k", "jku": elsewhere, "x5u": elsewhere}),
                &claims.to_string(),
            ),
            "token signature is invalid",
        ),
        ("an alg that no key here has", headed(&key, r#"{"alg":"PS256","kid":"k"}"#, &claims), "signing method"),
        ("an alg of another curve", headed(&key, r#"{"alg":"EdDSA","kid":"k"}"#, &claims), "signing method"),
        ("a header said twice", headed(&key, r#"{"alg":"RS256","kid":"x","kid":"k"}"#, &claims), "twice"),
        ("the wrong type of key", misnamed.sign(&claims), "token signature is invalid"),
        ("an id that is a path", injected.sign(&claims), "key ID not found in JWKS"),
        ("expired", key.sign(&with(&claims, "exp", json!(now() - 1))), "token is expired"),
        ("expiring now", key.sign(&with(&claims, "exp", json!(now()))), "token is expired"),
        ("never expiring", key.sign(&with(&claims, "exp", Value::Null)), "token has no expiration time"),
        ("expiring in words", key.sign(&with(&claims, "exp", json!("tomorrow"))), "token is expired"),
        ("not yet valid", key.sign(&with(&claims, "nbf", json!(now() + 600))), "token is not valid yet"),
        ("another issuer", key.sign(&with(&claims, "iss", json!("https://evil.example"))), "invalid issuer"),
        ("nearly the issuer", key.sign(&with(&claims, "iss", json!(format!("{}/", issuer.url)))), "invalid issuer"),
        ("no issuer", key.sign(&with(&claims, "iss", Value::Null)), "invalid issuer"),
        ("another audience", key.sign(&with(&claims, "aud", json!("https://evil.example"))), "invalid audience"),
        ("no audience", key.sign(&with(&claims, "aud", json!([]))), "invalid audience"),
        ("an audience inside", key.sign(&with(&claims, "aud", json!({"a": AUDIENCE}))), "invalid audience"),
        (
            "a claim said twice",
            forge(&key, &header, &format!(r#"{{"sub":"root",{}"#, &claims.to_string()[1..])),
            "says the same thing twice",
        ),
        ("nobody", key.sign(&with(&claims, "sub", json!(""))), "Invalid authentication claims"),
        ("a number for a name", key.sign(&with(&claims, "sub", json!(7))), "Invalid authentication claims"),
        ("oversized", key.sign(&with(&claims, "x", json!("x".repeat(40_000)))), "token is too large"),
        ("spaces around", format!(" {}", key.sign(&claims)), "opaque token"),
        ("nothing that is a token", "opaque".to_owned(), "no introspection endpoint available"),
        ("five parts", format!("{}.a.b", key.sign(&claims)), "opaque token"),
    ]);
    for (attack, token, told) in tokens {
        let mut refused = call_with(&guarded, &token).await;
        let challenge = refused.header("www-authenticate").unwrap_or_default().to_owned();
        let body = refused.json().await;
        assert_eq!((refused.status, &body["error"]), (401, &json!("invalid_token")), "{attack}: {body}");
        assert!(body["error_description"].as_str().unwrap().contains(told), "{attack}: {body}");
        let start = format!(
            "Bearer realm=\"{}\", resource_metadata=\"https://hive.example/.well-known/oauth-protected-resource/mcp\", \
             error=\"invalid_token\", error_description=\"",
            issuer.url
        );
        assert!(challenge.starts_with(&start) && challenge.contains(told), "{attack}: {challenge}");
    }
    assert!(guarded.server.seen().is_empty(), "nothing of that reaches the server");
    assert_eq!(call_with(&guarded, &key.sign(&claims)).await.status, 200, "and good tokens still do");
}
