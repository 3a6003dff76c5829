//! What k8s-openapi's schemas do not say: how members are merged, encoded, defaulted and called in Go.
//!
//! `facts.tsv` is made by `examples/facts.rs`; one row per member of each definition, one row named `-` for the
//! definition itself.

use std::collections::HashMap;
use std::sync::LazyLock;

/// What is known about one definition, such as `core.v1.Container`.
#[derive(Debug, Default)]
pub(super) struct Definition {
    pub(super) required: Option<&'static str>,
    pub(super) atomic: bool,
    /// Members that exclude each other, as JSON text. Documents show it; nothing else depends on it.
    pub(super) unions: Option<&'static str>,
    pub(super) members: HashMap<&'static str, Member>,
}

/// What is known about one member.
#[derive(Debug, Default)]
pub(super) struct Member {
    pub(super) is: Is,
    pub(super) absent: Absent,
    /// A zero is the same as nothing, and is not written.
    pub(super) drops_zero: bool,
    pub(super) list: Option<&'static str>,
    pub(super) keys: Option<&'static str>,
    /// `atomic` or `granular`, whatever its type says of itself.
    pub(super) map: Option<&'static str>,
    pub(super) patch: Option<&'static str>,
    pub(super) merge_key: Option<&'static str>,
    pub(super) enum_: Option<&'static str>,
    pub(super) item_enum: Option<&'static str>,
    pub(super) value_enum: Option<&'static str>,
    /// JSON texts.
    pub(super) default: Option<&'static str>,
    pub(super) item_default: Option<&'static str>,
    pub(super) value_default: Option<&'static str>,
    /// Of the items of lists that are values.
    pub(super) value_item_default: Option<&'static str>,
    /// What Go calls the type, where `is` does not tell: `v1.PullPolicy`.
    pub(super) go: Option<&'static str>,
    /// The embedded struct that the member really is in: `VolumeSource`.
    pub(super) inline: Option<&'static str>,
}

/// What an absent member is written as.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Absent {
    #[default]
    Nothing,
    Null,
    /// The zero of its type.
    Zero,
}

/// The type of a member.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) enum Is {
    String,
    Bytes,
    Integer,
    /// An integer of 64 bits.
    Long,
    Number,
    Boolean,
    Quantity,
    Time,
    MicroTime,
    IntOrString,
    /// A struct, by the name of its definition.
    Struct(&'static str),
    List(Box<Is>),
    Map(Box<Is>),
    /// Anything.
    #[default]
    Raw,
}

impl Is {
    fn read(text: &'static str) -> Self {
        if let Some(item) = text.strip_prefix("list:") {
            return Self::List(Box::new(Self::read(item)));
        }
        if let Some(value) = text.strip_prefix("map:") {
            return Self::Map(Box::new(Self::read(value)));
        }
        match text {
            "string" => Self::String,
            "bytes" => Self::Bytes,
            "integer" => Self::Integer,
            "long" => Self::Long,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            "quantity" => Self::Quantity,
            "time" => Self::Time,
            "microtime" => Self::MicroTime,
            "intorstring" => Self::IntOrString,
            name if name.contains('.') => Self::Struct(name),
            _ => Self::Raw,
        }
    }
}

static FACTS: LazyLock<HashMap<&'static str, Definition>> = LazyLock::new(|| read(include_str!("facts.tsv")));

/// The facts about the definition of that name, in its short form (`core.v1.Pod`).
pub(super) fn definition(name: &str) -> Option<&'static Definition> {
    FACTS.get(name)
}

/// The definition of that full name (`io.k8s.api.core.v1.Pod`), as the type of a place.
pub(super) fn structure(name: &str) -> Option<Is> {
    FACTS.get_key_value(short_name(name)).map(|(name, _)| Is::Struct(name))
}

/// `core.v1.Pod` for `io.k8s.api.core.v1.Pod`.
pub(super) fn short_name(name: &str) -> &str {
    let dots: Vec<usize> = name.rmatch_indices('.').map(|(index, _)| index).take(3).collect();
    dots.get(2).map_or(name, |index| &name[index + 1..])
}

fn read(text: &'static str) -> HashMap<&'static str, Definition> {
    let mut definitions: HashMap<&'static str, Definition> = HashMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut cells = line.split('\t');
        let (Some(name), Some(member)) = (cells.next(), cells.next()) else { continue };
        let definition = definitions.entry(name).or_default();
        if member == "-" {
            for (keyword, value) in cells.filter_map(|cell| cell.split_once('=')) {
                match keyword {
                    "required" => definition.required = Some(value),
                    "map" => definition.atomic = value == "atomic",
                    "unions" => definition.unions = Some(value),
                    _ => {}
                }
            }
        } else {
            definition.members.insert(member, read_member(cells));
        }
    }
    definitions
}

fn read_member(cells: std::str::Split<'static, char>) -> Member {
    let mut member = Member::default();
    for (keyword, value) in cells.filter_map(|cell| cell.split_once('=')) {
        match keyword {
            "is" => member.is = Is::read(value),
            "absent" => member.absent = if value == "null" { Absent::Null } else { Absent::Zero },
            "zero" => member.drops_zero = true,
            "list" => member.list = Some(value),
            "keys" => member.keys = Some(value),
            "map" => member.map = Some(value),
            "patch" => member.patch = Some(value),
            "key" => member.merge_key = Some(value),
            "enum" => member.enum_ = Some(value),
            "items.enum" => member.item_enum = Some(value),
            "values.enum" => member.value_enum = Some(value),
            "default" => member.default = Some(value),
            "items.default" => member.item_default = Some(value),
            "values.items.default" => member.value_item_default = Some(value),
            "values.default" => member.value_default = Some(value),
            "go" => member.go = Some(value),
            "inline" => member.inline = Some(value),
            _ => {}
        }
    }
    member
}
