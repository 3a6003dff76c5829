//! Cedar policies, evaluated in the process.
//!
//! The words of policies: principal `Client::"<sub>"` in `THVGroup::"<group>"`, action `Action::"call_tool"`,
//! `"get_prompt"` or `"read_resource"`, resource `Tool`, `Prompt` or `Resource` in `MCP::"<server>"`.

mod arguments;
mod claims;
mod decided;
mod entities;
mod mistakes;
mod seen;
mod slices;
mod spellings;
mod values;

use std::sync::Arc;

use cedar_policy::{
    Authorizer, Context, Decision, EntityId, EntityTypeName, EntityUid, Policy, PolicyId, Request, Response,
    RestrictedExpression,
};
use serde_json::{Map, Value};

use self::claims::Attributes;
pub(super) use self::decided::Known;
use self::decided::{Asked, Decided};
use self::entities::{Stage, Staged};
use self::seen::{Seen, Times};
use self::slices::Slices;
use super::Verdict;
use super::hints::Hints;
use super::question::{Feature, Question};
use crate::middleware::identity::{COUNTDOWN, Identity};

/// What groups are called in policies, unless they are called otherwise.
const GROUP_TYPE: &str = "THVGroup";

/// What the Cedar authorizer is told.
#[derive(Debug, Clone, Default)]
pub struct CedarSettings {
    /// At least one.
    pub policies: Vec<String>,
    /// Entities as Cedar's JSON; none when empty.
    pub entities: String,
    /// The provider whose tokens say who a caller is; the caller's own token when empty.
    pub upstream_provider: String,
    /// The claim with the groups of a caller.
    pub group_claim: String,
    /// The claim with the roles of a caller.
    pub role_claim: String,
    /// What groups are called in policies; `THVGroup` when empty.
    pub group_type: String,
    /// Claims that are lists, or texts that separate their elements by spaces.
    pub multi_valued_claims: Vec<String>,
    /// The server that everything belongs to.
    pub server: String,
}

/// Why there is no Cedar authorizer.
#[derive(Debug, thiserror::Error)]
pub enum CedarError {
    /// Without a policy everything would be denied.
    #[error("cedar.policies must have at least one policy")]
    NoPolicies,
    /// A policy cannot be read.
    #[error("cedar.policies[{index}] is no Cedar policy: {cause}")]
    Policy {
        /// Which one.
        index: usize,
        /// What Cedar says.
        cause: String,
    },
    /// The policies cannot be put together, which cannot be.
    #[error("cedar.policies cannot be used together: {0}")]
    Together(String),
    /// The entities cannot be read.
    #[error("cedar.entities_json is no list of Cedar entities: {0}")]
    Entities(String),
    /// The type of groups is no type.
    #[error("cedar.group_entity_type {0:?} must be a name of letters, digits and _")]
    GroupType(String),
    /// The name of an own type is no type, which cannot be.
    #[error("cannot name a type: {0}")]
    Type(String),
}

/// Why a question is answered with no without looking at what policies allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Denied {
    #[error("nobody is known to ask")]
    NoCaller,
    #[error("the caller has no subject")]
    NoSubject,
    #[error("there is no token of the upstream provider {0:?}")]
    NoUpstreamToken(String),
    #[error("the token of the upstream provider cannot be read")]
    UpstreamToken,
    #[error("the argument {0:?} cannot be told to policies")]
    Argument(String),
    #[error("the argument {given:?} differs only in capitals from {known:?}, which policies know as arg_{known}")]
    Capitals { given: String, known: String },
    #[error("it has more than {} arguments, and policies look at all of them", arguments::MOST)]
    TooMany,
    #[error("the question cannot be put to Cedar: {0}")]
    Unaskable(String),
    #[error("a policy cannot be evaluated: {0}")]
    Evaluation(String),
}

/// Who is behind a request: the claims of the caller's own token, and the tokens of upstream providers by their names.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Caller<'a> {
    pub(super) claims: Option<&'a Map<String, Value>>,
    pub(super) access_token: Option<&'a str>,
    pub(super) identity_token: Option<&'a str>,
}

