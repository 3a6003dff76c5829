//! The kinds with a few plain columns.

use serde_json::Value;
use time::OffsetDateTime;

use super::{AGE, CREATED_AT, Declared, Field, NAME, Words, age, count, items, name, since, text};

pub(super) fn columns(kind: &str) -> Vec<Declared> {
    let field = |name, path| Declared(name, "string", 0, Field(path));
    match kind {
        "Namespace" => vec![NAME, Declared("Status", "string", 0, Words("The status of the namespace")), AGE],
        "ConfigMap" => vec![NAME, field("Data", "data"), AGE],
        "Secret" => vec![NAME, field("Type", "type"), field("Data", "data"), AGE],
        "Event" => event_columns(),
        "PersistentVolumeClaim" => vec![
            NAME,
            field("Status", "status.phase"),
            field("Volume", "spec.volumeName"),
            field("Capacity", "status.capacity"),
            field("Access Modes", "status.accessModes"),
            Declared("StorageClass", "string", 0, Words("StorageClass of the pvc")),
            Declared("VolumeAttributesClass", "string", 0, Words("VolumeAttributesClass of the pvc")),
            AGE,
            Declared("VolumeMode", "string", 1, Field("spec.volumeMode")),
        ],
        "PersistentVolume" => vec![
            NAME,
            field("Capacity", "spec.capacity"),
            field("Access Modes", "spec.accessModes"),
            field("Reclaim Policy", "spec.persistentVolumeReclaimPolicy"),
            field("Status", "status.phase"),
            field("Claim", "spec.claimRef"),
            Declared("StorageClass", "string", 0, Words("StorageClass of the pv")),
            Declared("VolumeAttributesClass", "string", 0, Words("VolumeAttributesClass of the pv")),
            field("Reason", "status.reason"),
            AGE,
            Declared("VolumeMode", "string", 1, Field("spec.volumeMode")),
        ],
        "Lease" => vec![NAME, field("Holder", "spec.holderIdentity"), AGE],
        "RoleBinding" | "ClusterRoleBinding" => vec![
            NAME,
            field("Role", "roleRef"),
            AGE,
            Declared("Users", "string", 1, Words("The users it is for.")),
            Declared("Groups", "string", 1, Words("The groups it is for.")),
            Declared("ServiceAccounts", "string", 1, Words("The service accounts it is for.")),
        ],
        "StorageClass" => vec![
            NAME,
            field("Provisioner", "provisioner"),
            field("ReclaimPolicy", "reclaimPolicy"),
            field("VolumeBindingMode", "volumeBindingMode"),
            field("AllowVolumeExpansion", "allowVolumeExpansion"),
            AGE,
        ],
        "PriorityClass" => vec![
            NAME,
            Declared("Value", "integer", 0, Field("value")),
            Declared("Global-Default", "boolean", 0, Field("globalDefault")),
            AGE,
            field("PreemptionPolicy", "preemptionPolicy"),
        ],
        "Role" | "ClusterRole" | "CustomResourceDefinition" => vec![NAME, CREATED_AT],
        _ => vec![NAME, AGE],
    }
}

fn event_columns() -> Vec<Declared> {
    vec![
        Declared("Last Seen", "string", 0, Words("When it happened last.")),
        Declared("Type", "string", 0, Field("type")),
        Declared("Reason", "string", 0, Field("reason")),
        Declared("Object", "string", 0, Words("The object that this event is about.")),
        Declared("Subobject", "string", 1, Words("The part of the object that it is about.")),
        Declared("Source", "string", 1, Words("Who reported it.")),
        Declared("Message", "string", 0, Words("What happened, for people.")),
        Declared("First Seen", "string", 1, Words("When it happened first.")),
        Declared("Count", "string", 1, Words("How often it happened.")),
        Declared("Name", "string", 1, Field("metadata.name")),
    ]
}

pub(super) fn row(kind: &str, object: &Value, now: OffsetDateTime) -> Vec<Value> {
    let spec = &object["spec"];
    let size = |list: &str| object[list].as_object().map_or(0, serde_json::Map::len);
    match kind {
        "Namespace" => vec![name(object), text(&object["status"], "phase").into(), age(object, now)],
        "ConfigMap" => vec![name(object), (size("data") + size("binaryData")).into(), age(object, now)],
        "Secret" => vec![name(object), text(object, "type").into(), size("data").into(), age(object, now)],
        "Event" => event(object, now),
        "PersistentVolumeClaim" => claim(object, now),
        "PersistentVolume" => volume(object, now),
        "Lease" => vec![name(object), text(spec, "holderIdentity").into(), age(object, now)],
        "RoleBinding" | "ClusterRoleBinding" => binding(object, now),
        "StorageClass" => storage_class(object, now),
        "PriorityClass" => vec![
            name(object),
            count(&object["value"]).into(),
            (object["globalDefault"] == true).into(),
            age(object, now),
            text(object, "preemptionPolicy").into(),
        ],
        "Role" | "ClusterRole" | "CustomResourceDefinition" => {
            vec![name(object), object["metadata"]["creationTimestamp"].clone()]
        }
        _ => vec![name(object), age(object, now)],
    }
}

