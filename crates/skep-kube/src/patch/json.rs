//! JSON patches (RFC 6902), with the liberties that the real server takes: negative indices count from the end,
//! `replace` adds members that are not there, missing members are equal to null, and what stands before the first
//! slash of a pointer is ignored.

use serde_json::{Map, Value};

use super::{PatchError, Patched};
use crate::decode::{MAX_DEPTH, decode};
use crate::go_text::{quoted, type_name};
use crate::schema::path;

const MAX_OPERATIONS: usize = 10_000;
/// How many bytes all `copy` operations may add together: no more than a request may have.
const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;
/// How many values may be looked at to find out how deep they are: a patch that moves a large object to and fro ten
/// thousand times is not worth the time.
const MAX_WALKED_VALUES: usize = 20_000_000;

pub(super) fn apply(document: &[u8], object: &Value) -> Result<Patched, PatchError> {
    let (operations, oddities) = operations(document)?;
    if operations.len() > MAX_OPERATIONS {
        return Err(PatchError::TooManyOperations { limit: MAX_OPERATIONS, found: operations.len() });
    }
    let mut work = Work { document: object.clone(), copied_bytes: 0, walked_values: 0 };
    for operation in operations {
        work.perform(operation)?;
    }
    let object = work.document;
    if object.is_object() { Ok(Patched { object, oddities, patch: None }) } else { Err(not_an_object(&object)) }
}

fn not_an_object(document: &Value) -> PatchError {
    let problem = format!(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type struct {{ \
         APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
        type_name(document)
    );
    PatchError::Unconvertible { shown: crate::sorted::text(document), problem }
}

struct Operation {
    name: Option<String>,
    path: Option<String>,
    from: Option<String>,
    value: Value,
}

/// Reads the list of operations, and what is odd about them. What they say is looked at only when it is their turn.
fn operations(document: &[u8]) -> Result<(Vec<Operation>, Vec<String>), PatchError> {
    let malformed = |problem: String| PatchError::Malformed(format!("error decoding patch: {problem}"));
    let decoded = decode(document).map_err(|error| malformed(error.to_string()))?;
    let mut oddities: Vec<String> = decoded.duplicates.iter().map(|message| format!("json patch {message}")).collect();
    let operations = match decoded.value {
        Value::Null => Vec::new(),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                oddities.extend(unknown_members(item, index));
            }
            items.into_iter().map(|item| operation(item).map_err(malformed)).collect::<Result<_, _>>()?
        }
        other => {
            let found = type_name(&other);
            return Err(malformed(format!(
                "json: cannot unmarshal {found} into Go value of type []handlers.jsonPatchOp"
            )));
        }
    };
    Ok((operations, oddities))
}

fn unknown_members(operation: &Value, index: usize) -> impl Iterator<Item = String> {
    let names = operation.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let unknown = names.filter(|name| !["op", "path", "from", "value"].contains(name));
    unknown.map(move |name| {
        let field = path::member(&path::item("", index), name);
        format!("json patch unknown field {}", quoted(&field))
    })
}

fn operation(item: Value) -> Result<Operation, String> {
    let mut members = match item {
        Value::Null => Map::new(),
        Value::Object(members) => members,
        other => {
            let found = type_name(&other);
            return Err(format!("json: cannot unmarshal {found} into Go value of type handlers.jsonPatchOp"));
        }
    };
    let mut text = |name: &str| match members.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => {
            let found = type_name(&other);
            Err(format!("json: cannot unmarshal {found} into Go struct field jsonPatchOp.{name} of type string"))
        }
    };
    let (name, path, from) = (text("op")?, text("path")?, text("from")?);
    Ok(Operation { name, path, from, value: members.remove("value").unwrap_or_default() })
}

/// The document between two operations.
struct Work {
    document: Value,
    copied_bytes: usize,
    walked_values: usize,
}

impl Work {
    fn perform(&mut self, operation: Operation) -> Result<(), PatchError> {
        let Operation { name, path, from, value } = operation;
        let path = path.ok_or(PatchError::Rejected)?;
        match name.as_deref() {
            Some("add") => self.add(&Pointer::read(&path)?, value),
            Some("remove") => self.remove(&Pointer::read(&path)?).map(drop),
            Some("replace") if path.is_empty() => self.replace_all(value),
            Some("replace") => self.replace(&Pointer::read(&path)?, value),
            Some("test") if path.is_empty() => accept(self.document == value),
            Some("test") => {
                let found = self.get(&Pointer::read(&path)?)?;
                accept(found.unwrap_or(&Value::Null) == &value)
            }
            Some("move") => {
                let moved = self.remove(&Pointer::read(&from.ok_or(PatchError::Rejected)?)?)?;
                self.add(&Pointer::read(&path)?, moved)
            }
            Some("copy") => {
                let from = from.ok_or(PatchError::Rejected)?;
                let copied = self.get(&Pointer::read(&from)?)?.cloned().unwrap_or_default();
                self.copied_bytes += copied.to_string().len();
                accept(self.copied_bytes <= MAX_COPIED_BYTES)?;
                self.add(&Pointer::read(&path)?, copied)
            }
            _ => Err(PatchError::Rejected),
        }
    }

