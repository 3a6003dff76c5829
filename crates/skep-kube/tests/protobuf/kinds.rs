//! Objects of every kind, alone, in lists and in watches.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use skep_kube::builtin::{self, Builtin};
use skep_kube::protobuf;

use crate::client::{Client, JSON, PROTOBUF};

fn path(kind: &Builtin) -> String {
    let root = if kind.group.is_empty() { "/api" } else { "/apis" };
    let namespace = if kind.namespaced { "/namespaces/default" } else { "" };
    format!("{root}/{}{namespace}/{}", kind.api_version(), kind.plural)
}

/// The manifests that a server takes.
fn manifests() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/builtin");
    let mut manifests: Vec<(String, Value)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), path))
        .filter(|(name, _)| !name.contains("wrong"))
        .map(|(name, path)| (name, serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()))
        .collect();
    manifests.sort_by(|left, right| left.0.cmp(&right.0));
    manifests
}

fn kind_of(manifest: &Value) -> &'static Builtin {
    let api_version = manifest["apiVersion"].as_str().unwrap();
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    builtin::find(group, version, manifest["kind"].as_str().unwrap()).unwrap()
}

/// Pods need an account, and no controller makes one.
pub(crate) async fn prepare(client: &Client) {
    let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "default" } });
    client.post("/api/v1/namespaces/default/serviceaccounts", JSON, &account).await;
}

/// Creates an object from every manifest, by rehearsals in both encodings and then in earnest.
pub(crate) async fn compare_objects(client: &Client) -> Vec<String> {
    let mut differences = Vec::new();
    let mut created = BTreeSet::new();
    for (name, manifest) in manifests() {
        let kind = kind_of(&manifest);
        let rehearsal = format!("{}?dryRun=All", path(kind));
        let by_json = client.post(&rehearsal, JSON, &manifest).await;
        let by_protobuf = client.post(&rehearsal, PROTOBUF, &manifest).await;
        let (json, protobuf) = (settled(&by_json.document()), settled(&by_protobuf.document()));
        // An empty list is no list in protobuf, and managedFields tell the two apart.
        let has_empty_list = manifest.to_string().contains("[]");
        if by_json.status != by_protobuf.status || json != protobuf && !has_empty_list {
            differences.push(format!("{name}: JSON makes {json}\n  protobuf makes {protobuf}"));
        }
        let answer = client.post(&path(kind), JSON, &manifest).await;
        // Some manifests are there to be refused, and some have the same name.
        if answer.status != 201 {
            continue;
        }
        created.insert(kind.plural);
        let object = format!("{}/{}", path(kind), answer.document()["metadata"]["name"].as_str().unwrap());
        differences.extend(compare(client, &object).await);
    }
    // Questions are asked, not kept.
    let kept = builtin::table().iter().filter(|kind| kind.verbs.contains(&"get"));
    let missing: Vec<&str> = kept.map(|kind| kind.plural).filter(|kind| !created.contains(kind)).collect();
    assert!(missing.is_empty(), "no object of {missing:?} was created");
    differences
}

/// Reads a document in both encodings.
async fn compare(client: &Client, path: &str) -> Vec<String> {
    let mut json = client.get(path, JSON).await.document();
    // A real server writes the status of a definition by itself.
    let message = loop {
        let message = client.get(path, PROTOBUF).await;
        let again = client.get(path, JSON).await.document();
        if again == json {
            break message;
        }
        json = again;
    };
    let mut differences = Vec::new();
    if message.content_type != PROTOBUF {
        return vec![format!("{path} comes as {}", message.content_type)];
    }
    let read = message.document();
    if read != without_inner_types(&json) {
        differences.push(format!("{path}: {json}\n  in protobuf {read}"));
    }
    let written = protobuf::encode(&json).unwrap();
    if !is_written_alike(&written, &message.body) {
        let (ours, theirs) = (hex::encode(&written), hex::encode(&message.body));
        differences.push(format!("{path} is written\n  {ours} by us\n  {theirs} by the server"));
    }
    if protobuf::encode_json(json.to_string().as_bytes()).unwrap() != written {
        differences.push(format!("{path} is written in another way as a document"));
    }
    differences
}

