//! What ends a pod before its time: a deadline, and volumes that grow too large. The pod has failed then.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::context::{Context, Stop};
use super::handle::give;
use crate::volume::Bounded;

/// How often volumes are looked at.
const LOOK: Duration = Duration::from_secs(5);

/// Waits for `activeDeadlineSeconds`, which fails the pod and stops it. Never returns.
pub(super) async fn deadline(context: &Context, orders: &watch::Sender<Option<Stop>>) {
    let pod = context.pod();
    let seconds = pod.spec.as_ref().and_then(|spec| spec.active_deadline_seconds);
    if let Some(seconds) = seconds.and_then(|seconds| u64::try_from(seconds).ok()) {
        let begun = context.board.borrow().started;
        let passed = Duration::try_from(Timestamp::now().duration_since(begun)).unwrap_or_default();
        sleep(Duration::from_secs(seconds).saturating_sub(passed)).await;
        let message = "Pod was active on the node longer than the specified deadline".to_owned();
        context.note("DeadlineExceeded", message.clone());
        fail(context, orders, "DeadlineExceeded", message, context.grace());
    }
    std::future::pending::<()>().await;
}

/// Waits until a volume holds more than it may, which evicts the pod. Never returns.
pub(super) async fn fullness(context: &Context, volumes: Vec<Bounded>, orders: &watch::Sender<Option<Stop>>) {
    while !volumes.is_empty() {
        sleep(LOOK).await;
        let volumes = volumes.clone();
        let look = move || volumes.into_iter().find(Bounded::is_exceeded);
        if let Ok(Some(Bounded { volume, limit, .. })) = tokio::task::spawn_blocking(look).await {
            let message = format!("Usage of EmptyDir volume {volume:?} exceeds the limit {limit:?}. ");
            context.warn("Evicted", message.clone());
            fail(context, orders, "Evicted", message, Instant::now());
            break;
        }
    }
    std::future::pending::<()>().await;
}

fn fail(context: &Context, orders: &watch::Sender<Option<Stop>>, reason: &str, message: String, deadline: Instant) {
    context.board.send_modify(|state| state.failure = Some((reason.to_owned(), message)));
    give(orders, Stop { deadline, leave: false, goes_on: false });
}
