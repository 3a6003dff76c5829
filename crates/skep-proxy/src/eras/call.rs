//! One request within a session, for a client that has none: what the server says becomes what the client expects.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use serde_json::json;
use skep_mcp::fault::{Fault, INTERNAL_ERROR, METHOD_NOT_FOUND, MISSING_CAPABILITY};
use skep_mcp::translate::{self, Question};
use skep_mcp::{Kind, Message, MetaKey, Param, json, method};

use super::line::{self, Outcome, Seat};
use super::modern_client::{ModernClient, id, param};
use super::parking::Parked;
use super::seal::State;
use crate::stdio::events::{End, EventStream};
use crate::stdio::log_level;

/// How long further questions are waited for after the first one, to be asked together.
const GATHERING: Duration = Duration::from_millis(50);

/// A request while its answer is waited for.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) client: ModernClient,
    /// What the client sent last, and what the answer is for.
    pub(super) request: Message,
    pub(super) stream: Arc<EventStream>,
    pub(super) parked: Parked,
}

impl Call {
    /// Answers the client, or sends it away with questions.
    pub(super) async fn run(mut self) {
        if !self.parked.pending.is_empty() {
            self.answer_server().await;
            if !self.parked.pending.is_empty() {
                // The client has not answered all of it.
                return self.park();
            }
        }
        loop {
            let Some(message) = self.parked.replies.next().await else {
                return self.fail(&Fault::new(INTERNAL_ERROR, "the MCP server did not answer"));
            };
            match message.kind() {
                Kind::Response => return self.finish(&message),
                Kind::Notification => self.notified(&message),
                Kind::Request => {
                    self.asked(&message).await;
                    if !self.parked.pending.is_empty() {
                        return self.gather().await;
                    }
                }
            }
        }
    }

    /// Waits a little for more questions, and asks the client all of them.
    async fn gather(mut self) {
        let end = tokio::time::Instant::now() + GATHERING;
        while let Ok(Some(message)) = tokio::time::timeout_at(end, self.parked.replies.next()).await {
            match message.kind() {
                // It did not wait for the answers.
                Kind::Response => return self.finish(&message),
                Kind::Notification => self.notified(&message),
                Kind::Request => self.asked(&message).await,
            }
        }
        self.park();
    }

    /// Takes a question of the server.
    async fn asked(&mut self, message: &Message) {
        let Some(asked) = message.owned_id() else { return };
        if message.method() == method::PING {
            self.parked.seat.line.tell(line::result(asked.as_json(), "{}")).await;
            return;
        }
        let text = message.as_str();
        let params = message.params_span().map_or("{}", |place| place.of(text));
        let params = json::remove(params, &["elicitationId"]).ok().flatten().unwrap_or_else(|| params.to_owned());
        let key = format!("question-{}", self.parked.pending.len() + 1);
        let question = Question { key, method: message.method().to_owned(), params };
        if question.is_declared(&self.parked.capabilities) {
            self.parked.pending.push((asked, question));
        } else {
            let told = format!("the client cannot be asked {}", message.method());
            let fault = Fault::new(METHOD_NOT_FOUND, told).answer(Some(&asked));
            self.parked.seat.line.tell(fault.into()).await;
        }
    }

    /// Gives the server the answers that came with the request.
    async fn answer_server(&mut self) {
        let answers = param(&self.request, "inputResponses").and_then(|answers| json::members(answers).ok());
        let answers = answers.unwrap_or_default();
        let mut unanswered = Vec::new();
        for (asked, question) in std::mem::take(&mut self.parked.pending) {
            match answers.iter().find(|(key, _)| *key == question.key) {
                Some((_, answer)) => {
                    self.parked.seat.line.tell(line::result(asked.as_json(), answer)).await;
                }
                None => unanswered.push((asked, question)),
            }
        }
        self.parked.pending = unanswered;
    }