/// Either face of an event.
fn event(event: &Value, now: OffsetDateTime) -> Vec<Value> {
    let pick = |core: &str, new: &str| if event[core].is_null() { event[new].clone() } else { event[core].clone() };
    let about = pick("involvedObject", "regarding");
    let source = pick("source", "deprecatedSource");
    let first = pick("firstTimestamp", "deprecatedFirstTimestamp");
    let last = pick("lastTimestamp", "deprecatedLastTimestamp");
    let happened = &event["eventTime"];
    let or_happened = |time: &Value| since(if time.is_null() { happened } else { time }, now);
    let series = &event["series"];
    let (last, total) = if series.is_object() {
        (since(&series["lastObservedTime"], now), count(&series["count"]))
    } else {
        (or_happened(&last), count(&pick("count", "deprecatedCount")).max(1))
    };
    let object = match text(&about, "name") {
        "" => text(&about, "kind").to_lowercase(),
        name => format!("{}/{name}", text(&about, "kind").to_lowercase()),
    };
    let reporter = pick("reportingComponent", "reportingController");
    let component = match text(&source, "component") {
        "" => reporter.as_str().unwrap_or_default(),
        component => component,
    };
    let host = match text(&source, "host") {
        "" => text(event, "reportingInstance"),
        host => host,
    };
    let reporter = if host.is_empty() { component.to_owned() } else { format!("{component}, {host}") };
    let message = pick("message", "note");
    vec![
        last.into(),
        text(event, "type").into(),
        text(event, "reason").into(),
        object.into(),
        text(&about, "fieldPath").into(),
        reporter.into(),
        message.as_str().unwrap_or_default().trim().into(),
        or_happened(&first).into(),
        total.into(),
        name(event),
    ]
}

/// Access modes in their short forms.
fn modes(object: &Value) -> String {
    let short = |mode: &&Value| {
        Some(match mode.as_str()? {
            "ReadWriteOnce" => "RWO",
            "ReadOnlyMany" => "ROX",
            "ReadWriteMany" => "RWX",
            "ReadWriteOncePod" => "RWOP",
            _ => return None,
        })
    };
    let listed = items(object, "accessModes");
    let order = ["RWO", "ROX", "RWX", "RWOP"];
    let found: Vec<&str> = listed.iter().filter_map(|mode| short(&mode)).collect();
    order.into_iter().filter(|mode| found.contains(mode)).collect::<Vec<_>>().join(",")
}

fn class(object: &Value, annotation: &str, name: &str) -> Value {
    let old = text(&object["metadata"]["annotations"], annotation);
    if old.is_empty() { text(&object["spec"], name).into() } else { old.into() }
}

fn or_unset(value: &Value) -> Value {
    match value.as_str() {
        Some(text) if !text.is_empty() => text.into(),
        _ => "<unset>".into(),
    }
}

fn claim(claim: &Value, now: OffsetDateTime) -> Vec<Value> {
    let (spec, status) = (&claim["spec"], &claim["status"]);
    let phase = if claim["metadata"]["deletionTimestamp"].is_null() { text(status, "phase") } else { "Terminating" };
    // Until a claim is bound, it has no capacity.
    let bound = !text(spec, "volumeName").is_empty();
    let (capacity, access) = if bound {
        (text(&status["capacity"], "storage").to_owned(), modes(status))
    } else {
        (String::new(), String::new())
    };
    vec![
        name(claim),
        phase.into(),
        text(spec, "volumeName").into(),
        capacity.into(),
        access.into(),
        class(claim, "volume.beta.kubernetes.io/storage-class", "storageClassName"),
        or_unset(&spec["volumeAttributesClassName"]),
        age(claim, now),
        or_unset(&spec["volumeMode"]),
    ]
}

fn volume(volume: &Value, now: OffsetDateTime) -> Vec<Value> {
    let (spec, status) = (&volume["spec"], &volume["status"]);
    let phase = if volume["metadata"]["deletionTimestamp"].is_null() { text(status, "phase") } else { "Terminating" };
    let claim = &spec["claimRef"];
    let claim =
        if claim.is_null() { String::new() } else { format!("{}/{}", text(claim, "namespace"), text(claim, "name")) };
    vec![
        name(volume),
        text(&spec["capacity"], "storage").into(),
        modes(spec).into(),
        text(spec, "persistentVolumeReclaimPolicy").into(),
        phase.into(),
        claim.into(),
        class(volume, "volume.beta.kubernetes.io/storage-class", "storageClassName"),
        or_unset(&spec["volumeAttributesClassName"]),
        text(status, "reason").into(),
        age(volume, now),
        or_unset(&spec["volumeMode"]),
    ]
}

fn binding(binding: &Value, now: OffsetDateTime) -> Vec<Value> {
    let role = &binding["roleRef"];
    let named = |kind: &str| {
        let subjects = items(binding, "subjects").iter().filter(|subject| subject["kind"] == kind);
        let names: Vec<String> = subjects
            .map(|subject| match kind {
                "ServiceAccount" => format!("{}/{}", text(subject, "namespace"), text(subject, "name")),
                _ => text(subject, "name").to_owned(),
            })
            .collect();
        Value::from(names.join(", "))
    };
    vec![
        name(binding),
        format!("{}/{}", text(role, "kind"), text(role, "name")).into(),
        age(binding, now),
        named("User"),
        named("Group"),
        named("ServiceAccount"),
    ]
}

fn storage_class(class: &Value, now: OffsetDateTime) -> Vec<Value> {
    let annotations = &class["metadata"]["annotations"];
    let is_default = annotations["storageclass.kubernetes.io/is-default-class"] == "true"
        || annotations["storageclass.beta.kubernetes.io/is-default-class"] == "true";
    let plain = text(&class["metadata"], "name");
    let shown = if is_default { format!("{plain} (default)") } else { plain.to_owned() };
    let or = |name: &str, otherwise: &str| match text(class, name) {
        "" => Value::from(otherwise),
        text => text.into(),
    };
    vec![
        shown.into(),
        text(class, "provisioner").into(),
        or("reclaimPolicy", "Delete"),
        or("volumeBindingMode", "<unset>"),
        (class["allowVolumeExpansion"] == true).into(),
        age(class, now),
    ]
}
