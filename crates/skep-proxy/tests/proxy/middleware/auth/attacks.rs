//! Tokens that are not what they say.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

use super::issuer::{AUDIENCE, Issuer, Key, now};
use super::{NOBODY, call_with, check_refused, guarded};

const METHOD: &str = "unexpected signing method";
const SIGNATURE: &str = "token signature is invalid";
const UNKNOWN: &str = "key ID not found in JWKS";
const UNNAMED: &str = "token header missing kid";
const TWICE: &str = "token says the same thing twice";
const EXPIRED: &str = "token is expired";
const NOT_YET: &str = "token is not valid yet";
const ISSUER: &str = "invalid issuer";
const MEANT: &str = "invalid audience";
const OPAQUE: &str = "failed to introspect opaque token: no introspection endpoint available";

/// What a token pretends, the token, and what its bearer is told.
type Attack = (&'static str, String, &'static str);

#[tokio::test]
async fn tokens_of_the_issuer_pass() {
    for algorithm in [Algorithm::RS256, Algorithm::RS384, Algorithm::RS512, Algorithm::ES256, Algorithm::ES384] {
        let key = Key::new("k", algorithm);
        let issuer = Issuer::start(&[&key]).await;
        let guarded = guarded(&issuer.settings()).await;
        let mut claims = issuer.claims();
        claims["aud"] = json!(["other", AUDIENCE]);
        claims["act"] = json!("makes no sense");
        // When a token was made is not asked: clocks differ.
        claims["iat"] = json!(now() + 600);
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

fn without(claims: &Value, member: &str) -> Value {
    let mut claims = claims.clone();
    claims.as_object_mut().unwrap().remove(member).unwrap();
    claims
}

/// The good token with its header replaced and its signature kept, removed or made with the public key.
fn of_headers(key: &Key, claims: &Value) -> Vec<Attack> {
    let good = key.sign(claims);
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let (own, body) = signed.split_once('.').unwrap();
    let head = |header: Value| URL_SAFE_NO_PAD.encode(header.to_string());
    let none = head(json!({"alg": "none", "kid": "k"}));
    let confused = |secret: &[u8]| {
        let mut by_hmac = Header::new(Algorithm::HS256);
        by_hmac.kid = Some("k".to_owned());
        jsonwebtoken::encode(&by_hmac, claims, &EncodingKey::from_secret(secret)).unwrap()
    };
    let root = URL_SAFE_NO_PAD.encode(with(claims, "sub", json!("root")).to_string());
    let named = |name: Value| headed(key, &json!({"alg": "RS256", "kid": name}).to_string(), claims);
    vec![
        ("alg none without a signature", format!("{none}.{body}."), METHOD),
        ("alg none with a signature", format!("{none}.{body}.{signature}"), METHOD),
        ("alg NONE", format!("{}.{body}.", head(json!({"alg": "NONE", "kid": "k"}))), METHOD),
        ("the public key as a secret", confused(key.pem.as_bytes()), METHOD),
        ("the published key as a secret", confused(key.public.to_string().as_bytes()), METHOD),
        ("nothing as a secret", confused(b""), METHOD),
        ("no alg", format!("{}.{body}.{signature}", head(json!({"kid": "k"}))), METHOD),
        ("a list of algs", format!("{}.{body}.{signature}", head(json!({"alg": ["RS256"], "kid": "k"}))), METHOD),
        ("an alg in small letters", headed(key, r#"{"alg":"rs256","kid":"k"}"#, claims), METHOD),
        ("an alg that no key here has", headed(key, r#"{"alg":"PS256","kid":"k"}"#, claims), METHOD),
        ("an alg of another curve", headed(key, r#"{"alg":"EdDSA","kid":"k"}"#, claims), METHOD),
        (
            "another alg of the family",
            format!("{}.{body}.{signature}", head(json!({"alg": "RS512", "kid": "k"}))),
            SIGNATURE,
        ),
        (
            "an alg of another family",
            format!("{}.{body}.{signature}", head(json!({"alg": "ES256", "kid": "k"}))),
            SIGNATURE,
        ),
        ("no signature", format!("{signed}."), SIGNATURE),
        ("half a signature", format!("{signed}.{}", &signature[..168]), SIGNATURE),
        ("other claims under the signature", format!("{own}.{root}.{signature}"), SIGNATURE),
        (
            "what nobody understands",
            forge(key, &json!({"alg": "RS256", "kid": "k", "crit": ["x"], "x": 1}), &claims.to_string()),
            "token asks for extensions that are not understood",
        ),
        ("an alg said twice", headed(key, r#"{"alg":"none","alg":"RS256","kid":"k"}"#, claims), TWICE),
        ("an id said twice", headed(key, r#"{"alg":"RS256","kid":"x","kid":"k"}"#, claims), TWICE),
        ("a key in the header", forge(key, &json!({"alg": "RS256", "jwk": key.public}), &claims.to_string()), UNNAMED),
        ("an id that is a number", named(json!(1)), UNNAMED),
        ("an id that is a list", named(json!(["k"])), UNNAMED),
        ("an id of nothing", named(json!("")), UNKNOWN),
        ("an id that nobody has", named(json!("unknown")), UNKNOWN),
        ("an id in capitals", named(json!("K")), UNKNOWN),
        ("an id with a zero behind it", named(json!("k\0")), UNKNOWN),
        ("an id that is a path", named(json!("../../../../dev/null")), UNKNOWN),
        ("an id that is a file", named(json!("file:///proc/self/environ")), UNKNOWN),
        ("an id that is an address", named(json!("https://evil.example/keys")), UNKNOWN),
        ("an id that is a query", named(json!("k' UNION SELECT 'key' --")), UNKNOWN),
        ("an id that is a command", named(json!("k|cat /etc/passwd")), UNKNOWN),
        ("five parts", format!("{good}.a.b"), OPAQUE),
        ("spaces around", format!(" {good}"), OPAQUE),
        ("nothing that is a token", "opaque".to_owned(), OPAQUE),
    ]
}

/// Tokens by keys that are not the one that they name.
fn of_keys(claims: &Value, curve: &Key) -> Vec<Attack> {
    let stranger = Key::new("k", Algorithm::RS256);
    let elsewhere = "https://evil.example/keys";
    let misnamed = Key { id: "k".to_owned(), ..curve.clone() };
    let with = |header: Value| forge(&stranger, &header, &claims.to_string());
    vec![
        ("a key of somebody else", stranger.sign(claims), SIGNATURE),
        (
            "a key of somebody else, with itself",
            with(json!({"alg": "RS256", "kid": "k", "jwk": stranger.public})),
            SIGNATURE,
        ),
        (
            "a key of somebody else, and where it is",
            with(json!({"alg": "RS256", "kid": "k", "jku": elsewhere, "x5u": elsewhere})),
            SIGNATURE,
        ),
        ("the wrong type of key", misnamed.sign(claims), SIGNATURE),
        ("the wrong type of key, the other way", with(json!({"alg": "RS256", "kid": "c"})), SIGNATURE),
    ]
}

/// Tokens of the issuer that say what they must not, or do not say what they must.
fn of_claims(key: &Key, claims: &Value, issuer: &str) -> Vec<Attack> {
    let header = json!({"alg": "RS256", "kid": "k"});
    let set = |member: &str, value: Value| key.sign(&with(claims, member, value));
    let lacking = |member: &str| key.sign(&without(claims, member));
    let also = |said: &str| forge(key, &header, &format!("{{{said},{}", &claims.to_string()[1..]));
    vec![
        ("expired", set("exp", json!(now() - 1)), EXPIRED),
        ("expiring now", set("exp", json!(now())), EXPIRED),
        ("expiring in words", set("exp", json!("tomorrow")), EXPIRED),
        ("expiring as a text", set("exp", json!((now() + 600).to_string())), EXPIRED),
        ("never expiring", set("exp", Value::Null), "token has no expiration time"),
        ("without an end", lacking("exp"), "token has no expiration time"),
        ("not yet valid", set("nbf", json!(now() + 600)), NOT_YET),
        ("valid from a text on", set("nbf", json!("now")), NOT_YET),
        ("another issuer", set("iss", json!("https://evil.example")), ISSUER),
        ("the issuer with a slash", set("iss", json!(format!("{issuer}/"))), ISSUER),
        ("the issuer in capitals", set("iss", json!(issuer.to_uppercase())), ISSUER),
        ("the issuer in a list", set("iss", json!([issuer])), ISSUER),
        ("the issuer of nothing", set("iss", Value::Null), ISSUER),
        ("without an issuer", lacking("iss"), ISSUER),
        ("another audience", set("aud", json!("https://evil.example")), MEANT),
        ("nearly the audience", set("aud", json!(format!("{AUDIENCE}/"))), MEANT),
        ("an audience of nobody", set("aud", json!([])), MEANT),
        ("an audience inside", set("aud", json!({"a": AUDIENCE})), MEANT),
        ("without an audience", lacking("aud"), MEANT),
        ("a claim said twice", also(r#""sub":"root""#), TWICE),
        ("a claim said twice, in other letters", also(r#""\u0073ub":"root""#), TWICE),
        ("an end said twice", also(r#""exp":99999999999"#), TWICE),
        ("something said twice within a claim", also(r#""realm":{"roles":["root"],"roles":[]}"#), TWICE),
        ("nobody", set("sub", json!("")), NOBODY),
        ("a number for a name", set("sub", json!(7)), NOBODY),
        ("without a name", lacking("sub"), NOBODY),
        ("oversized", set("x", json!("x".repeat(40_000))), "token is too large"),
    ]
}

#[tokio::test]
async fn tokens_that_lie_are_refused() {
    let (key, curve) = (Key::new("k", Algorithm::RS256), Key::new("c", Algorithm::ES256));
    let issuer = Issuer::start(&[&key, &curve]).await;
    let guarded = guarded(&issuer.settings()).await;
    let claims = issuer.claims();
    let attacks = [of_headers(&key, &claims), of_keys(&claims, &curve), of_claims(&key, &claims, &issuer.url)].concat();
    for (attack, token, told) in attacks {
        let refused = call_with(&guarded, &token).await;
        check_refused(attack, refused, &issuer.url, told).await;
        assert!(guarded.server.seen().is_empty(), "{attack}");
    }
    assert_eq!(call_with(&guarded, &key.sign(&claims)).await.status, 200, "and good tokens still do");
    // Whatever tokens call their keys, the issuer is asked for all of them, and once more for the first that is not there.
    assert_eq!(issuer.asked(), ["/.well-known/openid-configuration", "/keys", "/keys"]);
}
