//! Containers without namespaces: what they are told instead, and what cannot work.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};

use k8s_openapi::api::core::v1::Container;

use super::context::Context;
use crate::container::{ADDRESS_SHIFT_VARIABLE, Mount, POD_ADDRESS_VARIABLE, VOLUME_ROOT_VARIABLE};
use crate::image::Program;

/// Where pods get their account, whether they want it or not.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// What only namespaces make possible.
#[derive(Debug, thiserror::Error)]
pub(super) enum PlainError {
    #[error(
        "{path} cannot be mounted: without namespaces only Skep's own programs have volumes (hint: allow namespaces on \
         this machine; skep up --isolation=namespaces says how)"
    )]
    Volume { path: String },
    #[error(
        "port {port} is in use on this machine: without namespaces all programs share its ports (hint: give the \
         container another port, or allow namespaces; skep up --isolation=namespaces says how)"
    )]
    Port { port: u16 },
    #[error("cannot make a folder for the volumes: {0}")]
    Folder(#[from] io::Error),
}

/// Tells Skep's own programs where their address, their volumes, services and the API server are; looks after others, who cannot be told.
pub(super) fn adapt(
    context: &Context,
    container: &Container,
    program: &Program,
    env: &mut BTreeMap<String, String>,
    mounts: &mut Vec<Mount>,
) -> Result<(), PlainError> {
    if program.own {
        let root = context.files.join(format!("root-{}", container.name));
        fs::create_dir_all(&root)?;
        env.insert(VOLUME_ROOT_VARIABLE.to_owned(), root.display().to_string());
        env.extend(context.address().map(|address| (POD_ADDRESS_VARIABLE.to_owned(), address.to_string())));
        let shift = context.node.network.reach().shift();
        env.extend(shift.map(|shift| (ADDRESS_SHIFT_VARIABLE.to_owned(), shift.to_string())));
        if let Some(server) = context.node.api_server {
            env.insert("KUBERNETES_SERVICE_HOST".to_owned(), server.ip().to_string());
            env.insert("KUBERNETES_SERVICE_PORT".to_owned(), server.port().to_string());
        }
        return Ok(());
    }
    mounts.retain(|mount| !mount.target.starts_with(ACCOUNT));
    if let Some(mount) = mounts.first() {
        return Err(PlainError::Volume { path: mount.target.display().to_string() });
    }
    let ports = container.ports.iter().flatten().filter(|port| port.protocol.as_deref() != Some("UDP"));
    for port in ports.filter_map(|port| u16::try_from(port.container_port).ok()) {
        // It most likely listens on all addresses, as containers do.
        let taken = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))
            .is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse);
        if taken {
            return Err(PlainError::Port { port });
        }
    }
    Ok(())
}