    /// Sends the client away with the questions. The server waits until it comes back.
    fn park(self) {
        let members: Vec<String> = self.parked.pending.iter().map(|(_, question)| question.as_member()).collect();
        let Self { client, request, stream, parked } = self;
        let server = server(&parked.seat).map(str::to_owned);
        let name = client.parking.park(&client.client, parked);
        let Some(state) = name.and_then(|name| client.states.close(&request, &State::Waiting(name))) else {
            let told = "the MCP server asks the client something, and too many calls wait for such answers already; \
                        what was called may have been done in part";
            let fault = Fault::new(INTERNAL_ERROR, told).answer(request.owned_id().as_ref());
            return stream.end(Some(fault.into()), End::Refused(INTERNAL_ERROR));
        };
        let result = format!(
            r#"{{"resultType":"input_required","inputRequests":{{{}}},"requestState":{state}}}"#,
            members.join(",")
        );
        stream.end(Some(line::result(id(&request), &with_server(result, server.as_deref()))), End::Answered);
    }

    fn notified(&self, message: &Message) {
        match message.method() {
            method::PROGRESS => {
                // A later round may report under another token.
                let token = self.request.meta(MetaKey::ProgressToken).map(str::as_bytes);
                if let Some(change) = message.param_span(Param::ProgressToken).zip(token) {
                    self.stream.offer(message.with([change]));
                }
            }
            method::LOG_MESSAGE => {
                let level = message.param_text(Param::Level).unwrap_or_default();
                if self.parked.level.as_deref().is_some_and(|wanted| log_level::is_at_least(&level, wanted)) {
                    self.stream.offer(message.text().clone());
                }
            }
            // There is no stream for what belongs to no request.
            _ => {}
        }
    }

    fn finish(&self, answer: &Message) {
        if self.request.method() == method::TOOLS_LIST {
            answer.result().into_iter().for_each(|list| self.client.mirrors.learn(list));
        }
        let (text, end) = match (answer.result(), answer.error()) {
            (Some(result), _) => {
                match translate::newer_result(self.request.method(), result, server(&self.parked.seat)) {
                    Ok(result) => (line::answered(answer, id(&self.request), Outcome::Result(&result)), End::Answered),
                    Err(error) => {
                        let told = format!("the result of the MCP server cannot be used: {error}");
                        return self.fail(&Fault::new(INTERNAL_ERROR, told));
                    }
                }
            }
            (None, error) => return self.refuse(answer, error.unwrap_or("{}")),
        };
        self.stream.end(Some(text), end);
    }

    /// Ends with an error of the server.
    fn refuse(&self, answer: &Message, error: &str) {
        let pages = Question::of_error(error);
        if pages.is_empty() {
            let error = translate::newer_error(&self.request, error);
            let end = End::Refused(translate::error_code(&error));
            let text = line::answered(answer, id(&self.request), Outcome::Error(&error));
            return self.stream.end(Some(text), end);
        }
        let declared = self.request.meta(MetaKey::ClientCapabilities).unwrap_or("{}");
        if !pages.iter().all(|page| page.is_declared(declared)) {
            let data = json!({"requiredCapabilities": {"elicitation": {"url": {}}}});
            let told = "the client must be able to send a person to a page";
            return self.fail(&Fault::new(MISSING_CAPABILITY, told).with_data(data));
        }
        // The server wants the same request again, once the pages were visited; nothing waits for that.
        let members: Vec<String> = pages.iter().map(Question::as_member).collect();
        let mut result = format!(r#"{{"resultType":"input_required","inputRequests":{{{}}}}}"#, members.join(","));
        if let Some(state) = self.client.states.close(&self.request, &State::Pages) {
            result = json::set(&result, &["requestState"], &state).unwrap_or(result);
        }
        let result = with_server(result, server(&self.parked.seat));
        self.stream.end(Some(line::result(id(&self.request), &result)), End::Answered);
    }

    fn fail(&self, fault: &Fault) {
        let text = fault.answer(self.request.owned_id().as_ref());
        self.stream.end(Some(text.into()), End::Refused(fault.code));
    }
}

/// Who the server is, as its handshake told.
fn server(seat: &Seat) -> Option<&str> {
    json::find(&seat.agreed, &["serverInfo"]).ok().flatten().map(|place| place.of(&seat.agreed))
}

fn with_server(result: String, server: Option<&str>) -> String {
    match server {
        Some(server) => json::set(&result, &["_meta", "io.modelcontextprotocol/serverInfo"], server).unwrap_or(result),
        None => result,
    }
}
