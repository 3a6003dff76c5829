//! The objects to patch and the patches to try on them, the hostile ones included.

use serde_json::{Value, json};
use skep_kube::patch::PatchKind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    ConfigMap,
    Deployment,
    Service,
    Pod,
}

#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) target: Target,
    pub(crate) kind: PatchKind,
    pub(crate) document: Vec<u8>,
}

impl Target {
    pub(crate) const ALL: [Self; 4] = [Self::ConfigMap, Self::Deployment, Self::Service, Self::Pod];

    pub(crate) fn collection(self) -> &'static str {
        match self {
            Self::ConfigMap => "/api/v1/namespaces/default/configmaps",
            Self::Deployment => "/apis/apps/v1/namespaces/default/deployments",
            Self::Service => "/api/v1/namespaces/default/services",
            Self::Pod => "/api/v1/namespaces/default/pods",
        }
    }

    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::ConfigMap => "/api/v1/namespaces/default/configmaps/cm",
            Self::Deployment => "/apis/apps/v1/namespaces/default/deployments/web",
            Self::Service => "/api/v1/namespaces/default/services/svc",
            Self::Pod => "/api/v1/namespaces/default/pods/pod",
        }
    }

    /// Where its schema is in the OpenAPI documents.
    pub(crate) fn definition(self) -> (&'static str, &'static str) {
        match self {
            Self::ConfigMap => ("api/v1", "io.k8s.api.core.v1.ConfigMap"),
            Self::Deployment => ("apis/apps/v1", "io.k8s.api.apps.v1.Deployment"),
            Self::Service => ("api/v1", "io.k8s.api.core.v1.Service"),
            Self::Pod => ("api/v1", "io.k8s.api.core.v1.Pod"),
        }
    }

    pub(crate) fn object(self) -> Value {
        match self {
            Self::ConfigMap => json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "cm" }, "data": { "a": "1", "b": "2" },
            }),
            Self::Deployment => json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": { "name": "web", "labels": { "a": "b" }, "finalizers": ["x.io/a", "x.io/b"] },
                "spec": {
                    "replicas": 0, "selector": { "matchLabels": { "app": "web" } },
                    "template": { "metadata": { "labels": { "app": "web" } }, "spec": {
                        "containers": [
                            { "name": "one", "image": "i1", "args": ["a", "b"],
                              "env": [{ "name": "A", "value": "1" }, { "name": "B", "value": "2" }],
                              "ports": [{ "containerPort": 80, "name": "h" }, { "containerPort": 53, "protocol": "UDP" }] },
                            { "name": "two", "image": "i2" },
                        ],
                        "volumes": [{ "name": "v", "emptyDir": {} }],
                        "tolerations": [{ "key": "k", "operator": "Exists" }],
                        "imagePullSecrets": [{ "name": "s1" }],
                    } },
                },
            }),
            Self::Service => json!({
                "apiVersion": "v1", "kind": "Service", "metadata": { "name": "svc" },
                "spec": { "selector": { "a": "b" }, "ports": [{ "name": "a", "port": 80 }, { "name": "b", "port": 81 }] },
            }),
            Self::Pod => json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "pod", "labels": { "a": "b" } },
                "spec": { "containers": [{ "name": "c", "image": "i" }] },
            }),
        }
    }
}

/// All cases.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = json_patches();
    cases.extend(merge_patches());
    cases.extend(strategic_patches());
    cases
}

fn case(target: Target, kind: PatchKind, document: impl Into<Vec<u8>>) -> Case {
    Case { target, kind, document: document.into() }
}

/// Texts that are no patches of any kind, or odd ones.
const ODD_DOCUMENTS: &[&[u8]] = &[
    b"",
    b"  ",
    b"null",
    b"[]",
    b"{}",
    b"5",
    b"\"x\"",
    b"true",
    b"nonsense",
    b"{\"a\":1} x",
    b"\xff\xfe",
    b"[",
    b"{",
    b"[nul",
    b"[tru]",
    b"[1 2]",
    b"[\"a",
    b"[\"\\uzz\"]",
    b"{\"a\"}",
    b"{\"a\":}",
    b"[,]",
    b"]",
    b"[fals9]",
    b"\"\\",
    b"[-]",
    b"[1.]",
    b"[1e]",
    b"[01]",
    b"[\"\x01\"]",
    b"[\"\\q\"]",
    b"{a}",
    b"{'a'}",
    b"{\"a\":1,}",
    b"{\"metadata\":{\"annotations\":{\"a\":\"\\ud800\"}}}",
    b"{\"metadata\":{\"annotations\":{\"a\":\"\xff\xfe\"}}}",
];

