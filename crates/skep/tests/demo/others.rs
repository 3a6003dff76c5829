//! Clients and servers that others wrote, as commands. What those of one language have in common stands before the script of
//! each.

use std::path::{Path, PathBuf};
use std::process::Command;

use skep_conformance::skip::skip_outside_ci;
use skep_proxy::stdio::ChildProcess;

use crate::npm::Packages;
use crate::once;

/// The Python SDK that has sessions.
pub(crate) const FIRST_PYTHON: &str = "mcp==1.30.0";
/// The one that speaks all revisions.
pub(crate) const SECOND_PYTHON: &str = "mcp==2.3.0";

/// A version of the Python SDK, or nothing when this machine cannot have it; then the test is recorded as skipped.
pub(crate) fn python_sdk(test: &str, package: &str) -> Option<PathBuf> {
    let installed = once::install("pypi", package, |folder| {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--retries=1", "--target"]).arg(folder).arg(package);
        pip
    });
    installed.map_err(|reason| skip_outside_ci(test, &reason)).ok()
}

/// A client of the first TypeScript SDK for a URL, or for a command that is the server.
pub(crate) fn first_client(packages: &Packages, arguments: &[&str]) -> Command {
    script(packages, concat!(include_str!("sdk_use.mjs"), include_str!("sdk_client.mjs")), arguments)
}

pub(crate) fn second_client(packages: &Packages, url: &str) -> Command {
    script(packages, concat!(include_str!("sdk_use.mjs"), include_str!("sdk2_client.mjs")), &[url])
}

pub(crate) fn first_server(packages: &Packages, transport: &str) -> Command {
    script(packages, concat!(include_str!("sdk_tools.mjs"), include_str!("sdk_server.mjs")), &[transport])
}

/// The same, which knows no revision but the newest one of its version.
pub(crate) fn newest_server(packages: &Packages, transport: &str) -> Command {
    let mut server = first_server(packages, transport);
    server.arg("newest");
    server
}

pub(crate) fn second_server(packages: &Packages, transport: &str) -> Command {
    script(packages, concat!(include_str!("sdk_tools.mjs"), include_str!("sdk2_server.mjs")), &[transport])
}

pub(crate) fn python_client(packages: &Path, url: &str) -> Command {
    python(packages, concat!(include_str!("python_use.py"), include_str!("python_client.py")), url)
}

pub(crate) fn second_python_client(packages: &Path, url: &str) -> Command {
    python(packages, concat!(include_str!("python_use.py"), include_str!("python2_client.py")), url)
}

pub(crate) fn python_server(packages: &Path, transport: &str) -> Command {
    python(packages, concat!(include_str!("python_tools.py"), include_str!("python_server.py")), transport)
}

pub(crate) fn second_python_server(packages: &Path, transport: &str) -> Command {
    python(packages, concat!(include_str!("python_tools.py"), include_str!("python2_server.py")), transport)
}

fn script(packages: &Packages, script: &str, arguments: &[&str]) -> Command {
    let mut node = packages.node();
    node.args(["--input-type=module", "--eval", script, "--"]).args(arguments);
    node
}

fn python(packages: &Path, script: &str, argument: &str) -> Command {
    let mut python = Command::new("python3");
    python.env("PYTHONPATH", packages).args(["-c", script, argument]);
    python
}

/// A command as a process that a bridge starts.
pub(crate) fn process(command: &Command) -> ChildProcess {
    let folder = command.get_current_dir().unwrap_or(Path::new("/"));
    let words = ["-C".as_ref(), folder.as_os_str(), command.get_program()].into_iter().chain(command.get_args());
    let environment = command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
    let arguments = words.map(ToOwned::to_owned).collect();
    ChildProcess { program: "env".into(), arguments, environment: environment.collect() }
}
