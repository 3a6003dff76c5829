//! Clients of another era than the process.

use std::sync::Arc;

use bytes::Bytes;
use skep_mcp::fault::{INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, UNSUPPORTED_REVISION};
use skep_mcp::{Message, Param, Revision, translate};

use super::bridge::Bridge;
use super::clients::Client;
use super::handshake::{Agreed, Failure, Refusal};
use super::process_line::{ProcessLine, SharedProcess};
use crate::answer::Answer;
use crate::eras::legacy_client::{self, LegacyClient};
use crate::eras::line::{self, Line};
use crate::eras::modern_client::ModernClient;
use crate::eras::parking::{self, Parking};
use crate::eras::seal::States;
use crate::eras::verdict::{self, Verdict};
use crate::intake::Accepts;
use crate::sessions::{Owner, Unavailable};

/// How a process says that it does not know what a handshake is.
const UNKNOWN: [i64; 4] = [METHOD_NOT_FOUND, INVALID_PARAMS, INVALID_REQUEST, UNSUPPORTED_REVISION];

/// Where the answer to a handshake belongs that is ours.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place<'a> {
    /// To a session that its stream has opened.
    Held(&'a Arc<Client>),
    /// To a new one, of whoever begins it.
    New(Owner<'a>),
}

impl Bridge {
    /// The process as clients of another era talk to it.
    pub(super) fn line(self: &Arc<Self>) -> Arc<dyn Line> {
        Arc::new(ProcessLine::new(self))
    }

    /// Makes the handshake for a client of sessions, unless the process is known to have none.
    pub(super) async fn shake_hands(&self, offer: &Message) -> Result<Agreed, Failure> {
        if self.eras().refuses_handshakes() {
            return Err(Refusal::Silence.into());
        }
        self.handshake().agree(self.calls(), Some(offer)).await
    }

    /// Answers a request that stands alone, if the process has sessions only.
    pub(super) async fn serve_modern_client(
        self: &Arc<Self>,
        accepts: Accepts,
        request: &Message,
        states: &States,
    ) -> Result<Option<Answer>, Answer> {
        let verdict = self.eras().verdict(&ProcessLine::new(self)).await;
        if verdict.map_err(|unknown| unknown.answer(request.owned_id().as_ref()))? == Verdict::Modern {
            return Ok(None);
        }
        let client = ModernClient {
            hosts: Arc::new(SharedProcess(Arc::clone(self))),
            // A question of a process that clients share belongs to none of them.
            client: parking::Client::anybody(),
            parking: Arc::new(Parking::new(false)),
            states: states.clone(),
            mirrors: Arc::clone(self.calls().mirrors()),
        };
        Ok(Some(client.serve(accepts, request.clone()).await))
    }

    /// Answers a handshake for a process that has none, in the session that it belongs to. Nothing when the process has sessions, or does not say.
    pub(super) async fn open_legacy_client(
        self: &Arc<Self>,
        handshake: &Message,
        refusal: &Refusal,
        place: Place<'_>,
    ) -> Result<Option<(Bytes, Arc<Client>)>, Unavailable> {
        let is_foreign = matches!(refusal, Refusal::Error(error) if UNKNOWN.contains(&translate::error_code(error)));
        if !is_foreign && !self.eras().refuses_handshakes() {
            return Ok(None);
        }
        let line = ProcessLine::new(self);
        if !matches!(self.eras().verdict(&line).await, Ok(Verdict::Modern)) {
            return Ok(None);
        }
        let discovered = verdict::discover(&line).await.ok();
        let Some(result) = discovered.as_ref().and_then(Message::result) else { return Ok(None) };
        let asked = handshake.param_text(Param::ProtocolVersion).unwrap_or_default();
        let revision = Revision::negotiate(&asked);
        let capabilities = legacy_client::capabilities(handshake, revision);
        let client = match place {
            // Nobody else can answer on its stream, so that nobody else has to know.
            Place::Held(client) => {
                self.keep_legacy_client(LegacyClient::new(Arc::clone(client), revision, &capabilities));
                Arc::clone(client)
            }
            Place::New(owner) => {
                // An answer may come to another proxy, which has not asked anything.
                let capabilities = if self.sessions.are_shared() { "{}" } else { &capabilities };
                self.open_bridged_session(revision, capabilities, owner).await?
            }
        };
        self.eras().refused_handshake();
        let result = translate::initialized(result, &asked);
        Ok(Some((line::result(handshake.id().unwrap_or("0"), &result), client)))
    }
}
