//! What the objects of a proxy are called, and whether they can be called that.

use std::collections::BTreeSet;
use std::path::Path;

use skep_api::kind::Kind as _;
use skep_api::kinds::transport::ServerTransport;
use skep_api::kinds::{MCPRemoteProxy, MCPServer};
use skep_api::names::labels::{self, Labels};
use skep_api::names::{LABEL_LIMIT, mcp_remote_proxy, mcp_server};

use super::pod::volumes;
use super::{Inputs, Target};
use crate::object_names::is_label;

/// What the controllers of Kubernetes append to the name of a StatefulSet for a label: a hyphen and a hash.
const REVISION_SUFFIX: usize = 11;

impl Inputs<'_> {
    /// The kind of the workload.
    pub(super) fn kind(&self) -> &'static str {
        match self.target {
            Target::Server(_) => MCPServer::DEFINITION.kind,
            Target::Remote(_) => MCPRemoteProxy::DEFINITION.kind,
        }
    }

    /// Base labels and selector. Nobody else's pods carry all of them.
    pub(super) fn labels(&self) -> Labels {
        match self.target {
            Target::Server(_) => labels::mcp_server(self.common.name),
            Target::Remote(_) => labels::mcp_remote_proxy(self.common.name),
        }
    }

    pub(super) fn service_name(&self) -> String {
        match self.target {
            Target::Server(_) => mcp_server::proxy_service(self.common.name),
            Target::Remote(_) => mcp_remote_proxy::proxy_service(self.common.name),
        }
    }

    /// ServiceAccount, Role and RoleBinding that are made for the proxy.
    pub(super) fn account_name(&self) -> String {
        match self.target {
            Target::Server(_) => mcp_server::proxy_runner(self.common.name),
            Target::Remote(_) => mcp_remote_proxy::proxy_runner(self.common.name),
        }
    }
}

/// Whether everything that is named after the workload can have its name. The text says what to do.
pub fn check_names(inputs: &Inputs<'_>) -> Result<(), String> {
    let (kind, name) = (inputs.kind(), inputs.common.name);
    if matches!(inputs.target, Target::Server(_)) && mcp_server::is_reserved(name) {
        return Err(format!(
            "{kind} name \"{name}\" is reserved: the selector app={name} of its StatefulSet would match the proxies of \
             other objects; create it again under another name"
        ));
    }
    if name.contains('.') {
        return Err(format!(
            "{kind} name \"{name}\" has a dot, which its Service {} cannot have; create it again under a name without \
             dots",
            inputs.service_name()
        ));
    }
    let (what, added) = longest(inputs);
    let limit = LABEL_LIMIT - added;
    if name.len() > limit {
        return Err(format!(
            "{kind} name \"{name}\" has {} characters, and its {what} leaves room for {limit}; create it again under a \
             shorter name",
            name.len()
        ));
    }
    Ok(())
}

/// What adds most to the name, of all that has to fit into 63 characters, and how much.
fn longest(inputs: &Inputs<'_>) -> (&'static str, usize) {
    let added = |child: String| child.len() - inputs.common.name.len();
    match inputs.target {
        Target::Server(spec) if spec.transport != ServerTransport::Stdio => {
            ("headless Service", added(mcp_server::backend_headless_service(inputs.common.name)))
        }
        Target::Server(_) => ("StatefulSet", REVISION_SUFFIX),
        Target::Remote(_) => ("Service", added(inputs.service_name())),
    }
}

/// A volume of the user must not have the name or the place of another one. The text says what to do.
pub fn check_volumes(inputs: &Inputs<'_>) -> Result<(), String> {
    let Target::Server(spec) = inputs.target else { return Ok(()) };
    let mounted = volumes::mounted(inputs);
    let is_theirs = |name: &str| spec.volumes.iter().any(|volume| volume.name == name);
    let others = mounted.iter().filter(|mounted| !is_theirs(&mounted.volume.name));
    // A path says the same with and without a slash at its end.
    let mut paths: BTreeSet<&Path> = others.map(|mounted| Path::new(&mounted.mount.mount_path)).collect();
    for (index, volume) in spec.volumes.iter().enumerate() {
        let field = format!("spec.volumes[{index}]");
        if !is_label(&volume.name) {
            return Err(format!(
                "{field}.name \"{}\" is no name for a volume; use at most {LABEL_LIMIT} lower case letters, digits and \
                 hyphens, with a letter or digit at both ends",
                volume.name
            ));
        }
        if mounted.iter().filter(|mounted| mounted.volume.name == volume.name).count() > 1 {
            return Err(format!(
                "{field}.name \"{}\" is the name of a volume of the proxy; choose another",
                volume.name
            ));
        }
        if !paths.insert(Path::new(&volume.mount_path)) {
            return Err(format!(
                "{field}.mountPath \"{}\" is where another volume is mounted; choose another",
                volume.mount_path
            ));
        }
    }
    Ok(())
}
