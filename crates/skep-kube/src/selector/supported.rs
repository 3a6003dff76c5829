//! Which fields of a resource can be selected by, and what they hold.

use serde_json::Value;

use super::fields::FieldSelectorError;

/// The selectable fields of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldSupport {
    fields: Vec<Field>,
    refusal: Refusal,
}

/// How the real server refuses a field: kinds with fields of their own do it differently from all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    Unknown,
    Unsupported,
    UnsupportedFor(&'static str),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    name: String,
    /// Where the value is, member by member. The first place that holds something counts.
    paths: Vec<Vec<String>>,
    /// What the field holds when it is absent.
    absent: &'static str,
}

impl Field {
    fn plain(name: &str) -> Self {
        Self { name: name.to_owned(), paths: vec![members(name)], absent: "" }
    }
}

fn members(path: &str) -> Vec<String> {
    path.split('.').filter(|member| !member.is_empty()).map(str::to_owned).collect()
}

const POD: &[&str] = &[
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    "status.nominatedNodeName",
];
const CORE_EVENT: &[&str] = &[
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "type",
];
const EVENT: &[&str] = &[
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reason",
    "reportingController",
    "type",
];

impl FieldSupport {
    /// The fields of a built-in resource, by its group and plural name.
    pub fn built_in(group: &str, resource: &str) -> Self {
        let names: &[&str] = match (group, resource) {
            ("", "pods") => POD,
            ("", "events") => CORE_EVENT,
            ("events.k8s.io", "events") => EVENT,
            ("", "namespaces") => &["status.phase"],
            ("", "secrets") => &["type"],
            ("", "services") => &["spec.clusterIP", "spec.type"],
            ("certificates.k8s.io", "certificatesigningrequests") => &["spec.signerName"],
            ("", "nodes" | "replicationcontrollers") | ("batch", "jobs") => &[],
            _ => return Self::metadata_only(),
        };
        let mut fields: Vec<Field> = names.iter().copied().map(Field::plain).collect();
        let with_absent =
            |name: &str, path: &str, absent| Field { name: name.into(), paths: vec![members(path)], absent };
        match (group, resource) {
            ("", "pods") => fields.push(with_absent("spec.hostNetwork", "spec.hostNetwork", "false")),
            ("", "nodes") => fields.push(with_absent("spec.unschedulable", "spec.unschedulable", "false")),
            ("", "replicationcontrollers") => fields.push(with_absent("status.replicas", "status.replicas", "0")),
            ("batch", "jobs") => fields.push(with_absent("status.successful", "status.succeeded", "0")),
            ("", "events") => {
                let paths = ["source.component", "reportingComponent"].map(members).to_vec();
                fields.push(Field { name: "source".to_owned(), paths, absent: "" });
            }
            _ => {}
        }
        fields.push(Field::plain("metadata.name"));
        let cluster_wide = matches!(resource, "namespaces" | "nodes" | "certificatesigningrequests");
        if !cluster_wide {
            fields.push(Field::plain("metadata.namespace"));
        }
        let refusal = if resource == "jobs" { Refusal::UnsupportedFor("Job") } else { Refusal::Unsupported };
        Self { fields, refusal }
    }

    /// The fields of a custom resource: `paths` are the `selectableFields` of its definition, such as `.spec.color`.
    pub fn custom<'a>(paths: impl IntoIterator<Item = &'a str>) -> Self {
        let own = paths.into_iter().map(|path| path.strip_prefix('.').unwrap_or(path));
        let fields = ["metadata.name", "metadata.namespace"].into_iter().chain(own).map(Field::plain).collect();
        Self { fields, refusal: Refusal::Unsupported }
    }

    fn metadata_only() -> Self {
        Self { fields: ["metadata.name", "metadata.namespace"].map(Field::plain).to_vec(), refusal: Refusal::Unknown }
    }

    /// The name under which a field is known, or the refusal.
    pub(super) fn canonical<'a>(&self, name: &'a str) -> Result<&'a str, FieldSelectorError> {
        if self.field(name).is_some() {
            return Ok(name);
        }
        // What the node of a pod was called before v1.
        if name == "spec.host" && self.field("spec.nodeName").is_some() {
            return Ok("spec.nodeName");
        }
        let field = name.to_owned();
        Err(match self.refusal {
            Refusal::Unknown => FieldSelectorError::NotKnown(field),
            Refusal::Unsupported => FieldSelectorError::NotSupported(field),
            Refusal::UnsupportedFor(kind) => FieldSelectorError::NotSupportedFor { field, kind },
        })
    }

    fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The value of a field as text.
    pub(super) fn value(&self, object: &Value, name: &str) -> String {
        let Some(field) = self.field(name) else { return String::new() };
        let found = field.paths.iter().filter_map(|path| {
            let value = path.iter().try_fold(object, |value, member| value.get(member))?;
            text(value).filter(|text| !text.is_empty())
        });
        found.into_iter().next().unwrap_or_else(|| field.absent.to_owned())
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}
