//! What `skep_kube::builtin` says about built-in kinds is what a real server does.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use skep_conformance::control_plane::ControlPlane;
use skep_kube::builtin::{self, Allocations, Builtin};
use skep_kube::schema::{ListType, PatchStrategy, Schema, Type};
use skep_kube::status::{ApiError, FieldError, ResourceName};
use time::OffsetDateTime;

/// Where our words are not those of the real server, and why.
const DIFFERENT_WORDS: [&str; 1] = [
    // A parser's own words about text that is no JSON.
    "data[.dockerconfigjson]",
];

#[tokio::test(flavor = "multi_thread")]
async fn built_in_kinds_are_as_on_a_real_server() -> anyhow::Result<()> {
    let Some(plane) = ControlPlane::start_or_skip("built_in_kinds_are_as_on_a_real_server").await else {
        return Ok(());
    };
    let server = Server(plane.admin().await?);
    let mut differences = Vec::new();
    differences.extend(compare_discovery(&server).await?);
    differences.extend(compare_schemas(&server).await?);
    differences.extend(compare_creates(&server).await?);
    differences.extend(compare_updates(&server).await?);
    differences.extend(compare_tables(&server).await?);
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
    Ok(())
}

struct Server(kube::Client);

impl Server {
    async fn send(&self, method: &str, path: &str, body: Option<&Value>, accept: &str) -> anyhow::Result<(u16, Value)> {
        let bytes = body.map(serde_json::to_vec).transpose()?.unwrap_or_default();
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", if method == "PATCH" { "application/merge-patch+json" } else { "application/json" })
            .header("accept", accept)
            .body(kube::client::Body::from(bytes))?;
        let response = self.0.send(request).await?;
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await?.to_bytes();
        Ok((status, serde_json::from_slice(&bytes).with_context(|| format!("{method} {path}"))?))
    }

    async fn get(&self, path: &str) -> anyhow::Result<Value> {
        Ok(self.send("GET", path, None, "application/json").await?.1)
    }
}

fn group_path(kind: &Builtin) -> String {
    if kind.group.is_empty() {
        format!("/api/{}", kind.version)
    } else {
        format!("/apis/{}/{}", kind.group, kind.version)
    }
}

fn collection(kind: &Builtin) -> String {
    let namespace = if kind.namespaced { "/namespaces/default" } else { "" };
    format!("{}{namespace}/{}", group_path(kind), kind.plural)
}

/// Parts that are not served here, and so not offered.
const NOT_SERVED: [&str; 4] = ["nodes/proxy", "pods/proxy", "pods/resize", "services/proxy"];

async fn compare_discovery(server: &Server) -> anyhow::Result<Vec<String>> {
    let mut differences = Vec::new();
    for kind in builtin::table() {
        let real = server.get(&group_path(kind)).await?;
        let rows = real["resources"].as_array().context("no resources")?;
        let mut ours = vec![json!({
            "name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced, "kind": kind.kind,
            "verbs": kind.verbs, "shortNames": kind.short_names, "categories": kind.categories,
        })];
        for part in kind.subresources {
            let mut row = json!({
                "name": format!("{}/{}", kind.plural, part.name), "singularName": "", "namespaced": kind.namespaced,
                "kind": part.kind, "verbs": part.verbs, "shortNames": [], "categories": [],
            });
            if let Some((group, version)) = part.group_version {
                row["group"] = group.into();
                row["version"] = version.into();
            }
            ours.push(row);
        }
        let real: Vec<Value> = rows
            .iter()
            .filter(|row| {
                let name = row["name"].as_str().unwrap_or_default();
                name.split('/').next() == Some(kind.plural) && !NOT_SERVED.contains(&name)
            })
            .map(|row| {
                let mut row = row.clone();
                if let Some(members) = row.as_object_mut() {
                    members.remove("storageVersionHash");
                }
                for list in ["shortNames", "categories"] {
                    if row[list].is_null() {
                        row[list] = json!([]);
                    }
                }
                row
            })
            .collect();
        if ours != real {
            differences.push(format!("discovery of {}: {ours:?} but really {real:?}", kind.plural));
        }
    }
    Ok(differences)
}

