//! What a document must be, and whether it can be read as that.

use serde_json::{Map, Value};

use super::super::exchange::Exchange;
use super::super::registry::{Origin, group_version};
use crate::builtin;
use crate::decode::{DecodeError, UnusualNumbers};
use crate::go_text::type_name;
use crate::schema::{Schema, unreadable};

/// The kind of object that a request is about.
#[derive(Debug)]
pub struct Expected<'a> {
    pub kind: &'a str,
    group: &'a str,
    version: &'a str,
    shape: Shape<'a>,
}

#[derive(Debug)]
enum Shape<'a> {
    /// A built-in kind, by the name of its definition. It may leave out what it is.
    Struct(String),
    /// The same, in whatever version it says.
    AnyVersion(String),
    /// A custom kind must say what it is, and only its metadata has a shape of its own.
    Custom(&'a Schema),
}

/// Why a document cannot be read.
#[derive(Debug)]
pub struct Misread {
    /// Kind and version, once they are known.
    pub given: Option<(String, String)>,
    pub problem: String,
}

impl Misread {
    fn unknown(problem: impl Into<String>) -> Self {
        Self { given: None, problem: problem.into() }
    }
}

impl From<DecodeError> for Misread {
    fn from(error: DecodeError) -> Self {
        Self::unknown(format!("couldn't get version/kind; json parse error: {error}"))
    }
}

impl<'a> Expected<'a> {
    /// What the path of a request is about.
    pub fn of(exchange: &'a Exchange) -> Self {
        let resource = &exchange.resource;
        let schema = resource.version(&exchange.path.version).map(|version| version.schema.as_ref());
        let shape = match (resource.origin, schema) {
            (Origin::Custom, Some(schema)) => Shape::Custom(schema),
            (Origin::BuiltIn(kind), _) => Shape::Struct(kind.definition_name()),
            // Requests in versions that are not served do not get this far.
            (Origin::Custom, None) => Shape::AnyVersion(String::new()),
        };
        Self { kind: &resource.kind, group: &resource.group, version: &exchange.path.version, shape }
    }

    /// The scale of whatever can be scaled.
    pub fn scale() -> Self {
        let shape = Shape::Struct("io.k8s.api.autoscaling.v1.Scale".to_owned());
        Self { kind: "Scale", group: "autoscaling", version: "v1", shape }
    }

    pub fn binding() -> Self {
        let shape = Shape::Struct("io.k8s.api.core.v1.Binding".to_owned());
        Self { kind: "Binding", group: "", version: "v1", shape }
    }

    pub fn eviction() -> Self {
        let shape = Shape::Struct("io.k8s.api.policy.v1.Eviction".to_owned());
        Self { kind: "Eviction", group: "policy", version: "v1", shape }
    }

    /// A question about tokens or access.
    pub fn question(group: &'a str, kind: &'a str) -> Self {
        let shape = Shape::Struct(format!("io.k8s.api.{}.v1.{kind}", first_label(group)));
        Self { kind, group, version: "v1", shape }
    }

    pub fn delete_options() -> Self {
        let shape = Shape::AnyVersion("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions".to_owned());
        Self { kind: "DeleteOptions", group: "", version: "v1", shape }
    }

    pub fn is_custom(&self) -> bool {
        matches!(self.shape, Shape::Custom(_))
    }

    pub fn api_version(&self) -> String {
        group_version(self.group, self.version)
    }

    /// Whether a value can be read as what is expected; a built-in kind is given the version and kind that it leaves
    /// out. `text` is the value as it was written.
    pub fn check(
        &self,
        value: &mut Value,
        numbers: &UnusualNumbers,
        text: impl FnOnce() -> String,
    ) -> Result<(), Misread> {
        if value.is_null() && !matches!(self.shape, Shape::Custom(_)) {
            *value = Value::Object(Map::new());
        }
        check_readable(value)?;
        if let Some(given) = value["apiVersion"].as_str().filter(|given| given.matches('/').count() > 1) {
            return Err(Misread::unknown(format!("unexpected GroupVersion string: {given}")));
        }
        let text_of = |value: &Value, member: &str| value[member].as_str().unwrap_or_default().to_owned();
        let (definition, any_version) = match &self.shape {
            Shape::Custom(schema) => {
                let kind = text_of(value, "kind");
                if kind.is_empty() {
                    return Err(Misread::unknown(format!("Object 'Kind' is missing in '{}'", text())));
                }
                let given = text_of(value, "apiVersion");
                return unreadable(schema, value).map_or(Ok(()), |problem| Err(misread(&kind, &given, problem)));
            }
            Shape::Struct(definition) => (definition, false),
            Shape::AnyVersion(definition) => (definition, true),
        };
        for (member, expected) in [("apiVersion", self.api_version()), ("kind", self.kind.to_owned())] {
            if text_of(value, member).is_empty() {
                value[member] = expected.into();
            }
        }
        let (kind, api_version) = (text_of(value, "kind"), text_of(value, "apiVersion"));
        let problem = if kind != self.kind || !any_version && api_version != self.api_version() {
            Some(self.another_kind(value, numbers, any_version))
        } else {
            builtin::misfit(definition, value, numbers)
        };
        problem.map_or(Ok(()), |problem| Err(misread(&kind, &api_version, problem)))
    }

    /// An object of another kind or version is read as what it says that it is, and told apart in the words of the real
    /// server's type registry.
    fn another_kind(&self, value: &Value, numbers: &UnusualNumbers, any_version: bool) -> String {
        let text = |member: &str| value[member].as_str().unwrap_or_default();
        let (kind, api_version) = (text("kind"), text("apiVersion"));
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let Some(other) = builtin::find(group, version, kind).filter(|_| !any_version) else {
            return format!(
                "no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\""
            );
        };
        builtin::misfit(&other.definition_name(), value, numbers).unwrap_or_else(|| {
            let internal = if self.group.is_empty() { "core" } else { first_label(self.group) };
            format!("converting ({version}.{kind}) to ({internal}.{}): unknown conversion", self.kind)
        })
    }
}

/// `rbac` for `rbac.authorization.k8s.io`.
fn first_label(group: &str) -> &str {
    group.split('.').next().unwrap_or_default()
}

/// Before anything else a decoder looks for the version and the kind.
fn check_readable(value: &Value) -> Result<(), Misread> {
    const HOLDER: &str =
        r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    let found = |value: &Value, place: String, type_: &str| {
        let found = type_name(value);
        Misread::unknown(format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go {place} of type {type_}"
        ))
    };
    let Value::Object(members) = value else {
        return if value.is_null() { Ok(()) } else { Err(found(value, "value".to_owned(), HOLDER)) };
    };
    for member in ["apiVersion", "kind"] {
        if let Some(value) = members.get(member).filter(|value| !value.is_string() && !value.is_null()) {
            return Err(found(value, format!("struct field .{member}"), "string"));
        }
    }
    Ok(())
}

fn misread(kind: &str, api_version: &str, problem: String) -> Misread {
    let version = api_version.rsplit('/').next().unwrap_or_default();
    Misread { given: Some((kind.to_owned(), version.to_owned())), problem }
}
