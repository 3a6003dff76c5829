//! Who may do what. Decided by the body of a request as it reaches the server, in every revision, verb and form, and once
//! more for everything that a list shows.

mod cedar;
mod hints;
mod pdp;
mod question;

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::Method;
use skep_mcp::Message;
use skep_mcp::catalog::{CatalogKind, Item};

use self::cedar::Cedar;
pub use self::cedar::{CedarError, CedarSettings};
use self::hints::{Hints, Known};
use self::pdp::Pdp;
pub use self::pdp::{ClaimMapping, PdpError, PdpSettings};
use self::question::{Feature, Question, Wish};
use super::exchange::{Exchange, messages};
use super::identity::Identity;
use super::layer::{Layer, Next, refused, with_body};
use super::lists::{Editor, Unreadable, edited};
use super::refusal::Refusal;
use super::subject::cut;
use super::telemetry::address;
use crate::answer::Answer;
use crate::intake;

/// Letters of what was asked about that are logged, and of why it is refused.
const LONGEST_NAME: usize = 256;
const LONGEST_REASON: usize = 1024;
/// So much of an address is looked at for secrets, in bytes.
const LONGEST_ADDRESS: usize = 64 << 10;

/// Whether somebody may do something, or why not. The reason is for the log, and nobody else.
type Verdict = Result<(), Arc<str>>;

/// Decides who may do what.
#[derive(Debug, Clone)]
pub struct Authorizer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    engine: Engine,
    known: Known,
}

/// Who is asked.
#[derive(Debug)]
enum Engine {
    Cedar(Box<Cedar>),
    Pdp(Box<Pdp>),
}

impl Authorizer {
    /// Goes by Cedar policies.
    pub fn cedar(settings: CedarSettings) -> Result<Self, CedarError> {
        Ok(Self::new(Engine::Cedar(Box::new(Cedar::new(settings)?))))
    }

    /// Asks a policy decision point.
    pub fn pdp(settings: PdpSettings) -> Result<Self, PdpError> {
        Ok(Self::new(Engine::Pdp(Box::new(Pdp::new(settings)?))))
    }

    fn new(engine: Engine) -> Self {
        Self(Arc::new(Inner { engine, known: Known::default() }))
    }

    /// Whether somebody may send a message. What lists show is decided when they are answered.
    pub async fn allows(&self, identity: &Arc<Identity>, message: &Message) -> bool {
        self.0.judge(Some(identity), message).await.is_ok()
    }
}

