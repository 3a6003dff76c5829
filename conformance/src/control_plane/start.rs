//! Starting the processes in the right order and knowing when they are ready.
//!
//! The flags are those that were measured to work (the specification's page on the real control plane).

use std::fs;
use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client};
use tokio::time::Instant;

use super::folder::Folder;
use super::pki::{Authority, Identity, PemFolder, service_account_keys};
use super::{ControlPlane, ControlPlaneError, client, kubeconfig};
use crate::ports::free_ports;
use crate::process::Process;

/// Three to five seconds are usual; the rest is for a machine that is busy building.
const START_LIMIT: Duration = Duration::from_secs(90);
/// How often a start is tried when somebody else has taken a port.
const ATTEMPTS: usize = 3;
const POLL: Duration = Duration::from_millis(50);

/// How far etcd goes before it acknowledges a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Durability {
    /// To the disk, as in production.
    Disk,
    /// To the operating system: a test has nothing to lose that a sync would save.
    Memory,
}

impl ControlPlane {
    /// Starts a control plane from a folder of binaries and waits until pods can be created.
    pub async fn start(binaries: &Path) -> Result<Self, ControlPlaneError> {
        let (mut control_plane, layout, deadline) = Self::start_api_server(binaries, Durability::Memory).await?;
        let admin = client(&layout.admin_kubeconfig).await?;
        control_plane.spawn("kube-controller-manager", &layout.controller_manager)?;
        control_plane.spawn("kube-scheduler", &layout.scheduler)?;
        // Pods are refused until this account exists, which is a while after the server calls itself ready.
        control_plane.wait("the default service account", deadline, || has_default_account(&admin)).await?;
        Ok(control_plane)
    }

    /// Starts etcd and the API server only, for tests that bring their own controllers. There is no default service
    /// account, so pods are refused until somebody makes one.
    pub async fn start_bare(binaries: &Path) -> Result<Self, ControlPlaneError> {
        let (control_plane, _, _) = Self::start_api_server(binaries, Durability::Memory).await?;
        Ok(control_plane)
    }

    /// Like [`Self::start_bare`], with every write on the disk before it is acknowledged: for measurements.
    pub async fn start_durable(binaries: &Path) -> Result<Self, ControlPlaneError> {
        let (control_plane, _, _) = Self::start_api_server(binaries, Durability::Disk).await?;
        Ok(control_plane)
    }

    /// Another program may take a port between our look and the start; then there are others.
    async fn start_api_server(
        binaries: &Path,
        durability: Durability,
    ) -> Result<(Self, Layout, Instant), ControlPlaneError> {
        for _ in 1..ATTEMPTS {
            match Self::try_api_server(binaries, durability).await {
                Err(ControlPlaneError::Died(words)) if words.contains("address already in use") => {}
                started => return started,
            }
        }
        Self::try_api_server(binaries, durability).await
    }

    async fn try_api_server(
        binaries: &Path,
        durability: Durability,
    ) -> Result<(Self, Layout, Instant), ControlPlaneError> {
        let folder = Folder::new().map_err(ControlPlaneError::Folder)?;
        let (layout, authority) = Layout::write(folder.path(), durability)?;
        let mut control_plane = Self {
            processes: Vec::new(),
            server: layout.server.clone(),
            binaries: binaries.to_path_buf(),
            authority,
            folder,
        };
        let deadline = Instant::now() + START_LIMIT;
        control_plane.spawn("etcd", &layout.etcd)?;
        control_plane.spawn("kube-apiserver", &layout.api_server)?;
        let admin = client(&layout.admin_kubeconfig).await?;
        control_plane.wait("the API server", deadline, || is_ready(&admin)).await?;
        Ok((control_plane, layout, deadline))
    }

    fn spawn(&mut self, name: &'static str, arguments: &[String]) -> Result<(), ControlPlaneError> {
        let process = Process::start(name, &self.binaries.join(name), arguments, self.folder.path())
            .map_err(|source| ControlPlaneError::Spawn { name, source })?;
        self.processes.push(process);
        Ok(())
    }

