use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use skep_kube::auth::reviews::token_review;
use skep_kube::auth::tokens::{BoundObjects, SigningKey, TokenAuthority};

use crate::server::{Answer, Server};

const REQUESTS: &str = "/api/v1/namespaces/default/serviceaccounts/default/token";

/// An authority with the key of the real server.
pub(crate) fn authority(server: &Server) -> anyhow::Result<TokenAuthority> {
    let pem = std::fs::read_to_string(server.control_plane.folder().join("pki/service-accounts.key"))?;
    Ok(TokenAuthority::new(SigningKey::from_pem(&pem)?))
}

pub(crate) fn now() -> anyhow::Result<i64> {
    Ok(i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())?)
}

pub(crate) async fn keys_are_described_equally(server: &Server) -> anyhow::Result<()> {
    let authority = authority(server)?;
    assert_eq!(authority.key_set(), server.get("/openid/v1/jwks").await?);
    let configuration = server.get("/.well-known/openid-configuration").await?;
    assert_eq!(authority.openid_configuration(), configuration);
    Ok(())
}

fn decoded(token: &str) -> anyhow::Result<(Value, Value)> {
    let part = |index: usize| -> anyhow::Result<Value> {
        let part = token.split('.').nth(index).context("a token has three parts")?;
        Ok(serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(part)?)?)
    };
    Ok((part(0)?, part(1)?))
}

/// Times relative to the moment of issue, the identifier hidden, the token taken apart.
fn normalised((code, mut document): Answer) -> anyhow::Result<Answer> {
    let Some(token) = document.pointer("/status/token").and_then(Value::as_str) else {
        return Ok((code, document));
    };
    let (header, mut claims) = decoded(token)?;
    let issued = claims["iat"].as_i64().context("iat")?;
    for pointer in ["/iat", "/nbf", "/exp", "/kubernetes.io/warnafter"] {
        if let Some(time) = claims.pointer_mut(pointer) {
            *time = (time.as_i64().context("a time")? - issued).into();
        }
    }
    assert_eq!(claims["jti"].take().as_str().map(str::len), Some(36));
    document["status"]["token"] = json!({ "header": header, "claims": claims });
    let created = document["metadata"]["creationTimestamp"].take();
    let expires = document["status"]["expirationTimestamp"].take();
    let second = |time: &Value| -> anyhow::Result<i64> {
        Ok(time.as_str().context("a time")?.parse::<k8s_openapi::jiff::Timestamp>()?.as_second())
    };
    // The real server looks at its clock twice.
    assert!((0..=1).contains(&(issued - second(&created)?)), "{created} {issued}");
    document["status"]["expirationTimestamp"] = (second(&expires)? - issued).into();
    Ok((code, document))
}

async fn prepare(server: &Server) -> anyhow::Result<()> {
    let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "t-account" } });
    server.create("/api/v1/namespaces/default/serviceaccounts", &account).await?;
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "t-bound" } });
    server.create("/api/v1/namespaces/default/secrets", &secret).await?;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "t-unbound" },
        "spec": { "schedulerName": "nobody", "containers": [{ "name": "c", "image": "x" }] },
    });
    server.create("/api/v1/namespaces/default/pods", &pod).await?;
    Ok(())
}

pub(crate) async fn requests_are_answered_equally(server: &Server) -> anyhow::Result<()> {
    prepare(server).await?;
    let authority = authority(server)?;
    let objects = server.objects().await?;
    let bound =
        |kind: &str, name: &str| json!({ "boundObjectRef": { "kind": kind, "apiVersion": "v1", "name": name } });
    let mut extended = bound("Pod", "t-pod");
    extended["expirationSeconds"] = 3607.into();
    let mut elsewhere = extended.clone();
    elsewhere["audiences"] = json!(["elsewhere"]);
    let mut wrong = bound("Pod", "t-pod");
    wrong["boundObjectRef"]["uid"] = "wrong".into();
    let requests = [
        json!({}),
        json!({ "spec": {} }),
        json!({ "spec": { "expirationSeconds": 599 } }),
        json!({ "spec": { "expirationSeconds": 600 } }),
        json!({ "spec": { "expirationSeconds": 3607 } }),
        json!({ "spec": { "expirationSeconds": 4_294_967_297_i64 } }),
        json!({ "spec": { "audiences": ["a", "b"] } }),
        json!({ "spec": bound("Pod", "t-pod") }),
        json!({ "spec": bound("Pod", "t-unbound") }),
        json!({ "spec": extended }),
        json!({ "spec": elsewhere }),
        json!({ "spec": wrong }),
        json!({ "spec": bound("Pod", "t-nope") }),
        json!({ "spec": bound("Pod", "") }),
        json!({ "spec": bound("Secret", "t-bound") }),
        json!({ "spec": bound("Secret", "t-nope") }),
        json!({ "spec": bound("Node", "t-node") }),
        json!({ "spec": bound("ConfigMap", "x") }),
        json!({ "spec": { "boundObjectRef": { "kind": "Deployment", "apiVersion": "apps/v1", "name": "x" } } }),
        json!({ "metadata": { "name": "other" } }),
        json!({ "metadata": { "namespace": "other" } }),
        json!({ "metadata": { "name": "default", "labels": { "a": "b" } } }),
    ];
    for account in ["default", "t-account", "t-nope"] {
        for request in &requests {
            let mut asked = request.clone();
            asked["apiVersion"] = "authentication.k8s.io/v1".into();
            asked["kind"] = "TokenRequest".into();
            if asked["metadata"]["name"] == "default" {
                asked["metadata"]["name"] = account.into();
            }
            let path = REQUESTS.replace("/default/token", &format!("/{account}/token"));
            let theirs = server.post(&path, &asked).await?;
            let ours = match authority.issue("default", account, &asked, &objects, now()?) {
                Ok(issued) => (201, issued.document),
                Err(error) => (error.reason.code(), error.status()),
            };
            assert_eq!(normalised(ours)?, normalised(theirs)?, "{account} {asked}");
        }
    }
    Ok(())
}