impl Inner {
    /// Asks whether somebody may do these things, until nobody wants to hear more. Each of them has an answer, in their order,
    /// and whatever is no clear yes is a no.
    async fn ask(
        &self,
        identity: Option<&Arc<Identity>>,
        questions: &[Question<'_>],
        mut hear: impl FnMut(Verdict) -> ControlFlow<()> + Send,
    ) {
        let mut refuse = |reason: &str| {
            // Everything was heard then, or enough was.
            let _ = questions.iter().try_for_each(|_| hear(Err(reason.into())));
        };
        let Some(identity) = identity else { return refuse("nobody is known to ask") };
        match &self.engine {
            Engine::Cedar(cedar) => {
                let caller = match cedar.caller(identity) {
                    Ok(caller) => caller,
                    Err(reason) => return refuse(&reason.to_string()),
                };
                for question in questions {
                    // A list may be long, and others wait for this thread.
                    tokio::task::consume_budget().await;
                    let decided = cedar.allows(&caller, question, self.hints(question));
                    if hear(decided.unwrap_or_else(|reason| Err(reason.to_string().into()))).is_break() {
                        return;
                    }
                }
            }
            Engine::Pdp(pdp) => pdp.ask(&identity.claims, questions, |question| self.hints(question), hear).await,
        }
    }

    /// The first of these things that somebody may not do, and why. Nobody is asked about what comes after it.
    async fn refused<'a>(
        &self,
        identity: Option<&Arc<Identity>>,
        questions: &'a [Question<'a>],
    ) -> Option<(&'a Question<'a>, Arc<str>)> {
        let (mut next, mut refused) = (questions.iter(), None);
        let hear = |verdict: Verdict| {
            refused = next.next().zip(verdict.err());
            if refused.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        self.ask(identity, questions, hear).await;
        refused
    }

    /// Which of these things somebody may do.
    async fn verdicts(&self, identity: Option<&Arc<Identity>>, questions: &[Question<'_>]) -> Vec<Verdict> {
        let mut verdicts = Vec::with_capacity(questions.len());
        let hear = |verdict| {
            verdicts.push(verdict);
            ControlFlow::Continue(())
        };
        self.ask(identity, questions, hear).await;
        verdicts
    }

    fn hints(&self, question: &Question<'_>) -> Hints {
        match question.feature {
            Feature::Tool => self.known.of(&question.id),
            Feature::Prompt | Feature::Resource => Hints::default(),
        }
    }

    /// Lets a request pass, or says why not. A batch with one message that may not is refused as a whole.
    async fn check(&self, exchange: &mut Exchange<'_>) -> Result<(), Answer> {
        let is_post = exchange.parts.method == Method::POST;
        if is_post && intake::require_json(&exchange.parts.headers).is_err() {
            // Whoever is behind us might read it all the same.
            exchange.notes().deny();
            tracing::info!("a request that does not call itself JSON cannot be decided, and is refused");
            return Err(Refusal::NoMessage.answer(None));
        }
        let identity = exchange.notes().identity().cloned();
        let Some(payload) = exchange.judged()? else {
            return if is_post { Err(Refusal::NoMessage.answer(None)) } else { Ok(()) };
        };
        for message in messages(payload) {
            let judged = self.judge(identity.as_ref(), message).await;
            judged.map_err(|refusal| refusal.answer(message.owned_id().as_ref()))?;
        }
        Ok(())
    }

    /// Whether somebody may send a message, or why not.
    async fn judge(&self, identity: Option<&Arc<Identity>>, message: &Message) -> Result<(), Refusal> {
        let subject = identity.map(|identity| identity.subject.as_str());
        let reason = match Wish::read(message) {
            Wish::Free | Wish::List(_) => return Ok(()),
            Wish::Refused => "no policy can permit this method",
            Wish::Unclear => "it does not say what it is about, or in two ways, or is about too much",
            Wish::Ask(questions) => {
                let Some((asked, reason)) = self.refused(identity, &questions).await else { return Ok(()) };
                let action = asked.feature.action();
                let (resource, reason) = told(&asked.id, &reason);
                tracing::info!(subject, action, ?resource, %reason, "a request is refused");
                return Err(Refusal::Unauthorized);
            }
        };
        tracing::info!(subject, method = ?brief(message.method(), LONGEST_NAME), reason, "a request is refused");
        Err(Refusal::Unauthorized)
    }
}

/// What somebody may not use, and why, as the log says it: without secrets in an address, which a reason may repeat.
fn told(id: &str, reason: &str) -> (String, String) {
    let shown = address(Cow::Borrowed(cut(id, LONGEST_ADDRESS)));
    (brief(&shown, LONGEST_NAME), brief(&reason.replace(id, &shown), LONGEST_REASON))
}

/// The beginning of what somebody says.
fn brief(text: &str, letters: usize) -> String {
    text.chars().take(letters).collect()
}

impl Layer for Authorizer {
    fn pass<'a>(&'a self, exchange: Box<Exchange<'a>>, next: Next<'a>) -> BoxFuture<'a, Answer> {
        with_body(exchange, move |mut exchange| {
            // Policies that are here decide at once, unless others have waited for too long; then they are asked once more.
            let is_here = matches!(self.0.engine, Engine::Cedar(_));
            match is_here.then(|| self.0.check(&mut exchange).now_or_never()).flatten() {
                Some(Ok(())) => self.show(exchange, next),
                Some(Err(refusal)) => refused(refusal),
                None => Box::pin(async move {
                    match self.0.check(&mut exchange).await {
                        Ok(()) => self.show(exchange, next).await,
                        Err(refusal) => refusal,
                    }
                }),
            }
        })
    }
}

impl Authorizer {
    /// Hands a request on, and shows of the lists in its answer what its caller may see.
    fn show<'a>(&'a self, exchange: Box<Exchange<'a>>, next: Next<'a>) -> BoxFuture<'a, Answer> {
        edited(exchange, next, &KINDS, |exchange| {
            let identity = exchange.notes().identity().cloned();
            Arc::new(Viewer { authorizer: Arc::clone(&self.0), identity })
        })
    }
}

/// What policies have something to say about.
const KINDS: [CatalogKind; 3] = [CatalogKind::Tools, CatalogKind::Prompts, CatalogKind::Resources];

/// Somebody who looks at lists.
struct Viewer {
    authorizer: Arc<Inner>,
    identity: Option<Arc<Identity>>,
}

impl Editor for Viewer {
    fn kinds(&self) -> &'static [CatalogKind] {
        &KINDS
    }

    fn edit<'a>(
        &'a self,
        kind: CatalogKind,
        items: &'a [Item<'a>],
    ) -> BoxFuture<'a, Result<Vec<Cow<'a, str>>, Unreadable>> {
        async move {
            let feature = Feature::of(kind).ok_or(Unreadable)?;
            if feature == Feature::Tool {
                self.authorizer.known.learn(items);
            }
            let questions: Vec<_> = items.iter().map(|item| Question::about(feature, &item.key)).collect();
            let allowed = self.authorizer.verdicts(self.identity.as_ref(), &questions).await;
            let subject = self.identity.as_ref().map(|identity| identity.subject.as_str());
            let mut shown = Vec::with_capacity(items.len());
            for (item, verdict) in items.iter().zip(allowed) {
                match verdict {
                    Ok(()) => shown.push(Cow::Borrowed(item.json)),
                    Err(reason) => {
                        let action = feature.action();
                        let (resource, reason) = told(&item.key, &reason);
                        tracing::debug!(subject, action, ?resource, %reason, "a list does not show something");
                    }
                }
            }
            Ok(shown)
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests;
