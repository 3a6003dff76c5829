//! A request while it is answered: who asks, and what can be said to them meanwhile.
//!
//! Tools and prompts are written against this alone and work in every revision. In a session a question to the client
//! is a request of its own; for a request that stands alone it ends the round, and the client comes back with the
//! answer.

use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use serde_json::{Value, json};

use super::Demo;
use super::era::Envelope;
use super::log_level::LogLevel;
use super::message::{self, Fault, INTERNAL_ERROR, MISSING_CAPABILITY, Members, Request};
use super::outbox::Outbox;
use super::question::{Kind, Question};
use super::revision::Revision;
use super::seal;
use super::session::Session;

/// One request.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) demo: Arc<Demo>,
    pub(crate) revision: Revision,
    caller: Caller,
    progress_token: Option<Value>,
    pub(crate) outbox: Outbox,
}

#[derive(Debug)]
enum Caller {
    Session(Arc<Session>),
    Alone { envelope: Envelope, subject: String, answers: Members },
}

/// Why a call ends without a result.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It did not work out, and the model may read why.
    Failed(String),
    /// The request was wrong.
    Fault(Fault),
    /// The client has to answer questions first: the result that asks them.
    Questions(Value),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl Stop {
    /// The outcome of a method that has no words for failures of its own.
    pub(crate) fn outcome(self) -> Result<Value, Fault> {
        match self {
            Self::Failed(reason) => Err(Fault::new(INTERNAL_ERROR, reason)),
            Self::Fault(fault) => Err(fault),
            Self::Questions(result) => Ok(result),
        }
    }
}

/// Whether the client is given state to bring back even when there is nothing to remember.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    WhenNeeded,
    Always,
}

impl Call {
    pub(crate) fn in_session(
        demo: &Arc<Demo>,
        session: &Arc<Session>,
        revision: Revision,
        request: &Request,
        outbox: Outbox,
    ) -> Self {
        let caller = Caller::Session(Arc::clone(session));
        Self { demo: Arc::clone(demo), revision, caller, progress_token: progress_token(request), outbox }
    }

    /// A request that stands alone. The answers to earlier questions come with it.
    pub(crate) fn alone(
        demo: &Arc<Demo>,
        envelope: Envelope,
        request: &Request,
        outbox: Outbox,
    ) -> Result<Self, Fault> {
        let subject = seal::subject(request);
        let mut answers = match request.params.get("requestState") {
            None => Members::new(),
            Some(Value::String(state)) => demo.seal.open(&subject, state)?,
            Some(_) => return Err(Fault::invalid_params("requestState must be a string")),
        };
        match request.params.get("inputResponses") {
            None => {}
            Some(Value::Object(given)) => answers.extend(given.clone()),
            Some(_) => return Err(Fault::invalid_params("inputResponses must be an object")),
        }
        let caller = Caller::Alone { envelope, subject, answers };
        Ok(Self {
            demo: Arc::clone(demo),
            revision: Revision::July2026,
            caller,
            progress_token: progress_token(request),
            outbox,
        })
    }

    pub(crate) fn session(&self) -> Option<&Session> {
        match &self.caller {
            Caller::Session(session) => Some(session),
            Caller::Alone { .. } => None,
        }
    }

    /// Tells how far the call is, if the client wants to know.
    pub(crate) async fn progress(&self, progress: u64, total: u64, text: &str) {
        let Some(token) = &self.progress_token else { return };
        let params = json!({"progressToken": token, "progress": progress, "total": total, "message": text});
        self.outbox.send(message::notification("notifications/progress", &params)).await;
    }

    /// Logs to the client, if it wants messages of that level.
    pub(crate) async fn log(&self, level: LogLevel, text: &str) {
        let wanted = match &self.caller {
            Caller::Session(session) => Some(session.log_level()),
            Caller::Alone { envelope, .. } => envelope.log_level,
        };
        if wanted.is_some_and(|wanted| level >= wanted) {
            let params = json!({"level": level.name(), "logger": "demo", "data": text});
            self.outbox.send(message::notification("notifications/message", &params)).await;
        }
    }

    /// Sends the client away to resume the stream later, where the revision and the transport allow it.
    pub(crate) fn hang_up(&self, retry: Duration) {
        if let (Outbox::Stream(stream), true) = (&self.outbox, self.revision.has_polling()) {
            stream.hang_up(retry);
        }
    }

    /// Whether the client can be asked this kind of question.
    pub(crate) fn can_ask(&self, kind: Kind) -> bool {
        let declared = match &self.caller {
            Caller::Session(session) => session.capabilities().is_some_and(|declared| kind.is_declared(declared)),
            Caller::Alone { envelope, .. } => kind.is_declared(&envelope.capabilities),
        };
        declared && (kind != Kind::Elicitation || self.revision.has_elicitation())
    }

    /// Refuses a client that cannot be asked this kind of question.
    pub(crate) fn require(&self, kind: Kind) -> Result<(), Stop> {
        let capability = kind.capability();
        if self.can_ask(kind) {
            return Ok(());
        }
        let text = format!("the client does not declare the capability {capability}");
        Err(match &self.caller {
            Caller::Session(_) => Stop::Failed(text),
            Caller::Alone { .. } => Stop::Fault(
                Fault::new(MISSING_CAPABILITY, text).with_data(json!({"requiredCapabilities": {capability: {}}})),
            ),
        })
    }

    /// Asks the client, and returns the answers in the order of the questions.
    pub(crate) async fn ask(&self, questions: &[Question], state: State) -> Result<Vec<Value>, Stop> {
        for question in questions {
            self.require(question.kind)?;
        }
        match &self.caller {
            Caller::Session(session) => {
                try_join_all(questions.iter().map(|question| self.ask_now(session, question))).await
            }
            Caller::Alone { subject, answers, .. } => {
                let known = |question: &Question| answers.get(question.key).filter(|answer| question.fits(answer));
                let missing: Vec<&Question> = questions.iter().filter(|question| known(question).is_none()).collect();
                if missing.is_empty() {
                    return Ok(questions.iter().filter_map(known).cloned().collect());
                }
                let inputs: Members =
                    missing.iter().map(|question| (question.key.to_owned(), input(question))).collect();
                let mut result = json!({"resultType": "input_required", "inputRequests": inputs});
                let mut kept = answers.clone();
                kept.retain(|key, _| !inputs.contains_key(key));
                if state == State::Always || !kept.is_empty() {
                    result["requestState"] = self.demo.seal.close(subject, &kept)?.into();
                }
                Err(Stop::Questions(result))
            }
        }
    }

    async fn ask_now(&self, session: &Session, question: &Question) -> Result<Value, Stop> {
        let method = question.kind.method();
        let answer = session.ask(method, &question.params, &self.outbox).await.map_err(|fault| {
            Stop::Failed(format!("the client answers {method} with an error: {} ({})", fault.message, fault.code))
        })?;
        if question.fits(&answer) {
            Ok(answer)
        } else {
            Err(Stop::Failed(format!("the client answers {method} with something else")))
        }
    }
}

fn input(question: &Question) -> Value {
    json!({"method": question.kind.method(), "params": question.params})
}

fn progress_token(request: &Request) -> Option<Value> {
    request.meta()?.get("progressToken").filter(|token| token.is_string() || token.is_number()).cloned()
}
