//! The chain that every request passes before it reaches a transport.
//!
//! ```text
//! body limit -> recovery -> [steps, in the order of the configuration] -> transport
//! ```
//!
//! A chain is built once for a configuration and replaced as a whole. Requests that are under way end in the one that
//! they began in. What is in a body is read once; who calls and what the body says travel with the request.

mod ambiguity;
mod audit;
mod auth;
mod authz;
pub(crate) mod aws_sts;
mod client_credentials;
mod cross_app_access;
mod delegation;
mod exchange;
mod forward_headers;
pub(crate) mod good_until;
mod grants;
pub(crate) mod identity;
pub(crate) mod layer;
mod lists;
mod on_behalf_of;
mod parse;
mod rate_limit;
mod recovery;
mod refusal;
mod remembered;
mod replaced;
mod strip_credentials;
mod subject;
pub(crate) mod telemetry;
mod token_exchange;
mod tools;
mod unverified;
mod verbs;
mod watch;
mod webhook;

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use futures::FutureExt as _;
use futures::future::{BoxFuture, OptionFuture};
use http::Request;

pub use self::audit::{Audit, AuditError, AuditSettings};
use self::auth::resource::{self, ProtectedResource};
pub use self::auth::{Authentication, Oidc, OidcError, OidcSettings};
pub use self::authz::{Authorizer, CedarError, CedarSettings, ClaimMapping, PdpError, PdpSettings};
pub use self::aws_sts::{AwsSts, AwsStsError, AwsStsSettings, RoleMapping, RoleTest, RolesError};
pub use self::cross_app_access::{CrossAppAccess, CrossAppAccessError, CrossAppAccessSettings, NoAccess};
pub use self::delegation::{Actor, Delegation};
pub(crate) use self::exchange::{AsSent, Exchange, Notes, messages};
pub(crate) use self::forward_headers::Ours;
pub use self::forward_headers::{ForwardError, ForwardHeaders};
pub use self::grants::EndpointError;
pub(crate) use self::grants::Placed;
pub use self::identity::Identity;
use self::layer::{Destination, Layer, Next};
pub use self::on_behalf_of::{OnBehalfOf, OnBehalfOfSettings};
pub use self::rate_limit::{Bucket, CallLimits, RateLimit, RateLimitError, RateLimits};
use self::refusal::Refusal;
use self::replaced::Replaced;
pub use self::telemetry::{
    CollectorSettings, PrometheusSettings, Resource, Service, Telemetry, TelemetryError, TelemetrySettings,
    collector_headers,
};
pub use self::token_exchange::{TokenExchange, TokenExchangeError, TokenExchangeSettings};
pub use self::tools::{Annotations, Shown, ToolRules, ToolRulesError};
pub(crate) use self::verbs::EndsSession;
pub use self::webhook::{FailurePolicy, Power, Secret, SecretError, WebhookError, WebhookSettings, Webhooks};
use crate::answer::Answer;
use crate::eras::verdict::Eras;
use crate::limits::Limits;
use crate::listener::{Coming, Peer};
use crate::upload::Upload;

/// A layer that a configuration can ask for, outermost first as they usually stand. A configuration may have them in
/// another order, and they stand in that one then.
#[derive(Debug)]
pub enum Step {
    /// Records every request. Around everything that may refuse one.
    Audit(Audit),
    /// Finds out who calls, before anything is decided or counted.
    Authenticate(Authentication),
    /// Keeps credentials from the server. Behind authentication, which needs them.
    StripCredentials,
    /// Takes the caller's token for one that is meant for the server. Behind authentication, which needs the former.
    ExchangeToken(TokenExchange),
    /// Shows tools as they are to be shown. Around everything that decides about single tools.
    ToolLists(ToolRules),
    /// Takes the names of tools that clients know for those that the server knows. Everything behind it sees the latter.
    ToolCalls(ToolRules),
    /// Reads the message, for those around it.
    Parse,
    /// Tells what happens. Behind the parser, and around everything that decides about single messages.
    Telemetry(Telemetry),
    /// Counts calls of tools. Behind whatever says who calls, and what the server calls its tools.
    LimitRates(RateLimit),
    /// Lets callbacks change or refuse messages. Those that change come first, and all of them before decisions.
    Webhooks(Webhooks),
    /// Decides who may do what, by the message as it reaches the server.
    Authorize(Authorizer),
    /// Gets credentials of AWS for the caller, which the request is signed with when it is sent.
    SignForAws(AwsSts),
    /// Sets headers for the server. Behind everything that reads those of the client.
    ForwardHeaders(ForwardHeaders),
    /// Takes the caller's token for one with which we act on the caller's behalf. Behind every step that reads it.
    ActOnBehalf(OnBehalfOf),
    /// Makes an answer of a panic, for those around it.
    Recover,
}

impl Step {
    /// Whether it decides by messages, and so cannot decide about what is none.
    fn judges(&self) -> bool {
        matches!(self, Self::Webhooks(_) | Self::Authorize(_))
    }

    fn layer(self) -> Box<dyn Layer> {
        match self {
            Self::Audit(audit) => Box::new(audit),
            Self::Authenticate(Authentication::Local) => Box::new(auth::Unproven::local()),
            Self::Authenticate(Authentication::Anonymous) => Box::new(auth::Unproven::anonymous()),
            Self::Authenticate(Authentication::Oidc(oidc)) => oidc,
            Self::StripCredentials => Box::new(strip_credentials::StripCredentials),
            Self::ExchangeToken(exchange) => Box::new(exchange),
            Self::ToolLists(rules) => Box::new(tools::ToolLists::new(rules)),
            Self::ToolCalls(rules) => Box::new(tools::ToolCalls::new(rules)),
            Self::Parse => Box::new(parse::Parse),
            Self::Telemetry(telemetry) => Box::new(telemetry),
            Self::LimitRates(limit) => Box::new(limit),
            Self::Webhooks(webhooks) => Box::new(webhooks),
            Self::Authorize(authorizer) => Box::new(authorizer),
            Self::SignForAws(credentials) => Box::new(credentials),
            Self::ForwardHeaders(headers) => Box::new(headers),
            Self::ActOnBehalf(on_behalf_of) => Box::new(on_behalf_of),
            Self::Recover => Box::new(recovery::Recovery),
        }
    }
}

