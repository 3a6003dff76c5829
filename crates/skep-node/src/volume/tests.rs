use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, Response};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::client::Body;
use serde_json::json;
use tempfile::TempDir;

use super::*;

/// An API server that gives a new token to everybody who asks, each of which is used up at once.
fn token_server(asked: Arc<AtomicUsize>) -> Client {
    let answer = move |request: Request<Body>| {
        assert_eq!(request.uri().path(), "/api/v1/namespaces/n/serviceaccounts/default/token");
        let number = asked.fetch_add(1, Ordering::SeqCst) + 1;
        let end = (Timestamp::now() - SignedDuration::from_secs(1)).strftime("%FT%TZ").to_string();
        let answer = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": {},
            "spec": {"audiences": []}, "status": {"token": format!("token {number}"), "expirationTimestamp": end}});
        let answer = Response::builder().status(201).body(Body::from(answer.to_string().into_bytes()));
        std::future::ready(answer.map_err(std::io::Error::other))
    };
    Client::new(tower::service_fn(answer), "n")
}

#[tokio::test(start_paused = true)]
async fn tokens_are_renewed_in_place() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let folders = Folders { memory: path("memory"), disk: path("disk"), can_mount: false };
    let pod: Pod = serde_json::from_value(json!({"metadata": {"namespace": "n", "name": "p", "uid": "u"}, "spec": {
        "containers": [], "volumes": [{"name": "account", "projected": {"sources": [
            {"serviceAccountToken": {"path": "token"}}]}}]}}))
    .unwrap();
    let place = Place { pod_ip: None, host_ip: [10, 244, 0, 1].into(), allocatable: BTreeMap::new() };
    let asked = Arc::new(AtomicUsize::new(0));
    let mut volumes = Volumes::new(token_server(asked.clone()), folders, &pod);
    for number in 1..=3 {
        let made = volumes.refresh(&pod, &place).await;
        let text = fs::read_to_string(made.ready["account"].path.join("token")).unwrap();
        assert_eq!(text, format!("token {number}"));
        let outdated = tokio::time::timeout(Duration::from_mins(10), volumes.changed()).await;
        assert!(outdated.is_ok(), "its life is over");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_cannot_be_had_does_not_stop_others() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let folders = Folders { memory: path("memory"), disk: path("disk"), can_mount: false };
    let absent = |name: &str| json!({"name": name, "hostPath": {"path": path("absent"), "type": "Directory"}});
    let token = json!({"name": "b", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}});
    let pod: Pod = serde_json::from_value(json!({"metadata": {"namespace": "n", "name": "p", "uid": "u"},
        "spec": {"containers": [], "volumes": [absent("a"), token, absent("c")]}}))
    .unwrap();
    let place = Place { pod_ip: None, host_ip: [10, 244, 0, 1].into(), allocatable: BTreeMap::new() };
    let mut volumes = Volumes::new(token_server(Arc::default()), folders, &pod);
    for number in 1..=2 {
        let Refreshed { ready, failed } = volumes.refresh(&pod, &place).await;
        assert_eq!(ready.keys().collect::<Vec<_>>(), ["b"]);
        assert_eq!(failed.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(fs::read_to_string(ready["b"].path.join("token")).unwrap(), format!("token {number}"));
        let outdated = tokio::time::timeout(Duration::from_mins(10), volumes.changed()).await;
        assert!(outdated.is_ok(), "its life is over");
    }
}

#[tokio::test]
async fn what_goes_on_keeps_what_is_on_disk() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let folders = Folders { memory: path("memory"), disk: path("disk"), can_mount: false };
    let pod: Pod = serde_json::from_value(json!({"metadata": {"namespace": "n", "name": "p", "uid": "u"}, "spec": {
        "containers": [], "volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {"medium": "Memory"}}]}}))
    .unwrap();
    let place = Place { pod_ip: None, host_ip: [10, 244, 0, 1].into(), allocatable: BTreeMap::new() };
    let mut volumes = Volumes::new(token_server(Arc::default()), folders, &pod);
    let made = volumes.refresh(&pod, &place).await;
    for ready in made.ready.values() {
        fs::write(ready.path.join("file"), "").unwrap();
    }
    volumes.remove(true);
    assert!(path("disk/a/file").exists() && !path("memory").exists());
    volumes.remove(false);
    assert!(!path("disk").exists());
}
