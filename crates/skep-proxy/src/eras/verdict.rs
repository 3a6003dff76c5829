//! Of which era a server is. That is a property of the server, and never taken from who calls it.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::StatusCode;
use parking_lot::Mutex;
use serde_json::{Value, json};
use skep_mcp::fault::{
    Fault, HEADER_MISMATCH, INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, MISSING_CAPABILITY, PARSE_ERROR,
    UNSUPPORTED_REVISION,
};
use skep_mcp::{Message, MetaKey, Revision, method, translate};

use super::line::{self, Line, Lost};
use super::record::{Record, Status};
use super::settings::BackendEra;
use crate::answer::{self, Answer};

/// A server that looks like another one than before is asked again, but not more often than this.
const AGAIN: Duration = Duration::from_secs(10);
/// After so long a server of sessions may have become one of the other era.
const GOOD_FOR: Duration = Duration::from_mins(10);

/// What a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Requests that stand alone.
    Modern,
    /// Sessions.
    Legacy,
}

impl Verdict {
    /// What it is called.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Modern => "modern",
            Self::Legacy => "legacy",
        }
    }
}

/// What is known about one server.
#[derive(Debug, Default)]
pub(crate) struct Eras {
    /// What somebody has said, so that the server is never asked.
    said: OnceLock<Verdict>,
    record: Record,
    known: Mutex<Option<(Verdict, Instant)>>,
    /// Whether the server has refused a handshake, so that clients of sessions need our help.
    refuses_handshakes: Mutex<Option<Instant>>,
    /// Held while the server is asked, so that it is asked once.
    asking: tokio::sync::Mutex<()>,
    /// When the server was last asked in vain. Those who have waited for that need not ask again.
    unanswered: Mutex<Option<Instant>>,
    /// When the server was last asked because it looked like another one.
    doubted: Mutex<Option<Instant>>,
    /// Whether it stays what it is for as long as it is known.
    is_lasting: bool,
}

/// Why it is not known what a server speaks.
#[derive(Debug)]
pub(crate) enum Unknown {
    /// It could not be asked.
    Lost(Lost),
    /// It speaks nothing that we do.
    Foreign(String),
}

impl Unknown {
    /// What a client is told.
    pub(crate) fn answer(self, id: Option<&skep_mcp::Id>) -> Answer {
        match self {
            Self::Lost(lost) => lost.answer(),
            Self::Foreign(told) => answer::fault(StatusCode::OK, &Fault::new(INTERNAL_ERROR, told), id),
        }
    }
}

impl Eras {
    /// What is known about a process, which does not become another one while it runs.
    pub(crate) fn of_process() -> Arc<Self> {
        Arc::new(Self { is_lasting: true, ..Self::default() })
    }

    /// Somebody has said of which era the server is. Who says so first is believed.
    pub(crate) fn say(&self, era: BackendEra) {
        let verdict = match era {
            BackendEra::Auto => return,
            BackendEra::Legacy => Verdict::Legacy,
            BackendEra::Modern => Verdict::Modern,
        };
        if self.said.set(verdict).is_ok() {
            self.record.write(verdict);
        }
    }

    /// What those are told who watch over the server.
    pub(crate) fn status(&self) -> Option<Status> {
        self.record.status()
    }

    /// What the server speaks; it is asked if that is not known. What may be out of date is found out anew while nobody
    /// waits for it.
    pub(crate) async fn verdict<L: Line + Clone>(self: &Arc<Self>, line: &L) -> Result<Verdict, Unknown> {
        if let Some(known) = self.known() {
            if self.begins_renewal() {
                let (eras, line) = (Arc::clone(self), line.clone());
                // It ends with the patience that we have for the server.
                tokio::spawn(async move { eras.renew(&line).await });
            }
            return Ok(known);
        }
        let begun = Instant::now();
        let _asking = self.asking.lock().await;
        if let Some(known) = self.known() {
            return Ok(known);
        }
        if self.unanswered.lock().is_some_and(|since| since > begun) {
            return Err(Unknown::Lost(Lost::TimedOut));
        }
        let verdict = ask(line).await.inspect_err(|unknown| {
            if matches!(unknown, Unknown::Lost(Lost::TimedOut)) {
                *self.unanswered.lock() = Some(Instant::now());
            }
        })?;
        self.learn(verdict);
        Ok(verdict)
    }

    fn learn(&self, verdict: Verdict) {
        *self.known.lock() = Some((verdict, Instant::now()));
        if self.record.write(verdict) {
            tracing::info!(?verdict, "found out which era the MCP server is of");
        }
    }

    /// What is known without asking.
    pub(crate) fn known(&self) -> Option<Verdict> {
        self.said.get().copied().or_else(|| self.known.lock().map(|(verdict, _)| verdict))
    }

    /// Whether what is known may be out of date. Whoever is told so looks, and the next one is not told.
    fn begins_renewal(&self) -> bool {
        let mut known = self.known.lock();
        let stale = known
            .as_mut()
            .filter(|(verdict, since)| *verdict == Verdict::Legacy && !self.is_lasting && since.elapsed() >= GOOD_FOR);
        stale.map(|(_, since)| *since = Instant::now()).is_some()
    }

    async fn renew(&self, line: &dyn Line) {
        let _asking = self.asking.lock().await;
        // Nothing is found out from a server that does not say.
        if let Ok(verdict) = ask(line).await {
            self.learn(verdict);
        }
    }

