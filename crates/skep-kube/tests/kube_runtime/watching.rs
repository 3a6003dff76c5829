//! Watchers in both list modes, and the store that is kept by one.

use futures::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::watcher::{Config, Error, Event, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde_json::json;

use crate::{eventually, soon};

/// Creates a secret and waits until lists that may be old show it, too: a real server answers those from a cache.
async fn create(api: &Api<Secret>, name: &str) {
    let mut secret = Secret::default();
    secret.metadata.name = Some(name.to_owned());
    secret.metadata.labels = Some([("part".to_owned(), "watched".to_owned())].into());
    api.create(&PostParams::default(), &secret).await.unwrap();
    let maybe_old = ListParams::default().match_any();
    eventually("a list from the cache shows it", || async {
        api.list(&maybe_old).await.unwrap().items.into_iter().find(|listed| listed.name_any() == name)
    })
    .await;
}

async fn change(api: &Api<Secret>, name: &str) {
    let patch = Patch::Merge(json!({"stringData": {"a": "b"}}));
    api.patch(name, &PatchParams::default(), &patch).await.unwrap();
}

fn described<K: Resource>(event: Event<K>) -> String {
    match event {
        Event::Init => "init".to_owned(),
        Event::InitApply(object) => format!("listed {}", object.name_any()),
        Event::InitDone => "done".to_owned(),
        Event::Apply(object) => format!("applied {}", object.name_any()),
        Event::Delete(object) => format!("deleted {}", object.name_any()),
    }
}

/// The next events. Errors are shown as themselves, so that a comparison fails with them.
async fn next<K: Resource>(
    events: &mut (impl Stream<Item = Result<Event<K>, Error>> + Unpin),
    count: usize,
) -> Vec<String> {
    soon("events", async {
        let mut seen = Vec::new();
        while seen.len() < count {
            seen.push(events.next().await.unwrap().map_or_else(|error| format!("{error:?}"), described));
        }
        seen
    })
    .await
}

async fn watches(client: Client, namespace: &str, config: Config) {
    let api: Api<Secret> = Api::namespaced(client, namespace);
    create(&api, "a").await;
    create(&api, "b").await;
    let mut events = watcher(api.clone(), config.labels("part=watched")).boxed();
    let mut listed = next(&mut events, 4).await;
    listed[1..3].sort();
    assert_eq!(listed, ["init", "listed a", "listed b", "done"]);
    create(&api, "c").await;
    change(&api, "a").await;
    api.delete("b", &DeleteParams::default()).await.unwrap();
    // What leaves the selection is gone, as far as the watcher is concerned.
    let unlabelled = Patch::Merge(json!({"metadata": {"labels": {"part": "none"}}}));
    api.patch("c", &PatchParams::default(), &unlabelled).await.unwrap();
    assert_eq!(next(&mut events, 4).await, ["applied c", "applied a", "deleted b", "deleted c"]);
}

pub(crate) async fn a_watcher_lists_and_watches(client: Client, namespace: &str) {
    watches(client, namespace, Config::default()).await;
}

pub(crate) async fn a_watcher_streams_its_list(client: Client, namespace: &str) {
    watches(client, namespace, Config::default().streaming_lists()).await;
}

pub(crate) async fn a_watcher_lists_in_pages(client: Client, namespace: &str) {
    watches(client, namespace, Config::default().page_size(1)).await;
}

pub(crate) async fn a_watcher_starts_again_after_a_timeout(client: Client, namespace: &str) {
    let api: Api<Secret> = Api::namespaced(client, namespace);
    let config = Config::default().labels("part=watched").timeout(1);
    let mut events = watcher(api.clone(), config).boxed();
    assert_eq!(next(&mut events, 2).await, ["init", "done"]);
    // The watch has ended in between, more than once. It goes on where it was, without another list.
    let (seen, ()) = tokio::join!(next(&mut events, 1), async {
        tokio::time::sleep(std::time::Duration::from_millis(2_500)).await;
        create(&api, "late").await;
    });
    assert_eq!(seen, ["applied late"]);
}

pub(crate) async fn metadata_is_watched_in_both_modes(client: Client, namespace: &str) {
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let metadata: Api<PartialObjectMeta<Secret>> = Api::namespaced(client, namespace);
    create(&api, "a").await;
    for (round, config) in [Config::default(), Config::default().streaming_lists()].into_iter().enumerate() {
        let mut events = watcher(metadata.clone(), config.labels("part=watched")).boxed();
        assert_eq!(next(&mut events, 3).await, ["init", "listed a", "done"]);
        let annotated = Patch::Merge(json!({"metadata": {"annotations": {"round": round.to_string()}}}));
        api.patch("a", &PatchParams::default(), &annotated).await.unwrap();
        assert_eq!(next(&mut events, 1).await, ["applied a"]);
    }
}

pub(crate) async fn a_store_follows(client: Client, namespace: &str) {
    let api: Api<Secret> = Api::namespaced(client, namespace);
    create(&api, "a").await;
    let (store, writer) = reflector::store();
    let events = watcher(api.clone(), Config::default().labels("part=watched")).default_backoff();
    let follow = tokio::spawn(events.reflect(writer).touched_objects().for_each(|_| std::future::ready(())));
    soon("a first list", store.wait_until_ready()).await.unwrap();
    assert_eq!(store.state().len(), 1);
    create(&api, "b").await;
    change(&api, "a").await;
    let key = |name: &str| ObjectRef::<Secret>::new(name).within(namespace);
    eventually("a change is in the store", || async { store.get(&key("a"))?.data.clone() }).await;
    assert!(store.get(&key("b")).is_some());
    api.delete("b", &DeleteParams::default()).await.unwrap();
    eventually("a deletion is in the store", || async { store.get(&key("b")).is_none().then_some(()) }).await;
    follow.abort();
}