/// Tokens of the real server, of ours and of worse origin, judged by both.
///
/// One is left out on purpose: the real server takes a token without audiences, which only old releases have signed,
/// for one of its own; we refuse it.
pub(crate) async fn tokens_are_judged_equally(server: &Server) -> anyhow::Result<()> {
    let authority = authority(server)?;
    let objects = server.objects().await?;
    let now = now()?;
    let real =
        server.create(REQUESTS, &json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest" })).await?;
    let real = real["status"]["token"].as_str().context("token")?.to_owned();
    let issue = |spec: Value| -> anyhow::Result<String> {
        let issued = authority.issue("default", "default", &json!({ "spec": spec }), &objects, now)?;
        Ok(issued.document["status"]["token"].as_str().context("token")?.to_owned())
    };
    let good = issue(json!({}))?;
    let claims = decoded(&good)?.1;
    let with = |pointer: &str, value: Value| -> anyhow::Result<String> {
        let mut changed = claims.clone();
        *changed.pointer_mut(pointer).context("a claim")? = value;
        Ok(authority.sign(&serde_json::from_value(changed)?)?)
    };
    let parts: Vec<&str> = good.split('.').collect();
    let encode = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let stranger = TokenAuthority::new(SigningKey::generate()?);
    let tokens = [
        real,
        good.clone(),
        issue(json!({ "boundObjectRef": { "kind": "Pod", "name": "t-pod" } }))?,
        issue(json!({ "boundObjectRef": { "kind": "Secret", "name": "t-bound" } }))?,
        issue(json!({ "boundObjectRef": { "kind": "Node", "name": "t-node" } }))?,
        issue(json!({ "audiences": ["a", "b"] }))?,
        stranger.sign(&serde_json::from_value(claims.clone())?)?,
        format!("{}.{}.", encode(&json!({ "alg": "none" })), parts[1]),
        format!("{}.{}.{}", parts[0], parts[1], "A".repeat(86)),
        format!("{}.{}.{}", parts[0], encode(&json!({ "iss": "https://kubernetes.default.svc" })), parts[2]),
        with("/exp", json!(now - 30))?,
        with("/exp", json!(now - 3600))?,
        with("/nbf", json!(now + 30))?,
        with("/nbf", json!(now + 3600))?,
        with("/iat", json!(now + 3600))?,
        with("/iss", json!("https://evil.example"))?,
        with("/sub", json!("system:serviceaccount:default:t-account"))?,
        with("/sub", json!("system:admin"))?,
        with("/kubernetes.io/serviceaccount/name", json!("t-nope"))?,
        with("/kubernetes.io/serviceaccount/uid", json!("other"))?,
        with("/kubernetes.io/namespace", json!("kube-public"))?,
        "garbage".to_owned(),
        "a.b.c".to_owned(),
        "...".to_owned(),
        String::new(),
    ];
    let mut differences = Vec::new();
    for token in &tokens {
        for audiences in [json!([]), json!(["b", "c", "a"]), json!(["https://kubernetes.default.svc", "z"])] {
            let mut review = json!({
                "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": { "token": token },
            });
            if audiences != json!([]) {
                review["spec"]["audiences"] = audiences;
            }
            let theirs = server.post("/apis/authentication.k8s.io/v1/tokenreviews", &review).await?;
            let ours = match token_review(&review, &authority, &objects as &dyn BoundObjects, now) {
                Ok(document) => (201, document),
                Err(error) => (error.reason.code(), error.status()),
            };
            if ours != theirs {
                let shown = decoded(token).map_or_else(|_| token.clone(), |(_, claims)| claims.to_string());
                differences.push(format!("{shown}\n  ours   {}\n  theirs {}", ours.1["status"], theirs.1["status"]));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    Ok(())
}