/// The authorizer.
#[derive(Debug)]
pub(super) struct Cedar {
    policies: Slices,
    seen: Seen,
    times: Times,
    decided: Decided,
    stage: Stage,
    authorizer: Authorizer,
    types: Types,
    server: Option<EntityUid>,
    upstream_provider: String,
    group_claim: String,
    role_claim: String,
    multi_valued_claims: Vec<String>,
}

/// The types of what policies speak about.
#[derive(Debug)]
struct Types {
    client: EntityTypeName,
    group: EntityTypeName,
    action: EntityTypeName,
    features: [EntityTypeName; Feature::ALL.len()],
}

/// A caller, ready to be asked about.
pub(super) struct Principal {
    attributes: Attributes,
    staged: Staged,
}

impl Cedar {
    pub(super) fn new(settings: CedarSettings) -> Result<Self, CedarError> {
        if settings.policies.is_empty() {
            return Err(CedarError::NoPolicies);
        }
        let policy = |(index, text): (usize, &String)| {
            let id = PolicyId::new(format!("policy{index}"));
            Policy::parse(Some(id), text)
                .map_err(|error| CedarError::Policy { index, cause: mistakes::told(&error, text) })
        };
        let policies = settings.policies.iter().enumerate().map(policy).collect::<Result<Vec<_>, _>>()?;
        let types = Types::new(&settings.group_type)?;
        let actions = Feature::ALL.map(|feature| uid(&types.action, feature.action()));
        let server = (!settings.server.is_empty()).then(|| type_name("MCP")).transpose()?;
        Ok(Self {
            seen: Seen::by(&policies),
            times: Times::by(&policies),
            decided: Decided::default(),
            stage: Stage::new(&settings.entities, &actions, &policies)?,
            policies: Slices::new(&policies)?,
            authorizer: Authorizer::new(),
            server: server.map(|name| uid(&name, &settings.server)),
            types,
            upstream_provider: settings.upstream_provider,
            group_claim: settings.group_claim,
            role_claim: settings.role_claim,
            multi_valued_claims: settings.multi_valued_claims,
        })
    }

    /// The provider whose tokens count, unless the caller's own does.
    pub(super) fn upstream_provider(&self) -> Option<&str> {
        (!self.upstream_provider.is_empty()).then_some(&*self.upstream_provider)
    }

    /// A caller as policies see it.
    pub(super) fn principal(&self, caller: Caller<'_>) -> Result<Principal, Denied> {
        let own = caller.claims.ok_or(Denied::NoCaller)?;
        let upstream = match (self.upstream_provider(), caller.access_token) {
            (None, _) => None,
            (Some(provider), None) => return Err(Denied::NoUpstreamToken(provider.to_owned())),
            (Some(_), Some(access)) => claims::upstream(access, caller.identity_token)?,
        };
        let claims = upstream.as_ref().unwrap_or(own);
        let subject = claims.get("sub").and_then(Value::as_str).filter(|subject| !subject.is_empty());
        let id = uid(&self.types.client, subject.ok_or(Denied::NoSubject)?);
        let attributes = claims::attributes(claims, &self.multi_valued_claims);
        let groups = claims::groups(claims, &self.group_claim, &self.role_claim);
        let parents = groups.into_iter().map(|group| uid(&self.types.group, group)).collect();
        let staged = self.stage.entity(&id, attributes.clone(), parents)?;
        Ok(Principal { attributes, staged })
    }

    /// A caller whom decisions are remembered for, as long as its claims are the same.
    pub(super) fn caller(&self, identity: &Identity) -> Result<Arc<Known>, Denied> {
        // The times of somebody who proved nothing are those of the call, so that no two calls are the same then; and so it
        // is with how long a token is still good for.
        let counts_down = || identity.claims.contains_key(COUNTDOWN);
        let is_another = self.times.moments && !identity.is_proven() || self.times.countdown && counts_down();
        let digest = if is_another { None } else { identity.digest() };
        let read = || self.principal(Caller { claims: Some(&identity.claims), ..Caller::default() });
        self.decided.caller(digest, &identity.claims, read)
    }

