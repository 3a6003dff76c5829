//! Flags about clients and servers of different eras.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::positive_duration;

/// How clients and servers of different eras are brought together. What is not said here, the environment says.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct EraArgs {
    /// Of which era the server is, so that it need not be asked. [default: what the variable SKEP_BACKEND_ERA says, or auto]
    #[arg(long, value_enum, value_name = "ERA")]
    pub backend_era: Option<EraChoice>,
    /// Whether calls of clients without sessions wait at the proxy when the server at the URL asks something. [default: what
    /// the variable SKEP_PARKED_CALLS says, or auto]
    #[arg(long, value_enum, value_name = "WHETHER", requires = "url", conflicts_with = "program")]
    pub parked_calls: Option<ParkedCallsChoice>,
    /// Who uses the sessions at the server at the URL that are opened for clients without any. [default: what the variable
    /// SKEP_BACKEND_SESSIONS says, or per-principal]
    #[arg(long, value_enum, value_name = "WHO", requires = "url", conflicts_with = "program")]
    pub backend_sessions: Option<SessionsChoice>,
    /// How long such a session lives that nobody uses, such as 90s or 5m. [default: what the variable
    /// SKEP_BACKEND_SESSION_IDLE says, or 5m]
    #[arg(long, value_name = "DURATION", requires = "url", conflicts_with = "program", value_parser = positive_duration)]
    pub backend_session_idle: Option<Duration>,
}

/// Eras of servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EraChoice {
    /// It is asked.
    Auto,
    /// It has sessions: revisions 2024-11-05 to 2025-11-25.
    Legacy,
    /// Its requests stand alone: revision 2026-07-28.
    Modern,
}

/// Whether calls wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ParkedCallsChoice {
    /// Unless sessions are kept in Redis, where other proxies serve the same clients.
    Auto,
    /// Always. Clients have to come back to the same proxy.
    On,
    /// Never. The server is told that nobody can be asked.
    Off,
}

/// Who uses a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SessionsChoice {
    /// The requests of one client. Those of clients that do not say who they are have one each.
    PerPrincipal,
    /// One request.
    PerRequest,
    /// The requests of one client, and together those of all that do not say who they are.
    Shared,
}
