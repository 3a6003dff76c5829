//! An issuer of tokens, played by the test. Its tokens are signed by a library that is not ours.

use std::sync::{Arc, Mutex};

use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};
use skep_proxy::middleware::OidcSettings;
use tokio_rustls::TlsAcceptor;

use crate::transparent::server::{Reply, Seen, Server, reply};

pub(crate) use crate::provider::AUDIENCE;

/// A key, and the name that it is published under.
#[derive(Clone)]
pub(crate) struct Key {
    pub(crate) id: String,
    pub(crate) algorithm: Algorithm,
    pub(crate) private: EncodingKey,
    pub(crate) public: Value,
    pub(crate) pem: String,
}

impl Key {
    pub(crate) fn new(id: &str, algorithm: Algorithm) -> Self {
        let kind = match algorithm {
            Algorithm::ES256 => &rcgen::PKCS_ECDSA_P256_SHA256,
            Algorithm::ES384 => &rcgen::PKCS_ECDSA_P384_SHA384,
            _ => &rcgen::PKCS_RSA_SHA256,
        };
        let pair = rcgen::KeyPair::generate_for(kind).unwrap();
        let pem = pair.serialize_pem();
        let private = match algorithm {
            Algorithm::ES256 | Algorithm::ES384 => EncodingKey::from_ec_pem(pem.as_bytes()),
            _ => EncodingKey::from_rsa_pem(pem.as_bytes()),
        };
        let private = private.unwrap();
        let mut public = serde_json::to_value(Jwk::from_encoding_key(&private, algorithm).unwrap()).unwrap();
        public["kid"] = json!(id);
        Self { id: id.to_owned(), algorithm, private, public, pem: pair.public_key_pem() }
    }

    /// A token with these claims.
    pub(crate) fn sign(&self, claims: &Value) -> String {
        let mut header = Header::new(self.algorithm);
        header.kid = Some(self.id.clone());
        jsonwebtoken::encode(&header, claims, &self.private).unwrap()
    }
}

/// What an issuer publishes at the moment.
#[derive(Default)]
struct Published {
    keys: Vec<Value>,
    /// How it answers when it does not do as it should.
    failure: Option<(u16, String)>,
}

/// The issuer.
pub(crate) struct Issuer {
    pub(crate) server: Server,
    pub(crate) url: String,
    published: Arc<Mutex<Published>>,
}

impl Issuer {
    pub(crate) async fn start(keys: &[&Key]) -> Self {
        Self::start_with(None, keys).await
    }

    /// The same, for clients that come by TLS.
    pub(crate) async fn start_with(tls: Option<TlsAcceptor>, keys: &[&Key]) -> Self {
        let published = Arc::new(Mutex::new(Published::default()));
        let scheme = if tls.is_some() { "https" } else { "http" };
        let known = Arc::clone(&published);
        let server = Server::start_with(tls, move |seen| answer(&known.lock().unwrap(), scheme, seen)).await;
        let url = format!("{scheme}://{}", server.address);
        let issuer = Self { server, url, published };
        issuer.publish(keys);
        issuer
    }

    /// Publishes these keys, and no others.
    pub(crate) fn publish(&self, keys: &[&Key]) {
        self.published.lock().unwrap().keys = keys.iter().map(|key| key.public.clone()).collect();
    }

    /// Answers everything so, or as it should again.
    pub(crate) fn fail(&self, failure: Option<(u16, &str)>) {
        self.published.lock().unwrap().failure = failure.map(|(status, body)| (status, body.to_owned()));
    }

    /// The paths that it was asked for since it was last asked.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.server.seen().into_iter().map(|seen| seen.target).collect()
    }

    pub(crate) fn settings(&self) -> OidcSettings {
        settings(&self.url)
    }

    /// Claims that are good.
    pub(crate) fn claims(&self) -> Value {
        claims(&self.url)
    }
}

/// What a proxy has to know about an issuer on this machine.
pub(crate) fn settings(issuer: &str) -> OidcSettings {
    OidcSettings {
        issuer: issuer.to_owned(),
        audience: AUDIENCE.to_owned(),
        allows_private: true,
        allows_http: true,
        resource_url: AUDIENCE.to_owned(),
        ..OidcSettings::default()
    }
}

/// Claims that are good for that.
pub(crate) fn claims(issuer: &str) -> Value {
    json!({"iss": issuer, "aud": AUDIENCE, "sub": "ann", "exp": now() + 600, "iat": now()})
}

/// What an issuer says that publishes these keys.
pub(crate) fn publishing(keys: &[&Key]) -> impl Fn(&Seen) -> Reply + Send + Sync + 'static {
    let published = Published { keys: keys.iter().map(|key| key.public.clone()).collect(), failure: None };
    move |seen| answer(&published, "http", seen)
}

pub(crate) fn now() -> i64 {
    time::OffsetDateTime::now_utc().unix_timestamp()
}

fn answer(published: &Published, scheme: &str, seen: &Seen) -> Reply {
    let json_type = [("content-type", "application/json")];
    if let Some((status, body)) = &published.failure {
        return reply(*status, &json_type, body.clone());
    }
    let host = seen.header("host").unwrap_or_default();
    match seen.target.as_str() {
        "/.well-known/openid-configuration" => {
            let document = json!({"issuer": "ignored", "jwks_uri": format!("{scheme}://{host}/keys")});
            reply(200, &json_type, document.to_string())
        }
        "/keys" => reply(200, &json_type, json!({"keys": published.keys}).to_string()),
        _ => reply(404, &[], ""),
    }
}
