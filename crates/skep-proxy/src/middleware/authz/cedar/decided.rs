//! What was decided before. A decision depends on nothing but the claims of who asks, what is asked about, what its server
//! says about it and what policies look at of the arguments. Whoever asks the same once more is told the same, which is
//! sooner done.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::{Denied, Principal};
use crate::middleware::authz::Verdict;
use crate::middleware::authz::hints::Hints;
use crate::middleware::authz::question::Feature;
use crate::middleware::identity::ClaimsDigest;
use crate::middleware::remembered::Remembered;

/// So much of callers is remembered for sure, and so much of decisions, in bytes. At most it is twice as much.
const CALLERS: usize = 8 << 20;
const DECISIONS: usize = 8 << 20;
/// What is longer than this is decided anew each time, in bytes.
const LARGEST: usize = 1 << 10;
/// About what Cedar makes of one value, and what it takes to find a decision, in bytes.
const VALUE: usize = 512;
const PLACE: usize = 64;

/// Everything about a question that its answer depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Asked {
    /// Who asks; nobody whom anything could be remembered for when it is nothing.
    pub(super) caller: Option<ClaimsDigest>,
    pub(super) feature: Feature,
    pub(super) id: String,
    pub(super) hints: Hints,
    /// The arguments that policies look at.
    pub(super) arguments: Vec<(String, String)>,
}

impl Asked {
    fn is_large(&self) -> bool {
        let arguments = self.arguments.iter().map(|(name, json)| name.len() + json.len());
        self.id.len() + arguments.sum::<usize>() > LARGEST
    }

    /// About the bytes that it takes to remember a verdict.
    fn weight(&self, verdict: &Verdict) -> usize {
        let argument = |(name, json): &(String, String)| size_of::<(String, String)>() + name.len() + json.len();
        let reason = verdict.as_ref().err().map_or(0, |reason| reason.len());
        size_of::<Self>() + PLACE + self.id.len() + self.arguments.iter().map(argument).sum::<usize>() + reason
    }
}

/// A caller whom decisions are made about.
pub(in crate::middleware::authz) struct Known {
    pub(super) principal: Principal,
    pub(super) digest: Option<ClaimsDigest>,
}

/// Those who asked, and what was decided.
pub(super) struct Decided {
    callers: Mutex<Remembered<ClaimsDigest, Arc<Known>>>,
    decisions: Mutex<Remembered<Asked, Verdict>>,
}

impl Decided {
    /// Somebody who was here before, or is now.
    pub(super) fn caller(
        &self,
        digest: Option<ClaimsDigest>,
        claims: &Map<String, Value>,
        read: impl FnOnce() -> Result<Principal, Denied>,
    ) -> Result<Arc<Known>, Denied> {
        if let Some(known) = digest.and_then(|digest| self.callers.lock().find(&digest)) {
            return Ok(known);
        }
        let known = Arc::new(Known { principal: read()?, digest });
        if let Some(digest) = digest {
            let weight = claims.iter().map(|(name, claim)| name.len() + weight(claim)).sum::<usize>() + VALUE;
            self.callers.lock().add(digest, Arc::clone(&known), weight);
        }
        Ok(known)
    }

    /// What was decided, or what is decided now. A failure is not remembered.
    pub(super) fn decision(
        &self,
        asked: Asked,
        decide: impl FnOnce(&Asked) -> Result<Verdict, Denied>,
    ) -> Result<Verdict, Denied> {
        if asked.caller.is_none() || asked.is_large() {
            return decide(&asked);
        }
        if let Some(decided) = self.decisions.lock().find(&asked) {
            return Ok(decided);
        }
        let decided = decide(&asked)?;
        let weight = asked.weight(&decided);
        self.decisions.lock().add(asked, decided.clone(), weight);
        Ok(decided)
    }
}

/// About the bytes that Cedar needs for a claim.
fn weight(claim: &Value) -> usize {
    VALUE
        + match claim {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(weight).sum(),
            Value::Object(members) => members.iter().map(|(name, member)| name.len() + weight(member)).sum(),
        }
}

impl Default for Decided {
    fn default() -> Self {
        Self { callers: Mutex::new(Remembered::new(CALLERS)), decisions: Mutex::new(Remembered::new(DECISIONS)) }
    }
}

impl fmt::Debug for Decided {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Decided").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Cedar, CedarSettings};
    use super::*;
    use crate::middleware::authz::question::Question;
    use crate::middleware::identity::Identity;

    fn cedar(policy: &str) -> Cedar {
        Cedar::new(CedarSettings { policies: vec![policy.to_owned()], ..CedarSettings::default() }).unwrap()
    }

    fn identity(claims: Value, token: &str) -> Identity {
        let Value::Object(claims) = claims else { panic!("{claims} are no claims") };
        Identity::from_claims(claims, token).unwrap()
    }

    #[test]
    fn somebody_whose_token_was_asked_about_anew_is_still_the_same() {
        let cedar = cedar("permit(principal, action, resource);");
        let known = |claims, token| cedar.caller(&identity(claims, token)).unwrap();
        let ann = known(json!({"sub": "ann", "groups": ["a"]}), "opaque");
        assert!(Arc::ptr_eq(&ann, &known(json!({"sub": "ann", "groups": ["a"]}), "opaque")));
        assert!(!Arc::ptr_eq(&ann, &known(json!({"sub": "ann", "groups": ["b"]}), "opaque")));
    }

    #[test]
    fn the_local_user_is_the_same_all_the_time_unless_policies_look_at_the_time() {
        let all = cedar("permit(principal, action, resource);");
        let local = |now| Identity::unproven("local", "Local", now);
        assert!(Arc::ptr_eq(&all.caller(&local(1)).unwrap(), &all.caller(&local(2)).unwrap()));
        let until = r#"permit(principal, action, resource) when { context.claim_iat.lessThan(decimal("2.0")) };"#;
        let until = cedar(until);
        let may = |now| {
            let caller = until.caller(&local(now)).unwrap();
            until.allows(&caller, &Question::about(Feature::Tool, "weigh"), Hints::default()).unwrap().is_ok()
        };
        assert_eq!([1, 1, 2, 3].map(may), [true, true, false, false]);
    }

    #[test]
    fn what_callers_and_decisions_take_has_a_bound() {
        let large: Vec<String> = (0..=CALLERS / VALUE).map(|number| number.to_string()).collect();
        let cedar = cedar("permit(principal, action, resource);");
        let large = identity(json!({"sub": "ann", "groups": large}), "t");
        let known = cedar.caller(&large).unwrap();
        assert!(!Arc::ptr_eq(&known, &cedar.caller(&large).unwrap()), "it is too large to be remembered");
        // What was decided about it is not.
        let decided = Decided::default();
        let ask = |id: usize, decides: bool| {
            let (feature, hints) = (Feature::Tool, Hints::default());
            let id = format!("{id:01000}");
            let asked = Asked { caller: known.digest, feature, id, hints, arguments: Vec::new() };
            decided.decision(asked, |_| if decides { Ok(Ok(())) } else { Err(Denied::NoCaller) })
        };
        let most = 2 * DECISIONS / 1000;
        for id in 0..=most {
            assert_eq!(ask(id, true), Ok(Ok(())));
            assert_eq!(ask(id, false), Ok(Ok(())));
        }
        assert_eq!(ask(0, false), Err(Denied::NoCaller), "it is forgotten");
    }
}
