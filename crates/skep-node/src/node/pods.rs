//! The pods of the node: one task for each, started, told of changes and ended as the API server says.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt as _};
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::log;
use crate::pod::{Handle, Live, Node, report_ended, spawn};

pub(crate) struct Pods {
    node: Arc<Node>,
    handles: Mutex<HashMap<String, Handle>>,
    stopped: Mutex<bool>,
}

impl std::fmt::Debug for Pods {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Pods").field("handles", &self.handles.lock().len()).finish_non_exhaustive()
    }
}

/// The most that is spent on what an earlier life of the node has left behind: the task of each pod finds out, too.
const FORMER_LIMIT: Duration = Duration::from_secs(5);
/// How many pods are told about at a time.
const MOST_AT_A_TIME: usize = 16;

/// Tells that no pod of a node runs that starts only now. A node that was killed could not say so, and nobody is to be led
/// to pods that are gone.
pub(crate) async fn tell_ended(client: &Client, node: &str, address: IpAddr) {
    let told = async {
        let mine = ListParams::default().fields(&format!("spec.nodeName={node}"));
        let pods = Api::<Pod>::all(client.clone()).list(&mine).await?;
        let reports = pods.items.iter().map(|pod| report_ended(client.clone(), pod, address));
        stream::iter(reports).buffer_unordered(MOST_AT_A_TIME).try_collect::<()>().await
    };
    match timeout(FORMER_LIMIT, told).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "the end of earlier pods is not told"),
        Err(_) => tracing::debug!("the end of earlier pods is not told in time"),
    }
}

impl Pods {
    pub(super) fn new(node: Arc<Node>) -> Self {
        Self { node, handles: Mutex::default(), stopped: Mutex::new(false) }
    }

    /// The folder in memory.
    pub(super) fn memory(&self) -> &Path {
        &self.node.folders.memory
    }

    /// Follows the API server for ever.
    pub(super) async fn follow(self: Arc<Self>) {
        let api: Api<Pod> = Api::all(self.node.client.clone());
        let config = watcher::Config::default().fields(&format!("spec.nodeName={}", self.node.name));
        let mut events = watcher(api, config).default_backoff().boxed();
        let mut listed = HashSet::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => listed.clear(),
                Ok(Event::InitApply(pod)) => {
                    listed.extend(pod.uid());
                    self.take(pod);
                }
                Ok(Event::InitDone) => {
                    let missing: Vec<String> =
                        self.handles.lock().keys().filter(|uid| !listed.contains(*uid)).cloned().collect();
                    for uid in missing {
                        self.lose(&uid);
                    }
                    self.tidy(&listed);
                }
                Ok(Event::Apply(pod)) => self.take(pod),
                Ok(Event::Delete(pod)) => self.lose(&pod.uid().unwrap_or_default()),
                Err(error) => tracing::debug!(%error, "watch of pods interrupted"),
            }
        }
    }

    fn take(&self, pod: Pod) {
        let Some(uid) = pod.uid() else { return };
        let pod = Arc::new(pod);
        let mut handles = self.handles.lock();
        match handles.get(&uid) {
            Some(handle) => handle.update(pod),
            None if *self.stopped.lock() => {}
            None => drop(handles.insert(uid, spawn(self.node.clone(), pod))),
        }
    }

    /// The object is gone: so are its containers and its logs, soon.
    fn lose(&self, uid: &str) {
        let Some(handle) = self.handles.lock().remove(uid) else { return };
        handle.forget();
        let logs = self.node.folders.logs.join(uid);
        tokio::spawn(async move {
            handle.finished().await;
            remove(&logs);
        });
    }

    /// Removes what pods left behind that went away while the node was not there.
    fn tidy(&self, known: &HashSet<String>) {
        let folders = &self.node.folders;
        for folder in [&folders.memory, &folders.disk, &folders.logs] {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            for entry in entries {
                if !entry.file_name().to_str().is_some_and(|uid| known.contains(uid)) {
                    remove(&entry.path());
                }
            }
        }
    }

    /// Ends all pods and takes no new ones.
    pub(super) async fn stop(&self, grace: Duration) {
        *self.stopped.lock() = true;
        let handles: Vec<Handle> = self.handles.lock().drain().map(|(_, handle)| handle).collect();
        for handle in &handles {
            let pod = handle.pod();
            let wanted = pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds).unwrap_or(30);
            handle.suspend(Duration::from_secs(u64::try_from(wanted).unwrap_or(0)).min(grace));
        }
        futures::future::join_all(handles.into_iter().map(Handle::finished)).await;
    }

    /// The pod with this name.
    pub(crate) fn find(&self, namespace: &str, name: &str) -> Option<Arc<Pod>> {
        let handles = self.handles.lock();
        let mut pods = handles.values().map(Handle::pod);
        pods.find(|pod| pod.name_any() == name && pod.namespace().as_deref() == Some(namespace))
    }

    /// A container that runs.
    pub(crate) fn live(&self, pod: &Pod, container: &str) -> Option<Live> {
        self.handles.lock().get(&pod.uid()?)?.live(container)
    }

    pub(crate) fn node_name(&self) -> &str {
        &self.node.name
    }

    pub(crate) fn client(&self) -> Client {
        self.node.client.clone()
    }

    /// Whether any of its containers runs.
    pub(crate) fn is_running(&self, pod: &Pod) -> bool {
        self.any(pod).is_some()
    }

    fn any(&self, pod: &Pod) -> Option<Live> {
        self.handles.lock().get(&pod.uid()?)?.any_live()
    }

    /// Connects to a port of a pod that runs, as its own processes do.
    pub(crate) async fn connect(&self, pod: &Pod, port: u16) -> io::Result<TcpStream> {
        let Some(live) = self.any(pod) else {
            return Err(io::Error::new(io::ErrorKind::NotConnected, "no container of the pod is running"));
        };
        match live.network {
            Some(network) => network.connect(port).await,
            None => TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await,
        }
    }

    /// The log of the run of a container with this number, if there is one.
    pub(crate) fn log(&self, pod: &Pod, container: &str, run: i32) -> Option<PathBuf> {
        let path = log::path(&self.node.folders.logs.join(pod.uid()?), container, run);
        path.exists().then_some(path)
    }
}

fn remove(path: &std::path::Path) {
    if let Err(error) = fs::remove_dir_all(path)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(folder = %path.display(), %error, "leftovers of a pod not removed");
    }
}