async fn compare_schemas(server: &Server) -> anyhow::Result<Vec<String>> {
    let mut definitions: BTreeMap<String, Value> = BTreeMap::new();
    let mut groups: Vec<String> = builtin::table().iter().map(group_path).collect();
    groups.dedup();
    for group in groups {
        let document = server.get(&format!("/openapi/v3{group}")).await?;
        for (name, definition) in document["components"]["schemas"].as_object().into_iter().flatten() {
            definitions.insert(name.clone(), definition.clone());
        }
    }
    let mut differences = Vec::new();
    for kind in builtin::table() {
        let schema = builtin::schema(kind.group, kind.version, kind.kind).context("no schema")?;
        let again = builtin::schema(kind.group, kind.version, kind.kind).context("no schema")?;
        assert!(Arc::ptr_eq(&schema, &again), "schemas are made once");
        let reference = json!({ "$ref": format!("/{}", kind.definition_name()) });
        compare_place(kind.kind, &schema, &reference, &definitions, &mut Vec::new(), &mut differences);
        differences.extend(compare_published(kind, &definitions));
    }
    Ok(differences)
}

/// What a document shows, but for the words.
fn compare_published(kind: &Builtin, real: &BTreeMap<String, Value>) -> Vec<String> {
    let ours = builtin::definitions(kind.group, kind.kind);
    let pairs = ours.iter().map(|(name, ours)| (name, real.get(name).cloned().unwrap_or_default(), ours.clone()));
    let different = pairs.map(|(name, real, ours)| (name, without_words(real), without_words(ours)));
    different
        .filter(|(_, real, ours)| real != ours)
        .map(|(name, real, ours)| format!("{} publishes {name} as\n  {ours}\nand the real one as\n  {real}", kind.kind))
        .collect()
}

fn without_words(mut schema: Value) -> Value {
    let words = |value: &Value| value.is_string();
    match &mut schema {
        Value::Object(members) => {
            members.retain(|name, value| !(name == "description" && words(value)));
            // It says what the document is about, not what the kind is.
            members.remove("x-kubernetes-group-version-kind");
            for value in members.values_mut() {
                *value = without_words(value.take());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_words(item.take())),
        _ => {}
    }
    schema
}

fn compare_place(
    path: &str,
    ours: &Schema,
    real: &Value,
    definitions: &BTreeMap<String, Value>,
    open: &mut Vec<String>,
    differences: &mut Vec<String>,
) {
    let name = real["$ref"].as_str().or_else(|| real["allOf"][0]["$ref"].as_str());
    let name = name.and_then(|name| name.rsplit('/').next()).map(str::to_owned);
    let definition = name.as_ref().and_then(|name| definitions.get(name)).unwrap_or(real);
    if name.as_ref().is_some_and(|name| open.contains(name)) {
        return;
    }
    let mut say = |what: &str, ours: String, real: String| {
        if ours != real {
            differences.push(format!("{path}: {what} is {ours}, really {real}"));
        }
    };
    let expected = Schema::read(definition);
    say("type", format!("{:?}", ours.type_.map(Type::name)), format!("{:?}", expected.type_.map(Type::name)));
    say("format", format!("{:?}", ours.format), format!("{:?}", expected.format));
    say("required", format!("{:?}", ours.required), format!("{:?}", expected.required));
    let place = Schema::read(real);
    let list: (ListType, PatchStrategy) = (place.list_type, place.patch);
    say("list", format!("{:?}", (&ours.list_type, &ours.patch)), format!("{list:?}"));
    let is_atomic = real["x-kubernetes-map-type"].as_str().map_or(expected.atomic_map, |map| map == "atomic");
    say("map", ours.atomic_map.to_string(), is_atomic.to_string());
    say("enum", format!("{:?}", ours.enum_), format!("{:?}", place.enum_));
    if !path.ends_with("[]") {
        say("default", format!("{:?}", ours.default), format!("{:?}", place.default));
    }
    say("int-or-string", ours.int_or_string.to_string(), expected.int_or_string.to_string());
    let names = |schema: &Schema| schema.properties.keys().cloned().collect::<Vec<_>>().join(",");
    say("members", names(ours), names(&expected));
    open.extend(name.clone());
    for (member, below) in &ours.properties {
        compare_place(
            &format!("{path}.{member}"),
            below,
            &definition["properties"][member],
            definitions,
            open,
            differences,
        );
    }
    for (below, keyword, shown) in
        [(&ours.items, "items", "[]"), (&ours.additional_properties, "additionalProperties", "{}")]
    {
        match (below, definition[keyword].is_object()) {
            (Some(below), true) => {
                compare_place(&format!("{path}{shown}"), below, &definition[keyword], definitions, open, differences);
            }
            (None, false) => {}
            _ => differences.push(format!("{path}: {keyword} on one side only")),
        }
    }
    if name.is_some() {
        open.pop();
    }
}

fn manifests() -> anyhow::Result<BTreeMap<String, Value>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/builtin");
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_stem().context("no name")?.to_string_lossy().into_owned();
        let object = serde_saphyr::from_str(&std::fs::read_to_string(&path)?).context(name.clone())?;
        found.insert(name, object);
    }
    Ok(found)
}

