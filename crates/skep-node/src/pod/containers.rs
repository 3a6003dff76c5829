//! The containers of a pod in their order: init containers one by one, sidecars beside them, then all others at once;
//! and at any time those that somebody adds.

use std::collections::BTreeSet;

use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream::FuturesUnordered;

use super::context::Context;
use super::drive::{Role, drive};
use super::status::{PodState, is_sidecar};

/// Returns when no container is to run any more.
pub(super) async fn run(context: &Context) {
    let pod = context.pod();
    let Some(spec) = &pod.spec else { return };
    let init = spec.init_containers.as_deref().unwrap_or_default();
    let sidecars = init.iter().enumerate().filter(|(_, container)| is_sidecar(container)).map(|(index, container)| {
        let front = &init[..index];
        async move {
            let turn = async {
                for other in front {
                    done(context, &other.name, is_sidecar(other)).await;
                }
            };
            tokio::select! {
                () = turn => drive(context, &container.name, Role::Sidecar).await,
                _ = context.stopped(Role::Sidecar) => {}
            }
        }
    });
    let others = async {
        if initialize(context, init).await {
            join_all(spec.containers.iter().map(|container| drive(context, &container.name, Role::Main))).await;
        }
        // Sidecars live as long as what they serve.
        context.main_ended.send_replace(true);
    };
    tokio::select! {
        _ = async { tokio::join!(others, join_all(sidecars)) } => {}
        // What is left of them ends with the pod.
        () = look_around(context) => {}
    }
}

/// Runs the containers that are added to the pod while it lives. Never returns.
async fn look_around(context: &Context) {
    let mut pods = context.pod.clone();
    let mut known = BTreeSet::new();
    let mut running = FuturesUnordered::new();
    loop {
        let pod = pods.borrow_and_update().clone();
        for added in pod.spec.iter().flat_map(|spec| spec.ephemeral_containers.iter().flatten()) {
            if known.insert(added.name.clone()) {
                let name = added.name.clone();
                context
                    .board
                    .send_modify(|state| state.add_ephemeral(&name, added.image.as_deref().unwrap_or_default()));
                running.push(async move { drive(context, &name, Role::Ephemeral).await });
            }
        }
        tokio::select! {
            changed = pods.changed() => if changed.is_err() { break },
            Some(()) = running.next() => {}
        }
    }
    std::future::pending::<()>().await;
}

/// Runs what comes before the others; false when it failed or the pod stops.
async fn initialize(context: &Context, init: &[k8s_openapi::api::core::v1::Container]) -> bool {
    for container in init {
        let name = &container.name;
        if is_sidecar(container) {
            tokio::select! {
                () = done(context, name, true) => {}
                _ = context.stopped(Role::Init) => return false,
            }
        } else {
            drive(context, name, Role::Init).await;
            if !succeeded(&context.board.borrow(), name) {
                return false;
            }
        }
    }
    context.stop.borrow().is_none()
}

async fn done(context: &Context, name: &str, sidecar: bool) {
    let done = |state: &PodState| {
        if sidecar { state.container(name).is_some_and(|state| state.started) } else { succeeded(state, name) }
    };
    // The board lives in the context: it cannot be gone.
    let _ = context.board.subscribe().wait_for(done).await;
}

fn succeeded(state: &PodState, name: &str) -> bool {
    state.container(name).and_then(|container| container.ended()).is_some_and(|end| end.code == 0)
}
