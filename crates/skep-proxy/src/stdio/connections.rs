//! Sessions that bring the connection to their server with them, where the server is no process of ours.

use std::sync::Arc;

use skep_mcp::{Message, Revision, translate};

use super::bridge::Bridge;
use super::connect::Connector;
use super::handshake::Refusal;
use super::process_line::ProcessLine;
use super::processes::{Begun, Processes};
use crate::answer::Answer;
use crate::eras::line::{Line, Lost, NoSession};
use crate::limits::Limits;
use crate::readiness::{Readiness, State};
use crate::sessions::{Owner, SessionStore, Unavailable};

/// There are no processes that a session could take.
struct NoProcesses;

impl Processes for NoProcesses {
    fn take(&self) -> Option<Box<dyn Connector>> {
        None
    }
}

/// A session for somebody who talks to its server in words of another era. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct LineSession {
    begun: Begun,
    told: Arc<str>,
}

impl LineSession {
    /// The way to the server.
    pub(crate) fn line(&self) -> Arc<dyn Line> {
        Arc::new(ProcessLine::new(&self.begun.bridge))
    }

    /// What the server answered to the handshake: its result.
    pub(crate) fn told(&self) -> &Arc<str> {
        &self.told
    }

    /// The revision that was agreed on.
    pub(crate) fn agreed(&self) -> Option<Revision> {
        translate::agreed(&self.told)
    }
}

impl Bridge {
    /// A bridge for sessions that bring their connections.
    pub(crate) fn of_connections(limits: Limits) -> Arc<Self> {
        let readiness = Readiness::default();
        readiness.set(State::Waiting("the MCP server has sessions only, which begin with a handshake".into()));
        Self::with_processes(limits, readiness, SessionStore::memory(), NoProcesses)
    }

    /// Whether there is a session of this name, whosever it is.
    pub(crate) fn holds(self: &Arc<Self>, id: &str) -> bool {
        !Arc::ptr_eq(self, &self.of_session(Some(id)))
    }

    /// Whether a caller has such a session here.
    pub(crate) async fn has_session(self: &Arc<Self>, id: &str, who: Owner<'_>) -> Result<bool, Unavailable> {
        Ok(self.of_session(Some(id)).session(id, who).await?.is_some())
    }

    /// Opens a session with this handshake.
    pub(crate) async fn open_line(
        self: &Arc<Self>,
        connector: Box<dyn Connector>,
        offer: &Message,
    ) -> Result<LineSession, NoSession> {
        let refused = |answer: Answer| NoSession::Lost(Lost::Refused(Box::new(answer)));
        let begun = self.begin_with(connector).await.map_err(refused)?;
        let told = begun.bridge.handshake().agree(begun.bridge.calls(), Some(offer)).await;
        let told = told.map_err(|refusal| Refusal::no_session(&refusal))?;
        Ok(LineSession { begun, told })
    }

    /// Ends all sessions that brought their connections.
    pub(crate) async fn end_connections(&self) {
        self.end_own_processes().await;
    }
}