    /// Whether a caller may do something, as it was decided before or is decided now.
    pub(super) fn allows(&self, known: &Known, question: &Question<'_>, hints: Hints) -> Result<Verdict, Denied> {
        let arguments = self.looked_at(question)?;
        let (caller, id) = (known.digest, question.id.clone().into_owned());
        let asked = Asked { caller, feature: question.feature, id, hints, arguments };
        self.decided
            .decision(asked, |asked| self.decide(&known.principal, question, arguments::told(&asked.arguments)?, hints))
    }

    /// The arguments that policies look at. What is wrong with any of them is an answer already.
    fn looked_at(&self, question: &Question<'_>) -> Result<Vec<(String, String)>, Denied> {
        arguments::check(&question.arguments)?;
        self.policies.check_spelling(&question.arguments, || self.resource(question))?;
        arguments::seen(&question.arguments, &self.seen)
    }

    /// What a question is about.
    fn resource(&self, question: &Question<'_>) -> EntityUid {
        uid(&self.types.features[question.feature as usize], &question.id)
    }

    /// A policy that cannot be evaluated denies, whatever others permit.
    fn decide(
        &self,
        principal: &Principal,
        question: &Question<'_>,
        arguments: Attributes,
        hints: Hints,
    ) -> Result<Verdict, Denied> {
        let resource = self.resource(question);
        let attributes = resource_attributes(question, hints, &arguments);
        let parents = self.server.iter().cloned().collect();
        let entities = self.stage.with(&[&principal.staged, &self.stage.entity(&resource, attributes, parents)?])?;
        let context = principal.attributes.clone().into_iter().chain(arguments);
        let context = Context::from_pairs(context).map_err(|error| Denied::Unaskable(error.to_string()))?;
        let action = uid(&self.types.action, question.feature.action());
        let policies = self.policies.about(&resource);
        let request = Request::new(principal.staged.entity.uid(), action, resource, context, None)
            .map_err(|error| Denied::Unaskable(error.to_string()))?;
        let response = self.authorizer.is_authorized(&request, policies, &entities);
        if let Some(error) = response.diagnostics().errors().next() {
            return Err(Denied::Evaluation(error.to_string()));
        }
        Ok(verdict(&response))
    }
}

impl Types {
    fn new(group: &str) -> Result<Self, CedarError> {
        let group = if group.is_empty() { GROUP_TYPE } else { group };
        let is_name = !group.contains(':');
        let group = type_name(group).ok().filter(|_| is_name).ok_or_else(|| CedarError::GroupType(group.to_owned()))?;
        Ok(Self {
            client: type_name("Client")?,
            group,
            action: type_name("Action")?,
            features: [type_name("Tool")?, type_name("Prompt")?, type_name("Resource")?],
        })
    }
}

/// What Cedar says, and which policies decided it where somebody may not.
fn verdict(response: &Response) -> Verdict {
    if response.decision() == Decision::Allow {
        return Ok(());
    }
    let mut deciding: Vec<String> = response.diagnostics().reason().map(ToString::to_string).collect();
    deciding.sort_unstable();
    Err(match deciding.as_slice() {
        [] => "no policy permits it".into(),
        deciding => format!("it is forbidden by {}", deciding.join(", ")).into(),
    })
}

/// What policies see of a tool, prompt or resource. What we say about it wins over what the server and the caller say.
fn resource_attributes(question: &Question<'_>, hints: Hints, arguments: &Attributes) -> Attributes {
    let text = |text: &str| RestrictedExpression::new_string(text.to_owned());
    let mut attributes = arguments.clone();
    if question.feature == Feature::Tool {
        attributes.extend(hints.given().map(|(name, hint)| (name.to_owned(), RestrictedExpression::new_bool(hint))));
    }
    if question.feature == Feature::Resource {
        attributes.insert("uri".to_owned(), text(&question.id));
    }
    attributes.insert("name".to_owned(), text(&question.id));
    attributes.insert("operation".to_owned(), text(question.feature.operation()));
    attributes.insert("feature".to_owned(), text(question.feature.name()));
    attributes
}

fn type_name(name: &str) -> Result<EntityTypeName, CedarError> {
    name.parse().map_err(|error| CedarError::Type(format!("{name}: {error}")))
}

fn uid(kind: &EntityTypeName, id: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(kind.clone(), EntityId::new(id))
}

#[cfg(test)]
mod tests;
