//! The functions that rules may call: our own, and those of kube-cel for URLs, addresses, quantities and versions.

use kube_cel::cel::common::ast::Expr;
use kube_cel::cel::parser::Expression;

use super::budget::Purse;
use super::value::{Failure, Outcome, Value};
use super::{conversions, foreign, list_functions, named_formats, overloads, texts, times};

/// The names of types, which are values, too.
const TYPES: [&str; 14] = [
    "bool",
    "bytes",
    "double",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
    "int",
    "list",
    "map",
    "null_type",
    "optional_type",
    "string",
    "type",
    "uint",
    "dyn",
];

/// The type of a name.
pub(super) fn type_named(name: &str) -> Option<&'static str> {
    TYPES.into_iter().find(|known| *known == name)
}

/// The name that an expression spells: `google.protobuf.Duration`.
pub(super) fn qualified(expression: &Expression) -> Option<String> {
    match &expression.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) if !select.test => Some(format!("{}.{}", qualified(&select.operand)?, select.field)),
        _ => None,
    }
}

/// Whether rules may call a function of this name.
pub(super) fn is_function(name: &str) -> bool {
    overloads::exists(name)
}

/// What a function returns. The first argument of a method is what it is called on.
pub(super) fn call(name: &str, on: bool, arguments: &[Value], purse: &mut Purse) -> Outcome {
    if !overloads::takes(name, on, arguments) {
        return Err(no_overload(name, arguments));
    }
    let own = conversions::call(name, arguments)
        .or_else(|| texts::call(name, arguments, purse))
        .or_else(|| list_functions::call(name, arguments, purse))
        .or_else(|| times::call(name, arguments))
        .or_else(|| named_formats::call(name, arguments))
        .or_else(|| about_optional(name, arguments));
    own.unwrap_or_else(|| foreign::call(name, on, arguments))
}

/// Functions differ in what they say about values that they do not take.
fn no_overload(name: &str, arguments: &[Value]) -> Failure {
    match name {
        "contains" | "endsWith" | "matches" | "startsWith" => Failure::NoOverload,
        "size" => Failure::told("no such overload: size"),
        _ => {
            let types: Vec<&str> = arguments.iter().map(Value::type_name).collect();
            Failure::Told(format!("no such overload: {name}({})", types.join(", ")))
        }
    }
}

fn about_optional(name: &str, arguments: &[Value]) -> Option<Outcome> {
    Some(match (name, arguments) {
        ("optional.none", []) => Ok(Value::Optional(None)),
        ("optional.ofNonZeroValue", [value]) if value.is_zero() => Ok(Value::Optional(None)),
        ("optional.of" | "optional.ofNonZeroValue", [value]) => Ok(Value::some(value.clone())),
        ("optional.unwrap" | "unwrapOpt", [Value::List(list)]) => {
            let present = |item: &Value| match item {
                Value::Optional(inner) => inner.as_deref().cloned(),
                other => Some(other.clone()),
            };
            Ok(list.items.iter().filter_map(present).collect::<Vec<_>>().into())
        }
        ("hasValue", [Value::Optional(inner)]) => Ok(inner.is_some().into()),
        ("value", [Value::Optional(Some(inner))]) => Ok((**inner).clone()),
        ("value", [Value::Optional(None)]) => Err(Failure::told("optional.none() dereference")),
        ("or", [Value::Optional(inner), other]) => {
            Ok(inner.as_ref().map_or_else(|| other.clone(), |_| arguments[0].clone()))
        }
        ("orValue", [Value::Optional(inner), other]) => {
            Ok(inner.as_ref().map_or_else(|| other.clone(), |value| (**value).clone()))
        }
        _ => return None,
    })
}
