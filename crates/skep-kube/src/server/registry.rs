//! The resources that are served now: the built-in ones and those of the installed CRDs.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use serde_json::Value;

use super::tenure::Tenure;
use crate::builtin::{self, Builtin};
use crate::json_path::{ColumnType, JsonPath, cell};
use crate::schema::{CompiledSchema, Scale, Schema, apply_defaults, prune};
use crate::status::{ApiError, Reason, ResourceName};
use crate::store::Record;

/// A resource, in all its versions.
#[derive(Debug)]
pub struct Resource {
    pub group: String,
    pub kind: String,
    pub list_kind: String,
    pub plural: String,
    pub singular: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub namespaced: bool,
    /// What may be done with it, in the order in which discovery lists it.
    pub verbs: Vec<String>,
    /// The served versions, the preferred one first.
    pub versions: Vec<Version>,
    /// The version in which objects are kept.
    pub storage_version: String,
    /// Its schema. It need not be among the served versions.
    pub storage_schema: Arc<Schema>,
    pub origin: Origin,
    /// Whether all versions have the same schema.
    pub is_of_one_shape: bool,
    /// The address of the program that translates objects between versions, if they are not simply shown in each.
    pub converter: Option<String>,
    /// Whether it goes away when the last object does, so that there must be no new ones.
    pub is_terminating: bool,
    pub tenure: Tenure,
}

/// Where a resource comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    BuiltIn(&'static Builtin),
    Custom,
}

/// One version of a resource.
#[derive(Debug)]
pub struct Version {
    pub name: String,
    pub schema: Arc<Schema>,
    /// The schema as its author wrote it, for custom resources.
    pub published: Value,
    pub deprecation: Option<String>,
    pub columns: Vec<Column>,
    pub subresources: Vec<Subresource>,
    /// Fields beside name and namespace that can be selected on: path, as written in a selector.
    pub selectable_fields: Vec<String>,
    /// What validation needs, for custom resources.
    pub compiled: Option<CompiledSchema>,
}

/// A part of an object with a path of its own.
#[derive(Debug, Clone)]
pub struct Subresource {
    pub name: String,
    pub kind: String,
    /// The group and version of `kind`, when they are not those of the resource.
    pub group_version: Option<(String, String)>,
    pub verbs: Vec<String>,
    pub scale: Option<Scale>,
}

/// A column of a table.
#[derive(Debug, Clone)]
pub struct Column {
    pub name: String,
    pub type_: String,
    pub format: String,
    pub description: String,
    pub priority: i64,
    pub path: JsonPath,
}

impl Column {
    /// What an object shows in this column.
    pub fn cell(&self, object: &Value) -> Value {
        let type_ = ColumnType::read(&self.type_).unwrap_or(ColumnType::String);
        cell(object, &self.path, type_, time::OffsetDateTime::now_utc())
    }
}

impl Resource {
    /// The resource as errors name it.
    pub fn name(&self) -> ResourceName {
        ResourceName::new(&self.group, &self.plural)
    }

    /// A part of it as errors name it.
    pub fn part_name(&self, part: &str) -> ResourceName {
        ResourceName::new(&self.group, &format!("{}/{part}", self.plural))
    }

    /// The kind as errors about validation name it.
    pub fn kind_name(&self) -> ResourceName {
        // Both faces of events are checked as one kind.
        let group = if self.is_second_face_of_events() { "" } else { &self.group };
        ResourceName::new(group, &self.kind)
    }

    /// Whether something can be done with it, by its verb.
    pub fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|allowed| allowed == verb)
    }

    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// `v1`, `apps/v1`.
    pub fn api_version(&self, version: &str) -> String {
        group_version(&self.group, version)
    }

    /// The name under which the store keeps it. Events have two faces and one store.
    pub fn storage_name(&self) -> String {
        if self.is_second_face_of_events() {
            return "/events".to_owned();
        }
        format!("{}/{}", self.group, self.plural)
    }

    /// Whether objects are shown in another form than they are stored in.
    pub fn is_second_face_of_events(&self) -> bool {
        self.group == "events.k8s.io" && self.plural == "events"
    }

    /// Whether a stored object may not be what the versions show: it was written under another schema, or through
    /// another version.
    pub fn reshapes(&self, record: &Record) -> bool {
        let is_one_in_all_versions = self.is_of_one_shape && self.converter.is_none();
        self.origin == Origin::Custom && (record.revision <= self.tenure.since() || !is_one_in_all_versions)
    }

    /// Makes an object what a version shows once it is stored: what the storage version makes of it, without what the
    /// shown version does not know.
    pub fn reshape(&self, version: &Version, object: &mut Value) {
        prune(&self.storage_schema, object);
        apply_defaults(&self.storage_schema, object);
        if version.name != self.storage_version {
            prune(&version.schema, object);
        }
    }
}

impl Resource {
    /// Whether objects in version `from` can be had in version `to`. Nobody is called to translate them; to show one as
    /// what it is not would cost its owner what the other version does not know.
    pub fn check_conversion(&self, from: &str, to: &str) -> Result<(), ApiError> {
        let Some(converter) = self.converter.as_ref().filter(|_| from != to) else { return Ok(()) };
        let message = format!(
            "conversion webhook for {}, Kind={} failed: Post \"{converter}?timeout=30s\": this server calls no webhooks; \
             hint: use version {}",
            self.api_version(from),
            self.kind,
            self.storage_version,
        );
        Err(ApiError::new(Reason::Unknown, message))
    }
}

