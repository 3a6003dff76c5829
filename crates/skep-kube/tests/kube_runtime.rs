//! What a controller of kube-rs uses, on our server: watchers, stores, finalizers, recorded events, leader election.
//!
//! The same functions run on a real server in the long tier, which shows that they expect the right things.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod kube_runtime {
    pub(crate) mod controller;
    pub(crate) mod election;
    pub(crate) mod events;
    pub(crate) mod watching;
}

use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::PostParams;
use kube::{Api, Client};
use kube_runtime::{controller, election, events, watching};
use skep_conformance::control_plane::ControlPlane;
use skep_kube::auth::tokens::{SigningKey, TokenAuthority};
use skep_kube::server::Server;
use skep_kube::store::Store;

const PATIENCE: Duration = Duration::from_secs(30);

async fn ours() -> Client {
    let tokens = TokenAuthority::new(SigningKey::generate().unwrap());
    Server::new(Store::open(None).unwrap(), tokens, "127.0.0.1:0").await.unwrap().client()
}

/// A new namespace for one test.
async fn create_namespace(client: &Client, name: &str) -> String {
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(name.to_owned());
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    name.to_owned()
}

/// What comes of a future, which must not take long.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("in vain: {what}"))
}

/// Asks until the answer is something.
pub(crate) async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, ask: impl Fn() -> F) -> T {
    soon(what, async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
}

/// One test on our server for each function, and one for all of them on a real server.
macro_rules! scenarios {
    ($($module:ident :: $name:ident),+ $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let client = ours().await;
                let namespace = create_namespace(&client, "tests").await;
                $module::$name(client, &namespace).await;
            }
        )+

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn the_expectations_hold_on_a_real_server() {
            const TEST: &str = "the_expectations_hold_on_a_real_server";
            if std::env::var_os("SKEP_SOAK").is_none() {
                skep_conformance::skip::skip(TEST, "long tier; set SKEP_SOAK=1 to run it");
                return;
            }
            let Some(control_plane) = ControlPlane::start_or_skip(TEST).await else { return };
            let client = control_plane.admin().await.unwrap();
            $(
                let namespace = create_namespace(&client, &stringify!($name).replace('_', "-")).await;
                $module::$name(client.clone(), &namespace).await;
            )+
        }
    };
}

scenarios![
    watching::a_watcher_lists_and_watches,
    watching::a_watcher_streams_its_list,
    watching::a_watcher_lists_in_pages,
    watching::a_watcher_starts_again_after_a_timeout,
    watching::metadata_is_watched_in_both_modes,
    watching::a_store_follows,
    controller::a_controller_keeps_what_it_owns_and_cleans_up,
    events::recorded_events_become_series,
    election::one_of_two_candidates_leads,
    election::an_expired_lease_is_taken_over,
    election::only_one_of_two_writes_at_once_wins,
];