/// The layers of one configuration.
#[derive(Debug)]
pub struct Chain {
    layers: Vec<Box<dyn Layer>>,
    /// What a client may know before it has proved anything.
    resource: Option<ProtectedResource>,
    telemetry: Option<Telemetry>,
    audits: Vec<Audit>,
}

impl Chain {
    /// A chain of these steps, outermost first. Panics are caught around all of them.
    pub fn new(steps: Vec<Step>) -> Self {
        let outermost: Box<dyn Layer> = Box::new(recovery::Recovery);
        let resource = steps.iter().find_map(|step| match step {
            Step::Authenticate(Authentication::Oidc(oidc)) => Some(oidc.resource().clone()),
            _ => None,
        });
        let telemetry = steps.iter().find_map(|step| match step {
            Step::Telemetry(telemetry) => Some(telemetry.clone()),
            _ => None,
        });
        let audits = steps.iter().filter_map(|step| match step {
            Step::Audit(audit) => Some(audit.clone()),
            _ => None,
        });
        let audits = audits.collect();
        let rules = steps.iter().find_map(|step| match step {
            Step::ToolCalls(rules) => Some(rules.clone()),
            _ => None,
        });
        let judging = steps.iter().position(Step::judges);
        let steps = steps.into_iter().map(|step| match (step, &rules) {
            // What a callback makes of a call is a call that was not looked at yet.
            (Step::Webhooks(webhooks), Some(rules)) => Step::Webhooks(webhooks.among(rules.clone())),
            (step, _) => step,
        });
        let mut layers: Vec<_> = std::iter::once(outermost).chain(steps.map(Step::layer)).collect();
        if let Some(index) = judging {
            // Behind the outermost one, and before whoever decides first.
            layers.insert(index + 1, Box::new(verbs::Verbs));
        }
        Self { layers, resource, telemetry, audits }
    }

    /// Answers a request for what is known to everybody, if that is what it asks for.
    pub(crate) fn describe<B>(&self, request: &Request<B>) -> Option<Answer> {
        let resource = self.resource.as_ref().filter(|_| request.uri().path().starts_with(resource::PATH))?;
        Some(resource.answer(request.method(), request.headers()))
    }

    /// Answers a request for what is counted, if that is told at this address.
    pub(crate) fn metrics<B>(&self, request: &Request<B>) -> Option<Answer> {
        self.telemetry.as_ref()?.page(request.method())
    }

    /// Whether somebody besides it is still to tell something, such as a stream at its end.
    fn has_more_to_tell(&self) -> bool {
        let audits = self.audits.iter().any(Audit::is_used);
        audits || self.telemetry.as_ref().is_some_and(Telemetry::is_used)
    }

    /// Has everything told that is known.
    async fn close(&self) {
        let audits = futures::future::join_all(self.audits.iter().map(Audit::close));
        let telemetry = OptionFuture::from(self.telemetry.as_ref().map(Telemetry::close));
        tokio::join!(audits, telemetry);
    }

    /// Answers a request, as a rule with what is behind the chain.
    pub(crate) fn answer<'a>(
        &'a self,
        peer: Peer,
        request: Request<Coming>,
        limits: &'a Limits,
        destination: &'a dyn Destination,
    ) -> BoxFuture<'a, Answer> {
        let request = request.map(Upload::Coming);
        if request.body().least_bytes() > limits.body_bytes {
            return std::future::ready(Refusal::TooLarge.answer(None)).boxed();
        }
        Next::new(&self.layers, destination).pass(Exchange::new(peer, request, limits))
    }
}

/// The chain of a proxy, which can be replaced while it serves.
#[derive(Debug, Clone)]
pub struct Middleware {
    chain: Arc<ArcSwap<Chain>>,
    /// Those that were there before.
    replaced: Arc<Replaced>,
    /// What is known about the era of the server behind it.
    eras: Arc<OnceLock<Arc<Eras>>>,
}

impl Middleware {
    /// Begins with a chain.
    pub fn new(chain: Chain) -> Self {
        Self { chain: Arc::new(ArcSwap::from_pointee(chain)), replaced: Arc::default(), eras: Arc::default() }
    }

    /// Puts another chain in its place, for the requests that come from now on.
    pub fn replace(&self, chain: Chain) {
        self.replaced.end(self.chain.swap(Arc::new(chain)));
        self.tell_eras();
    }

    pub(crate) fn chain(&self) -> Arc<Chain> {
        self.chain.load_full()
    }

    /// Has chains tell what is known about the era of a server, from now on.
    pub(crate) fn watch(&self, eras: &Arc<Eras>) {
        // A proxy has one server.
        let _ = self.eras.set(Arc::clone(eras));
        self.tell_eras();
    }

    fn tell_eras(&self) {
        if let (Some(eras), Some(telemetry)) = (self.eras.get(), &self.chain().telemetry) {
            telemetry.watch(eras);
        }
    }

    /// Ends what goes on besides requests. They have to have ended before.
    pub(crate) async fn close(&self) {
        futures::future::join(self.chain().close(), self.replaced.close()).await;
    }
}

/// A chain without steps.
impl Default for Middleware {
    fn default() -> Self {
        Self::new(Chain::new(Vec::new()))
    }
}
