//! Gives every namespace what pods in it rely on: the `default` service account and the certificate of the API server.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::runtime::watcher;
use skep_control::{Key, Next, Queue, work};

use super::cluster::Cluster;
use super::error::ControllerError;
use super::objects::Objects;

const SOURCE: &str = "serviceaccount-controller";
const CONCURRENCY: usize = 4;
const ACCOUNT: &str = "default";
const CERTIFICATE: &str = "kube-root-ca.crt";
const CERTIFICATE_KEY: &str = "ca.crt";
const DESCRIPTION: (&str, &str) = (
    "kubernetes.io/description",
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the \
     internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes \
     clusters.",
);

pub(super) struct Controller {
    namespaces: Objects<Namespace>,
    accounts: Objects<ServiceAccount>,
    certificates: Objects<ConfigMap>,
    root_certificate: Option<String>,
    queue: Arc<Queue<Key>>,
}

impl Controller {
    /// Without a `root_certificate` (PEM) only the accounts are kept.
    pub(super) fn new(cluster: &mut Cluster, root_certificate: Option<String>) -> Self {
        let namespaces = cluster.objects::<Namespace>();
        let accounts = cluster.objects::<ServiceAccount>();
        let only = watcher::Config::default().fields(&format!("metadata.name={CERTIFICATE}"));
        let certificates = cluster.objects_with::<ConfigMap>(only);
        let queue = Arc::new(Queue::default());
        let wake = queue.clone();
        namespaces.cache().on_change(move |namespace| wake.add(Key::of(namespace)));
        let wake = queue.clone();
        accounts.cache().on_change(move |account| {
            if account.name_any() == ACCOUNT {
                wake.add(Key::new("", account.namespace().unwrap_or_default()));
            }
        });
        let wake = queue.clone();
        certificates.cache().on_change(move |found| wake.add(Key::new("", found.namespace().unwrap_or_default())));
        Self { namespaces, accounts, certificates, root_certificate, queue }
    }

    pub(super) async fn run(self) {
        self.namespaces.cache().complete().await;
        self.accounts.cache().complete().await;
        self.certificates.cache().complete().await;
        work(SOURCE, &self.queue, CONCURRENCY, &(), |key| self.reconcile(key)).await;
    }

    async fn reconcile(&self, key: Key) -> Result<Next, ControllerError> {
        let Some(namespace) = self.namespaces.get(&key) else { return Ok(Next::Rest) };
        if namespace.metadata.deletion_timestamp.is_some() {
            return Ok(Next::Rest);
        }
        match self.provide(&key.name).await {
            Err(error) if error.is_namespace_terminating() || error.has_reason("AlreadyExists") => Ok(Next::Rest),
            Err(error) => Err(error),
            Ok(()) => Ok(Next::Rest),
        }
    }

    async fn provide(&self, namespace: &str) -> Result<(), ControllerError> {
        if let Some(certificate) = &self.root_certificate {
            let known = self.certificates.get(&Key::new(namespace, CERTIFICATE));
            let wanted = bundle(namespace, certificate, known.as_deref());
            match known {
                None => drop(self.certificates.create(&wanted).await?),
                Some(known) if *known == wanted => {}
                Some(_) => drop(self.certificates.replace(&wanted).await?),
            }
        }
        if self.accounts.get(&Key::new(namespace, ACCOUNT)).is_none() {
            self.accounts.create(&account(namespace)).await?;
        }
        Ok(())
    }
}

fn account(namespace: &str) -> ServiceAccount {
    let metadata =
        ObjectMeta { name: Some(ACCOUNT.into()), namespace: Some(namespace.into()), ..ObjectMeta::default() };
    ServiceAccount { metadata, ..ServiceAccount::default() }
}

/// The ConfigMap as it should be; what others have added to its metadata stays.
fn bundle(namespace: &str, certificate: &str, known: Option<&ConfigMap>) -> ConfigMap {
    let mut wanted = known.cloned().unwrap_or_default();
    wanted.metadata.name = Some(CERTIFICATE.into());
    wanted.metadata.namespace = Some(namespace.into());
    let (name, text) = DESCRIPTION;
    wanted.metadata.annotations.get_or_insert_default().insert(name.into(), text.into());
    wanted.data = Some(BTreeMap::from([(CERTIFICATE_KEY.into(), certificate.into())]));
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundle_is_restored_and_then_left_alone() {
        let mut spoilt = bundle("n", "PEM", None);
        spoilt.metadata.labels = Some(BTreeMap::from([("kept".into(), "yes".into())]));
        spoilt.data = Some(BTreeMap::from([(CERTIFICATE_KEY.into(), "wrong".into())]));
        let wanted = bundle("n", "PEM", Some(&spoilt));
        assert_eq!(wanted.data.as_ref().unwrap()[CERTIFICATE_KEY], "PEM");
        assert_eq!(wanted.metadata.labels, spoilt.metadata.labels);
        assert_eq!(bundle("n", "PEM", Some(&wanted)), wanted);
    }
}
