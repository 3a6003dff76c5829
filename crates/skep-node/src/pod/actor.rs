//! The task of one pod: network, volumes, containers in their order, and an orderly end.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, ResourceExt as _};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::containers;
use super::context::{Context, Live, Node, Stop};
use super::ending;
use super::handle::give;
use super::report::{report, report_once};
use super::status::PodState;
use super::unhonoured::{Powers, unhonoured};
use crate::isolation::Isolation;
use crate::network::PodNetwork;
use crate::volume::{Folders, Ready, Refreshed, Volumes};

/// How soon another attempt is made at a network or a volume.
const RETRY: Duration = Duration::from_secs(2);
const LONGEST_RETRY: Duration = Duration::from_secs(30);
/// A node that is stopped does not wait for an API server that is gone.
const REPORT_LIMIT: Duration = Duration::from_secs(5);

/// Takes care of a pod until it is gone, or the node is.
pub(super) async fn care(
    node: Arc<Node>,
    pods: watch::Receiver<Arc<Pod>>,
    orders: watch::Sender<Option<Stop>>,
    live: Arc<Mutex<HashMap<String, Live>>>,
) {
    let pod = pods.borrow().clone();
    let uid = pod.uid().unwrap_or_default();
    let memory = node.folders.memory.join(&uid);
    let folders = Folders {
        memory: memory.join("volumes"),
        disk: node.folders.disk.join(&uid),
        can_mount: node.isolation == Isolation::Namespaces,
    };
    let mut volumes = Volumes::new(node.client.clone(), folders, &pod);
    let (ready, volumes_seen) = watch::channel(BTreeMap::new());
    let mut context = Context {
        board: watch::Sender::new(PodState::new(&pod, node.place.host_ip)),
        pod: pods,
        answered: Arc::default(),
        network: None,
        volumes: volumes_seen,
        files: memory.join("files"),
        logs: node.folders.logs.join(&uid),
        live,
        stop: orders.subscribe(),
        main_ended: watch::Sender::new(false),
        node,
    };
    let over = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    if !matches!(over, Some("Succeeded" | "Failed")) {
        let obey = obey(context.pod.clone(), orders.clone());
        let whole_life = async {
            if set_up(&mut context, &mut volumes, &ready).await {
                Box::pin(live_on(&context, &mut volumes, &ready, &orders)).await;
            }
        };
        tokio::select! {
            () = whole_life => {}
            () = obey => {}
        }
        tokio::select! {
            () = report_once(&context) => {}
            () = left_for_long(context.stop.clone()) => {}
        }
    }
    context.network = None;
    let goes_on = context.stop.borrow().is_some_and(|order| order.goes_on);
    volumes.remove(goes_on);
    if let Err(error) = std::fs::remove_dir_all(&memory)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(folder = %memory.display(), %error, "files of a pod not removed");
    }
    let_go(&context).await;
}

/// Waits until the pod was to be left long enough ago.
async fn left_for_long(mut stop: watch::Receiver<Option<Stop>>) {
    // Without anybody to give orders there is nobody to wait for.
    let _ = stop.wait_for(|order| order.is_some_and(|order| order.leave)).await;
    sleep(REPORT_LIMIT).await;
}