/// What differs from one creation to the next.
fn settled(object: &Value) -> Value {
    let mut object = without_inner_types(object);
    let told_by_clocks = ["/metadata/creationTimestamp", "/status/lastPhaseTransitionTime"];
    for pointer in ["/metadata/uid", "/metadata/name"].into_iter().chain(told_by_clocks) {
        if let Some(value) = object.pointer_mut(pointer) {
            *value = "settled".into();
        }
    }
    for entry in object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut).into_iter().flatten() {
        entry["time"] = "settled".into();
    }
    for pointer in ["/spec/clusterIP", "/spec/clusterIPs", "/spec/healthCheckNodePort"] {
        if let Some(value) = object.pointer_mut(pointer).filter(|value| **value != "None" && **value != json!(["None"]))
        {
            *value = "settled".into();
        }
    }
    for port in object.pointer_mut("/spec/ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if port.get("nodePort").is_some() {
            port["nodePort"] = "settled".into();
        }
    }
    without_random_names(&object)
}

/// The volume of a pod's token has a name of its own, which managedFields repeat.
fn without_random_names(object: &Value) -> Value {
    const PREFIX: &str = "kube-api-access-";
    const LETTERS: usize = 5;
    let text = object.to_string();
    let mut parts = text.split(PREFIX);
    let first = parts.next().unwrap_or_default().to_owned();
    let settled = parts.fold(first, |settled, part| settled + PREFIX + &part[LETTERS..]);
    serde_json::from_str(&settled).unwrap()
}

/// Messages do not say what an object in an object is.
fn without_inner_types(object: &Value) -> Value {
    let mut object = object.clone();
    for list in ["/items", "/spec/volumeClaimTemplates"] {
        for inner in object.pointer_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            *inner = without_inner_types(inner);
            inner.as_object_mut().unwrap().retain(|member, _| member != "apiVersion" && member != "kind");
        }
    }
    object
}

/// An event as a text that does not depend on the order of members.
fn told(kind: &Value, mut object: Value) -> String {
    object.sort_all_objects();
    format!("{kind} {object}")
}

/// JSON in a message may have its members in any order; everything else has one.
fn is_written_alike(left: &[u8], right: &[u8]) -> bool {
    let sorted = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        bytes.sort_unstable();
        bytes
    };
    sorted(left) == sorted(right)
}

/// Lists, lists of metadata, and watches of every kind.
pub(crate) async fn compare_collections(client: &Client) -> Vec<String> {
    let mut differences = Vec::new();
    for kind in builtin::table().iter().filter(|kind| kind.verbs.contains(&"list")) {
        let path = path(kind);
        differences.extend(compare(client, &path).await);
        let watch = format!("{path}?watch=true&timeoutSeconds=1&resourceVersion=0");
        let (json, message) = (client.get(&watch, JSON), client.get(&watch, PROTOBUF));
        let (json, message) = futures::join!(json, message);
        let by_json: BTreeSet<String> = serde_json::Deserializer::from_slice(&json.body)
            .into_iter::<Value>()
            .map(|event| event.unwrap())
            .map(|event| told(&event["type"], without_inner_types(&event["object"])))
            .collect();
        let by_protobuf = events(&message.body);
        if by_json != by_protobuf || by_json.is_empty() {
            differences.push(format!("watch of {path}: {by_json:?}\n  in protobuf {by_protobuf:?}"));
        }
        if message.content_type != "application/vnd.kubernetes.protobuf;stream=watch" {
            differences.push(format!("watch of {path} comes as {}", message.content_type));
        }
    }
    let metadata = "as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let secrets = "/api/v1/namespaces/default/secrets";
    let expected = without_inner_types(&client.get(secrets, &format!("{JSON};{metadata}")).await.document());
    let message = client.get(secrets, &format!("{PROTOBUF};{metadata}")).await;
    if message.document() != expected {
        differences.push(format!("metadata: {expected}\n  in protobuf {}", message.document()));
    }
    differences
}

