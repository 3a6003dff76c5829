//! Who makes a request, as far as its answer is concerned.

use skep_mcp::Revision;

use super::clients::Client;

/// Who makes a request. By default that is the proxy itself, which takes answers as they are.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Caller<'a> {
    /// Its session, if it has one.
    pub(super) client: Option<&'a Client>,
    /// The revision that it reads.
    pub(super) revision: Option<Revision>,
}

impl<'a> Caller<'a> {
    /// Somebody within a session, or somebody without one who reads this revision.
    pub(super) fn of(client: Option<&'a Client>, without: Option<Revision>) -> Self {
        client.map_or(Self { client: None, revision: without }, Self::from)
    }
}

impl<'a> From<&'a Client> for Caller<'a> {
    fn from(client: &'a Client) -> Self {
        Self { client: Some(client), revision: Some(client.revision()) }
    }
}
