//! What is taken away when an MCPServer is deleted; the rest goes by garbage collection.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use skep_api::conditions::{self, Statement, reasons, types};
use skep_api::kinds::MCPServer;
use skep_api::kinds::mcp_server::MCPServerPhase;
use skep_api::names::{finalizers, proxy_pod};
use skep_control::Next;

use super::backend;
use crate::cluster::Cluster;
use crate::failure::Failure;
use crate::time::now;
use crate::write::{Writer, delete, has_finalizer};

/// What `status.message` says meanwhile.
const TERMINATING: &str = "MCP server is being terminated";

pub async fn finalize(cluster: &Cluster, server: &MCPServer, writer: &Writer<MCPServer>) -> Result<Next, Failure> {
    if !has_finalizer(server, finalizers::MCP_SERVER) {
        return Ok(Next::Rest);
    }
    let mut status = server.status.clone().unwrap_or_default();
    status.phase = Some(MCPServerPhase::Terminating);
    status.message = Some(TERMINATING.to_owned());
    let verdict = Statement::fails(types::READY, reasons::NOT_READY, TERMINATING);
    conditions::set(&mut status.conditions, verdict, server.metadata.generation, &now());
    if writer.status(server, &status).await? {
        // The object is another one now; this pass is repeated with it.
        return Ok(Next::Rest);
    }
    backend::remove(cluster, server).await?;
    delete::<_, ConfigMap>(cluster, server, &proxy_pod::run_config(&server.name_any())).await?;
    writer.remove_finalizer(server, finalizers::MCP_SERVER).await?;
    Ok(Next::Rest)
}
