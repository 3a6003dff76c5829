//! A `skep up` of a test's own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{ConfigMap, Event, Pod};
use kube::api::{ListParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::place::Place;
pub(crate) use super::place::{LIMIT, eventually, eventually_within};
use super::start::Start;

pub(crate) struct Machine {
    pub(crate) folder: TempDir,
    child: Child,
    pub(crate) client: Client,
}

impl Machine {
    /// Starts on a new folder, or says that the kernel does not let it.
    pub(crate) async fn start_or_skip(test: &str) -> Option<Self> {
        Start::new().or_skip(test).await
    }

    /// Waits until the API server of a machine that was started is there; otherwise tells what it said.
    pub(crate) async fn of(folder: TempDir, mut child: Child) -> Result<Self, String> {
        let begun = Instant::now();
        loop {
            if let Some(client) = connect(folder.path()).await {
                return Ok(Self { folder, child, client });
            }
            if child.try_wait().unwrap().is_some() || begun.elapsed() > LIMIT {
                // It may be slow rather than dead.
                let _ = child.kill();
                let _ = child.wait();
                return Err(fs::read_to_string(folder.path().join("log")).unwrap_or_default());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.client.clone())
    }

    pub(crate) async fn pod(&self, name: &str, spec: Value) {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name},
            "annotations": {"colour": "red"}}, "spec": spec});
        let parameters = PatchParams::apply("test").force();
        eventually(&format!("pod {name} is accepted"), || async {
            // The default service account is made a moment after the server.
            self.pods().patch(name, &parameters, &Patch::Apply(&pod)).await.map(drop).map_err(|error| error.to_string())
        })
        .await;
    }

    pub(crate) async fn config(&self, name: &str, data: Value) {
        let api: Api<ConfigMap> = Api::default_namespaced(self.client.clone());
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data});
        api.patch(name, &PatchParams::apply("test").force(), &Patch::Apply(&map)).await.unwrap();
    }

    /// Waits until Skep's own kinds are there, which is a moment after the server.
    pub(crate) async fn until_installed(&self) {
        eventually("the kinds are installed", || async {
            for (version, wanted) in [
                (
                    "v1beta1",
                    &[
                        "mcpservers",
                        "mcpremoteproxies",
                        "mcptelemetryconfigs",
                        "mcpexternalauthconfigs",
                        "mcpoidcconfigs",
                        "mcptoolconfigs",
                        "mcpauthzconfigs",
                    ][..],
                ),
                ("v1alpha1", &["mcpwebhookconfigs"]),
            ] {
                let found = self.client.list_api_group_resources(&format!("toolhive.stacklok.dev/{version}")).await;
                let found = found.map_err(|error| error.to_string())?.resources;
                let is_there = |wanted: &&str| found.iter().any(|resource| resource.name == *wanted);
                if !wanted.iter().all(is_there) {
                    return Err(format!("{found:?}"));
                }
            }
            Ok(())
        })
        .await;
    }

    /// The same as others know it.
    pub(crate) fn place(&self) -> Place {
        Place::new(&self.client)
    }

    /// Applies the manifests of workloads and services.
    pub(crate) async fn apply(&self, manifests: &str) {
        let documents: Vec<Value> = serde_saphyr::from_multiple(manifests).unwrap();
        for document in documents {
            self.place().apply(&document).await;
        }
    }

    /// Waits until the status of a pod is as it should be.
    pub(crate) async fn until(&self, name: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let last = Mutex::new(Value::Null);
        eventually(&format!("{name} {what}"), || async {
            let pod = self.pods().get(name).await.map_err(|error| error.to_string())?;
            let status = serde_json::to_value(pod.status).unwrap();
            *last.lock().unwrap() = status.clone();
            if holds(&status) { Ok(()) } else { Err(format!("{status:#}")) }
        })
        .await;
        last.into_inner().unwrap()
    }

    /// What a container of a pod has printed, all runs together.
    pub(crate) async fn printed(&self, name: &str) -> String {
        let uid = self.pods().get(name).await.unwrap().metadata.uid.unwrap();
        let folder = self.folder.path().join("data/node/logs").join(uid);
        let mut text = String::new();
        for container in fs::read_dir(folder).into_iter().flatten().flatten() {
            let mut files: Vec<PathBuf> =
                fs::read_dir(container.path()).unwrap().flatten().map(|entry| entry.path()).collect();
            files.sort();
            for file in files {
                for line in fs::read_to_string(file).unwrap().lines() {
                    text.push_str(line.splitn(4, ' ').nth(3).unwrap_or_default());
                    text.push('\n');
                }
            }
        }
        text
    }

    /// What the node has told about a pod: reasons and messages.
    pub(crate) async fn events(&self, pod: &str) -> Vec<(String, String)> {
        let api: Api<Event> = Api::default_namespaced(self.client.clone());
        let about = ListParams::default().fields(&format!("involvedObject.name={pod}"));
        let events = api.list(&about).await.unwrap().items.into_iter();
        events.map(|event| (event.reason.unwrap_or_default(), event.message.unwrap_or_default())).collect()
    }

    /// What `skep up` has said.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    pub(crate) async fn until_printed(&self, name: &str, wanted: &str) {
        eventually(&format!("{name} prints {wanted:?}"), || async {
            let text = self.printed(name).await;
            if text.contains(wanted) { Ok(()) } else { Err(text) }
        })
        .await;
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for the end and gives back the exit code and the folder.
    pub(crate) async fn ended(mut self) -> (Option<i32>, TempDir) {
        let code = end_of(&mut self.child).await;
        (code, std::mem::replace(&mut self.folder, TempDir::new().unwrap()))
    }
}

/// A client of the machine on a folder, once it is there.
pub(crate) async fn connect(folder: &Path) -> Option<Client> {
    let text = fs::read_to_string(folder.join("data/kubeconfig")).ok()?;
    let kubeconfig = Kubeconfig::from_yaml(&text).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Some(Client::try_from(config.unwrap()).unwrap())
}

/// Waits for the end of a process.
pub(crate) async fn end_of(child: &mut Child) -> Option<i32> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        assert!(begun.elapsed() < LIMIT, "it does not end");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
