//! A `skep up` of a test's own.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use std::{fs, io};

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Far more than it takes, for machines that are busy building.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);

pub(crate) struct Machine {
    pub(crate) folder: TempDir,
    child: Child,
    pub(crate) client: Client,
}

impl Machine {
    /// Starts on a new folder, or says that the kernel does not let it.
    pub(crate) async fn start_or_skip(test: &str) -> Option<Self> {
        match Self::try_start(TempDir::new().unwrap()).await {
            Ok(machine) => Some(machine),
            Err(said) if said.contains("the kernel refuses") => {
                skep_conformance::skip::skip(test, said.trim());
                None
            }
            Err(said) => panic!("not started: {said}"),
        }
    }

    /// Starts on a folder that may have a past.
    pub(crate) async fn start(folder: TempDir) -> Self {
        Self::try_start(folder).await.unwrap()
    }

    /// What it said when it did not come up.
    async fn try_start(folder: TempDir) -> Result<Self, String> {
        let images =
            "images:\n- image: shell\n  command: [/bin/sh, -c]\n- image: missing-program\n  command: [/no/such]\n";
        fs::write(folder.path().join("images.yaml"), images).unwrap();
        let _ = fs::remove_file(folder.path().join("data/kubeconfig"));
        let log = fs::File::options().create(true).append(true).open(folder.path().join("log")).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_skep"))
            .args(["up", "--no-demo", "--isolation", "namespaces", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(folder.path().join("data"))
            .arg("--image-map")
            .arg(folder.path().join("images.yaml"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let kubeconfig = folder.path().join("data/kubeconfig");
        let begun = Instant::now();
        while !kubeconfig.exists() {
            let text = fs::read_to_string(folder.path().join("log")).unwrap_or_default();
            if child.try_wait().unwrap().is_some() || begun.elapsed() > LIMIT {
                return Err(text);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let text = fs::read_to_string(&kubeconfig).unwrap();
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(Kubeconfig::from_yaml(&text).unwrap(), &options).await;
        let client = Client::try_from(config.unwrap()).unwrap();
        Ok(Self { folder, child, client })
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
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status.code(), std::mem::replace(&mut self.folder, TempDir::new().unwrap()));
            }
            assert!(begun.elapsed() < LIMIT, "it does not end");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that nobody listens on at the moment.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).map_or(0, |address| address.port())
}

/// Processes of this machine whose environment or arguments carry a mark.
pub(crate) fn marked(mark: &str) -> Vec<u32> {
    let processes =
        fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let carries = |process: &u32| {
        let read = |file: &str| -> io::Result<Vec<u8>> { fs::read(format!("/proc/{process}/{file}")) };
        let text = |bytes: io::Result<Vec<u8>>| String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
        text(read("cmdline")).contains(mark) || text(read("environ")).contains(mark)
    };
    processes.filter(carries).collect()
}

/// Asks again and again until the answer is good.
pub(crate) async fn eventually<F: Future<Output = Result<(), String>>>(what: &str, ask: impl Fn() -> F) {
    let begun = Instant::now();
    loop {
        match ask().await {
            Ok(()) => return,
            Err(last) => assert!(begun.elapsed() < LIMIT, "not so: {what}\nlast: {last}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