fn kind_of(object: &Value) -> anyhow::Result<&'static Builtin> {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let kind = object["kind"].as_str().unwrap_or_default();
    builtin::find(group, version, kind).with_context(|| format!("no built-in kind {version} {kind}"))
}

/// What our functions make of a new object.
fn create(kind: &Builtin, object: &Value) -> Result<Value, Vec<FieldError>> {
    let mut object = object.clone();
    builtin::default(kind, &mut object);
    if kind.kind == "Pod" {
        builtin::admit_service_account(&mut object, &json!({}), "xxxxx");
        let classes: Vec<Value> = builtin::SYSTEM_PRIORITIES.iter().map(builtin::SystemPriority::document).collect();
        builtin::admit_priority(&mut object, &classes).map_err(|why| vec![FieldError::forbidden("spec", why)])?;
        builtin::admit_pod(&mut object);
    }
    if kind.kind == "Node" {
        builtin::admit_node(&mut object);
    }
    builtin::prepare_create(kind, &mut object, "2026-01-02T03:04:05Z");
    let errors = builtin::validate_create(kind, &object);
    if !errors.is_empty() {
        return Err(errors);
    }
    if kind.kind == "Service" {
        let state = Allocations::new((Ipv4Addr::new(10, 0, 0, 0), 16), 30000..=32767, vec![]);
        builtin::allocate(&mut object, &state, 7).map_err(|error| vec![error])?;
    }
    builtin::canonical(kind, &mut object);
    Ok(object)
}

/// Causes in an order of their own: the real server's depends on the order of Go's maps.
fn causes(kind: &Builtin, errors: &[FieldError]) -> Vec<String> {
    let resource = ResourceName::new(kind.group, kind.kind);
    causes_of(&ApiError::invalid(&resource, "", errors).status())
}

fn causes_of(status: &Value) -> Vec<String> {
    let mut causes: Vec<String> = status["details"]["causes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|cause| {
            let field = cause["field"].as_str().unwrap_or_default();
            let message = cause["message"].as_str().unwrap_or_default();
            // Differences between Go structs follow on further lines.
            let message = message.lines().next().unwrap_or_default();
            let message = if DIFFERENT_WORDS.contains(&field) { "…" } else { message };
            format!("{} {field}: {message}", cause["reason"].as_str().unwrap_or_default())
        })
        .collect();
    causes.sort();
    causes
}

