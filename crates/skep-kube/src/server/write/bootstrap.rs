//! What is there before anybody has made anything.

use serde_json::{Value, json};

use super::super::State;
use super::super::admission::PRIORITIES;
use super::super::{codec, metadata};
use super::now;
use crate::auth::rbac::{self, bootstrap};
use crate::builtin::{SYSTEM_PRIORITIES, SystemPriority};
use crate::store::{Change, CommitError, Key};

/// The namespaces of every cluster.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Creates what is missing. What is there stays as it is.
pub async fn bootstrap(state: &State) -> Result<(), CommitError> {
    for name in NAMESPACES {
        let key = Key::new("/namespaces", "", name);
        if state.store.get(&key).is_some() {
            continue;
        }
        let namespace = json!({
            "metadata": {
                "name": name,
                "uid": uuid::Uuid::new_v4().to_string(),
                "creationTimestamp": now(),
                "labels": { "kubernetes.io/metadata.name": name },
            },
            "spec": { "finalizers": ["kubernetes"] },
            "status": { "phase": "Active" },
        });
        create(state, key, &namespace).await?;
    }
    for (resource, documents) in [
        (format!("{}/clusterroles", rbac::GROUP), bootstrap::cluster_roles()),
        (format!("{}/clusterrolebindings", rbac::GROUP), bootstrap::cluster_role_bindings()),
        (PRIORITIES.to_owned(), SYSTEM_PRIORITIES.iter().map(SystemPriority::document).collect()),
    ] {
        for mut document in documents {
            metadata::set(&mut document, "uid", Some(json!(uuid::Uuid::new_v4().to_string())));
            metadata::set(&mut document, "creationTimestamp", Some(json!(now())));
            let key = Key::new(resource.as_str(), "", metadata::name(&document));
            create(state, key, &document).await?;
        }
    }
    Ok(())
}

async fn create(state: &State, key: Key, object: &Value) -> Result<(), CommitError> {
    if state.store.get(&key).is_some() {
        return Ok(());
    }
    // An object that cannot be written as JSON does not exist: it is made of literal texts.
    let Ok(content) = codec::store(object) else {
        return Ok(());
    };
    match state.store.commit(Change::Create { key, content }).await {
        Ok(_) | Err(CommitError::AlreadyExists) => Ok(()),
        Err(error) => Err(error),
    }
}
