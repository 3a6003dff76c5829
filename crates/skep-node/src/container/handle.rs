//! A container seen from the program that started it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::net::unix::pipe;

use super::launch::{Ending, Watched};
use super::private;
use super::protocol::MAIN;
use super::root::RootPlan;
use super::stream::Streams;
use super::volume_root;
use super::{
    Capabilities, ContainerSpec, ExecSpec, Exit, Identity, Init, Place, Program, Root, StartError, Terminal, World,
};
use crate::isolation::Isolation;
use crate::network::PodNetwork;
use crate::sys::Namespaces;

/// Starts containers.
#[derive(Debug, Clone)]
pub struct Runtime {
    isolation: Isolation,
}

impl Runtime {
    /// A runtime that keeps its containers apart in this way.
    pub fn new(isolation: Isolation) -> Self {
        Self { isolation }
    }

    /// Starts a container, on the network of a pod or on that of this process, and returns when its program runs.
    pub async fn start(&self, spec: &ContainerSpec, network: Option<&PodNetwork>) -> Result<Container, StartError> {
        let (namespaces, root) = match self.isolation {
            Isolation::Namespaces => (Namespaces::Container, Root::Own(root_plan(spec))),
            Isolation::None => {
                volume_root::link(&spec.mounts, &spec.env)?;
                (Namespaces::None, Root::Shared)
            }
        };
        let hostname = spec.hostname.clone().filter(|_| self.isolation == Isolation::Namespaces);
        let network = network.and_then(PodNetwork::namespace);
        let world = World { root, hostname, network: network.is_some() };
        let keep = Keep {
            capabilities: spec.capabilities,
            identity: Identity { user: spec.user, group: spec.group, groups: spec.groups.clone() },
            working_dir: spec.working_dir.clone().unwrap_or_else(|| PathBuf::from("/")),
        };
        let program = keep.program(&spec.argv, &spec.env, spec.tty);
        let streams = Streams::open(spec.stdin, spec.tty).map_err(StartError::kernel("make the standard streams"))?;
        let descriptors: Vec<_> = network.into_iter().chain(streams.far()).collect();
        let (init, main) = Init::launch(namespaces, world, Some(program), &descriptors).await?;
        Container::new(Arc::new(init), main, streams, keep)
    }
}

fn root_plan(spec: &ContainerSpec) -> RootPlan {
    RootPlan {
        mounts: spec.mounts.clone(),
        working_dir: spec.working_dir.clone(),
        hidden: spec.hidden.iter().cloned().chain(private::places()).collect(),
        read_only: spec.read_only_root,
    }
}

/// What further processes have in common with the first.
#[derive(Debug, Clone)]
struct Keep {
    identity: Identity,
    capabilities: Capabilities,
    working_dir: PathBuf,
}

impl Keep {
    fn program(&self, argv: &[String], env: &[(String, String)], tty: bool) -> Program {
        Program {
            argv: argv.iter().map(OsString::from).collect(),
            env: env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            working_dir: Some(self.working_dir.clone()),
            identity: self.identity.clone(),
            capabilities: self.capabilities,
            place: Place::Container,
            tty,
        }
    }
}

/// A running container, or a further process in one. Dropping it kills it.
#[derive(Debug)]
pub struct Container {
    init: Arc<Init>,
    id: u32,
    keep: Keep,
    ending: Ending,
    stdin: Option<pipe::Sender>,
    stdout: Option<pipe::Receiver>,
    stderr: Option<pipe::Receiver>,
    terminal: Option<Terminal>,
}

impl Container {
    fn new(init: Arc<Init>, process: Watched, streams: Streams, keep: Keep) -> Result<Self, StartError> {
        let Watched { id, terminal, ending } = process;
        let terminal = terminal.map(Terminal::new).transpose().map_err(StartError::kernel("use the terminal"))?;
        let Streams { stdin, stdout, stderr, far: _ } = streams;
        Ok(Self { init, id, keep, ending, stdin, stdout, stderr, terminal })
    }

    /// Its standard input, once; none without `stdin`, and none with a terminal.
    pub fn take_stdin(&mut self) -> Option<pipe::Sender> {
        self.stdin.take()
    }

    /// Its standard output, once; none with a terminal.
    pub fn take_stdout(&mut self) -> Option<pipe::Receiver> {
        self.stdout.take()
    }

    /// Its standard error, once; none with a terminal.
    pub fn take_stderr(&mut self) -> Option<pipe::Receiver> {
        self.stderr.take()
    }

    /// Its terminal, if it has one.
    pub fn terminal(&self) -> Option<Terminal> {
        self.terminal.clone()
    }

    /// Waits until it is gone: for a container, with all that it started. Any number of callers may wait.
    pub async fn wait(&self) -> Exit {
        self.ending.wait().await
    }

    /// Asks it to stop: SIGTERM to the process group of its program.
    pub fn terminate(&self) {
        self.init.signal(self.id, libc::SIGTERM);
    }

    /// Kills it: a container with everything in it, a further process with its process group.
    pub fn kill(&self) {
        if self.id == MAIN {
            self.init.kill();
        } else {
            self.init.signal(self.id, libc::SIGKILL);
        }
    }

    /// Starts a further process in the same container, as the same user in the same folder.
    pub async fn exec(&self, spec: &ExecSpec) -> Result<Container, StartError> {
        let streams = Streams::open(spec.stdin, spec.tty).map_err(StartError::kernel("make the standard streams"))?;
        let program = self.keep.program(&spec.argv, &spec.env, spec.tty);
        let process = self.init.run(program, &streams.far()).await?;
        Self::new(self.init.clone(), process, streams, self.keep.clone())
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        self.kill();
    }
}
