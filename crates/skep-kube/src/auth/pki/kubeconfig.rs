//! The kubeconfig of the administrator.

use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kube::config::Kubeconfig;
use serde_json::{Value, json};

use super::files::Files;
use super::{Identity, PkiError};
use crate::yaml;

/// The name of the cluster, the user and the context.
const NAME: &str = "skep";

/// Writes the file, or puts what is ours into the one that is there. What others have put into it stays, and so does
/// the file as it is while what is ours is in it.
pub(super) fn write(
    files: &Files,
    path: &Path,
    server: &str,
    authority: &str,
    identity: &Identity,
) -> Result<(), PkiError> {
    let unreadable = |problem| PkiError::Kubeconfig { path: path.to_owned(), problem };
    let existing = files.read(path)?.unwrap_or_default();
    let found = yaml::read(&existing).map_err(unreadable)?.value;
    if found.is_null() {
        return files.write_private(path, &document(server, authority, identity));
    }
    Kubeconfig::from_yaml(&existing).map_err(|error| unreadable(error.to_string()))?;
    if !is_free(&found, authority) {
        return Err(PkiError::Foreign { path: path.to_owned() });
    }
    let mut wanted = found.clone();
    settle(&mut wanted, server, authority, identity);
    if wanted == found {
        return Ok(());
    }
    files.write_private(path, &yaml::write(&wanted).map_err(unreadable)?)
}

/// Whether the name of our cluster is not taken by that of another authority.
fn is_free(config: &Value, authority: &str) -> bool {
    let clusters = config["clusters"].as_array().into_iter().flatten();
    let mut ours = clusters.filter(|entry| entry["name"] == NAME);
    ours.all(|entry| {
        let data = entry["cluster"]["certificate-authority-data"].as_str().unwrap_or_default();
        let data = BASE64_STANDARD.decode(data).unwrap_or_default();
        // A renewed authority keeps its key, so it is the key that tells.
        same_key(&String::from_utf8_lossy(&data), authority)
    })
}

/// Puts our cluster, user and context into a kubeconfig.
fn settle(config: &mut Value, server: &str, authority: &str, identity: &Identity) {
    let encode = |pem: &str| Value::from(BASE64_STANDARD.encode(pem));
    let cluster = [("server", server.into()), ("certificate-authority-data", encode(authority))];
    let user =
        [("client-certificate-data", encode(&identity.certificate)), ("client-key-data", encode(identity.key()))];
    let context = [("cluster", NAME.into()), ("user", NAME.into())];
    for (list, part, members) in
        [("clusters", "cluster", cluster), ("users", "user", user), ("contexts", "context", context)]
    {
        let entry = named_entry(&mut config[list]);
        for (member, value) in members {
            entry[part][member] = value;
        }
    }
    if config["current-context"].as_str().is_none_or(str::is_empty) {
        config["current-context"] = NAME.into();
    }
}

/// The entry of our name in a list, made where there is none.
fn named_entry(list: &mut Value) -> &mut Value {
    if !list.is_array() {
        *list = Value::Array(Vec::new());
    }
    let place = list.as_array().and_then(|entries| entries.iter().position(|entry| entry["name"] == NAME));
    let place = place.unwrap_or_else(|| {
        let entries = list.as_array_mut();
        entries.map_or(0, |entries| {
            entries.push(json!({ "name": NAME }));
            entries.len() - 1
        })
    });
    &mut list[place]
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
