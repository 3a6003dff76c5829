//! What policies look at of the arguments of a call. The names of attributes in policies are fixed, so that policies can be
//! read for them; whatever no policy names makes no difference to any decision.

use std::collections::HashSet;

use cedar_policy::Policy;
use serde_json::Value;

use super::values::PRESENT;
use crate::middleware::identity::{COUNTDOWN, TIMES};

/// The arguments that matter.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// A policy takes the context as a whole.
    All,
    /// These, by their names.
    Named(HashSet<String>),
}

impl Seen {
    pub(super) fn by(policies: &[Policy]) -> Self {
        let mut names = HashSet::new();
        let are_told = policies.iter().all(|policy| policy.to_json().is_ok_and(|policy| collect(&policy, &mut names)));
        if !are_told {
            return Self::All;
        }
        Self::Named(of_arguments(&names).map(str::to_owned).collect())
    }

    pub(super) fn has(&self, argument: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => names.contains(argument),
        }
    }
}

/// The arguments that a policy names, and those whose presence it names.
pub(super) fn arguments(policy: &Policy) -> HashSet<String> {
    let mut names = HashSet::new();
    if let Ok(policy) = policy.to_json() {
        collect(&policy, &mut names);
    }
    of_arguments(&names).map(str::to_owned).collect()
}

/// The arguments among the names of attributes.
fn of_arguments(names: &HashSet<String>) -> impl Iterator<Item = &str> {
    let arguments = names.iter().filter_map(|name| name.strip_prefix("arg_"));
    // What is not plain is only known to be there, under another name.
    arguments.flat_map(|name| [Some(name), name.strip_suffix(PRESENT)]).flatten()
}

/// What policies look at of the claims that are others without anything having changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Times {
    /// When something holds.
    pub(super) moments: bool,
    /// How long it still does.
    pub(super) countdown: bool,
}

impl Times {
    pub(super) fn by(policies: &[Policy]) -> Self {
        let mut names = HashSet::new();
        let are_told = policies.iter().all(|policy| policy.to_json().is_ok_and(|policy| collect(&policy, &mut names)));
        // A claim may be seen as a set, too.
        let is_named = |claim: &str| {
            names.iter().any(|name| {
                name.strip_prefix("claim")
                    .is_some_and(|name| name.strip_prefix('_').or(name.strip_prefix("set_")) == Some(claim))
            })
        };
        Self {
            moments: !are_told || TIMES.iter().any(|claim| is_named(claim)),
            countdown: !are_told || is_named(COUNTDOWN),
        }
    }
}

/// Collects the names of all attributes that an expression looks at. False when it uses the context in another way; the
/// names are all there even then.
fn collect(expression: &Value, names: &mut HashSet<String>) -> bool {
    match expression {
        Value::Object(members) => {
            members.iter().fold(true, |told, (operator, operands)| collect_operation(operator, operands, names) && told)
        }
        Value::Array(items) => collect_all(items, names),
        _ => true,
    }
}

fn collect_all<'a>(expressions: impl IntoIterator<Item = &'a Value>, names: &mut HashSet<String>) -> bool {
    let mut are_told = true;
    for expression in expressions {
        // All of them are looked at, whatever one of them says.
        are_told &= collect(expression, names);
    }
    are_told
}

fn collect_operation(operator: &str, operands: &Value, names: &mut HashSet<String>) -> bool {
    match operator {
        "Var" => operands != "context",
        // Whatever is in a constant is no expression.
        "Value" => true,
        // Its members may be called like anything else here.
        "Record" => operands.as_object().is_some_and(|members| collect_all(members.values(), names)),
        "." | "has" => {
            let attribute = operands.get("attr").and_then(Value::as_str);
            names.extend(attribute.map(str::to_owned));
            let Some(left) = operands.get("left").filter(|_| attribute.is_some()) else { return false };
            left.get("Var").is_some() || collect(left, names)
        }
        _ => collect(operands, names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policies(conditions: &[&str]) -> Vec<Policy> {
        let policy = |condition: &&str| {
            let text = format!("permit(principal, action, resource) when {{ {condition} }};");
            Policy::parse(None, text).unwrap_or_else(|error| panic!("{condition}: {error}"))
        };
        conditions.iter().map(policy).collect()
    }

    fn seen(conditions: &[&str]) -> Seen {
        Seen::by(&policies(conditions))
    }

    #[test]
    fn arguments_matter_where_a_policy_names_them() {
        let named = |names: &[&str]| Seen::Named(names.iter().map(|name| (*name).to_owned()).collect());
        for (condition, expected) in [
            ("true", named(&[])),
            (r#"principal.claim_email like "*@hive""#, named(&[])),
            ("context.arg_a == resource.arg_b", named(&["a", "b"])),
            ("context has arg_list_present", named(&["list_present", "list"])),
            (r#"context has "arg_a b" && context["arg_\u{63}"] == 1"#, named(&["a b", "c"])),
            ("context has claim_a && [1, 2].contains(context.arg_a)", named(&["a"])),
            ("if principal == resource then {x: resource}.x.arg_deep else false", named(&["deep"])),
            (r#"resource == Tool::"arg_a" && "arg_b" == principal.name"#, named(&[])),
            ("context.claim_a.b.arg_c", named(&["c"])),
        ] {
            assert_eq!(seen(&[condition]), expected, "{condition}");
        }
        assert_eq!(seen(&["context.arg_a", "context.arg_b"]), named(&["a", "b"]));
    }

    #[test]
    fn all_arguments_matter_where_the_context_is_used_as_a_whole() {
        for condition in [
            "context == {}",
            "[context].contains({arg_a: 1})",
            "{x: context}.x has arg_a",
            "{Value: context} == {Value: {arg_a: 1}}",
            "(if principal == resource then context else {arg_a: true}).arg_a",
        ] {
            assert_eq!(seen(&["true", condition]), Seen::All, "{condition}");
        }
    }

    #[test]
    fn times_matter_where_a_policy_names_them() {
        for (condition, moments, countdown) in [
            ("true", false, false),
            ("principal.claim_email == context.arg_exp", false, false),
            ("context has claim_exp", true, false),
            (r#"principal.claim_nbf == decimal("1.0")"#, true, false),
            (r#"principal.claim_expires_in == "60""#, false, true),
            (r#"context.claimset_expires_in.contains("60")"#, false, true),
            ("context == {}", true, true),
        ] {
            assert_eq!(Times::by(&policies(&["true", condition])), Times { moments, countdown }, "{condition}");
        }
    }
}
