//! Clients whose requests stand alone, before a server of sessions.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::select;
use http::StatusCode;
use serde_json::json;
use skep_mcp::era::Era;
use skep_mcp::fault::{Fault, INVALID_PARAMS, METHOD_NOT_FOUND};
use skep_mcp::{Kind, Message, MetaKey, json, method, translate};

use super::call::Call;
use super::line::{self, Hosts, Lost, NoSession, Replies, Seat, Sharing};
use super::listen;
use super::parking::{self, Parked, Parking};
use super::seal::{Broken, State, States, may_ask, refusal};
use crate::answer::{self, Answer};
use crate::intake::Accepts;
use crate::reply::Reply;
use crate::stdio::events::EventStream;
use crate::stdio::mirrors::Mirrors;

/// How long a server may take to open a stream for what belongs to no request.
const OVERHEARING: Duration = Duration::from_secs(2);
/// What a client can be asked.
const ASKABLE: [&str; 3] = ["elicitation", "roots", "sampling"];

/// A client, and the server that it wants to talk to.
#[derive(Clone)]
pub(crate) struct ModernClient {
    pub(crate) hosts: Arc<dyn Hosts>,
    pub(crate) client: parking::Client,
    pub(crate) parking: Arc<Parking>,
    /// What goes from one round of a call to the next.
    pub(crate) states: States,
    /// What is known about the tools whose calls repeat arguments in headers.
    pub(crate) mirrors: Arc<Mirrors>,
}

/// Ends a task with whatever it is kept in.
#[derive(Debug)]
pub(crate) struct Running(pub(crate) tokio::task::JoinHandle<()>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ModernClient {
    /// Answers a request.
    pub(crate) async fn serve(self, accepts: Accepts, request: Message) -> Answer {
        let answered = match request.method() {
            method::DISCOVER => self.discover(&request).await,
            method::LISTEN => listen::serve(&self, accepts, &request).await,
            // These are about tasks of the other era, which are not the same.
            name if name.starts_with(method::TASKS) => Err(unknown_method(&request)),
            _ => self.call(accepts, request).await,
        };
        answered.unwrap_or_else(|refusal| refusal)
    }

    async fn discover(&self, request: &Message) -> Result<Answer, Answer> {
        let seat = self.seat("{}", Sharing::Shared, request).await?;
        Ok(answer::json(StatusCode::OK, line::result(id(request), &translate::discovered(&seat.agreed))))
    }

    pub(super) async fn seat(&self, capabilities: &str, sharing: Sharing, request: &Message) -> Result<Seat, Answer> {
        let seat = self.hosts.seat(capabilities, sharing).await;
        seat.map_err(|problem: NoSession| problem.answer(request.owned_id().as_ref()))
    }

    async fn call(self, accepts: Accepts, request: Message) -> Result<Answer, Answer> {
        let stream = EventStream::new(0, false);
        let call = match self.states.open(&request).map_err(|Broken| refusal(&request))? {
            Some(State::Waiting(name)) => {
                self.parking.take(&self.client.holder, &name).ok_or_else(|| refusal(&request))?
            }
            Some(State::OfServer(_)) => return Err(refusal(&request)),
            // The server wants the same call again.
            Some(State::Pages) | None => self.begin(&request).await?,
        };
        let reply = Reply { accepts, era: Era::Modern, client: None };
        let call = Call { client: self, request, stream: Arc::clone(&stream), parked: call };
        let running = Running(tokio::spawn(call.run()));
        Ok(reply.give(&stream, running, drop).await)
    }

    /// Sends a request within a session.
    async fn begin(&self, request: &Message) -> Result<Parked, Answer> {
        let level = request.meta_text(MetaKey::LogLevel).map(std::borrow::Cow::into_owned);
        let capabilities = match request.meta(MetaKey::ClientCapabilities) {
            Some(declared) if may_ask(request.method()) && self.hosts.has_own_sessions() && self.parking.is_on() => {
                askable(declared)
            }
            _ => "{}".to_owned(),
        };
        if capabilities != "{}" && !self.parking.has_room(&self.client) {
            // Nothing was done yet, while a question that cannot wait would come in the midst of it.
            return Err(answer::not_ready("too many calls wait for answers of their clients; answer one"));
        }
        let is_alone = capabilities != "{}" || level.is_some();
        let sharing = if is_alone { Sharing::Alone } else { Sharing::Shared };
        let bad = |problem: &dyn std::fmt::Display| {
            let fault = Fault::new(INVALID_PARAMS, format!("the request cannot be put into a session: {problem}"));
            answer::bad(&fault, request.owned_id().as_ref())
        };
        let older = translate::older_request(request).map_err(|error| bad(&error))?;
        let older = Message::read(older.into()).map_err(|error| bad(&error))?;
        let mut is_again = false;
        loop {
            let mut seat = self.seat(&capabilities, sharing, request).await?;
            if let Some(level) = level.as_deref().filter(|_| self.hosts.has_own_sessions()) {
                set_level(&seat, level).await;
            }
            let asked = if capabilities == "{}" { None } else { questions(&seat).await };
            match seat.line.ask(&older).await {
                Ok(replies) => {
                    return Ok(Parked {
                        seat,
                        replies: match asked {
                            Some(asked) => select(replies, asked).boxed(),
                            None => replies,
                        },
                        pending: Vec::new(),
                        level,
                        capabilities,
                    });
                }
                // The server has not even looked at it.
                Err(Lost::NoSession) if !is_again => {
                    is_again = true;
                    if let Some(lease) = seat.held.take() {
                        lease.lost();
                    }
                }
                Err(lost) => return Err(lost.answer()),
            }
        }
    }
}

/// The questions that belong to no request. Some servers ask there, and in a session that is for one call alone they are
/// about that call.
async fn questions(seat: &Seat) -> Option<Replies> {
    let overheard = tokio::time::timeout(OVERHEARING, seat.line.overhear()).await.ok()??;
    Some(overheard.filter(|message| std::future::ready(message.kind() == Kind::Request)).boxed())
}

/// Sets from which level on a session logs. One without such levels logs as it likes.
async fn set_level(seat: &Seat, level: &str) {
    let has_levels = json::find(&seat.agreed, &["capabilities", "logging"]).is_ok_and(|place| place.is_some());
    if has_levels
        && let Ok(replies) = seat.line.ask(&line::request(method::SET_LOG_LEVEL, &json!({"level": level}))).await
    {
        replies.count().await;
    }
}

/// Those of a client's capabilities by which a server may ask it something, in one order whatever the client's is.
fn askable(declared: &str) -> String {
    let declared: serde_json::Value = serde_json::from_str(declared).unwrap_or_default();
    let kept: serde_json::Map<_, _> =
        ASKABLE.iter().filter_map(|name| Some(((*name).to_owned(), declared.get(name)?.clone()))).collect();
    serde_json::Value::Object(kept).to_string()
}

pub(super) fn param<'a>(request: &'a Message, name: &str) -> Option<&'a str> {
    let text = request.as_str();
    json::find(text, &["params", name]).ok().flatten().map(|place| place.of(text))
}

pub(super) fn id(request: &Message) -> &str {
    request.id().unwrap_or("0")
}

fn unknown_method(request: &Message) -> Answer {
    let fault = Fault::new(METHOD_NOT_FOUND, format!("Method not found: {}", request.method()));
    answer::bad(&fault, request.owned_id().as_ref())
}

impl std::fmt::Debug for ModernClient {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ModernClient").field("client", &self.client).finish_non_exhaustive()
    }
}
