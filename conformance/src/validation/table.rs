//! The table as it is written in `conformance/validation`.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

/// The objects of one kind.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    pub kind: String,
    pub bases: Vec<Base>,
    #[serde(default)]
    pub cases: Vec<Case>,
}

/// A valid object.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Base {
    pub name: String,
    #[serde(default)]
    pub spec: Value,
    #[serde(default)]
    pub status: Value,
}

/// An object that the CEL rules accept or refuse.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub name: String,
    /// The base it starts from.
    pub base: String,
    /// A JSON merge patch over the base.
    #[serde(default)]
    pub patch: Value,
    /// The rules that refuse it: all that do, and no others.
    #[serde(default)]
    pub rejects: Vec<RuleAt>,
    /// The rules it satisfies although it reaches them.
    #[serde(default)]
    pub accepts: Vec<RuleAt>,
}

/// A CEL rule, by the place that carries it and its message.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleAt {
    /// Members joined by dots; `[]` for the items of a list, `{}` for the values of a map.
    pub path: String,
    pub message: String,
    /// Set when the rule is not false but cannot be evaluated, which counts as refusal; what the server says then.
    #[serde(default)]
    pub error: Option<String>,
}

impl RuleAt {
    /// What the server's message must contain.
    pub fn text(&self) -> String {
        match &self.error {
            Some(error) => format!("{error} evaluating rule: {}", self.message),
            None => self.message.clone(),
        }
    }
}

impl Base {
    /// The object, without a name.
    pub fn object(&self) -> Value {
        let mut object = json!({});
        for (part, value) in [("spec", &self.spec), ("status", &self.status)] {
            if !value.is_null() {
                object[part] = value.clone();
            }
        }
        object
    }
}

impl Table {
    /// The object of a case, without a name.
    ///
    /// # Panics
    ///
    /// When the case names a base that does not exist.
    #[expect(clippy::panic, reason = "a mistake in the table is a failed test")]
    pub fn object(&self, case: &Case) -> Value {
        let Some(base) = self.bases.iter().find(|base| base.name == case.base) else {
            panic!("{}: the case {:?} has no base {:?}", self.kind, case.name, case.base);
        };
        let mut object = base.object();
        if !case.patch.is_null() {
            json_patch::merge(&mut object, &case.patch);
        }
        object
    }
}

/// All tables, by kind.
pub fn load() -> anyhow::Result<Vec<Table>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("validation");
    let mut tables = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        let table: Table = serde_saphyr::from_str(&fs::read_to_string(&path)?)
            .map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
        tables.push(table);
    }
    tables.sort_by(|one, other| one.kind.cmp(&other.kind));
    Ok(tables)
}
