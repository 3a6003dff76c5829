//! Fills Secrets of type `kubernetes.io/service-account-token`: a token that is good as long as the Secret and its account
//! are there, and what a client needs beside it. A Secret whose account is gone goes, too.

use std::sync::Arc;

use base64::Engine;
use k8s_openapi::ByteString;
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::ResourceExt;
use kube::api::{DeleteParams, PostParams};
use kube::runtime::watcher;
use serde_json::{Value, json};
use skep_control::{Key, Next, Queue, work};

use super::cluster::Cluster;
use super::error::ControllerError;
use super::objects::Objects;

const SOURCE: &str = "tokens-controller";
const CONCURRENCY: usize = 2;
const TYPE: &str = "kubernetes.io/service-account-token";
const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";
/// As long as a token can be good for. The Secret ends it sooner.
const SECONDS: i64 = 1 << 32;

pub(super) struct Controller {
    secrets: Objects<Secret>,
    accounts: Objects<ServiceAccount>,
    root_certificate: Option<String>,
    queue: Arc<Queue<Key>>,
}

impl Controller {
    /// Without a `root_certificate` (PEM) Secrets get none.
    pub(super) fn new(cluster: &mut Cluster, root_certificate: Option<String>) -> Self {
        let secrets = cluster.objects_with::<Secret>(watcher::Config::default().fields(&format!("type={TYPE}")));
        let accounts = cluster.objects::<ServiceAccount>();
        let queue = Arc::new(Queue::default());
        let wake = queue.clone();
        secrets.cache().on_change(move |secret| wake.add(Key::of(secret)));
        let (wake, candidates) = (queue.clone(), secrets.clone());
        accounts.cache().on_change(move |account| {
            for secret in candidates.in_namespace(&account.namespace().unwrap_or_default()) {
                if account_name(&secret) == account.metadata.name.as_deref() {
                    wake.add(Key::of(secret.as_ref()));
                }
            }
        });
        Self { secrets, accounts, root_certificate, queue }
    }

    pub(super) async fn run(self) {
        self.secrets.cache().complete().await;
        self.accounts.cache().complete().await;
        work(SOURCE, &self.queue, CONCURRENCY, &(), |key| self.reconcile(key)).await;
    }

    async fn reconcile(&self, key: Key) -> Result<Next, ControllerError> {
        let Some(secret) = self.secrets.get(&key) else { return Ok(Next::Rest) };
        let Some(name) = account_name(&secret).filter(|_| secret.metadata.deletion_timestamp.is_none()) else {
            return Ok(Next::Rest);
        };
        let Some(account) = self.account(&secret, &Key::new(&*key.namespace, name)).await? else {
            self.secrets.delete(&secret, DeleteParams::default()).await?;
            return Ok(Next::Rest);
        };
        let mut data = missing(&secret, self.root_certificate.as_deref());
        if !has(&secret, "token") {
            data["token"] = encoded(&self.token(&secret, &account).await?);
        }
        let uid = account.uid().unwrap_or_default();
        let is_named = secret.annotations().get(ACCOUNT_UID) == Some(&uid);
        if data.as_object().is_some_and(|data| !data.is_empty()) || !is_named {
            let patch = json!({
                "metadata": { "annotations": { ACCOUNT_UID: uid }, "resourceVersion": secret.resource_version() },
                "data": data,
            });
            self.secrets.patch(&key, &patch).await?;
        }
        Ok(Next::Rest)
    }

    /// The account of a Secret. Where it is not known the server is asked, before anything is deleted for it.
    async fn account(&self, secret: &Secret, key: &Key) -> Result<Option<Arc<ServiceAccount>>, ControllerError> {
        if let Some(known) = self.accounts.get(key).filter(|known| is_meant(secret, known)) {
            return Ok(Some(known));
        }
        Ok(self.accounts.live(key).await?.filter(|found| is_meant(secret, found)).map(Arc::new))
    }

    async fn token(&self, secret: &Secret, account: &ServiceAccount) -> Result<String, ControllerError> {
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                bound_object_ref: Some(BoundObjectReference {
                    api_version: Some("v1".to_owned()),
                    kind: Some("Secret".to_owned()),
                    name: secret.metadata.name.clone(),
                    uid: secret.metadata.uid.clone(),
                }),
                expiration_seconds: Some(SECONDS),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        let accounts = self.accounts.api(&secret.namespace().unwrap_or_default());
        let issued = accounts.create_token_request(&account.name_any(), &PostParams::default(), &request).await?;
        Ok(issued.status.and_then(|status| status.token).unwrap_or_default())
    }
}

fn account_name(secret: &Secret) -> Option<&str> {
    secret.annotations().get(ACCOUNT_NAME).map(String::as_str).filter(|name| !name.is_empty())
}

/// Whether it is the account that a Secret is for, and not another one of the same name.
fn is_meant(secret: &Secret, account: &ServiceAccount) -> bool {
    let uid = secret.annotations().get(ACCOUNT_UID).filter(|uid| !uid.is_empty());
    uid.is_none_or(|uid| account.metadata.uid.as_ref() == Some(uid))
}

fn has(secret: &Secret, name: &str) -> bool {
    secret.data.as_ref().and_then(|data| data.get(name)).is_some_and(|ByteString(value)| !value.is_empty())
}

fn encoded(text: &str) -> Value {
    base64::engine::general_purpose::STANDARD.encode(text).into()
}

/// What a Secret lacks beside its token.
fn missing(secret: &Secret, root_certificate: Option<&str>) -> Value {
    let mut data = json!({});
    let known = secret.data.as_ref().and_then(|data| data.get("ca.crt")).map(|ByteString(known)| known.as_slice());
    if let Some(certificate) = root_certificate.filter(|certificate| known != Some(certificate.as_bytes())) {
        data["ca.crt"] = encoded(certificate);
    }
    if !has(secret, "namespace") {
        data["namespace"] = encoded(&secret.namespace().unwrap_or_default());
    }
    data
}
