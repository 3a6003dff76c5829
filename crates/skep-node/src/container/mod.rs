//! Starts processes in a file system of their own, and stops all that they started.
//!
//! Between this process and a container is a helper, `init`: the same program started again, process 1 of the
//! container. It builds the file system, starts the container's program and further ones, reaps what they leave behind,
//! and ends with everything in it when this process lets go of the channel between them, be it by dying.

mod capabilities;
mod handle;
mod init;
mod launch;
mod private;
mod protocol;
mod root;
mod spec;
mod stream;
mod volume_root;

pub use capabilities::Capabilities;
pub use handle::{Container, Runtime};
pub use spec::{
    ADDRESS_SHIFT_VARIABLE, ContainerSpec, ExecSpec, Exit, Mount, POD_ADDRESS_VARIABLE, StartError,
    VOLUME_ROOT_VARIABLE,
};
pub use stream::Terminal;

pub(crate) use init::{become_init, groups_can_be_set};
pub(crate) use launch::{Ending, Init, LaunchError, try_world};
pub(crate) use private::is_in_a_home;
pub(crate) use protocol::{Identity, Place, Program, Root, World};
pub(crate) use stream::Streams;
