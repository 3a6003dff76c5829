//! Makes the world that the processes of a container see.

use std::os::fd::{AsFd as _, OwnedFd};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::container::StartError;
use crate::container::protocol::{Root, World};
use crate::container::root;

/// Enters the world, for this process and all that it starts.
pub(super) fn enter(world: &World, network: Option<OwnedFd>) -> Result<(), StartError> {
    if let Some(network) = network {
        move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|error| StartError::kernel("join the network of the pod")(error.into()))?;
    }
    match &world.root {
        Root::Shared => Ok(()),
        Root::Machine => root::renew_proc().map_err(StartError::kernel("mount a new /proc")),
        Root::Own(plan) => root::enter(plan),
    }?;
    match &world.hostname {
        Some(name) => rustix::system::sethostname(name.as_bytes())
            .map_err(|error| StartError::kernel("set the host name")(error.into())),
        None => Ok(()),
    }
}
