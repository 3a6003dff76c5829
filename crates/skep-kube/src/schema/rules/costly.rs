//! The functions whose work, or whose result, grows faster than what they are given. They ask for its cost before they
//! do it.

use std::sync::Arc;

use kube_cel::cel::extractors::{Arguments, This};
use kube_cel::cel::{Context, ExecutionError, FunctionContext, Value as Cel};

use super::budget::{SPEND, spend};

type List = Arc<Vec<Cel>>;

/// How many characters one step makes, as on the real server.
const CHARACTERS: u64 = 10;

pub(super) fn register(context: &mut Context<'_>) {
    context.add_function(SPEND, |cost: i64| -> Result<bool, ExecutionError> {
        spend(u64::try_from(cost).unwrap_or_default()).map(|()| true)
    });
    context.add_function("distinct", distinct);
    context.add_function("lists.range", range);
    context.add_function("sets.contains", |all: List, some: List| contains(&all, &some));
    context.add_function("sets.equivalent", |one: List, other: List| -> Result<bool, ExecutionError> {
        Ok(contains(&one, &other)? && contains(&other, &one)?)
    });
    context.add_function("sets.intersects", |one: List, other: List| -> Result<bool, ExecutionError> {
        spend(product(one.len(), other.len()))?;
        Ok(one.iter().any(|item| other.contains(item)))
    });
    context.add_function("join", join);
    context.add_function("replace", replace);
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

fn product(one: usize, other: usize) -> u64 {
    count(one).saturating_mul(count(other))
}

fn contains(all: &[Cel], some: &[Cel]) -> Result<bool, ExecutionError> {
    spend(product(all.len(), some.len()))?;
    Ok(some.iter().all(|item| all.contains(item)))
}

fn distinct(This(list): This<List>) -> Result<Cel, ExecutionError> {
    let mut found: Vec<Cel> = Vec::new();
    for item in list.iter() {
        spend(count(found.len()))?;
        if !found.contains(item) {
            found.push(item.clone());
        }
    }
    Ok(Cel::List(Arc::new(found)))
}

fn range(context: &FunctionContext<'_, '_>, length: i64) -> Result<Cel, ExecutionError> {
    let cost = u64::try_from(length).map_err(|_| context.error("range argument must be non-negative"))?;
    spend(cost)?;
    Ok(Cel::List(Arc::new((0..length).map(Cel::Int).collect())))
}

fn join(This(list): This<List>, Arguments(arguments): Arguments) -> Result<Cel, ExecutionError> {
    let separator = match arguments.first() {
        Some(Cel::String(separator)) => separator.as_str(),
        _ => "",
    };
    spend(product(list.len(), separator.len()) / CHARACTERS)?;
    let texts: Option<Vec<&str>> = list
        .iter()
        .map(|item| match item {
            Cel::String(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    Ok(Cel::String(Arc::new(texts.ok_or(ExecutionError::NoSuchOverload)?.join(separator))))
}

/// The fourth argument says how often at most; less than nothing is as often as possible.
fn replace(This(text): This<Arc<String>>, Arguments(arguments): Arguments) -> Result<Cel, ExecutionError> {
    let (old, new, most) = match arguments.as_slice() {
        [Cel::String(old), Cel::String(new)] => (old, new, None),
        [Cel::String(old), Cel::String(new), Cel::Int(most)] => (old, new, usize::try_from(*most).ok()),
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    let found = text.matches(old.as_str()).count();
    let times = most.map_or(found, |most| most.min(found));
    spend(product(times, new.len()) / CHARACTERS)?;
    Ok(Cel::String(Arc::new(text.replacen(old.as_str(), new, times))))
}