/// Hides what is different each time.
fn normalized(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for name in ["uid", "creationTimestamp", "managedFields", "resourceVersion"] {
            metadata.remove(name);
        }
    }
    if object["spec"]["clusterIP"].as_str().is_some_and(|address| address != "None") {
        object["spec"]["clusterIP"] = "ADDRESS".into();
        object["spec"]["clusterIPs"] = "ADDRESS".into();
    }
    if object["status"]["lastPhaseTransitionTime"].is_string() {
        object["status"]["lastPhaseTransitionTime"] = "TIME".into();
    }
    rename_token_volumes(&mut object);
    object
}

fn rename_token_volumes(value: &mut Value) {
    match value {
        Value::String(text) if text.starts_with("kube-api-access-") => "kube-api-access-xxxxx".clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(rename_token_volumes),
        Value::Object(members) => members.values_mut().for_each(rename_token_volumes),
        _ => {}
    }
}

async fn compare_creates(server: &Server) -> anyhow::Result<Vec<String>> {
    let mut differences = Vec::new();
    for (name, object) in manifests()? {
        let kind = kind_of(&object)?;
        let path = format!("{}?dryRun=All", collection(kind));
        let (code, real) = server.send("POST", &path, Some(&object), "application/json").await?;
        match create(kind, &object) {
            Ok(ours) if code < 300 => {
                let (ours, real) = (normalized(ours), normalized(real));
                if ours != real {
                    differences.push(format!("create {name}:\n  ours {ours}\n  real {real}"));
                }
            }
            Err(errors) if code == 422 => {
                let (ours, real) = (causes(kind, &errors), causes_of(&real));
                for cause in ours.iter().filter(|cause| !real.contains(cause)) {
                    differences.push(format!("create {name}: only we say {cause}"));
                }
                for cause in real.iter().filter(|cause| !ours.contains(cause)) {
                    differences.push(format!("create {name}: we do not say {cause}"));
                }
                if ours.len() != real.len() {
                    differences.push(format!("create {name}: {} causes, really {}", ours.len(), real.len()));
                }
            }
            Ok(_) => differences.push(format!("create {name}: we accept it, really {code} {}", real["message"])),
            Err(errors) => {
                differences.push(format!("create {name}: really {code}, we say {:?}", causes(kind, &errors)));
            }
        }
    }
    Ok(differences)
}

fn put(object: &mut Value, path: &str, value: &Value) {
    // Label keys contain dots, and stand last.
    let mut place = object;
    let mut rest = path;
    while let Some((name, below)) = rest.split_once('.').filter(|_| !rest.starts_with("kubernetes.io")) {
        place = match name.parse::<usize>() {
            Ok(index) => &mut place[index],
            Err(_) => &mut place[name],
        };
        rest = below;
    }
    if value.is_null() {
        if let Some(members) = place.as_object_mut() {
            members.remove(rest);
        }
    } else {
        place[rest] = value.clone();
    }
}

async fn compare_updates(server: &Server) -> anyhow::Result<Vec<String>> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/builtin_updates.yaml"))?;
    let cases: Vec<Value> = serde_saphyr::from_str(&text)?;
    let manifests = manifests()?;
    let mut differences = Vec::new();
    for case in cases {
        let manifest = case["manifest"].as_str().context("no manifest")?;
        let mut object = manifests.get(manifest).with_context(|| manifest.to_owned())?.clone();
        for (path, value) in case["before"].as_object().into_iter().flatten() {
            put(&mut object, path, value);
        }
        object["metadata"]["name"] = "changed".into();
        let kind = kind_of(&object)?;
        let (code, created) = server.send("POST", &collection(kind), Some(&object), "application/json").await?;
        anyhow::ensure!(code < 300, "{manifest}: {created}");
        for change in case["changes"].as_array().into_iter().flatten() {
            differences.extend(compare_update(server, kind, manifest, change).await?);
        }
        if kind.has_status() {
            differences.extend(compare_status_update(server, kind).await?);
        }
        let gone = json!({ "gracePeriodSeconds": 0 });
        server.send("DELETE", &format!("{}/changed", collection(kind)), Some(&gone), "application/json").await?;
    }
    Ok(differences)
}

