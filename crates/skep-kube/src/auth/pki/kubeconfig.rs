//! The kubeconfig of the administrator.

use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kube::config::Kubeconfig;
use serde_json::Value;

use super::{Identity, PkiError, files};

/// The name of the cluster, the user and the context.
const NAME: &str = "skep";

pub(super) fn write(path: &Path, server: &str, authority: &str, identity: &Identity) -> Result<(), PkiError> {
    if let Some(existing) = files::read(path)? {
        match judge(&existing, server, authority, identity) {
            Judgement::Current => return Ok(()),
            Judgement::Outdated => {}
            Judgement::Foreign => return Err(PkiError::Foreign { path: path.to_owned() }),
        }
    }
    files::write_private(path, &document(server, authority, identity))
}

/// What a kubeconfig that is there is to us.
enum Judgement {
    Current,
    Outdated,
    Foreign,
}

fn judge(existing: &str, server: &str, authority: &str, identity: &Identity) -> Judgement {
    let Ok(config) = Kubeconfig::from_yaml(existing) else {
        return Judgement::Foreign;
    };
    let config = serde_json::to_value(config).unwrap_or_default();
    let named = |list: &str, part: &str| {
        let entries = config.get(list).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let entry = entries.iter().find(|entry| entry.get("name").and_then(Value::as_str) == Some(NAME))?;
        Some((entry.get(part)?.clone(), entries.len()))
    };
    let (Some((cluster, clusters)), Some((user, users))) = (named("clusters", "cluster"), named("users", "user"))
    else {
        return Judgement::Foreign;
    };
    let text = |value: &Value, field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let trusts = |value: &Value| {
        let data = BASE64_STANDARD.decode(text(value, "certificate-authority-data")).unwrap_or_default();
        // A renewed authority keeps its key, so it is the key that tells.
        same_key(&String::from_utf8_lossy(&data), authority)
    };
    if !trusts(&cluster) {
        return Judgement::Foreign;
    }
    let current = text(&cluster, "server") == server
        && text(&cluster, "certificate-authority-data") == BASE64_STANDARD.encode(authority)
        && text(&user, "client-certificate-data") == BASE64_STANDARD.encode(&identity.certificate);
    match (current, clusters, users) {
        (true, ..) => Judgement::Current,
        (false, 1, 1) => Judgement::Outdated,
        // Somebody has added clusters of their own, which replacing the file would lose.
        (false, ..) => Judgement::Foreign,
    }
}

fn same_key(one: &str, other: &str) -> bool {
    use x509_parser::prelude::{FromDer as _, X509Certificate};
    let key = |pem: &str| {
        let der = super::certificate::der(pem)?;
        let (_, parsed) = X509Certificate::from_der(&der).ok()?;
        Some(parsed.public_key().raw.to_vec())
    };
    key(one).is_some_and(|one| key(other) == Some(one))
}

fn document(server: &str, authority: &str, identity: &Identity) -> String {
    let server = Value::from(server);
    let [authority, certificate, key] =
        [authority, &identity.certificate, identity.key()].map(|pem| BASE64_STANDARD.encode(pem));
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: {NAME}
  cluster:
    server: {server}
    certificate-authority-data: {authority}
users:
- name: {NAME}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: {NAME}
  context:
    cluster: {NAME}
    user: {NAME}
current-context: {NAME}
"
    )
}
