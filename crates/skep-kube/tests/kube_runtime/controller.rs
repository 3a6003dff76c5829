//! A controller with a finalizer, as one writes it with kube-rs: each ConfigMap gets a Secret of the same name.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::Controller;
use kube::runtime::controller::Action;
use kube::runtime::finalizer::{self, Event, finalizer};
use kube::runtime::watcher::Config;
use kube::{Api, Client, Resource as _, ResourceExt as _};
use serde_json::json;

use crate::{eventually, soon};

const FINALIZER: &str = "tests.example.com/cleanup";

struct Context {
    client: Client,
    applies: AtomicUsize,
    cleanups: AtomicUsize,
}

type Failure = finalizer::Error<kube::Error>;

async fn reconcile(map: Arc<ConfigMap>, context: Arc<Context>) -> Result<Action, Failure> {
    let namespace = map.namespace().unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), &namespace);
    finalizer(&maps, FINALIZER, map, |event| async {
        match event {
            Event::Apply(map) => {
                let secrets: Api<Secret> = Api::namespaced(context.client.clone(), &namespace);
                let secret = json!({
                    "apiVersion": "v1", "kind": "Secret",
                    "metadata": {"name": map.name_any(), "ownerReferences": [map.controller_owner_ref(&()).unwrap()]},
                    "stringData": map.data,
                });
                let parameters = PatchParams::apply("tests").force();
                secrets.patch(&map.name_any(), &parameters, &Patch::Apply(&secret)).await?;
                context.applies.fetch_add(1, Ordering::Relaxed);
            }
            Event::Cleanup(_) => {
                context.cleanups.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(Action::await_change())
    })
    .await
}

pub(crate) async fn a_controller_keeps_what_it_owns_and_cleans_up(client: Client, namespace: &str) {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let context = Arc::new(Context { client, applies: AtomicUsize::new(0), cleanups: AtomicUsize::new(0) });
    let controller = Controller::new(maps.clone(), Config::default().labels("part=tests"))
        .owns(secrets.clone(), Config::default())
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(100)), context.clone());
    let running = tokio::spawn(controller.for_each(|_| std::future::ready(())));

    let map = json!({"metadata": {"name": "bee", "labels": {"part": "tests"}}, "data": {"colour": "yellow"}});
    maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
    let secret = || async { secrets.get_opt("bee").await.unwrap() };
    let first = eventually("there is a secret", secret).await;
    assert_eq!(maps.get("bee").await.unwrap().finalizers(), [FINALIZER]);

    // The owner is reconciled when what it owns is touched, first when its secret comes. A secret that goes before the
    // watch of secrets has begun would not be missed.
    let applied_again = || async { (context.applies.load(Ordering::Relaxed) >= 2).then_some(()) };
    eventually("the secret is seen", applied_again).await;
    secrets.delete("bee", &DeleteParams::default()).await.unwrap();
    let another = || async { secret().await.filter(|secret| secret.uid() != first.uid()) };
    eventually("there is another secret", another).await;

    // And when it changes itself.
    let black = Patch::Merge(json!({"data": {"colour": "black"}}));
    maps.patch("bee", &PatchParams::default(), &black).await.unwrap();
    let is_black = |secret: &Secret| secret.data.as_ref().is_some_and(|data| data["colour"].0 == b"black");
    eventually("the secret follows", || async { secret().await.filter(is_black) }).await;

    maps.delete("bee", &DeleteParams::default()).await.unwrap();
    eventually("the object goes", || async { maps.get_opt("bee").await.unwrap().is_none().then_some(()) }).await;
    assert_eq!(context.cleanups.load(Ordering::Relaxed), 1, "cleanups");
    running.abort();
    assert!(soon("the controller ends", running).await.is_err());
}
