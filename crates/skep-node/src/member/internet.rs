//! Whether pods reach the rest of the world.

use std::net::SocketAddr;

use crate::broker::{self, Broker, BrokerError, HostProcess};
use crate::container::StartError;
use crate::isolation::Isolation;

/// Pods are connected as long as this is kept.
#[derive(Debug)]
pub(super) struct Internet {
    /// None where they use the network of the machine anyway.
    process: Option<HostProcess>,
}

/// Why they are not.
#[derive(Debug, thiserror::Error)]
pub enum Offline {
    #[error("pasta is not installed")]
    NotInstalled,
    #[error("{0}")]
    Refused(BrokerError),
}

impl Offline {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotInstalled => "install it (package passt) and start again; packages are pulled without it",
            Self::Refused(_) => "try `pasta --config-net true` by hand; packages are pulled without it",
        }
    }
}

impl Internet {
    pub(super) async fn connect(isolation: Isolation, broker: &Broker) -> Result<Self, Offline> {
        match isolation {
            Isolation::None => Ok(Self { process: None }),
            Isolation::Namespaces => match broker.internet().await {
                Ok(process) => Ok(Self { process: Some(process) }),
                Err(BrokerError::Command(StartError::ProgramNotFound { .. })) => Err(Offline::NotInstalled),
                Err(error) => Err(Offline::Refused(error)),
            },
        }
    }

    /// Who knows the names of the world.
    pub(super) fn names(&self) -> Option<SocketAddr> {
        self.process.as_ref().map(|_| SocketAddr::from((broker::NAMES, 53)))
    }
}
