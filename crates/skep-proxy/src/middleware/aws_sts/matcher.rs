//! CEL expressions over the claims of a caller. An expression that cannot be evaluated says no.

use std::collections::BTreeMap;

use kube_cel::cel::{Context, Program, Value};
use serde::{Serialize, Serializer};
use serde_json::Map;

/// Longer ones are not read.
const MAX_LENGTH: usize = 4096;
/// Reading and evaluating an expression takes stack for each of its levels. Only what is used becomes real memory.
const STACK: usize = 128 << 20;

/// An expression.
#[derive(Debug)]
pub(super) struct Matcher(Program);

impl Matcher {
    pub(super) fn read(text: &str) -> Result<Self, String> {
        if text.len() > MAX_LENGTH {
            return Err(format!("must not be longer than {MAX_LENGTH} characters"));
        }
        let text = text.to_owned();
        let read = in_large_stack(move || Program::compile(&text).map_err(|errors| errors.to_string()));
        let read = read.and_then(|reading| reading.join().ok()).unwrap_or_else(|| Err("it cannot be read".to_owned()));
        read.map(Self).map_err(|complaint| format!("is not a CEL expression: {complaint}"))
    }

    /// Whether it is true of these claims. To be asked with a large stack.
    pub(super) fn is_true(&self, claims: &Map<String, serde_json::Value>) -> bool {
        let mut context = Context::default();
        let claims: BTreeMap<&String, Claim<'_>> = claims.iter().map(|(name, value)| (name, Claim(value))).collect();
        let evaluated = context.add_variable("claims", claims).ok().map(|()| self.0.execute(&context));
        matches!(evaluated, Some(Ok(Value::Bool(true))))
    }
}

/// A claim whose whole numbers are what expressions call an `int`; others would be equal to no number that is written.
struct Claim<'a>(&'a serde_json::Value);

impl Serialize for Claim<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            serde_json::Value::Number(number) => match number.as_i64() {
                Some(whole) => serializer.serialize_i64(whole),
                None => number.serialize(serializer),
            },
            serde_json::Value::Array(values) => serializer.collect_seq(values.iter().map(Claim)),
            serde_json::Value::Object(members) => {
                serializer.collect_map(members.iter().map(|(name, value)| (name, Claim(value))))
            }
            other => other.serialize(serializer),
        }
    }
}

/// Runs something in a thread of its own: expressions may be deep, and their evaluation panics at times.
pub(super) fn in_large_stack<T: Send + 'static>(
    run: impl FnOnce() -> T + Send + 'static,
) -> Option<std::thread::JoinHandle<T>> {
    std::thread::Builder::new().name("cel".to_owned()).stack_size(STACK).spawn(run).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn expressions_are_evaluated_over_claims_and_errors_are_a_no() {
        let claims = json!({"sub": "ann", "email": "ann@example.com", "groups": ["a", "b"], "level": 3, "exact": -1.5,
            "ok": true, "nothing": null, "deep": {"tier": {"name": "gold"}, "floor": -2}, "floors": [7]});
        let serde_json::Value::Object(claims) = claims else { panic!("{claims} are no claims") };
        for (text, expected) in [
            ("claims.email.endsWith('@example.com')", true),
            ("'b' in claims.groups", true),
            ("'c' in claims.groups", false),
            ("claims.groups.exists(group, group.startsWith('b'))", true),
            ("claims.level == 3 && claims.level >= 2", true),
            ("claims.deep.floor == -2 && 7 in claims.floors", true),
            ("claims.exact < 0.0", true),
            ("claims.deep.tier.name == 'gold' && claims.ok", true),
            ("has(claims.missing)", false),
            ("claims.missing == 'x'", false),
            ("claims.nothing == null", true),
            ("claims.sub", false),
            ("unknown.sub == 'ann'", false),
            ("true", true),
        ] {
            assert_eq!(Matcher::read(text).unwrap().is_true(&claims), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_expression_is_told() {
        for text in ["claims.", "", "claims.a = 'b'", "))"] {
            assert!(Matcher::read(text).unwrap_err().starts_with("is not a CEL expression: "), "{text}");
        }
        assert!(Matcher::read(&"a".repeat(MAX_LENGTH + 1)).unwrap_err().contains("longer than 4096"));
    }

    #[test]
    fn a_deep_expression_does_not_end_the_process() {
        for text in [format!("{}true{}", "(".repeat(1000), ")".repeat(1000)), format!("true{}", "&&true".repeat(600))] {
            let evaluated = in_large_stack(move || Matcher::read(&text).is_ok_and(|it| it.is_true(&Map::new())));
            // Whether it is read or refused does not matter here.
            let _ = evaluated.unwrap().join();
        }
    }
}