    /// What the server speaks now that it looks like another one than before. It is not asked for that again and again.
    pub(crate) async fn doubt(&self, line: &dyn Line) -> Option<Verdict> {
        if let Some(said) = self.said.get() {
            return Some(*said);
        }
        let begun = Instant::now();
        let _asking = self.asking.lock().await;
        let is_renewed = self.known.lock().is_some_and(|(_, since)| since > begun);
        let is_doubted = || {
            let before = self.doubted.lock().replace(begun);
            before.is_some_and(|since| begun.duration_since(since) < AGAIN)
        };
        if is_renewed || is_doubted() {
            return self.known();
        }
        let verdict = ask(line).await.ok()?;
        self.learn(verdict);
        Some(verdict)
    }

    /// The server looks like another one than before, and the next one who needs to know asks.
    pub(crate) fn suspect(&self) {
        let mut known = self.known.lock();
        if known.is_some_and(|(_, since)| since.elapsed() >= AGAIN) {
            *known = None;
        }
    }

    /// The server does what one of its era would not do.
    pub(crate) fn forget(&self) {
        *self.known.lock() = None;
        *self.refuses_handshakes.lock() = None;
    }

    /// Whether the server is known to have no handshakes.
    pub(crate) fn refuses_handshakes(&self) -> bool {
        match self.said.get() {
            Some(said) => *said == Verdict::Modern,
            None => self.refuses_handshakes.lock().is_some_and(|since| since.elapsed() < GOOD_FOR),
        }
    }

    /// The server has refused a handshake.
    pub(crate) fn refused_handshake(&self) {
        *self.refuses_handshakes.lock() = Some(Instant::now());
    }
}

/// The question what a server speaks. Nothing else is asked for that, because some servers do what they are asked
/// whatever they understand of it.
pub(crate) fn question() -> Message {
    let meta = json!({
        MetaKey::ProtocolVersion.name(): Revision::July2026.text(),
        MetaKey::ClientCapabilities.name(): {},
        MetaKey::ClientInfo.name(): {"name": "skep", "version": env!("CARGO_PKG_VERSION")},
    });
    line::request(method::DISCOVER, &json!({"_meta": meta}))
}

/// What a server that stands alone says about itself.
pub(crate) async fn discover(line: &dyn Line) -> Result<Message, Lost> {
    let question = question();
    tokio::time::timeout(line.patience(), line.hear(&question)).await.unwrap_or(Err(Lost::TimedOut))
}

async fn ask(line: &dyn Line) -> Result<Verdict, Unknown> {
    match discover(line).await {
        Ok(answer) => judge(&answer),
        // A server that does not know what it was asked need not say so in words of the protocol.
        Err(Lost::Refused(answer)) if matches!(answer.status().as_u16(), 400 | 404 | 405 | 406 | 415) => {
            Ok(Verdict::Legacy)
        }
        // One that says nothing to what it does not know, or ends.
        Err(Lost::TimedOut | Lost::Unreached) if line.takes_handshake().await => Ok(Verdict::Legacy),
        Err(Lost::Unanswered(reason)) => {
            let told = format!("{reason}. Whoever knows what it speaks can name that with --backend-era");
            Err(Unknown::Lost(Lost::Unanswered(told.into())))
        }
        Err(lost) => Err(Unknown::Lost(lost)),
    }
}

/// What an answer to the question says.
fn judge(answer: &Message) -> Result<Verdict, Unknown> {
    let read = |text: Option<&str>| text.and_then(|text| serde_json::from_str::<Value>(text).ok()).unwrap_or_default();
    if let Some(result) = answer.result() {
        return Ok(if speaks(&read(Some(result))["supportedVersions"], true) {
            Verdict::Modern
        } else {
            Verdict::Legacy
        });
    }
    let error = answer.error();
    match error.map(translate::error_code) {
        Some(HEADER_MISMATCH | MISSING_CAPABILITY) => Ok(Verdict::Modern),
        Some(UNSUPPORTED_REVISION) => {
            let supported = &read(error)["data"]["supported"];
            match (speaks(supported, true), speaks(supported, false)) {
                (true, _) => Ok(Verdict::Modern),
                (false, true) => Ok(Verdict::Legacy),
                (false, false) => {
                    let ours = Revision::ALL.map(Revision::text).join(", ");
                    Err(Unknown::Foreign(format!("the MCP server speaks {supported}, and the proxy speaks {ours}")))
                }
            }
        }
        _ => Ok(Verdict::Legacy),
    }
}

/// Whether no server of requests that stand alone would refuse one so: it would say why, in words of its era. What is
/// wrong with the envelope was found before.
pub(crate) fn is_strange(status: StatusCode, body: &Bytes) -> bool {
    let error = Message::read(body.clone()).ok();
    let code = error.as_ref().and_then(Message::error).map(translate::error_code);
    match status {
        StatusCode::NOT_FOUND => code != Some(METHOD_NOT_FOUND),
        StatusCode::BAD_REQUEST => {
            !matches!(code, Some(HEADER_MISMATCH | MISSING_CAPABILITY | INVALID_PARAMS | PARSE_ERROR))
        }
        _ => status == StatusCode::METHOD_NOT_ALLOWED,
    }
}

/// Whether one of these revisions is one of ours, of one era or the other.
fn speaks(versions: &Value, is_stateless: bool) -> bool {
    let versions = versions.as_array().into_iter().flatten().filter_map(Value::as_str);
    versions.filter_map(Revision::parse).any(|revision| revision.is_stateless() == is_stateless)
}

#[cfg(test)]
mod tests;
