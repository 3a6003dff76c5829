//! One rule of a role: which verbs on which resources or paths, and whether one rule covers another.

use serde_json::{Map, Value};

use crate::auth::action::{Action, PathAction, ResourceAction};
use crate::go_text::quoted_list;

const ALL: &str = "*";

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rule {
    pub verbs: Vec<String>,
    pub api_groups: Vec<String>,
    pub resources: Vec<String>,
    pub resource_names: Vec<String>,
    pub non_resource_urls: Vec<String>,
}

impl Rule {
    /// Reads a rule; what is not a list of strings counts as absent, so that a malformed rule grants nothing.
    pub fn read(document: &Value) -> Self {
        let list = |field: &str| strings(document.get(field));
        Self {
            verbs: list("verbs"),
            api_groups: list("apiGroups"),
            resources: list("resources"),
            resource_names: list("resourceNames"),
            non_resource_urls: list("nonResourceURLs"),
        }
    }

    /// The rules of a role document.
    pub fn read_all(role: &Value) -> Vec<Self> {
        role.get("rules")
            .and_then(Value::as_array)
            .map(|rules| rules.iter().map(Self::read).collect())
            .unwrap_or_default()
    }

    /// The rule as it stands in roles and reviews.
    pub fn document(&self) -> Value {
        let mut document = Map::new();
        document.insert("verbs".into(), self.verbs.clone().into());
        for (field, values) in [
            ("apiGroups", &self.api_groups),
            ("resources", &self.resources),
            ("resourceNames", &self.resource_names),
            ("nonResourceURLs", &self.non_resource_urls),
        ] {
            if !values.is_empty() {
                document.insert(field.into(), values.clone().into());
            }
        }
        Value::Object(document)
    }

    pub fn allows(&self, action: &Action) -> bool {
        match action {
            Action::Resource(action) => self.allows_resource(action),
            Action::Path(PathAction { verb, path }) => {
                has_or_all(&self.verbs, verb) && self.non_resource_urls.iter().any(|url| url_covers(url, path))
            }
        }
    }

    fn allows_resource(&self, action: &ResourceAction) -> bool {
        has_or_all(&self.verbs, &action.verb)
            && has_or_all(&self.api_groups, &action.group)
            && self.resources.iter().any(|resource| resource_matches(resource, action))
            && (self.resource_names.is_empty() || has(&self.resource_names, &action.name))
    }

    /// Whether everything that `other` allows is allowed by this rule alone.
    pub fn covers(&self, other: &Self) -> bool {
        let all = |owned: &[String], wanted: &[String]| has(owned, ALL) || wanted.iter().all(|item| has(owned, item));
        let names = self.resource_names.is_empty()
            || (!other.resource_names.is_empty()
                && other.resource_names.iter().all(|name| has(&self.resource_names, name)));
        let urls = other
            .non_resource_urls
            .iter()
            .all(|wanted| self.non_resource_urls.iter().any(|url| url_covers(url, wanted)));
        all(&self.verbs, &other.verbs)
            && all(&self.api_groups, &other.api_groups)
            && other.resources.iter().all(|resource| self.covers_resource(resource))
            && names
            && urls
    }

    fn covers_resource(&self, wanted: &str) -> bool {
        let subresource = wanted.split_once('/').map(|(_, subresource)| subresource);
        self.resources.iter().any(|resource| {
            resource == ALL
                || resource == wanted
                || subresource.is_some_and(|subresource| resource.strip_prefix("*/") == Some(subresource))
        })
    }

    /// The rule as the real server shows it in messages.
    pub fn compact(&self) -> String {
        let parts: Vec<String> = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ]
        .into_iter()
        .filter(|(_, values)| !values.is_empty())
        .map(|(name, values)| format!("{name}:{}", quoted_list(values.iter().map(String::as_str))))
        .collect();
        format!("{{{}}}", parts.join(", "))
    }
}

fn resource_matches(rule: &str, action: &ResourceAction) -> bool {
    if rule == ALL {
        return true;
    }
    if action.subresource.is_empty() {
        return rule == action.resource;
    }
    rule.split_once('/').is_some_and(|(resource, subresource)| {
        subresource == action.subresource && (resource == ALL || resource == action.resource)
    })
}

/// A URL of a rule ends in `*` to mean everything that begins so.
fn url_covers(url: &str, path: &str) -> bool {
    url == path || url.strip_suffix('*').is_some_and(|prefix| path.starts_with(prefix.trim_end_matches('*')))
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|item| item == wanted)
}

fn has_or_all(list: &[String], wanted: &str) -> bool {
    list.iter().any(|item| item == ALL || item == wanted)
}

fn strings(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
}