/// The frames of a watch: a length of four bytes, and then an event whose object is in an envelope.
fn events(mut body: &[u8]) -> BTreeSet<String> {
    let mut events = BTreeSet::new();
    while let Some((length, rest)) = body.split_first_chunk::<4>() {
        let (frame, rest) = rest.split_at(u32::from_be_bytes(*length) as usize);
        body = rest;
        let type_length = usize::from(frame[1]);
        let type_ = std::str::from_utf8(&frame[2..2 + type_length]).unwrap();
        let start = frame.windows(4).position(|window| window == b"k8s\0").unwrap();
        let object = protobuf::decode(&frame[start..]).unwrap();
        let written = protobuf::watch_event(type_, &object).unwrap();
        assert!(is_written_alike(&written[4..], frame), "{type_} {object}");
        events.insert(told(&Value::from(type_), object));
    }
    events
}

/// Reviews and tokens, which are asked for and not kept.
pub(crate) async fn compare_questions(client: &Client) -> Vec<String> {
    let rbac = json!({ "verb": "get", "resource": "pods", "namespace": "default" });
    let authorization = "authorization.k8s.io/v1";
    let questions = [
        (
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            json!({ "apiVersion": authorization, "kind": "SelfSubjectAccessReview", "spec": { "resourceAttributes": rbac } }),
        ),
        (
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            json!({
                "apiVersion": authorization, "kind": "SubjectAccessReview",
                "spec": { "resourceAttributes": rbac, "user": "bee", "groups": ["hive"], "extra": { "a": ["b", "c"] } },
            }),
        ),
        (
            "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews",
            json!({
                "apiVersion": authorization, "kind": "LocalSubjectAccessReview", "metadata": { "namespace": "default" },
                "spec": { "resourceAttributes": rbac, "user": "bee" },
            }),
        ),
        (
            "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
            json!({ "apiVersion": authorization, "kind": "SelfSubjectRulesReview", "spec": { "namespace": "default" } }),
        ),
        (
            "/apis/authentication.k8s.io/v1/selfsubjectreviews",
            json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" }),
        ),
        (
            "/apis/authentication.k8s.io/v1/tokenreviews",
            json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": { "token": "no.such.token" } }),
        ),
        (
            "/api/v1/namespaces/default/serviceaccounts/default/token",
            json!({
                "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": { "expirationSeconds": 600 },
            }),
        ),
    ];
    let mut differences = Vec::new();
    for (path, question) in questions {
        let (json, message) = (client.post(path, JSON, &question).await, client.post(path, PROTOBUF, &question).await);
        assert_eq!(json.status, 201, "{path}: {}", json.document());
        let (mut by_json, mut by_protobuf) = (answered(&json.document()), answered(&message.document()));
        by_json["metadata"]["managedFields"].take();
        by_protobuf["metadata"]["managedFields"].take();
        if by_json != by_protobuf {
            differences.push(format!("{path}: {by_json}\n  in protobuf {by_protobuf}"));
        }
    }
    differences
}

/// Tokens and times are never the same, and rules come in any order.
fn answered(answer: &Value) -> Value {
    let mut answer = settled(answer);
    for pointer in ["/status/token", "/status/expirationTimestamp"] {
        if let Some(value) = answer.pointer_mut(pointer) {
            assert!(value.is_string());
            *value = "settled".into();
        }
    }
    for rules in ["/status/resourceRules", "/status/nonResourceRules"] {
        if let Some(rules) = answer.pointer_mut(rules).and_then(Value::as_array_mut) {
            rules.sort_by_key(ToString::to_string);
        }
    }
    answer
}
