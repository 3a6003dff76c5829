//! How clients and servers of different eras are brought together, where somebody wants that in another way than usual.

use std::time::Duration;

/// Of which era a server is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BackendEra {
    /// It is asked.
    #[default]
    Auto,
    /// It has sessions.
    Legacy,
    /// Its requests stand alone.
    Modern,
}

/// Whether calls wait here whose server asks something, until their clients come back with the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ParkedCalls {
    /// They do, unless other proxies serve the same clients.
    #[default]
    Auto,
    /// They do, and clients come back to the same proxy, or in vain.
    On,
    /// They do not. Servers are told that nobody can be asked.
    Off,
}

impl ParkedCalls {
    /// Whether calls wait. `is_shared` says whether other proxies serve the same clients.
    pub(crate) fn are_on(self, is_shared: bool) -> bool {
        match self {
            Self::Auto => !is_shared,
            Self::On => true,
            Self::Off => false,
        }
    }

    /// Whether clients of sessions can be asked something on the way of a request. Their answers are requests of their own,
    /// which come to whichever proxy they come to.
    pub(crate) fn reach_sessions(self, is_shared: bool) -> bool {
        !is_shared || self == Self::On
    }
}

/// Who uses a session at the server that was opened for a client without one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BackendSessions {
    /// All requests of one client. Those of clients that do not say who they are have one each.
    #[default]
    PerPrincipal,
    /// One request, whoever makes it.
    PerRequest,
    /// All requests of one client; and those of all that do not say who they are together, which see what the others have
    /// left in it.
    Shared,
}

/// All of it.
#[derive(Debug, Clone)]
pub struct EraSettings {
    /// Of which era the server is.
    pub era: BackendEra,
    /// Whether calls wait for their clients.
    pub parked_calls: ParkedCalls,
    /// Who uses a session at the server.
    pub sessions: BackendSessions,
    /// How long such a session lives that nobody uses.
    pub session_idle: Duration,
}

impl Default for EraSettings {
    fn default() -> Self {
        Self {
            era: BackendEra::default(),
            parked_calls: ParkedCalls::default(),
            sessions: BackendSessions::default(),
            session_idle: Duration::from_mins(5),
        }
    }
}
