//! What the server does when many ask at once, when clients go away, and when the store cannot write.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::HashSet;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use http::Request;
use k8s_openapi::api::core::v1::{Event, Service};
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use serde_json::json;
use skep_kube::auth::tokens::{SigningKey, TokenAuthority};
use skep_kube::server::{Limits, Server};
use skep_kube::store::Store;

async fn server(store: &Store, limits: Limits) -> Client {
    let tokens = TokenAuthority::new(SigningKey::generate().unwrap());
    Server::with_limits(store.clone(), tokens, "127.0.0.1:0", limits).await.unwrap().client()
}

fn service(name: &str) -> Service {
    let ports = json!([{ "port": 80 }]);
    serde_json::from_value(json!({ "metadata": { "name": name }, "spec": { "type": "NodePort", "ports": ports } }))
        .unwrap()
}

/// The addresses and the node ports of all services.
async fn given(services: &Api<Service>) -> (Vec<String>, Vec<i32>) {
    let specs = services.list(&ListParams::default()).await.unwrap().items.into_iter().map(|one| one.spec.unwrap());
    specs.map(|spec| (spec.cluster_ip.unwrap(), spec.ports.unwrap()[0].node_port.unwrap())).unzip()
}

fn assert_all_differ<T: Eq + std::hash::Hash + std::fmt::Debug>(values: &[T]) {
    assert_eq!(values.iter().collect::<HashSet<_>>().len(), values.len(), "{values:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_that_are_made_at_once_get_addresses_and_ports_of_their_own() {
    let services: Api<Service> = Api::default_namespaced(server(&Store::open(None).unwrap(), Limits::default()).await);
    let mut creations = tokio::task::JoinSet::new();
    for number in 0..60 {
        let services = services.clone();
        creations.spawn(async move {
            let creation = async { services.create(&PostParams::default(), &service(&format!("s{number}"))).await };
            // Some clients do not wait for the answer.
            let patience = if number % 3 == 0 { Duration::from_micros(100 * number) } else { Duration::from_mins(1) };
            let _ = tokio::time::timeout(patience, creation).await;
        });
    }
    while let Some(created) = creations.join_next().await {
        created.unwrap();
    }
    // What was begun for those who left is done before this.
    services.create(&PostParams::default(), &service("last")).await.unwrap();
    let (addresses, ports) = given(&services).await;
    assert!(addresses.len() > 40, "{addresses:?}");
    assert_all_differ(&addresses);
    assert_all_differ(&ports);
}

#[tokio::test]
async fn what_was_promised_to_a_service_that_was_not_made_is_free_again() {
    let services: Api<Service> = Api::default_namespaced(server(&Store::open(None).unwrap(), Limits::default()).await);
    let mut wanted = service("a");
    wanted.spec.as_mut().unwrap().cluster_ip = Some("10.96.0.10".to_owned());
    let rehearsal = PostParams { dry_run: true, ..PostParams::default() };
    services.create(&rehearsal, &wanted).await.unwrap();
    services.create(&PostParams::default(), &wanted).await.unwrap();
    wanted.metadata.name = Some("b".to_owned());
    let refused = services.create(&PostParams::default(), &wanted).await.unwrap_err().to_string();
    assert!(refused.contains("provided IP is already allocated"), "{refused}");
}

async fn health(client: &Client, path: &str) -> (u16, String) {
    let request = Request::get(path).body(kube::client::Body::empty()).unwrap();
    let response = client.send(request).await.unwrap();
    let status = response.status().as_u16();
    (status, String::from_utf8(response.into_body().collect_bytes().await.unwrap().to_vec()).unwrap())
}

#[tokio::test]
async fn a_server_that_cannot_write_is_not_well() {
    let store = Store::open(None).unwrap();
    let client = server(&store, Limits::default()).await;
    let verbose = "[+]ping ok\n[+]etcd ok\n[+]etcd-readiness ok\nreadyz check passed\n";
    assert_eq!(health(&client, "/readyz?verbose").await, (200, verbose.to_owned()));
    store.close().await;
    let failed =
        "[+]ping ok\n[-]etcd failed: reason withheld\n[-]etcd-readiness failed: reason withheld\nreadyz check failed\n";
    assert_eq!(health(&client, "/readyz").await, (500, failed.to_owned()));
    let failed = "[+]ping ok\n[-]etcd failed: reason withheld\nlivez check failed\n";
    assert_eq!(health(&client, "/livez").await, (500, failed.to_owned()));
    assert_eq!(health(&client, "/livez?exclude=etcd").await, (200, "ok".to_owned()));
    assert_eq!(health(&client, "/livez/ping").await, (200, "ok".to_owned()));
    let (status, cause) = health(&client, "/livez/etcd").await;
    assert_eq!(status, 500);
    assert!(cause.starts_with("internal server error: "), "{cause}");
}

#[tokio::test]
async fn events_go_away_by_themselves_and_watches_hear_of_it() {
    let limits = Limits { event_life: Duration::from_millis(1500), ..Limits::default() };
    let events: Api<Event> = Api::default_namespaced(server(&Store::open(None).unwrap(), limits).await);
    let event = |name: &str| -> Event {
        let about = json!({ "kind": "Pod", "namespace": "default", "name": "bee" });
        serde_json::from_value(json!({ "metadata": { "name": name }, "involvedObject": about, "type": "Normal" }))
            .unwrap()
    };
    let mut watch = events.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    for name in ["a", "b"] {
        events.create(&PostParams::default(), &event(name)).await.unwrap();
    }
    let mut gone = Vec::new();
    let follow = async {
        while gone.len() < 2 {
            if let WatchEvent::Deleted(event) = watch.try_next().await.unwrap().unwrap() {
                gone.push(event.metadata.name.unwrap());
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), follow).await.unwrap();
    assert_eq!(gone, ["a", "b"]);
}
