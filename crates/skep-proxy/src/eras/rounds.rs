//! A request that stands alone, asked again until the server has all it wants to know.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::json;
use skep_mcp::fault::{Fault, HEADER_MISMATCH, INTERNAL_ERROR, INVALID_PARAMS, UNSUPPORTED_REVISION};
use skep_mcp::translate::{self, Envelope, Outcome, Question};
use skep_mcp::{Kind, Message, json, method};

use super::legacy_client::LegacyClient;
use super::line::{self, Line};
use super::own_name;
use crate::stdio::events::{End, EventStream};

/// How often a server may ask before it answers.
const ROUNDS: usize = 10;
/// How often in a row it may want the request again without asking anything, and how long that is waited.
const EMPTY_ROUNDS: usize = 3;
const PAUSE: Duration = Duration::from_secs(1);
/// Questions that a client is asked at the same time.
const QUESTIONS: usize = 8;
/// How long a client may take for its answers.
const PATIENCE: Duration = Duration::from_mins(10);
/// Pages of a list of tools that are read to learn what calls repeat in their headers.
const PAGES: usize = 20;

/// What goes from one round to the next.
#[derive(Debug, Default)]
struct Round {
    answers: Option<String>,
    state: Option<String>,
}

/// Answers a request of a session on its stream.
pub(super) async fn run(
    client: &LegacyClient,
    line: &dyn Line,
    request: &Message,
    stream: &Arc<EventStream>,
    can_ask: bool,
) {
    let id = request.id().unwrap_or("0");
    let (text, end) = match answer(client, line, request, stream, can_ask).await {
        Ok((said, Ok(result))) => (line::answered(&said, id, line::Outcome::Result(&result)), End::Answered),
        Ok((said, Err(error))) => {
            let end = End::Refused(translate::error_code(&error));
            (line::answered(&said, id, line::Outcome::Error(&error)), end)
        }
        Err(fault) => (fault.answer(request.owned_id().as_ref()).into(), End::Refused(fault.code)),
    };
    stream.end(Some(text), end);
}

/// What the server said last, and its result or error in the words of the client's revision.
async fn answer(
    client: &LegacyClient,
    line: &dyn Line,
    request: &Message,
    stream: &Arc<EventStream>,
    can_ask: bool,
) -> Result<(Message, Result<String, String>), Fault> {
    let mut round = Round::default();
    let mut empty = 0;
    let mut has_learned = false;
    for _ in 0..ROUNDS {
        let response = exchange(client, line, request, stream, can_ask, &round).await?;
        let Some(result) = response.result() else {
            let error = response.error().unwrap_or("{}");
            // We do not know yet what calls of this tool repeat in their headers, and nothing was done.
            let is_ours = translate::error_code(error) == HEADER_MISMATCH && request.method() == method::TOOLS_CALL;
            if is_ours && !has_learned {
                has_learned = true;
                learn(line).await;
                continue;
            }
            if matches!(translate::error_code(error), HEADER_MISMATCH | UNSUPPORTED_REVISION) {
                // The client has no part in what these are about: the server is not what we took it for.
                line.doubt();
            }
            let error = translate::older_error(request, error);
            return Ok((response, Err(error)));
        };
        let unusable = |error: json::EditError| {
            Fault::new(INTERNAL_ERROR, format!("the result of the MCP server cannot be used: {error}"))
        };
        match translate::outcome(result).map_err(unusable)? {
            Outcome::Complete => {
                let older = translate::older_result(request.method(), result, client.revision).map_err(unusable)?;
                return Ok((response, Ok(older)));
            }
            Outcome::Unknown(kind) => {
                let told = format!("the MCP server answers with a result of type {kind}, which sessions do not have");
                return Err(Fault::new(INTERNAL_ERROR, told));
            }
            Outcome::Questions { questions, state } if questions.is_empty() => {
                empty += 1;
                if empty > EMPTY_ROUNDS {
                    break;
                }
                tokio::time::sleep(PAUSE).await;
                round = Round { answers: None, state };
            }
            Outcome::Questions { questions, state } => {
                empty = 0;
                let answers = ask(client, stream, can_ask, &questions).await?;
                round = Round { answers: Some(answers), state };
            }
        }
    }
    Err(Fault::new(INTERNAL_ERROR, "the MCP server asks again and again instead of answering"))
}

