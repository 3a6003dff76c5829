//! The hold that the node has on the task of a pod: it tells it of changes, and orders its end.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::actor::care;
use super::context::{Live, Node, Stop};

/// A pod that is taken care of.
#[derive(Debug)]
pub(crate) struct Handle {
    wishes: watch::Sender<Arc<Pod>>,
    /// Set when the pod has to go without waiting for the API server to say so.
    orders: watch::Sender<Option<Stop>>,
    live: Arc<Mutex<HashMap<String, Live>>>,
    task: JoinHandle<()>,
}

impl Handle {
    /// The pod has changed.
    pub(crate) fn update(&self, pod: Arc<Pod>) {
        self.wishes.send_replace(pod);
    }

    pub(crate) fn pod(&self) -> Arc<Pod> {
        self.wishes.borrow().clone()
    }

    /// The container with this name, if it runs.
    pub(crate) fn live(&self, container: &str) -> Option<Live> {
        self.live.lock().get(container).cloned()
    }

    /// One of the containers that run, whichever.
    pub(crate) fn any_live(&self) -> Option<Live> {
        self.live.lock().values().next().cloned()
    }

    /// Ends the containers at once and lets go of the pod: its object is gone.
    pub(crate) fn forget(&self) {
        give(&self.orders, Stop { deadline: Instant::now(), leave: true, goes_on: false });
    }

    /// Ends the containers within `grace` and lets go of the pod until the node is started again.
    pub(crate) fn suspend(&self, grace: Duration) {
        give(&self.orders, Stop { deadline: Instant::now() + grace, leave: true, goes_on: true });
    }

    /// Waits until everything of the pod is gone.
    pub(crate) async fn finished(self) {
        // A pod whose task has panicked has left its containers to the runtime, which kills what nobody holds.
        let _ = self.task.await;
    }
}

/// Takes care of a pod from now on.
pub(crate) fn spawn(node: Arc<Node>, pod: Arc<Pod>) -> Handle {
    let (wishes, pods) = watch::channel(pod);
    let orders = watch::Sender::new(None);
    let live: Arc<Mutex<HashMap<String, Live>>> = Arc::default();
    let task = tokio::spawn(care(node, pods, orders.clone(), live.clone()));
    Handle { wishes, orders, live, task }
}

/// Gives an order to stop, or shortens the one that was given.
pub(super) fn give(orders: &watch::Sender<Option<Stop>>, new: Stop) {
    orders.send_if_modified(|order| {
        let before = *order;
        *order = Some(match before {
            None => new,
            Some(old) => Stop {
                deadline: old.deadline.min(new.deadline),
                leave: old.leave || new.leave,
                goes_on: old.goes_on && new.goes_on,
            },
        });
        *order != before
    });
}