    async fn wait<F: Future<Output = bool>>(
        &mut self,
        waiting_for: &'static str,
        deadline: Instant,
        check: impl Fn() -> F,
    ) -> Result<(), ControlPlaneError> {
        while !check().await {
            if let Some(last_words) = self.processes.iter_mut().find_map(Process::last_words) {
                return Err(ControlPlaneError::Died(last_words));
            }
            if Instant::now() >= deadline {
                return Err(ControlPlaneError::Timeout { after: START_LIMIT, waiting_for });
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }
}

async fn is_ready(client: &Client) -> bool {
    let Ok(request) = http_get("/readyz") else {
        return false;
    };
    client.request_text(request).await.is_ok_and(|answer| answer == "ok")
}

fn http_get(path: &str) -> Result<http::Request<Vec<u8>>, http::Error> {
    http::Request::get(path).body(Vec::new())
}

async fn has_default_account(client: &Client) -> bool {
    Api::<ServiceAccount>::namespaced(client.clone(), "default").get("default").await.is_ok()
}

/// Files and flags of a control plane, before anything runs.
struct Layout {
    server: String,
    admin_kubeconfig: String,
    etcd: Vec<String>,
    api_server: Vec<String>,
    controller_manager: Vec<String>,
    scheduler: Vec<String>,
}

impl Layout {
    fn write(folder: &Path, durability: Durability) -> Result<(Self, Authority), ControlPlaneError> {
        let [etcd_client, etcd_peer, secure, manager, scheduler] = free_ports().map_err(ControlPlaneError::Port)?;
        let server = format!("https://127.0.0.1:{secure}");
        let etcd_url = format!("http://127.0.0.1:{etcd_client}");
        let pems = PemFolder(folder.join("pki"));
        fs::create_dir(pems.path()).map_err(|source| ControlPlaneError::Write { path: pems.0.clone(), source })?;
        let authority = Authority::new()?;
        let ca = pems.write_identity("ca", &authority.identity())?;
        let tls = pems.write_identity("apiserver", &authority.api_server()?)?;
        let kubelet_client =
            pems.write_identity("kubelet-client", &authority.client("kube-apiserver", Some("system:masters"))?)?;
        let (signing, checking) = service_account_keys()?;
        let signing = pems.write("service-accounts.key", &signing)?;
        let checking = pems.write("service-accounts.pub", &checking)?;

        let kubeconfig_of = |name: &str, identity: &Identity| {
            let path = folder.join(format!("{name}.kubeconfig"));
            let document = kubeconfig(&server, &authority.certificate(), identity);
            match fs::write(&path, &document) {
                Ok(()) => Ok((path, document)),
                Err(source) => Err(ControlPlaneError::Write { path, source }),
            }
        };
        let (_, admin_kubeconfig) = kubeconfig_of("admin", &authority.client("admin", Some("system:masters"))?)?;
        let (manager_kubeconfig, _) =
            kubeconfig_of("controller-manager", &authority.client("system:kube-controller-manager", None)?)?;
        let (scheduler_kubeconfig, _) = kubeconfig_of("scheduler", &authority.client("system:kube-scheduler", None)?)?;

        let mut controller_manager = delegated(&manager_kubeconfig, manager);
        controller_manager.extend(flags(&[
            ("use-service-account-credentials", "true"),
            ("service-account-private-key-file", &shown(&signing)),
            ("root-ca-file", &shown(&ca.0)),
            ("cluster-signing-cert-file", &shown(&ca.0)),
            ("cluster-signing-key-file", &shown(&ca.1)),
            // With the default limits the default service account comes five seconds late.
            ("kube-api-qps", "500"),
            ("kube-api-burst", "1000"),
        ]));
        let api_server = flags(&[
            ("etcd-servers", &etcd_url),
            ("bind-address", "127.0.0.1"),
            ("advertise-address", "127.0.0.1"),
            ("secure-port", &secure.to_string()),
            ("endpoint-reconciler-type", "none"),
            ("tls-cert-file", &shown(&tls.0)),
            ("tls-private-key-file", &shown(&tls.1)),
            ("client-ca-file", &shown(&ca.0)),
            ("authorization-mode", "Node,RBAC"),
            ("allow-privileged", "true"),
            ("service-cluster-ip-range", "10.0.0.0/16"),
            ("service-account-issuer", "https://kubernetes.default.svc"),
            // Pods cannot reach the address that it would name otherwise.
            ("service-account-jwks-uri", "https://kubernetes.default.svc/openid/v1/jwks"),
            ("service-account-key-file", &shown(&checking)),
            ("service-account-signing-key-file", &shown(&signing)),
            ("kubelet-client-certificate", &shown(&kubelet_client.0)),
            ("kubelet-client-key", &shown(&kubelet_client.1)),
            ("kubelet-certificate-authority", &shown(&ca.0)),
            ("kubelet-preferred-address-types", "InternalIP"),
        ]);
        let peer_url = format!("http://127.0.0.1:{etcd_peer}");
        let etcd = flags(&[
            ("data-dir", &shown(&folder.join("etcd"))),
            ("listen-client-urls", &etcd_url),
            ("advertise-client-urls", &etcd_url),
            ("listen-peer-urls", &peer_url),
            ("initial-advertise-peer-urls", &peer_url),
            ("initial-cluster", &format!("default={peer_url}")),
            ("unsafe-no-fsync", if durability == Durability::Memory { "true" } else { "false" }),
            ("log-level", "warn"),
        ]);
        let scheduler = delegated(&scheduler_kubeconfig, scheduler);
        Ok((
            Self { server: server.clone(), admin_kubeconfig, etcd, api_server, controller_manager, scheduler },
            authority,
        ))
    }
}

/// What the controller manager and the scheduler have in common.
fn delegated(kubeconfig: &Path, port: u16) -> Vec<String> {
    let kubeconfig = shown(kubeconfig);
    flags(&[
        ("kubeconfig", &kubeconfig),
        ("authentication-kubeconfig", &kubeconfig),
        ("authorization-kubeconfig", &kubeconfig),
        ("bind-address", "127.0.0.1"),
        ("secure-port", &port.to_string()),
        ("leader-elect", "false"),
    ])
}

fn flags(pairs: &[(&str, &str)]) -> Vec<String> {
    pairs.iter().map(|(name, value)| format!("--{name}={value}")).collect()
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
