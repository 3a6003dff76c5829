//! Whether containers are kept apart by namespaces, and the namespaces that hold all of them.

mod enclosure;
mod guard;
mod memory;
mod refusal;

pub use enclosure::{EnterError, is_inside, run_inside};
pub(crate) use guard::become_guard;
pub use memory::memory_folder;
pub use refusal::{Refusal, probe};

use serde::{Deserialize, Serialize};

/// How containers are kept apart from the machine and from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Isolation {
    /// Each container has a file system, process numbers and a network of its own.
    Namespaces,
    /// Containers are plain processes, for machines where the kernel refuses namespaces.
    None,
}
