//! What a container is to be, and how it can fail to become it.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Capabilities;

/// Without namespaces, the folder under which Skep's own programs find their volumes.
pub const VOLUME_ROOT_VARIABLE: &str = "SKEP_VOLUME_ROOT";

/// Without namespaces, the address at which Skep's own programs listen when they are told to listen on all.
pub const POD_ADDRESS_VARIABLE: &str = "SKEP_POD_ADDRESS";

/// Without namespaces, how far the second part of the addresses of pods and services is moved on the loopback, for Skep's
/// own programs: see [`crate::network::Reach`].
pub const ADDRESS_SHIFT_VARIABLE: &str = "SKEP_ADDRESS_SHIFT";

/// A process and the world it sees.
///
/// Without namespaces there is no such world: `hostname`, `hidden` and `read_only_root` have no effect, and mounts are
/// links below the folder that [`VOLUME_ROOT_VARIABLE`] in `env` names, or refused if it names none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerSpec {
    /// The program, which is looked up in the `PATH` of `env` inside the container, and its arguments.
    pub argv: Vec<String>,
    /// All of its environment: nothing is inherited.
    pub env: Vec<(String, String)>,
    /// Where it runs: `/` when absent.
    pub working_dir: Option<PathBuf>,
    /// The user: root of the container when absent.
    pub user: Option<u32>,
    /// The primary group: that of root when absent.
    pub group: Option<u32>,
    /// Further groups. An ordinary user cannot give any, but owns whatever they would open.
    pub groups: Vec<u32>,
    /// What its programs may do.
    pub capabilities: Capabilities,
    /// The host name: that of the machine when absent.
    pub hostname: Option<String>,
    /// What is brought in from outside. A later mount lies on top of an earlier one.
    pub mounts: Vec<Mount>,
    /// Folders of the machine that are empty inside, save for what `mounts` brings in. The home folder of the user is
    /// always among them.
    pub hidden: Vec<PathBuf>,
    /// Whether the container may write only to its mounts, `/dev` and `/proc`.
    pub read_only_root: bool,
    /// Whether it has a standard input; without one it reads the end of a file.
    pub stdin: bool,
    /// Whether it runs on a terminal.
    pub tty: bool,
}

/// A file or folder from outside, bound at a path inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// The path outside.
    pub source: PathBuf,
    /// The path inside. What is missing of it is made.
    pub target: PathBuf,
    /// Whether writing through it is refused.
    pub read_only: bool,
}

/// A further process in a running container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecSpec {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// All of its environment.
    pub env: Vec<(String, String)>,
    /// Whether it has a standard input.
    pub stdin: bool,
    /// Whether it runs on a terminal.
    pub tty: bool,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// The exit code; 128 + n after signal n, as containers report it.
    pub code: i32,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

/// Why a process did not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum StartError {
    #[error("no program to run")]
    NoProgram,
    #[error("exec: {program:?}: {}", not_found(program))]
    ProgramNotFound { program: String },
    #[error("exec: {program:?}: {cause}")]
    NotExecutable { program: String, cause: String },
    #[error("cannot change to the working folder {}: {cause}", path.display())]
    WorkingDir { path: PathBuf, cause: String },
    #[error("cannot mount {} at {}: {cause}", source_path.display(), target.display())]
    Mount { source_path: PathBuf, target: PathBuf, cause: String },
    #[error("cannot run as {identity}: {cause}")]
    User { identity: String, cause: String },
    #[error("cannot {step}: {cause}")]
    Kernel { step: String, cause: String },
    #[error("the container is gone")]
    Gone,
}

impl StartError {
    /// The kernel refused a step.
    pub(crate) fn kernel(step: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::Kernel { step: step.to_owned(), cause: cause.to_string() }
    }
}

impl Exit {
    /// The end by a signal.
    pub(crate) fn by_signal(signal: i32) -> Self {
        Self { code: 128 + signal, signal: Some(signal) }
    }

    /// The end with a code.
    pub(crate) fn with_code(code: i32) -> Self {
        Self { code, signal: None }
    }
}

fn not_found(program: &str) -> String {
    if program.contains('/') {
        format!("stat {program}: no such file or directory")
    } else {
        "executable file not found in $PATH".to_owned()
    }
}