async fn compare_update(
    server: &Server,
    kind: &Builtin,
    manifest: &str,
    change: &Value,
) -> anyhow::Result<Vec<String>> {
    let path = format!("{}/changed", collection(kind));
    let (old, new, code, real) = loop {
        let old = server.get(&path).await?;
        let mut new = old.clone();
        for (path, value) in change.as_object().into_iter().flatten() {
            put(&mut new, path, value);
        }
        let (code, real) = server.send("PUT", &format!("{path}?dryRun=All"), Some(&new), "application/json").await?;
        // Controllers are at work too.
        if code != 409 {
            break (old, new, code, real);
        }
    };
    let mut ours = new;
    builtin::default(kind, &mut ours);
    builtin::prepare_update(kind, &mut ours, &old);
    let errors = builtin::validate_update(kind, &ours, &old);
    Ok(match (errors.is_empty(), code < 300) {
        (true, true) => {
            let (ours, real) = (normalized(ours), normalized(real));
            if ours == real {
                vec![]
            } else {
                vec![format!("update {manifest} {change}:\n  ours {ours}\n  real {real}")]
            }
        }
        (false, false) => {
            let (mut ours, mut real) = (causes(kind, &errors), causes_of(&real));
            // The real server checks some things twice on updates.
            ours.dedup();
            real.dedup();
            if ours == real { vec![] } else { vec![format!("update {manifest} {change}: ours {ours:?} real {real:?}")] }
        }
        (true, false) => vec![format!("update {manifest} {change}: we accept it, really {}", real["message"])],
        (false, true) => vec![format!("update {manifest} {change}: only we say {:?}", causes(kind, &errors))],
    })
}

/// A status update that tries to change everything else as well.
async fn compare_status_update(server: &Server, kind: &Builtin) -> anyhow::Result<Vec<String>> {
    let path = format!("{}/changed", collection(kind));
    loop {
        let old = server.get(&path).await?;
        let mut new = old.clone();
        new["metadata"]["labels"] = json!({ "status": "x" });
        new["metadata"]["annotations"] = json!({ "status": "x" });
        new["metadata"]["finalizers"] = json!(["example.com/x"]);
        new["metadata"]["ownerReferences"] = json!([{ "apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u" }]);
        new["spec"] = if kind.kind == "Pod" { old["spec"].clone() } else { json!({}) };
        let status = format!("{path}/status?dryRun=All");
        let (code, real) = server.send("PUT", &status, Some(&new), "application/json").await?;
        if code == 409 {
            continue;
        }
        builtin::default(kind, &mut new);
        builtin::prepare_status_update(kind, &mut new, &old);
        let (ours, real) = (normalized(new), normalized(real));
        let same = ours == real;
        return Ok(if same { vec![] } else { vec![format!("status of {}:\n  ours {ours}\n  real {real}", kind.kind)] });
    }
}

