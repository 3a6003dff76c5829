//! Functions of kube-cel, and the values that only they know.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use chrono::TimeDelta;
use kube_cel::KubeCelExt;
use kube_cel::cel::common::ast::{CallExpr, Expr};
use kube_cel::cel::objects::{Map, OptionalValue};
use kube_cel::cel::parser::Expression;
use kube_cel::cel::{Context, ExecutionError, Value as Cel};

use super::value::{Failure, Outcome, Value};
use super::words;

thread_local! {
    // A context cannot be shared between threads, and costs too much to make for each call.
    static CONTEXT: Context<'static> = Context::default().with_all();
}

/// The names of arguments. No rule can have such.
const PLACES: [&str; 4] = ["@0", "@1", "@2", "@3"];

/// What a function of kube-cel returns. The first argument of a method is what it is called on.
pub(super) fn call(name: &str, on: bool, arguments: &[Value]) -> Outcome {
    let mut places = PLACES.iter().take(arguments.len()).map(|place| ident(place));
    let target = if on { places.next().map(Box::new) } else { None };
    let call = CallExpr { func_name: name.to_owned(), target, args: places.collect() };
    let call = Expression { id: 0, expr: Expr::Call(call) };
    CONTEXT.with(|context| {
        let mut scope = context.new_inner_scope();
        for (place, argument) in PLACES.into_iter().zip(arguments) {
            scope.add_variable_from_value(place, foreign(argument));
        }
        // Some functions panic at what does not fit; a rule that makes them do so has failed, not the server.
        let resolved = catch_unwind(AssertUnwindSafe(|| Cel::resolve(&call, &scope)));
        match resolved {
            Ok(Ok(value)) => own(&value),
            Ok(Err(error)) => Err(told(name, arguments, &error)),
            Err(_) => Err(Failure::told("integer overflow")),
        }
    })
}

fn ident(name: &str) -> Expression {
    Expression { id: 0, expr: Expr::Ident(name.to_owned()) }
}

fn foreign(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(flag) => Cel::Bool(*flag),
        Value::Int(number) => Cel::Int(*number),
        Value::Uint(number) => Cel::UInt(*number),
        Value::Double(number) => Cel::Float(*number),
        Value::Text(text) => Cel::String(text.clone()),
        Value::Bytes(bytes) => Cel::Bytes(bytes.clone()),
        Value::List(list) => Cel::List(Arc::new(list.items.iter().map(foreign).collect())),
        Value::Map(entries) => {
            let map: HashMap<_, _> = entries.iter().map(|(key, value)| (key.clone(), foreign(value))).collect();
            Cel::Map(Map { map: Arc::new(map) })
        }
        Value::Duration(nanoseconds) => Cel::Duration(TimeDelta::nanoseconds(*nanoseconds)),
        Value::Timestamp(time) => Cel::Timestamp(*time),
        Value::Optional(inner) => {
            let optional = inner.as_deref().map_or_else(OptionalValue::none, |value| OptionalValue::of(foreign(value)));
            Cel::Opaque(Arc::new(optional))
        }
        Value::Type(name) => Cel::String(Arc::new((*name).to_owned())),
        Value::Foreign(opaque) => Cel::Opaque(opaque.clone()),
    }
}

fn own(value: &Cel) -> Outcome {
    Ok(match value {
        Cel::Null => Value::Null,
        Cel::Bool(flag) => Value::Bool(*flag),
        Cel::Int(number) => Value::Int(*number),
        Cel::UInt(number) => Value::Uint(*number),
        Cel::Float(number) => Value::Double(*number),
        Cel::String(text) => Value::Text(text.clone()),
        Cel::Bytes(bytes) => Value::Bytes(bytes.clone()),
        Cel::List(items) => items.iter().map(own).collect::<Result<Vec<_>, _>>()?.into(),
        Cel::Map(map) => {
            let entry = |(key, value): (&_, &Cel)| Ok((Clone::clone(key), own(value)?));
            map.map.iter().map(entry).collect::<Result<super::value::Entries, Failure>>()?.into()
        }
        Cel::Duration(duration) => {
            Value::Duration(duration.num_nanoseconds().ok_or_else(|| Failure::told("duration overflow"))?)
        }
        Cel::Timestamp(time) => Value::Timestamp(*time),
        Cel::Opaque(opaque) => match opaque.downcast_ref::<OptionalValue>() {
            Some(optional) => Value::Optional(optional.value().map(own).transpose()?.map(Box::new)),
            None => Value::Foreign(opaque.clone()),
        },
        Cel::Function(..) => return Err(Failure::NoOverload),
    })
}

/// What the server says, as far as that is known.
fn told(name: &str, arguments: &[Value], error: &ExecutionError) -> Failure {
    let ExecutionError::FunctionError { message, .. } = error else { return Failure::NoOverload };
    let text = match arguments.first() {
        Some(Value::Text(text)) => text.as_str(),
        _ => "",
    };
    Failure::Told(words::of(name, text).unwrap_or_else(|| message.clone()))
}
