//! On whose behalf somebody calls: the claim `act`, outermost first.

use serde_json::{Map, Value, json};

/// How many hops are kept at most.
const HOPS: usize = 10;

/// A chain of those who act for each other. It is told, and never a reason to refuse.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delegation {
    /// Who acts; the first one is who calls.
    pub chain: Vec<Actor>,
    /// How many hops were left out.
    pub omitted: usize,
    /// Why the rest could not be read.
    pub malformed: Option<&'static str>,
}

/// Somebody who acts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Actor {
    pub issuer: String,
    pub subject: String,
}

impl Delegation {
    /// Reads the claim. Nothing when there is none.
    pub(super) fn read(claim: Option<&Value>) -> Option<Self> {
        let mut delegation = Self::default();
        let mut next = claim.filter(|claim| !claim.is_null())?;
        let mut wrong = "act_not_object";
        loop {
            let Value::Object(act) = next else {
                delegation.malformed = Some(wrong);
                return Some(delegation);
            };
            match Actor::read(act) {
                Ok(actor) if delegation.chain.len() < HOPS => delegation.chain.push(actor),
                Ok(_) => delegation.omitted += 1,
                Err(reason) => {
                    delegation.malformed = Some(reason);
                    return Some(delegation);
                }
            }
            match act.get("act").filter(|act| !act.is_null()) {
                None => return Some(delegation),
                Some(inner) => (next, wrong) = (inner, "nested_act_not_object"),
            }
        }
    }

    /// The form that others are told it in, with at most so many hops.
    pub fn json(&self, hops: usize) -> Value {
        let kept = self.chain.len().min(hops);
        let omitted = self.omitted + self.chain.len() - kept;
        let chain: Vec<Value> =
            self.chain.iter().take(kept).map(|actor| json!({"iss": actor.issuer, "sub": actor.subject})).collect();
        let mut told = json!({"chain": chain, "truncated": omitted > 0, "omitted": omitted});
        told["malformed"] = json!(self.malformed.is_some());
        if let Some(reason) = self.malformed {
            told["malformedReason"] = json!(reason);
        }
        told
    }
}

impl Actor {
    fn read(act: &Map<String, Value>) -> Result<Self, &'static str> {
        let text = |name: &str, wrong: &'static str| match act.get(name) {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(_) => Err(wrong),
        };
        Ok(Self { issuer: text("iss", "iss_not_string")?, subject: text("sub", "sub_not_string")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auth_trap_10_a_claim_that_makes_no_sense_is_told_and_no_more() {
        for (claim, hops, malformed) in [
            (json!({"iss": "i", "sub": "a"}), 1, None),
            (json!({"sub": "a", "act": {"sub": "b"}}), 2, None),
            (json!(7), 0, Some("act_not_object")),
            (json!({"sub": "a", "act": []}), 1, Some("nested_act_not_object")),
            (json!({"sub": 7}), 0, Some("sub_not_string")),
            (json!({"sub": "a", "act": {"iss": {}}}), 1, Some("iss_not_string")),
        ] {
            let read = Delegation::read(Some(&claim)).unwrap();
            assert_eq!((read.chain.len(), read.malformed), (hops, malformed), "{claim}");
        }
        assert_eq!(Delegation::read(None), None);
        assert_eq!(Delegation::read(Some(&Value::Null)), None);
    }

    #[test]
    fn a_long_chain_is_cut() {
        let deep = (0..15).fold(json!({"sub": "last"}), |act, hop| json!({"sub": hop.to_string(), "act": act}));
        let read = Delegation::read(Some(&deep)).unwrap();
        assert_eq!((read.chain.len(), read.omitted), (10, 6));
        let told = read.json(2);
        assert_eq!(
            (&told["chain"][0]["sub"], &told["omitted"], &told["truncated"]),
            (&json!("14"), &json!(14), &json!(true))
        );
    }
}