fn json_patches() -> Vec<Case> {
    let arguments = "/spec/template/spec/containers/0/args";
    let mut cases: Vec<Case> =
        ODD_DOCUMENTS.iter().map(|document| case(Target::ConfigMap, PatchKind::Json, *document)).collect();
    cases.push(case(Target::ConfigMap, PatchKind::Json, "[".repeat(20_000)));
    for document in include_str!("json_patches.txt").lines().filter(|line| !line.is_empty()) {
        let (target, document) = match document.strip_prefix("cm ") {
            Some(document) => (Target::ConfigMap, document),
            None => (Target::Deployment, document),
        };
        cases.push(case(target, PatchKind::Json, document.replace("ARGS", arguments)));
    }
    for count in [10_000, 10_001] {
        let operations = vec![json!({ "op": "test", "path": "/data/a", "value": "1" }); count];
        cases.push(case(Target::ConfigMap, PatchKind::Json, Value::Array(operations).to_string()));
    }
    for count in [3000, 3200] {
        let mut operations = vec![json!({ "op": "add", "path": "/data/x", "value": "x".repeat(1000) })];
        operations.extend(
            (0..count)
                .map(|number| json!({ "op": "copy", "from": "/data/x", "path": format!("/data/y{}", number % 9) })),
        );
        cases.push(case(Target::ConfigMap, PatchKind::Json, Value::Array(operations).to_string()));
    }
    let mut doubling = vec![json!({ "op": "add", "path": "/data/x", "value": { "y": "x" } })];
    doubling.extend(vec![json!({ "op": "copy", "from": "/data", "path": "/data/x/z" }); 40]);
    cases.push(case(Target::ConfigMap, PatchKind::Json, Value::Array(doubling).to_string()));
    cases
}

fn merge_patches() -> Vec<Case> {
    let mut cases: Vec<Case> =
        ODD_DOCUMENTS.iter().map(|document| case(Target::ConfigMap, PatchKind::Merge, *document)).collect();
    cases.push(case(Target::ConfigMap, PatchKind::Merge, "{\"data\":".repeat(20_000)));
    for line in include_str!("merge_patches.txt").lines().filter(|line| !line.is_empty()) {
        cases.push(targeted(line, PatchKind::Merge));
    }
    cases
}

fn strategic_patches() -> Vec<Case> {
    let mut cases: Vec<Case> =
        ODD_DOCUMENTS.iter().map(|document| case(Target::ConfigMap, PatchKind::Strategic, *document)).collect();
    cases.push(case(Target::ConfigMap, PatchKind::Strategic, "[".repeat(20_000)));
    for line in include_str!("strategic_patches.txt").lines().filter(|line| !line.is_empty()) {
        cases.push(targeted(line, PatchKind::Strategic));
    }
    cases
}

/// A line names its target first: `cm`, `svc`, `pod` or `web`; `tpl` is what is inside the template of the latter, `con`
/// its list of containers.
fn targeted(line: &str, kind: PatchKind) -> Case {
    let (target, document) = line.split_once(' ').unwrap();
    let template = |inner: String| format!("{{\"spec\":{{\"template\":{{\"spec\":{inner}}}}}}}");
    match target {
        "cm" => case(Target::ConfigMap, kind, document),
        "svc" => case(Target::Service, kind, document),
        "pod" => case(Target::Pod, kind, document),
        "tpl" => case(Target::Deployment, kind, template(document.to_owned())),
        "con" => case(Target::Deployment, kind, template(format!("{{\"containers\":{document}}}"))),
        _ => case(Target::Deployment, kind, document),
    }
}
