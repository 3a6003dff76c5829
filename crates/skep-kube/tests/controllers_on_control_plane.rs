//! The controllers on a real API server that has no others: what they do, and that they rest when it is done.
//!
//! One control plane serves all scenarios, which run side by side in namespaces of their own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod controllers {
    pub(crate) mod cluster;
    pub(crate) mod deployments;
    pub(crate) mod endpoints;
    pub(crate) mod garbage;
    pub(crate) mod namespaces;
    pub(crate) mod nodes_and_volumes;
    pub(crate) mod stateful_sets;
}

use std::sync::Arc;
use std::time::Duration;

use controllers::cluster::Cluster;
use controllers::{deployments, endpoints, garbage, namespaces, nodes_and_volumes, stateful_sets};
use tokio::task::JoinSet;

/// Runs scenarios side by side; all are told before the first failure counts.
macro_rules! run {
    ($cluster:expr; $($scenario:path),+ $(,)?) => {{
        let only = std::env::var("SCENARIO").unwrap_or_default();
        let mut scenarios = JoinSet::new();
        $(
            let name = stringify!($scenario);
            if name.contains(&only) {
                let cluster = Arc::clone(&$cluster);
                scenarios.spawn(async move {
                    $scenario(&cluster).await;
                    eprintln!("passed: {name}");
                });
            }
        )+
        let mut failed = Vec::new();
        while let Some(outcome) = scenarios.join_next().await {
            failed.extend(outcome.err().map(|error| error.to_string()));
        }
        assert!(failed.is_empty(), "{} scenarios failed:\n{}", failed.len(), failed.join("\n"));
    }};
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_controllers_bring_built_in_objects_to_life() {
    let Some(cluster) = Cluster::start_or_skip("our_controllers_bring_built_in_objects_to_life").await else { return };
    let cluster = Arc::new(cluster);
    run![cluster;
        deployments::a_rollout_keeps_its_bounds_and_can_be_paused_and_undone,
        deployments::a_bad_image_misses_the_progress_deadline,
        deployments::recreate_never_mixes_templates,
        deployments::pods_are_adopted_and_released_by_their_labels,
        stateful_sets::pods_come_in_order_and_are_updated_from_the_end,
        stateful_sets::claims_go_when_the_policy_says_so,
        endpoints::endpoints_follow_readiness,
        endpoints::pods_count_once_their_node_is_known,
        endpoints::endpoints_of_others_are_mirrored,
        garbage::the_three_cascades,
        garbage::dependents_of_custom_resources_go_with_them,
        garbage::stolen_uids_do_no_harm,
        garbage::circles_stop_nobody,
        namespaces::a_namespace_goes_when_the_last_finalizer_does,
        namespaces::every_namespace_gets_an_account_and_a_certificate,
        namespaces::a_secret_for_an_account_gets_a_token_and_goes_with_it,
        nodes_and_volumes::a_claim_gets_a_folder_and_gives_it_back,
        nodes_and_volumes::pods_wait_for_a_node_that_fits,
        nodes_and_volumes::pods_wait_for_room,
    ];

    // At rest nothing is written.
    let mut before = cluster.writes();
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_secs(3)).await;
        let now = cluster.writes();
        if now == before {
            return;
        }
        before = now;
    }
    panic!("the controllers do not come to rest: {:?}", cluster.last_writes());
}

/// The same expectations, where they do not need our folders as volumes, on the controllers of Kubernetes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_controllers_of_kubernetes_do_the_same() {
    // It says something about our expectations and nothing about our code, so it need not run every time.
    if std::env::var_os("SKEP_SOAK").is_none() {
        skep_conformance::skip::skip(
            "the_controllers_of_kubernetes_do_the_same",
            "long tier; set SKEP_SOAK=1 to run it",
        );
        return;
    }
    let Some(cluster) = Cluster::start_real_or_skip("the_controllers_of_kubernetes_do_the_same").await else { return };
    let cluster = Arc::new(cluster);
    run![cluster;
        deployments::a_rollout_keeps_its_bounds_and_can_be_paused_and_undone,
        deployments::a_bad_image_misses_the_progress_deadline,
        deployments::recreate_never_mixes_templates,
        deployments::pods_are_adopted_and_released_by_their_labels,
        stateful_sets::pods_without_volumes_come_in_order,
        endpoints::endpoints_follow_readiness,
        endpoints::pods_count_once_their_node_is_known,
        endpoints::endpoints_of_others_are_mirrored,
        garbage::the_three_cascades,
        garbage::dependents_of_custom_resources_go_with_them,
        garbage::stolen_uids_do_no_harm,
        garbage::circles_stop_nobody,
        namespaces::a_namespace_goes_when_the_last_finalizer_does,
        namespaces::every_namespace_gets_an_account_and_a_certificate,
        namespaces::a_secret_for_an_account_gets_a_token_and_goes_with_it,
        nodes_and_volumes::pods_wait_for_a_node_that_fits,
        nodes_and_volumes::pods_wait_for_room,
    ];
}
