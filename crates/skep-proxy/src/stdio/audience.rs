//! For whom a process is.

/// For whom a process is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Audience {
    /// For all clients, which share its one session. What it says and cannot be attributed is for nobody.
    #[default]
    Everybody,
    /// For one session of a client, so that whatever it says is for that client.
    OneSession,
}
