//! Functions of lists. Those whose work, or whose result, grows faster than what they are given ask for its cost before
//! they do it.

use std::cmp::Ordering;

use super::budget::Purse;
use super::list::List;
use super::macros::SORT_BY;
use super::operators;
use super::value::{Failure, Outcome, Value};

pub(super) fn call(name: &str, arguments: &[Value], purse: &mut Purse) -> Option<Outcome> {
    Some(match (name, arguments) {
        ("size", [Value::List(list)]) => Ok(list.items.len().into()),
        ("size", [Value::Map(entries)]) => Ok(entries.len().into()),
        ("size", [Value::Bytes(bytes)]) => Ok(bytes.len().into()),
        ("isSorted", [Value::List(list)]) => is_sorted(list),
        ("sum", [Value::List(list)]) => sum(list, purse),
        ("min", [Value::List(list)]) => outermost(list, name, Ordering::Less),
        ("max", [Value::List(list)]) => outermost(list, name, Ordering::Greater),
        ("indexOf", [Value::List(list), item]) => Ok(place(list.items.iter().position(|known| known.equals(item)))),
        ("lastIndexOf", [Value::List(list), item]) => {
            Ok(place(list.items.iter().rposition(|known| known.equals(item))))
        }
        ("distinct", [Value::List(list)]) => distinct(list, purse),
        ("slice", [Value::List(list), Value::Int(start), Value::Int(end)]) => slice(list, *start, *end),
        ("flatten", [Value::List(list)]) => Ok(flatten(list, 1).into()),
        ("flatten", [Value::List(list), Value::Int(levels)]) => match u32::try_from(*levels) {
            Ok(levels) => Ok(flatten(list, levels).into()),
            Err(_) => Err(Failure::told("level must be non-negative")),
        },
        ("reverse", [Value::List(list)]) => Ok(list.items.iter().rev().cloned().collect::<Vec<_>>().into()),
        ("sort", [Value::List(list)]) => sort_by(list, list, purse),
        (SORT_BY, [Value::List(list), Value::List(keys)]) => sort_by(list, keys, purse),
        ("first", [Value::List(list)]) => Ok(Value::Optional(list.items.first().cloned().map(Box::new))),
        ("last", [Value::List(list)]) => Ok(Value::Optional(list.items.last().cloned().map(Box::new))),
        ("lists.range", [Value::Int(length)]) => range(*length, purse),
        ("sets.contains", [Value::List(all), Value::List(some)]) => contains(all, some, purse).map(Value::Bool),
        ("sets.equivalent", [Value::List(one), Value::List(other)]) => contains(one, other, purse)
            .and_then(|contains_other| Ok((contains_other && contains(other, one, purse)?).into())),
        ("sets.intersects", [Value::List(one), Value::List(other)]) => {
            purse.spend(product(one, other)).map(|()| one.items.iter().any(|item| other.contains(item)).into())
        }
        _ => return None,
    })
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

fn product(one: &List, other: &List) -> u64 {
    count(one.items.len()).saturating_mul(count(other.items.len()))
}

fn place(place: Option<usize>) -> Value {
    place.map_or(Value::Int(-1), Value::from)
}

fn is_sorted(list: &List) -> Outcome {
    for pair in list.items.windows(2) {
        if pair[0].compare(&pair[1]).ok_or(Failure::NoOverload)?.is_gt() {
            return Ok(false.into());
        }
    }
    Ok(true.into())
}

fn sum(list: &List, purse: &mut Purse) -> Outcome {
    let Some((first, rest)) = list.items.split_first() else { return Ok(Value::Int(0)) };
    rest.iter().try_fold(first.clone(), |sum, item| operators::add(sum, item, purse))
}

/// The item that stands before all others, or behind them.
fn outermost(list: &List, name: &str, side: Ordering) -> Outcome {
    let Some((first, rest)) = list.items.split_first() else {
        return Err(Failure::told(format!("{name} called on empty list")));
    };
    let mut found = first;
    for item in rest {
        if item.compare(found).ok_or(Failure::NoOverload)? == side {
            found = item;
        }
    }
    Ok(found.clone())
}

fn distinct(list: &List, purse: &mut Purse) -> Outcome {
    let mut found = List::plain(Vec::new());
    for item in &list.items {
        purse.spend(count(found.items.len()))?;
        if !found.contains(item) {
            found.items.push(item.clone());
        }
    }
    Ok(found.items.into())
}

fn slice(list: &List, start: i64, end: i64) -> Outcome {
    let refuse = |why: String| Err(Failure::told(format!("cannot slice({start}, {end}), {why}")));
    let (Ok(from), Ok(to)) = (usize::try_from(start), usize::try_from(end)) else {
        return refuse("negative indexes not supported".to_owned());
    };
    if from > to {
        return refuse("start index must be less than or equal to end index".to_owned());
    }
    match list.items.get(from..to) {
        Some(items) => Ok(items.to_vec().into()),
        None => refuse(format!("list is length {}", list.items.len())),
    }
}

fn flatten(list: &List, levels: u32) -> Vec<Value> {
    let flat = |item: &Value| match item {
        Value::List(inner) if levels > 0 => flatten(inner, levels - 1),
        item => vec![item.clone()],
    };
    list.items.iter().flat_map(flat).collect()
}

/// The items of a list in the order of their keys.
fn sort_by(list: &List, keys: &List, purse: &mut Purse) -> Outcome {
    purse.spend(count(list.items.len()))?;
    if keys.items.windows(2).any(|pair| pair[0].type_name() != pair[1].type_name()) {
        return Err(Failure::told("list elements must have the same type"));
    }
    if keys.items.iter().any(|key| key.compare(key).is_none()) {
        return Err(Failure::told("list elements must be comparable"));
    }
    let mut pairs: Vec<(&Value, &Value)> = keys.items.iter().zip(&list.items).collect();
    pairs.sort_by(|(one, _), (other, _)| one.compare(other).unwrap_or(Ordering::Equal));
    Ok(pairs.into_iter().map(|(_, item)| item.clone()).collect::<Vec<_>>().into())
}

fn range(length: i64, purse: &mut Purse) -> Outcome {
    purse.spend(u64::try_from(length).unwrap_or_default())?;
    Ok((0..length).map(Value::Int).collect::<Vec<_>>().into())
}

fn contains(all: &List, some: &List, purse: &mut Purse) -> Result<bool, Failure> {
    purse.spend(product(all, some))?;
    Ok(some.items.iter().all(|item| all.contains(item)))
}
