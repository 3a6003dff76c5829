//! A real control plane, kubectl, and `skep node`.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use skep_conformance::control_plane::ControlPlane;

/// Far more than it takes, for machines that are busy building.
const LIMIT: Duration = Duration::from_mins(2);
const PAUSE: Duration = Duration::from_millis(50);

pub struct Cluster(ControlPlane);

impl Cluster {
    pub async fn start_or_skip(test: &str) -> Option<Self> {
        ControlPlane::start_or_skip(test).await.map(Self)
    }

    pub fn folder(&self) -> &Path {
        self.0.folder()
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// The kubeconfig of somebody without any rights.
    pub fn kubeconfig_of(&self, user: &str) -> PathBuf {
        let identity = self.0.authority().client(user, None).unwrap();
        self.file("stranger.kubeconfig", &self.0.kubeconfig(&identity))
    }

    /// Joins as the node `bee`, with an identity of its own; none where the kernel refuses.
    pub fn join(&self, arguments: &[&str]) -> Option<Node> {
        let roles = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/node/roles.yaml");
        self.said(&["apply", "-f", roles]);
        let identity = self.0.node("bee").unwrap();
        let kubeconfig = self.file("bee.kubeconfig", &self.0.kubeconfig(&identity));
        let images = self.file("images.yaml", "images:\n- image: shell\n  command: [/bin/sh, -c]\n");
        let log = self.folder().join("bee.log");
        let child = skep_node(&kubeconfig, &self.folder().join("bee"), arguments)
            .args(["--listen", "127.0.0.1:0", "--image-map"])
            .arg(images)
            .arg("--tls-cert")
            .arg(self.file("bee.crt", &identity.certificate))
            .arg("--tls-key")
            .arg(self.file("bee.key", &identity.key))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log).unwrap())
            .spawn();
        let mut node = Node { child: child.unwrap(), log };
        let begun = Instant::now();
        loop {
            let text = node.log();
            if text.contains("node bee has joined") {
                return Some(node);
            }
            if node.child.try_wait().unwrap().is_some() && text.contains("the kernel refuses") {
                skep_conformance::skip::skip("skep node", text.trim());
                return None;
            }
            assert!(begun.elapsed() < LIMIT && node.child.try_wait().unwrap().is_none(), "{text}");
            std::thread::sleep(PAUSE);
        }
    }

    pub async fn client(&self) -> kube::Client {
        self.0.admin().await.unwrap()
    }

    /// Installs Skep's kinds and starts an operator that looks after them.
    pub fn operate(&self) -> Node {
        let skep = || Command::new(env!("CARGO_BIN_EXE_skep"));
        let definitions =
            self.file("crds.yaml", &String::from_utf8(skep().arg("crds").output().unwrap().stdout).unwrap());
        self.said(&["apply", "--server-side", "-f", definitions.to_str().unwrap()]);
        self.said(&["wait", "--for=condition=Established", "--timeout=60s", "-f", definitions.to_str().unwrap()]);
        let log = self.folder().join("operator.log");
        let mut command = skep();
        command.args(["operator", "--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--kubeconfig"]);
        command.arg(self.0.admin_kubeconfig()).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(fs::File::create(&log).unwrap()).spawn().unwrap();
        Node { child, log }
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.0.kubectl();
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn kubectl(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// What kubectl prints. It must succeed.
    pub fn said(&self, arguments: &[&str]) -> String {
        let output = self.kubectl(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn apply(&self, object: &Value) {
        let mut kubectl = self.command(&["apply", "-f", "-"]).stdin(Stdio::piped()).spawn().unwrap();
        kubectl.stdin.take().unwrap().write_all(object.to_string().as_bytes()).unwrap();
        let output = kubectl.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    /// Asks again and again until the answer is good.
    pub async fn until(&self, what: &str, arguments: &[&str], holds: impl Fn(&str) -> bool) {
        let begun = Instant::now();
        loop {
            let output = self.kubectl(arguments);
            if output.status.success() && holds(&String::from_utf8_lossy(&output.stdout)) {
                return;
            }
            assert!(begun.elapsed() < LIMIT, "not so: {what}\nlast: {output:?}");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// `skep node` as the node `bee`.
pub fn skep_node(kubeconfig: &Path, data: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_skep"));
    command.args(["node", "--name", "bee", "--kubeconfig"]).arg(kubeconfig).arg("--data-dir").arg(data).args(arguments);
    command
}

/// A node or an operator that runs. Dropping it kills it.
pub struct Node {
    child: Child,
    log: PathBuf,
}

impl Node {
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to stop, and gives back how it ended and what it said.
    pub async fn stopped(self) -> (Option<i32>, String) {
        let process = self.process();
        self.ended_by("-TERM", process).await
    }

    /// Kills one of its processes, and waits until it has ended.
    pub async fn killed(self, process: u32) {
        self.ended_by("-KILL", process).await;
    }

    async fn ended_by(mut self, signal: &str, process: u32) -> (Option<i32>, String) {
        let sent = Command::new("kill").args([signal, &process.to_string()]).status().unwrap();
        assert!(sent.success());
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status.code(), self.log());
            }
            assert!(begun.elapsed() < LIMIT, "it does not end: {}", self.log());
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
