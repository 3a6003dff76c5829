//! A real Kubernetes control plane for tests: etcd, kube-apiserver, kube-controller-manager and kube-scheduler, in a
//! temporary folder, on free loopback ports, gone when the test is over.
//!
//! The binaries come from `cargo xtask control-plane`; `KUBEBUILDER_ASSETS` names their folder.

mod folder;
mod pki;
mod start;

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;

use crate::process::Process;
use folder::Folder;
pub use pki::{Authority, Identity, PkiError};

/// Names the folder of ready binaries.
pub const BINARIES_VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// Why there is no control plane.
#[derive(Debug, thiserror::Error)]
pub enum ControlPlaneError {
    #[error("cannot make a temporary folder: {0}")]
    Folder(io::Error),
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("no free port on the loopback interface: {0}")]
    Port(io::Error),
    #[error(transparent)]
    Pki(#[from] PkiError),
    #[error("cannot start {name}: {source}")]
    Spawn { name: &'static str, source: io::Error },
    #[error("{0}")]
    Died(String),
    #[error("not ready within {}: {waiting_for}", humantime(*.after))]
    Timeout { after: Duration, waiting_for: &'static str },
    #[error("cannot make a client: {0}")]
    Client(String),
}

fn humantime(duration: Duration) -> String {
    format!("{} s", duration.as_secs())
}

/// A running control plane. Dropping it kills its processes and removes its folder.
#[derive(Debug)]
pub struct ControlPlane {
    // Dropped in this order: processes first, then the folder they write to.
    processes: Vec<Process>,
    authority: Authority,
    server: String,
    binaries: PathBuf,
    folder: Folder,
}

impl ControlPlane {
    /// Starts a control plane, or records that `test` is skipped because there are no binaries to start.
    ///
    /// # Panics
    ///
    /// When there are binaries but the control plane does not come up, and when there are none in CI.
    pub async fn start_or_skip(test: &str) -> Option<Self> {
        let binaries = binaries_or_skip(test)?;
        Some(or_fail(test, Self::start(&binaries).await))
    }

    /// Like [`Self::start_or_skip`], with etcd and the API server only: see [`Self::start_bare`].
    ///
    /// # Panics
    ///
    /// As [`Self::start_or_skip`] does.
    pub async fn start_bare_or_skip(test: &str) -> Option<Self> {
        let binaries = binaries_or_skip(test)?;
        Some(or_fail(test, Self::start_bare(&binaries).await))
    }

    /// The address of the API server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The folder of this control plane: logs, certificates and whatever the test puts there.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The authority that every part of the control plane trusts.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// What its processes hold in memory together, in bytes.
    pub fn resident_bytes(&self) -> u64 {
        self.processes.iter().filter_map(Process::resident_bytes).sum()
    }

    /// The kubectl of the same release.
    pub fn kubectl(&self) -> std::process::Command {
        let mut command = std::process::Command::new(self.binaries.join("kubectl"));
        command.arg("--kubeconfig").arg(self.admin_kubeconfig()).env("HOME", self.folder());
        command
    }

    /// A kubeconfig file of a member of `system:masters`.
    pub fn admin_kubeconfig(&self) -> PathBuf {
        self.folder().join("admin.kubeconfig")
    }

    /// A client that may do everything.
    pub async fn admin(&self) -> Result<Client, ControlPlaneError> {
        self.client_of(&self.authority.client("admin", Some("system:masters"))?).await
    }

    /// A client with the given user name and group, as RBAC sees them.
    pub async fn client(&self, user: &str, group: Option<&str>) -> Result<Client, ControlPlaneError> {
        self.client_of(&self.authority.client(user, group)?).await
    }

    /// A client that shows a token, such as a service account's, and nothing else.
    pub async fn bearer(&self, token: &str) -> Result<Client, ControlPlaneError> {
        let document = kubeconfig_document(&self.server, &self.authority.certificate(), &json!({ "token": token }));
        client(&document).await
    }

    /// The identity of a node at a loopback address.
    pub fn node(&self, name: &str) -> Result<Identity, ControlPlaneError> {
        Ok(self.authority.node(name, IpAddr::V4(Ipv4Addr::LOCALHOST))?)
    }

    /// A kubeconfig document for an identity.
    pub fn kubeconfig(&self, identity: &Identity) -> String {
        kubeconfig(&self.server, &self.authority.certificate(), identity)
    }

    async fn client_of(&self, identity: &Identity) -> Result<Client, ControlPlaneError> {
        client(&self.kubeconfig(identity)).await
    }
}

/// The folder of ready binaries, or a record that `test` is skipped because there is none.
///
/// # Panics
///
/// When there is none in CI.
pub fn binaries_or_skip(test: &str) -> Option<PathBuf> {
    let Some(binaries) = std::env::var_os(BINARIES_VARIABLE).filter(|folder| !folder.is_empty()) else {
        let reason =
            "no control plane: run `cargo xtask test`, or set KUBEBUILDER_ASSETS=\"$(cargo xtask control-plane)\"";
        crate::skip::skip_outside_ci(test, reason);
        return None;
    };
    Some(PathBuf::from(binaries))
}

#[expect(clippy::panic, reason = "it runs in tests only, and failing the test is its purpose")]
fn or_fail(test: &str, started: Result<ControlPlane, ControlPlaneError>) -> ControlPlane {
    started.unwrap_or_else(|error| panic!("the control plane of {test} did not start: {error}"))
}

/// A client of whoever the kubeconfig document names.
pub(crate) async fn client(kubeconfig: &str) -> Result<Client, ControlPlaneError> {
    let failed = |error: &dyn std::fmt::Display| ControlPlaneError::Client(error.to_string());
    let parsed = Kubeconfig::from_yaml(kubeconfig).map_err(|error| failed(&error))?;
    let config =
        Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default()).await.map_err(|error| failed(&error))?;
    Client::try_from(config).map_err(|error| failed(&error))
}

fn kubeconfig(server: &str, authority: &str, identity: &Identity) -> String {
    let user = json!({
        "client-certificate-data": encode(&identity.certificate),
        "client-key-data": encode(&identity.key),
    });
    kubeconfig_document(server, authority, &user)
}

fn encode(pem: &str) -> k8s_openapi::ByteString {
    k8s_openapi::ByteString(pem.as_bytes().to_vec())
}

/// A kubeconfig document. JSON is YAML too.
fn kubeconfig_document(server: &str, authority: &str, user: &serde_json::Value) -> String {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{ "name": "test", "context": { "cluster": "test", "user": "test" } }],
        "clusters": [{
            "name": "test",
            "cluster": { "server": server, "certificate-authority-data": encode(authority) },
        }],
        "users": [{ "name": "test", "user": user }],
    })
    .to_string()
}
