//! What a program and the helper that is process 1 of its container say to each other.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::root::RootPlan;
use super::{Capabilities, Exit, StartError};

/// The process that the container is for. Everything ends with it.
pub(super) const MAIN: u32 = 0;

/// From the program to the helper.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// Make the world, and start the main process in it, if there is one. The network namespace comes along, if the
    /// world has one, then what comes along with [`Order::Run`].
    Begin(World, Option<Program>),
    /// Start a further process. Its standard streams come along, unless it gets a terminal, and what else it keeps.
    Run(u32, Program),
    /// Send a signal to a process.
    Signal(u32, i32),
}

/// From the helper to the program.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum News {
    /// The process runs. Its terminal comes along, if it has one.
    Started(u32),
    /// The process does not run.
    NotStarted(u32, StartError),
    /// The process has ended.
    Exited(u32, Exit),
}

/// What processes see around them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct World {
    pub root: Root,
    pub hostname: Option<String>,
    /// Whether a network namespace comes along.
    pub network: bool,
}

/// The file system that processes see.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Root {
    /// That of the caller, in its namespaces.
    Shared,
    /// That of the machine, with a `/proc` for the new process numbers.
    Machine,
    /// One of its own.
    Own(RootPlan),
}

/// A process to start.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Program {
    pub argv: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
    pub working_dir: Option<PathBuf>,
    pub identity: Identity,
    pub capabilities: Capabilities,
    pub place: Place,
    pub tty: bool,
}

/// Where a process stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Place {
    /// In a session of its own, with the privileges that containers have.
    Container,
    /// Next to the helper, with all of its privileges.
    Enclosure,
}

/// Who a process is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub user: Option<u32>,
    pub group: Option<u32>,
    pub groups: Vec<u32>,
}