    fn replace_all(&mut self, value: Value) -> Result<(), PatchError> {
        accept(value.is_object() || value.is_array())?;
        self.document = value;
        Ok(())
    }

    /// The value at a pointer; none for a member that is not there. Its container must be there.
    fn get(&self, pointer: &Pointer) -> Result<Option<&Value>, PatchError> {
        match pointer.container(&self.document)? {
            Value::Object(members) => Ok(members.get(&pointer.last)),
            Value::Array(items) => items.get(index(&pointer.last, items.len())?).ok_or(PatchError::Rejected).map(Some),
            _ => Err(PatchError::Rejected),
        }
    }

    /// Operations can pile up levels that no single document has.
    fn check_nesting(&mut self, pointer: &Pointer, value: &Value) -> Result<(), PatchError> {
        accept(self.walked_values <= MAX_WALKED_VALUES)?;
        accept(pointer.parents.len() + 1 + nesting(value, &mut self.walked_values) <= MAX_DEPTH)
    }

    fn add(&mut self, pointer: &Pointer, value: Value) -> Result<(), PatchError> {
        self.check_nesting(pointer, &value)?;
        match pointer.container_mut(&mut self.document)? {
            Value::Object(members) => {
                members.insert(pointer.last.clone(), value);
            }
            Value::Array(items) if pointer.last == "-" => items.push(value),
            Value::Array(items) => {
                let at = index(&pointer.last, items.len() + 1)?;
                items.insert(at, value);
            }
            _ => return Err(PatchError::Rejected),
        }
        Ok(())
    }

    fn replace(&mut self, pointer: &Pointer, value: Value) -> Result<(), PatchError> {
        self.check_nesting(pointer, &value)?;
        match pointer.container_mut(&mut self.document)? {
            Value::Object(members) => {
                members.insert(pointer.last.clone(), value);
            }
            Value::Array(items) => {
                let at = index(&pointer.last, items.len())?;
                items[at] = value;
            }
            _ => return Err(PatchError::Rejected),
        }
        Ok(())
    }

    fn remove(&mut self, pointer: &Pointer) -> Result<Value, PatchError> {
        match pointer.container_mut(&mut self.document)? {
            Value::Object(members) => members.remove(&pointer.last).ok_or(PatchError::Rejected),
            Value::Array(items) => {
                let at = index(&pointer.last, items.len())?;
                Ok(items.remove(at))
            }
            _ => Err(PatchError::Rejected),
        }
    }
}

fn accept(fine: bool) -> Result<(), PatchError> {
    if fine { Ok(()) } else { Err(PatchError::Rejected) }
}

/// How deep a value is nested: 0 for a scalar.
fn nesting(value: &Value, walked: &mut usize) -> usize {
    *walked += 1;
    let deepest = match value {
        Value::Array(items) => items.iter().map(|item| nesting(item, walked)).max(),
        Value::Object(members) => members.values().map(|member| nesting(member, walked)).max(),
        _ => return 0,
    };
    1 + deepest.unwrap_or_default()
}

/// A place in a list of so many places. Negative numbers count from the end.
fn index(text: &str, length: usize) -> Result<usize, PatchError> {
    let position: i64 = text.parse().map_err(|_| PatchError::Rejected)?;
    let distance = usize::try_from(position.unsigned_abs()).map_err(|_| PatchError::Rejected)?;
    let at = if position < 0 { length.checked_sub(distance) } else { Some(distance) };
    at.filter(|at| *at < length).ok_or(PatchError::Rejected)
}

/// A JSON pointer to a member or an item.
struct Pointer {
    parents: Vec<String>,
    last: String,
}

impl Pointer {
    fn read(text: &str) -> Result<Self, PatchError> {
        let mut parents: Vec<String> = text.split('/').skip(1).map(unescaped).collect();
        let last = parents.pop().ok_or(PatchError::Rejected)?;
        Ok(Self { parents, last })
    }

    fn container<'a>(&self, document: &'a Value) -> Result<&'a Value, PatchError> {
        self.parents.iter().try_fold(document, |value, name| match value {
            Value::Object(members) => members.get(name).ok_or(PatchError::Rejected),
            Value::Array(items) => Ok(&items[index(name, items.len())?]),
            _ => Err(PatchError::Rejected),
        })
    }

    fn container_mut<'a>(&self, document: &'a mut Value) -> Result<&'a mut Value, PatchError> {
        self.parents.iter().try_fold(document, |value, name| match value {
            Value::Object(members) => members.get_mut(name).ok_or(PatchError::Rejected),
            Value::Array(items) => {
                let at = index(name, items.len())?;
                Ok(&mut items[at])
            }
            _ => Err(PatchError::Rejected),
        })
    }
}

fn unescaped(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}