/// Statuses that pods and nodes can have, for the words in their tables.
fn statuses() -> Vec<Value> {
    let container = |state: Value| {
        json!({ "name": "a", "image": "i", "imageID": "", "ready": false, "restartCount": 2, "state": state,
        "lastState": { "terminated": { "exitCode": 1, "finishedAt": "2026-01-02T03:04:05Z" } } })
    };
    let running = json!({ "name": "a", "image": "i", "imageID": "", "ready": true, "restartCount": 0,
        "state": { "running": { "startedAt": "2026-01-02T03:04:05Z" } } });
    vec![
        json!({ "phase": "Running", "podIP": "10.1.2.3", "podIPs": [{ "ip": "10.1.2.3" }], "containerStatuses": [running] }),
        json!({ "phase": "Pending", "containerStatuses": [container(json!({ "waiting": { "reason": "CrashLoopBackOff" } }))] }),
        json!({ "phase": "Failed", "containerStatuses": [container(json!({ "terminated": { "exitCode": 3 } }))] }),
        json!({ "phase": "Failed", "containerStatuses": [container(json!({ "terminated": { "exitCode": 137, "signal": 9 } }))] }),
        json!({ "phase": "Succeeded", "containerStatuses": [container(json!({ "terminated": { "exitCode": 0, "reason": "Completed" } }))] }),
        json!({ "phase": "Failed", "reason": "Evicted" }),
        json!({ "phase": "Pending", "initContainerStatuses": [container(json!({ "waiting": { "reason": "PodInitializing" } }))] }),
        json!({ "phase": "Pending", "initContainerStatuses": [container(json!({ "terminated": { "exitCode": 1, "reason": "Error" } }))] }),
    ]
}

async fn fill_tables(server: &Server) -> anyhow::Result<()> {
    for (name, object) in manifests()? {
        let kind = kind_of(&object)?;
        server.send("POST", &collection(kind), Some(&object), "application/json").await.with_context(|| name)?;
    }
    for (index, status) in statuses().into_iter().enumerate() {
        let pods = "/api/v1/namespaces/default/pods";
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": format!("state-{index}") },
            "spec": {
                "containers": [{ "name": "a", "image": "i" }, { "name": "b", "image": "i" }],
                "initContainers": [{ "name": "a2", "image": "i" }],
                "readinessGates": [{ "conditionType": "example.com/x" }],
            },
        });
        server.send("POST", pods, Some(&pod), "application/json").await?;
        let patch = json!({ "status": status });
        server.send("PATCH", &format!("{pods}/state-{index}/status"), Some(&patch), "application/json").await?;
    }
    let node = json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }], "addresses": [{ "type": "InternalIP", "address": "10.1.1.1" }] } });
    server.send("PATCH", "/api/v1/nodes/rich/status", Some(&node), "application/json").await?;
    Ok(())
}

async fn compare_tables(server: &Server) -> anyhow::Result<Vec<String>> {
    fill_tables(server).await?;
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let mut differences = Vec::new();
    for kind in builtin::table().iter().filter(|kind| kind.verbs.contains(&"list")) {
        let path = format!("{}/{}?includeObject=Object", group_path(kind), kind.plural);
        let (_, table) = server.send("GET", &path, None, accept).await?;
        let now = OffsetDateTime::now_utc();
        let shape =
            |name: &str, type_: &str, format: &str, priority: u64| format!("{name}|{type_}|{format}|{priority}");
        let ours: Vec<String> = builtin::columns(kind)
            .iter()
            .map(|column| shape(column.name, column.type_, column.format, column.priority.into()))
            .collect();
        let text = |column: &Value, name: &str| column[name].as_str().unwrap_or_default().to_owned();
        let definitions = table["columnDefinitions"].as_array().context("no columns")?;
        let real: Vec<String> = definitions
            .iter()
            .map(|column| {
                let priority = column["priority"].as_u64().unwrap_or_default();
                shape(&text(column, "name"), &text(column, "type"), &text(column, "format"), priority)
            })
            .collect();
        if ours != real {
            differences.push(format!("columns of {}: {ours:?}, really {real:?}", kind.kind));
        }
        for row in table["rows"].as_array().into_iter().flatten() {
            let real = row["cells"].as_array().cloned().unwrap_or_default();
            // A second may pass between the server's clock and ours.
            let mut ours = Vec::new();
            let same = [0, 1, 2].into_iter().any(|late| {
                ours = builtin::row(kind, &row["object"], now - time::Duration::seconds(late));
                ours == real
            });
            if !same {
                differences.push(format!(
                    "row of {} {}: {ours:?}, really {real:?}",
                    kind.kind, row["object"]["metadata"]["name"]
                ));
            }
        }
    }
    Ok(differences)
}
