//! The messages and their members.

use std::collections::HashMap;
use std::sync::LazyLock;

/// What `tools/control-plane/messages` found in Kubernetes' own types; it explains the columns.
const TABLE: &str = include_str!("messages.tsv");

/// A message and how its members are called in JSON.
#[derive(Debug)]
pub struct Message {
    /// Group, version and kind: `core.v1.Pod`.
    pub name: &'static str,
    /// The version that objects of this kind name, `*` for any; none if it is no kind.
    api_version: Option<&'static str>,
    /// In the order of their numbers, which is that in which they are written.
    pub fields: Vec<Field>,
}

#[derive(Debug)]
pub struct Field {
    pub number: u32,
    pub member: &'static str,
    pub kind: Kind,
    /// Absent and zero are not the same.
    pub optional: bool,
    /// What has no value is left out of JSON.
    pub omit_empty: bool,
    /// So is a struct of zeros.
    pub omit_zero: bool,
    /// The members of the message are members of the JSON object around it.
    pub inline: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    One(Type),
    List(Type),
    Map(Type),
}

/// The type of a value. `usize` is the index of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    String,
    Bool,
    Int32,
    Int64,
    Double,
    Bytes,
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    /// JSON in a message.
    Raw,
    /// A list of strings in a message.
    Strings,
    /// These hold a schema or something else, which shows in JSON only.
    SchemaOrBool(usize),
    SchemaOrArray(usize),
    SchemaOrStrings(usize),
    Message(usize),
}

/// All messages.
#[derive(Debug)]
pub struct Messages {
    all: Vec<Message>,
    by_name: HashMap<&'static str, usize>,
}

impl Messages {
    /// Read when it is needed for the first time, which takes about a millisecond.
    pub fn get() -> &'static Self {
        static MESSAGES: LazyLock<Messages> = LazyLock::new(|| Messages::read(TABLE));
        &MESSAGES
    }

    fn read(table: &'static str) -> Self {
        let lines = || table.lines().filter(|line| !line.starts_with('#'));
        let names = lines().filter(|line| !line.starts_with('\t')).map(|line| heading(line).0);
        let by_name: HashMap<&'static str, usize> = names.enumerate().map(|(index, name)| (name, index)).collect();
        let mut all: Vec<Message> = Vec::with_capacity(by_name.len());
        for line in lines() {
            if let (Some(member), Some(message)) = (line.strip_prefix('\t'), all.last_mut()) {
                message.fields.extend(field(member, &by_name));
            } else {
                let (name, api_version) = heading(line);
                all.push(Message { name, api_version, fields: Vec::new() });
            }
        }
        Self { all, by_name }
    }

    /// The message of a kind. Kinds of the API itself, such as Status, are the same in all groups.
    pub fn of_kind(&self, api_version: &str, kind: &str) -> Option<&Message> {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("core", api_version));
        let group = group.split('.').next().unwrap_or_default();
        let find = |name: &str, version: &str| {
            let message = self.by_name.get(name).map(|index| self.at(*index))?;
            (message.api_version == Some(version)).then_some(message)
        };
        find(&format!("{group}.{version}.{kind}"), api_version).or_else(|| find(&format!("meta.v1.{kind}"), "*"))
    }

    /// The message at an index that a [`Type`] holds.
    pub fn at(&self, index: usize) -> &Message {
        static NONE: Message = Message { name: "", api_version: None, fields: Vec::new() };
        self.all.get(index).unwrap_or(&NONE)
    }
}

fn heading(line: &'static str) -> (&'static str, Option<&'static str>) {
    line.split_once('\t').map_or((line, None), |(name, version)| (name, Some(version)))
}

fn field(line: &'static str, by_name: &HashMap<&'static str, usize>) -> Option<Field> {
    let mut cells = line.split('\t');
    let (number, member, kind, flags) = (cells.next()?, cells.next()?, cells.next()?, cells.next()?);
    let kind = match kind.split_once(':') {
        Some(("list", name)) => Kind::List(type_of(name, by_name)?),
        Some(("map", name)) => Kind::Map(type_of(name, by_name)?),
        _ => Kind::One(type_of(kind, by_name)?),
    };
    Some(Field {
        number: number.parse().ok()?,
        member,
        kind,
        optional: flags.contains('*'),
        omit_empty: flags.contains('?'),
        omit_zero: flags.contains('0'),
        inline: flags.contains('^'),
    })
}

fn type_of(name: &str, by_name: &HashMap<&'static str, usize>) -> Option<Type> {
    let schema = || by_name.get("apiextensions.v1.JSONSchemaProps").copied();
    Some(match name {
        "string" => Type::String,
        "bool" => Type::Bool,
        "int32" => Type::Int32,
        "int64" => Type::Int64,
        "double" => Type::Double,
        "bytes" => Type::Bytes,
        "time" => Type::Time,
        "microtime" => Type::MicroTime,
        "quantity" => Type::Quantity,
        "intorstring" => Type::IntOrString,
        "raw" => Type::Raw,
        "strings" => Type::Strings,
        "schemaorbool" => Type::SchemaOrBool(schema()?),
        "schemaorarray" => Type::SchemaOrArray(schema()?),
        "schemaorstrings" => Type::SchemaOrStrings(schema()?),
        message => Type::Message(*by_name.get(message)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_understood() {
        let members = TABLE.lines().filter(|line| line.starts_with('\t')).count();
        let messages = Messages::get();
        assert_eq!(messages.all.iter().map(|message| message.fields.len()).sum::<usize>(), members);
        assert_eq!(messages.all.len(), messages.by_name.len());
        for kind in crate::builtin::table() {
            assert!(messages.of_kind(&kind.api_version(), kind.kind).is_some(), "{}", kind.kind);
            // Questions are asked, not kept.
            let list = messages.of_kind(&kind.api_version(), &format!("{}List", kind.kind));
            assert_eq!(list.is_some(), kind.verbs.contains(&"list"), "{}List", kind.kind);
        }
        assert!(messages.of_kind("apps/v1", "DeleteOptions").is_some());
        assert!(messages.of_kind("stable.example.com/v1", "Bee").is_none());
        assert!(messages.of_kind("apps.example.com/v1", "Deployment").is_none());
        assert!(messages.of_kind("v1", "PodSpec").is_none());
    }
}
