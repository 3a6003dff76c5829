//! The entries of `metadata.managedFields`: who owns what, since when.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::field_set::FieldSet;
use super::fields_v1::{self, FieldsError};

/// The kinds of writes that ownership tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    Apply,
    Update,
}

impl Operation {
    const fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// Who owns fields. Updates in different versions are different owners, because nobody restates what they changed;
/// whoever applies restates everything each time, in whatever version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    pub manager: String,
    pub operation: Operation,
    /// The version of an update; none for whoever applies.
    pub api_version: Option<String>,
    /// Empty for the object itself.
    pub subresource: String,
}

impl fmt::Display for Owner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", self.manager)?;
        if !self.subresource.is_empty() {
            write!(formatter, " with subresource {:?}", self.subresource)?;
        }
        match &self.api_version {
            Some(version) => write!(formatter, " using {version}"),
            None => Ok(()),
        }
    }
}

/// What somebody owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Holding {
    pub(super) api_version: String,
    pub(super) time: Option<Timestamp>,
    pub(super) fields: FieldSet,
}

/// Everybody who owns something.
pub(super) type Owners = BTreeMap<Owner, Holding>;

/// Why entries cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum EntryError {
    #[error("entries are objects")]
    NotAnObject,
    #[error("unknown operation {0:?}")]
    Operation(String),
    #[error("unknown fieldsType {0:?}")]
    FieldsType(String),
    #[error("an entry has no apiVersion")]
    NoVersion,
    #[error("an entry has an unreadable time")]
    Time,
    #[error(transparent)]
    Fields(#[from] FieldsError),
}

/// Reads the entries of an object. Of several that have the same owner, the last counts.
pub(super) fn read(object: &Value) -> Result<Owners, EntryError> {
    object["metadata"]["managedFields"].as_array().into_iter().flatten().map(read_entry).collect()
}

fn read_entry(entry: &Value) -> Result<(Owner, Holding), EntryError> {
    let entry = entry.as_object().ok_or(EntryError::NotAnObject)?;
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let operation = match text("operation").as_str() {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        other => return Err(EntryError::Operation(other.to_owned())),
    };
    if text("fieldsType") != "FieldsV1" {
        return Err(EntryError::FieldsType(text("fieldsType")));
    }
    let api_version = text("apiVersion");
    if api_version.is_empty() {
        return Err(EntryError::NoVersion);
    }
    let time = match entry.get("time") {
        None | Some(Value::Null) => None,
        Some(time) => Some(time.as_str().and_then(read_time).ok_or(EntryError::Time)?),
    };
    let fields = match entry.get("fieldsV1") {
        None | Some(Value::Null) => FieldSet::default(),
        Some(fields) => fields_v1::decode(fields)?,
    };
    let owner = Owner {
        manager: text("manager"),
        operation,
        api_version: (operation == Operation::Update).then(|| api_version.clone()),
        subresource: text("subresource"),
    };
    Ok((owner, Holding { api_version, time, fields }))
}

/// A time, to the second.
pub(super) fn read_time(text: &str) -> Option<Timestamp> {
    Timestamp::from_second(text.parse::<Timestamp>().ok()?.as_second()).ok()
}

/// Writes entries in the order of the real server: first who applies, then who updates, each the oldest first.
pub(super) fn write(owners: &Owners) -> Vec<Value> {
    let mut entries: Vec<(&Owner, &Holding)> = owners.iter().collect();
    entries.sort_by(|(left_owner, left), (right_owner, right)| {
        let left =
            (left_owner.operation, seconds(left), &left_owner.manager, &left.api_version, &left_owner.subresource);
        left.cmp(&(
            right_owner.operation,
            seconds(right),
            &right_owner.manager,
            &right.api_version,
            &right_owner.subresource,
        ))
    });
    entries.into_iter().map(|(owner, holding)| write_entry(owner, holding)).collect()
}

/// An entry without a time counts as the oldest.
pub(super) fn seconds(holding: &Holding) -> i64 {
    holding.time.map_or(0, Timestamp::as_second)
}

fn write_entry(owner: &Owner, holding: &Holding) -> Value {
    let mut entry = json!({
        "apiVersion": holding.api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields_v1::encode(&holding.fields),
        "operation": owner.operation.name(),
    });
    if !owner.manager.is_empty() {
        entry["manager"] = owner.manager.as_str().into();
    }
    if !owner.subresource.is_empty() {
        entry["subresource"] = owner.subresource.as_str().into();
    }
    if let Some(time) = holding.time {
        entry["time"] = time.to_string().into();
    }
    entry
}