/// One round: what the server answers, while its client is told the rest.
async fn exchange(
    client: &LegacyClient,
    line: &dyn Line,
    request: &Message,
    stream: &Arc<EventStream>,
    can_ask: bool,
    round: &Round,
) -> Result<Message, Fault> {
    let log_level = client.log_level();
    let envelope = Envelope {
        capabilities: if can_ask { &client.capabilities } else { "{}" },
        client: &own_name(),
        log_level: log_level.as_deref(),
        answers: round.answers.as_deref(),
        state: round.state.as_deref(),
    };
    let bad = |told: String| Fault::new(INVALID_PARAMS, told);
    let newer = translate::newer_request(request, &envelope).map_err(|error| bad(error.to_string()))?;
    let newer = Message::read(newer.into()).map_err(|error| bad(error.to_string()))?;
    let mut replies = line.ask(&newer).await.map_err(|lost| lost.fault())?;
    while let Some(message) = replies.next().await {
        match message.kind() {
            Kind::Response => return Ok(message),
            Kind::Notification if matches!(message.method(), method::PROGRESS | method::LOG_MESSAGE) => {
                stream.offer(message.text().clone());
            }
            // Servers of that era have no questions, and what belongs to no request is told elsewhere.
            Kind::Notification | Kind::Request => {}
        }
    }
    Err(Fault::new(INTERNAL_ERROR, "the MCP server did not answer"))
}

/// Asks the client, and gives its answers as an object.
async fn ask(
    client: &LegacyClient,
    stream: &Arc<EventStream>,
    can_ask: bool,
    questions: &[Question],
) -> Result<String, Fault> {
    let impossible = |told: String| Fault::new(INTERNAL_ERROR, told);
    for question in questions {
        if !can_ask || !question.is_declared(&client.capabilities) {
            let told = format!("the MCP server wants to ask {}, which this client cannot be asked", question.method);
            return Err(impossible(told));
        }
    }
    let asking: Vec<_> = questions.iter().map(|question| ask_one(client, stream, question)).collect();
    let answers: Vec<String> = futures::stream::iter(asking).buffered(QUESTIONS).try_collect().await?;
    Ok(format!("{{{}}}", answers.join(",")))
}

/// Asks one thing, and gives the answer under its key.
async fn ask_one(client: &LegacyClient, stream: &Arc<EventStream>, question: &Question) -> Result<String, Fault> {
    let mut asked = client.question();
    let mut params = question.params.clone();
    if question.is_by_url() && json::find(&params, &["elicitationId"]).is_ok_and(|id| id.is_none()) {
        // The one revision that has pages knows each by an id.
        params = json::set(&params, &["elicitationId"], &json::quote(&asked.id)).unwrap_or(params);
    }
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":{},"method":{},"params":{params}}}"#,
        json::quote(&asked.id),
        json::quote(&question.method)
    );
    stream.push(text.into());
    let failed =
        |told: &str| Fault::new(INTERNAL_ERROR, format!("the client does not answer {}: {told}", question.method));
    let Ok(Ok(answer)) = tokio::time::timeout(PATIENCE, &mut asked.answer).await else {
        return Err(failed("it took too long"));
    };
    let result = match (answer.result(), answer.error()) {
        (Some(result), _) => result,
        (None, _) if question.method == "elicitation/create" => r#"{"action":"cancel"}"#,
        (None, error) => return Err(failed(error.unwrap_or_default())),
    };
    Ok(format!("{}:{result}", json::quote(&question.key)))
}

/// Reads the list of tools; the line keeps what it needs of it.
async fn learn(line: &dyn Line) {
    let mut cursor: Option<String> = None;
    for _ in 0..PAGES {
        let mut params = json!({});
        if let Some(cursor) = &cursor {
            params["cursor"] = json!(cursor);
        }
        let list = line::request(method::TOOLS_LIST, &params);
        let name = own_name();
        let envelope = Envelope { capabilities: "{}", client: &name, ..Default::default() };
        let newer = translate::newer_request(&list, &envelope).ok().and_then(|text| Message::read(text.into()).ok());
        let Some(newer) = newer else { return };
        let Ok(replies) = line.ask(&newer).await else { return };
        let answer =
            replies.filter(|message| std::future::ready(message.kind() == Kind::Response)).collect::<Vec<_>>().await;
        let next = answer.last().and_then(Message::result).and_then(|result| {
            let next = json::find(result, &["nextCursor"]).ok()??.of(result);
            json::decode(next).map(std::borrow::Cow::into_owned)
        });
        cursor = next;
        if cursor.is_none() {
            return;
        }
    }
}