/// Turns the wish for deletion into the order to stop. Never returns.
async fn obey(mut pods: watch::Receiver<Arc<Pod>>, orders: watch::Sender<Option<Stop>>) {
    loop {
        let pod = pods.borrow_and_update().clone();
        if pod.metadata.deletion_timestamp.is_some() {
            let seconds = pod.metadata.deletion_grace_period_seconds.unwrap_or(30);
            let deadline = Instant::now() + Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
            give(&orders, Stop { deadline, leave: false, goes_on: false });
        }
        if pods.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Gives the pod its network and its volumes; false when it is stopped before.
async fn set_up(context: &mut Context, volumes: &mut Volumes, ready: &watch::Sender<BTreeMap<String, Ready>>) -> bool {
    let mut stop = context.stop.clone();
    let missed = unhonoured(&context.pod(), Powers::of(context.node.isolation));
    if !missed.is_empty() {
        context.note("NotHonoured", format!("This node runs the pod without: {}", missed.join("; ")));
    }
    let made = async {
        context.network = network(context).await.map(Arc::new);
        let address = context.network.as_ref().map(|network| IpAddr::V4(network.address()));
        context.board.send_modify(|state| state.pod_ip = address.or(Some(state.host_ip)));
        // What is missing is told while it is waited for.
        tokio::select! {
            () = fill(context, volumes, ready) => {}
            () = async { report(context).await; std::future::pending().await } => {}
        }
    };
    tokio::select! {
        () = made => true,
        _ = async { stop.wait_for(Option::is_some).await.map(drop) } => false,
    }
}

/// The network of the pod; none when it uses that of the machine.
async fn network(context: &Context) -> Option<PodNetwork> {
    let pod = context.pod();
    if pod.spec.as_ref().is_some_and(|spec| spec.host_network == Some(true)) {
        return None;
    }
    let known = pod.status.as_ref().and_then(|status| status.pod_ip.as_deref());
    let known: Option<Ipv4Addr> = known.and_then(|address| address.parse().ok());
    let mut delay = RETRY;
    loop {
        // The address of an earlier life is kept if it can be.
        let kept = match known {
            Some(address) => context.node.network.restore_pod(address).await.ok(),
            None => None,
        };
        let made = match kept {
            Some(network) => Ok(network),
            None => context.node.network.add_pod().await,
        };
        match made {
            Ok(network) => return Some(network),
            Err(error) => {
                context.warn("FailedCreatePodSandBox", format!("Failed to create pod sandbox: {error}"));
                sleep(delay).await;
                delay = (delay * 2).min(LONGEST_RETRY);
            }
        }
    }
}

/// Fills all volumes, however long it takes. Those that are there already follow changes meanwhile.
async fn fill(context: &Context, volumes: &mut Volumes, ready: &watch::Sender<BTreeMap<String, Ready>>) {
    let mut pods = context.pod.clone();
    let mut delay = Duration::from_millis(500);
    loop {
        let pod = pods.borrow_and_update().clone();
        let Refreshed { ready: made, failed } = volumes.refresh(&pod, &context.place()).await;
        ready.send_modify(|all| all.extend(made));
        if failed.is_empty() {
            return;
        }
        for (name, error) in failed {
            context.warn("FailedMount", format!("MountVolume.SetUp failed for volume {name:?} : {error}"));
        }
        tokio::select! {
            () = sleep(delay) => {}
            () = outdated(volumes, &mut pods) => {}
        }
        delay = (delay * 2).min(LONGEST_RETRY);
    }
}

/// Waits until volumes may be out of date. Labels and annotations of the pod may be in them, too.
async fn outdated(volumes: &mut Volumes, pods: &mut watch::Receiver<Arc<Pod>>) {
    tokio::select! {
        () = volumes.changed() => {}
        changed = pods.changed() => if changed.is_err() { std::future::pending::<()>().await },
    }
}

/// Runs the containers and everything beside them; returns when all containers have ended for good.
async fn live_on(
    context: &Context,
    volumes: &mut Volumes,
    ready: &watch::Sender<BTreeMap<String, Ready>>,
    orders: &watch::Sender<Option<Stop>>,
) {
    let bounded = volumes.bounded();
    let keep_fresh = async {
        let mut pods = context.pod.clone();
        loop {
            outdated(volumes, &mut pods).await;
            fill(context, volumes, ready).await;
        }
    };
    tokio::select! {
        () = containers::run(context) => {}
        // When the object is gone the node learns of it, too, and gives the order to stop.
        () = async { report(context).await; std::future::pending().await } => {}
        () = keep_fresh => {}
        () = ending::deadline(context, orders) => {}
        () = ending::fullness(context, bounded, orders) => {}
    }
}

/// Everything of the pod is gone. Its object follows as soon as it may.
async fn let_go(context: &Context) {
    let mut pods = context.pod.clone();
    let mut stop = context.stop.clone();
    loop {
        let pod = pods.borrow_and_update().clone();
        if pod.metadata.deletion_timestamp.is_some() {
            let api: Api<Pod> = Api::namespaced(context.node.client.clone(), &pod.namespace().unwrap_or_default());
            let precondition = Preconditions { uid: pod.uid(), resource_version: None };
            let parameters = DeleteParams::default().grace_period(0).preconditions(precondition);
            match api.delete(&pod.name_any(), &parameters).await {
                Ok(_) => return,
                Err(kube::Error::Api(answer)) if answer.code == 404 => return,
                // Another pod may have its name by now; then the order to leave is under way.
                Err(error) => tracing::debug!(pod = pod.name_any(), %error, "pod not removed"),
            }
        }
        if stop.borrow_and_update().is_some_and(|order| order.leave) {
            return;
        }
        tokio::select! {
            changed = pods.changed() => if changed.is_err() { return },
            changed = stop.changed() => if changed.is_err() { return },
            () = sleep(RETRY), if pod.metadata.deletion_timestamp.is_some() => {}
        }
    }
}
