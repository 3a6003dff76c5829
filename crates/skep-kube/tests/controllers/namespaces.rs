//! Namespaces: what they get and how they go.

use base64::Engine;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use super::cluster::{Cluster, condition, eventually, holds, text};

pub(crate) async fn a_namespace_goes_when_the_last_finalizer_does(cluster: &Cluster) {
    let namespace = "leaving";
    let held = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "held", "finalizers": ["example.com/x"]}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "secret"}});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}}});
    cluster.apply(namespace, json!([held, secret, deployment])).await;
    cluster.kubectl(&["rollout", "status", "-n", namespace, "deployment/web", "--timeout=60s"]).await;
    cluster.kubectl(&["delete", "namespace", namespace, "--wait=false"]).await;
    let remaining = eventually("it says what it waits for", || async {
        let found = cluster.get("namespace", "", namespace).await.unwrap();
        let waits = condition(&found, "NamespaceFinalizersRemaining") == "True SomeFinalizersRemain";
        let only = text(&found["status"]["conditions"][3]["message"])
            == "Some resources are remaining: configmaps. has 1 resource instances";
        if waits && only { Ok(found) } else { Err(found) }
    })
    .await;
    let messages: Vec<_> =
        remaining["status"]["conditions"].as_array().unwrap().iter().map(|one| text(&one["message"])).collect();
    let expected = [
        "All resources successfully discovered",
        "All legacy kube types successfully parsed",
        "All content successfully deleted, may be waiting on finalization",
        "Some resources are remaining: configmaps. has 1 resource instances",
        "Some content in the namespace has finalizers remaining: example.com/x in 1 resource instances",
    ];
    assert_eq!(messages, expected);
    cluster.patch("configmap", namespace, "held", json!({"metadata": {"finalizers": null}})).await;
    eventually("the namespace is gone", || async {
        let found = cluster.get("namespace", "", namespace).await;
        holds(found.is_none(), found)
    })
    .await;
}

pub(crate) async fn every_namespace_gets_an_account_and_a_certificate(cluster: &Cluster) {
    for namespace in ["default", "kube-system", "equipped"] {
        if cluster.get("namespace", "", namespace).await.is_none() {
            cluster.kubectl(&["create", "namespace", namespace]).await;
        }
        eventually("the account is there", || async {
            cluster.get("serviceaccount", namespace, "default").await.ok_or("no account")
        })
        .await;
    }
    let certificate = || async {
        let found = cluster.get("configmap", "equipped", "kube-root-ca.crt").await;
        let found = found.ok_or_else(|| json!("no certificate"))?;
        holds(found["data"] == json!({"ca.crt": cluster.certificate()}), found)
    };
    eventually("the certificate is there", certificate).await;
    cluster.patch("configmap", "equipped", "kube-root-ca.crt", json!({"data": {"ca.crt": "spoilt"}})).await;
    eventually("the certificate is restored", certificate).await;
    cluster.kubectl(&["delete", "serviceaccount", "-n", "equipped", "default"]).await;
    eventually("the account is back", || async {
        cluster.get("serviceaccount", "equipped", "default").await.ok_or("no account")
    })
    .await;
}

pub(crate) async fn a_secret_for_an_account_gets_a_token_and_goes_with_it(cluster: &Cluster) {
    let namespace = "tokens";
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"name": "robot", "annotations": {"kubernetes.io/service-account.name": "robot"}}});
    cluster.apply(namespace, json!([account, secret])).await;
    let filled = eventually("the secret is filled", || async {
        let found = cluster.get("secret", namespace, "robot").await.unwrap();
        if found["data"]["token"].is_string() { Ok(found) } else { Err(found) }
    })
    .await;
    let decoded = |name: &str| {
        let value = base64::engine::general_purpose::STANDARD.decode(text(&filled["data"][name])).unwrap();
        String::from_utf8(value).unwrap()
    };
    assert_eq!((decoded("namespace").as_str(), decoded("ca.crt")), (namespace, cluster.certificate()));
    let account = cluster.get("serviceaccount", namespace, "robot").await.unwrap();
    assert_eq!(filled["metadata"]["annotations"]["kubernetes.io/service-account.uid"], account["metadata"]["uid"]);

    let spec = TokenReviewSpec { token: decoded("token"), ..TokenReviewSpec::default() };
    let review = TokenReview { spec, ..TokenReview::default() };
    let reviewed = Api::all(cluster.client()).create(&PostParams::default(), &review).await.unwrap();
    let user = reviewed.status.and_then(|status| status.user).and_then(|user| user.username);
    assert_eq!(user.as_deref(), Some("system:serviceaccount:tokens:robot"));

    cluster.kubectl(&["delete", "serviceaccount", "-n", namespace, "robot"]).await;
    eventually("the secret goes with its account", || async {
        let found = cluster.get("secret", namespace, "robot").await;
        holds(found.is_none(), found.map(|found| found["metadata"].clone()))
    })
    .await;
}
