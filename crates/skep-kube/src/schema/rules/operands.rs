//! What operators take, and the type of what they make of it.

use kube_cel::cel::common::ast::operators;

use super::kind::Kind::{self, Dynamic, List, Map, Named, Null, Optional};
use super::kind::{BOOL, DURATION, TIMESTAMP};

/// What is known about an operator and its operands.
pub(super) enum Known {
    /// The type of what it makes of them.
    Result(Kind),
    /// It does not take such.
    Unfit,
    /// The name is none of an operator.
    Nothing,
}

pub(super) fn known(name: &str, kinds: &[Kind]) -> Known {
    let fits = match (name, kinds) {
        (operators::NOT_STRICTLY_FALSE, _) => true,
        (operators::LOGICAL_NOT, [one]) => one.may_be("bool"),
        (operators::NEGATE, [one]) => one.may_be("int") || one.may_be("double"),
        (operators::EQUALS | operators::NOT_EQUALS, [one, other]) => one.goes_with(other),
        (operators::LESS | operators::LESS_EQUALS | operators::GREATER | operators::GREATER_EQUALS, [one, other]) => {
            let comparable = one.goes_with(other) || (one.is_number() && other.is_number());
            one.is_ordered() && other.is_ordered() && comparable
        }
        (operators::CONDITIONAL, [condition, one, other]) => condition.may_be("bool") && one.goes_with(other),
        (operators::IN, [one, container]) => match container {
            List(items) => one.goes_with(items),
            Map(keys, _) => one.goes_with(keys),
            Dynamic => true,
            _ => false,
        },
        (operators::INDEX | operators::OPT_INDEX, [container, index]) => is_indexed(container, index),
        (operators::ADD, [one, other]) => adds(one, other),
        (operators::SUBSTRACT, [one, other]) => subtracts(one, other),
        (operators::MULTIPLY | operators::DIVIDE, [one, other]) => {
            one.is_number() && other.is_number() && one.goes_with(other)
        }
        (operators::MODULO, [one, other]) => {
            let whole = |kind: &Kind| kind.may_be("int") || kind.may_be("uint");
            whole(one) && whole(other) && one.goes_with(other)
        }
        _ => return Known::Nothing,
    };
    if fits { Known::Result(outcome(name, kinds)) } else { Known::Unfit }
}

fn is_indexed(container: &Kind, index: &Kind) -> bool {
    match container {
        List(_) => index.is_number(),
        Map(keys, _) => index.goes_with(keys),
        Optional(inner) => is_indexed(inner, index),
        Dynamic => true,
        _ => false,
    }
}

fn adds(one: &Kind, other: &Kind) -> bool {
    match (one, other) {
        (Named("bool"), _) | (Named(TIMESTAMP), Named(TIMESTAMP)) => false,
        (Dynamic, _) | (_, Dynamic) | (Named(DURATION | TIMESTAMP), Named(DURATION | TIMESTAMP)) => true,
        (Named(name), Named(_)) if name.contains('.') => false,
        (Named(_), Named(_)) | (List(_), List(_)) => one.goes_with(other),
        _ => false,
    }
}

fn subtracts(one: &Kind, other: &Kind) -> bool {
    match (one, other) {
        (Dynamic, _)
        | (_, Dynamic)
        | (Named(TIMESTAMP), Named(DURATION | TIMESTAMP))
        | (Named(DURATION), Named(DURATION)) => true,
        _ => one.is_number() && one.goes_with(other),
    }
}

/// The type of what an operator makes of operands that fit.
fn outcome(name: &str, kinds: &[Kind]) -> Kind {
    match (name, kinds) {
        (operators::ADD, [Named(DURATION), Named(TIMESTAMP)])
        | (operators::ADD | operators::SUBSTRACT, [Named(TIMESTAMP), Named(DURATION)]) => Named(TIMESTAMP),
        (operators::CONDITIONAL, [_, one, other]) | (operators::ADD, [one, other]) => match (one, other) {
            // The more that is known, the better.
            (List(items), other @ List(_)) if matches!(**items, Dynamic) => other.clone(),
            (Map(_, values), other @ Map(..)) if matches!(**values, Dynamic) => other.clone(),
            (Optional(inner), other @ Optional(_)) if matches!(**inner, Dynamic) => other.clone(),
            (Dynamic, _) | (_, Dynamic) => Dynamic,
            (Null, other) => other.clone(),
            (one, _) => one.clone(),
        },
        (operators::SUBSTRACT, [Named(TIMESTAMP), Named(TIMESTAMP)]) => Named(DURATION),
        (operators::SUBSTRACT, [Named(TIMESTAMP) | Dynamic, _]) => Dynamic,
        (
            operators::NEGATE | operators::MULTIPLY | operators::DIVIDE | operators::MODULO | operators::SUBSTRACT,
            [one, ..],
        ) => one.clone(),
        (operators::INDEX, [of, _]) => item(of),
        (operators::OPT_INDEX, [of, _]) => match item(of) {
            already @ Optional(_) => already,
            other => Kind::optional(other),
        },
        _ => BOOL,
    }
}

fn item(of: &Kind) -> Kind {
    match of {
        List(items) => (**items).clone(),
        Map(_, values) => (**values).clone(),
        Optional(inner) => Kind::optional(item(inner)),
        _ => Dynamic,
    }
}