impl Subresource {
    /// Whether something can be done with it, by its verb.
    pub fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|allowed| allowed == verb)
    }
}

impl Version {
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }

    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }
}

/// `v1` in the core group, `GROUP/VERSION` elsewhere.
pub fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// All resources. Cheap to read: a request takes the resource it needs and lets go.
#[derive(Debug, Default)]
pub struct Registry {
    resources: RwLock<BTreeMap<(String, String), Arc<Resource>>>,
}

impl Registry {
    /// Adds a kind that is part of the server.
    pub fn insert_builtin(&self, row: &'static Builtin) {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let subresources = row
            .subresources
            .iter()
            .map(|part| Subresource {
                name: part.name.to_owned(),
                kind: part.kind.to_owned(),
                group_version: part.group_version.map(|(group, version)| (group.to_owned(), version.to_owned())),
                verbs: owned(part.verbs),
                scale: (part.name == "scale").then(|| Scale {
                    spec_replicas_path: ".spec.replicas".into(),
                    status_replicas_path: ".status.replicas".into(),
                    label_selector_path: Some(".spec.selector".into()),
                }),
            })
            .collect();
        let Some(schema) = builtin::schema(row.group, row.version, row.kind) else {
            return;
        };
        self.insert(Resource {
            group: row.group.to_owned(),
            kind: row.kind.to_owned(),
            list_kind: format!("{}List", row.kind),
            plural: row.plural.to_owned(),
            singular: row.singular.to_owned(),
            short_names: owned(row.short_names),
            categories: owned(row.categories),
            namespaced: row.namespaced,
            verbs: owned(row.verbs),
            versions: vec![Version {
                name: row.version.to_owned(),
                schema: schema.clone(),
                published: Value::Null,
                deprecation: row.deprecation.map(str::to_owned),
                columns: Vec::new(),
                subresources,
                selectable_fields: Vec::new(),
                compiled: None,
            }],
            storage_version: row.version.to_owned(),
            storage_schema: schema,
            origin: Origin::BuiltIn(row),
            is_of_one_shape: true,
            converter: None,
            is_terminating: false,
            tenure: Tenure::default(),
        });
    }

    /// Settles what a resource is from now on, if it is served at all. Callers come one at a time, so that what is
    /// decided last, by the newest state, is what stays.
    pub fn decide(&self, group: &str, plural: &str, decide: impl FnOnce(Option<&Resource>) -> Option<Resource>) {
        let before = self.find(group, plural);
        let after = decide(before.as_deref());
        let ended = before.filter(|before| after.as_ref().is_none_or(|after| !after.tenure.continues(&before.tenure)));
        match after {
            Some(resource) => self.insert(resource),
            None => _ = self.resources.write().remove(&(group.to_owned(), plural.to_owned())),
        }
        if let Some(resource) = ended {
            resource.tenure.end();
        }
    }

    fn insert(&self, resource: Resource) {
        let key = (resource.group.clone(), resource.plural.clone());
        self.resources.write().insert(key, Arc::new(resource));
    }

    pub fn find(&self, group: &str, plural: &str) -> Option<Arc<Resource>> {
        self.resources.read().get(&(group.to_owned(), plural.to_owned())).cloned()
    }

    /// All resources, by group and plural.
    pub fn all(&self) -> Vec<Arc<Resource>> {
        self.resources.read().values().cloned().collect()
    }

    /// The groups and their versions, the preferred version of each first; the core group is `""`.
    pub fn groups(&self) -> BTreeMap<String, Vec<String>> {
        let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for resource in self.all() {
            let versions = groups.entry(resource.group.clone()).or_default();
            for version in &resource.versions {
                if !versions.contains(&version.name) {
                    versions.push(version.name.clone());
                }
            }
        }
        for versions in groups.values_mut() {
            versions.sort_by_key(|version| Reverse(version_priority(version)));
        }
        groups
    }
}

/// Stable before beta before alpha, higher numbers first; anything else last.
pub fn version_priority(version: &str) -> (u8, u64, u64) {
    let parse = || {
        let rest = version.strip_prefix('v')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let major: u64 = rest[..digits].parse().ok()?;
        let rest = &rest[digits..];
        if rest.is_empty() {
            return Some((3, major, 0));
        }
        let (rank, minor) =
            rest.strip_prefix("beta").map(|minor| (2, minor)).or(rest.strip_prefix("alpha").map(|minor| (1, minor)))?;
        Some((rank, major, minor.parse().ok()?))
    };
    parse().unwrap_or((0, 0, 0))
}

/// A replica count or selector inside an object, by a path such as `.spec.replicas`.
pub fn at_simple_path<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.trim_start_matches('.').split('.').try_fold(object, |value, name| value.get(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_discovery_orders_them() {
        let mut versions = vec!["v1alpha1", "v2", "v1beta2", "v1", "v1beta10", "foo", "v10"];
        versions.sort_by_key(|version| Reverse(version_priority(version)));
        assert_eq!(versions, ["v10", "v2", "v1", "v1beta10", "v1beta2", "v1alpha1", "foo"]);
    }
}
