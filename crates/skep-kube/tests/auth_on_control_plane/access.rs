use anyhow::Context as _;
use serde_json::{Value, json};
use skep_kube::auth::action::forbidden;
use skep_kube::auth::node::NodeAuthorizer;
use skep_kube::auth::rbac::{Rbac, bootstrap};
use skep_kube::auth::reviews::{
    local_subject_access_review, self_subject_access_review, self_subject_rules_review, subject_access_review,
};
use skep_kube::auth::{Action, Authorizer as _, Authorizers, PathAction, ResourceAction, User};
use skep_kube::status::ApiError;

use crate::server::{Answer, RBAC, Server, ask};

const REVIEWS: &str = "/apis/authorization.k8s.io/v1";

fn answered(result: Result<Value, ApiError>) -> Answer {
    match result {
        Ok(document) => (201, document),
        Err(error) => (error.reason.code(), error.status()),
    }
}

pub(crate) async fn default_roles_are_equal(server: &Server) -> anyhow::Result<()> {
    let documents = bootstrap::cluster_roles().into_iter().map(|role| ("clusterroles", role));
    let bindings = bootstrap::cluster_role_bindings().into_iter().map(|binding| ("clusterrolebindings", binding));
    for (plural, ours) in documents.chain(bindings) {
        let name = ours["metadata"]["name"].as_str().context("name")?;
        let path = format!("{RBAC}/{plural}/{name}");
        let mut theirs = server.get(&path).await?;
        // Aggregated roles are filled by a controller a little after the start.
        for _ in 0..100 {
            if theirs.get("rules") == ours.get("rules") {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            theirs = server.get(&path).await?;
        }
        let metadata = theirs["metadata"].as_object_mut().context("metadata")?;
        metadata.retain(|field, _| matches!(field.as_str(), "name" | "labels" | "annotations"));
        assert_eq!(ours, theirs, "{name}");
    }
    Ok(())
}

fn roles_and_bindings() -> Vec<Value> {
    let group = "rbac.authorization.k8s.io";
    let role = |namespace: Option<&str>, name: &str, rules: Value| {
        let kind = if namespace.is_some() { "Role" } else { "ClusterRole" };
        let mut metadata = json!({ "name": name });
        if let Some(namespace) = namespace {
            metadata["namespace"] = namespace.into();
        }
        json!({ "kind": kind, "metadata": metadata, "rules": rules })
    };
    let binding = |namespace: Option<&str>, name: &str, (kind, role): (&str, &str), subjects: Value| {
        let of = if namespace.is_some() { "RoleBinding" } else { "ClusterRoleBinding" };
        let mut metadata = json!({ "name": name });
        if let Some(namespace) = namespace {
            metadata["namespace"] = namespace.into();
        }
        let reference = json!({ "apiGroup": group, "kind": kind, "name": role });
        json!({ "kind": of, "metadata": metadata, "roleRef": reference, "subjects": subjects })
    };
    let user = |name: &str| json!({ "kind": "User", "apiGroup": group, "name": name });
    let members = |name: &str| json!({ "kind": "Group", "apiGroup": group, "name": name });
    let account =
        |namespace: &str, name: &str| json!({ "kind": "ServiceAccount", "namespace": namespace, "name": name });
    vec![
        role(
            None,
            "t-scales",
            json!([
                { "verbs": ["get", "update"], "apiGroups": ["apps"], "resources": ["*/scale", "deployments"] },
                { "verbs": ["*"], "apiGroups": ["*"], "resources": ["secrets"], "resourceNames": ["one", "two"] },
            ]),
        ),
        role(None, "t-paths", json!([{ "verbs": ["get"], "nonResourceURLs": ["/t", "/t/*", "/prefix*"] }])),
        role(
            Some("default"),
            "t-local",
            json!([
                { "verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "pods/log"] },
                { "verbs": ["*"], "apiGroups": ["example.com"], "resources": ["*"] },
            ]),
        ),
        binding(None, "t-scales", ("ClusterRole", "t-scales"), json!([user("sam"), members("scalers")])),
        binding(None, "t-paths", ("ClusterRole", "t-paths"), json!([members("walkers")])),
        binding(Some("default"), "t-local", ("Role", "t-local"), json!([user("lou"), account("kube-public", "robot")])),
        binding(Some("default"), "t-view", ("ClusterRole", "view"), json!([user("vic"), members("viewers")])),
        binding(Some("kube-public"), "t-edit", ("ClusterRole", "edit"), json!([user("vic")])),
        binding(None, "t-gone", ("ClusterRole", "t-no-such"), json!([user("gus")])),
        binding(Some("default"), "t-gone", ("Role", "t-no-such-role"), json!([user("gus")])),
    ]
}

/// User, groups, verb, group, resource/subresource, namespace, name.
type Question =
    (&'static str, &'static [&'static str], &'static str, &'static str, &'static str, &'static str, &'static str);

const ALL: &[&str] = &["system:authenticated"];
const NODES: &[&str] = &["system:nodes"];

const QUESTIONS: &[Question] = &[
    ("sam", &[], "get", "apps", "deployments", "", ""),
    ("sam", &[], "get", "apps", "deployments/scale", "default", "x"),
    ("sam", &[], "update", "apps", "statefulsets/scale", "other", "x"),
    ("sam", &[], "get", "apps", "statefulsets", "other", "x"),
    ("sam", &[], "get", "apps", "scale", "other", "x"),
    ("sam", &[], "get", "apps", "deployments/status", "other", "x"),
    ("sam", &[], "patch", "apps", "deployments/scale", "default", "x"),
    ("sam", &[], "delete", "", "secrets", "default", "one"),
    ("sam", &[], "delete", "any", "secrets", "", "two"),
    ("sam", &[], "delete", "", "secrets", "default", "three"),
    ("sam", &[], "list", "", "secrets", "default", ""),
    ("sam", &[], "*", "*", "*", "", ""),
    ("pat", &["scalers"], "get", "apps", "deployments/scale", "default", "x"),
    ("pat", &["scaler"], "get", "apps", "deployments/scale", "default", "x"),
    ("lou", &[], "get", "", "pods", "default", "p"),
    ("lou", &[], "get", "", "pods/log", "default", "p"),
    ("lou", &[], "get", "", "pods/exec", "default", "p"),
    ("lou", &[], "get", "", "pods", "kube-public", "p"),
    ("lou", &[], "get", "", "pods", "", ""),
    ("lou", &[], "frob", "example.com", "things/parts", "default", "p"),
    ("system:serviceaccount:kube-public:robot", &[], "list", "", "pods", "default", ""),
    ("system:serviceaccount:default:robot", &[], "list", "", "pods", "default", ""),
    ("vic", ALL, "list", "", "pods", "default", ""),
    ("vic", ALL, "get", "", "secrets", "default", "s"),
    ("vic", ALL, "get", "", "secrets", "kube-public", "s"),
    ("vic", ALL, "create", "apps", "deployments", "kube-public", ""),
    ("vic", ALL, "create", "apps", "deployments", "default", ""),
    ("vic", ALL, "create", "authorization.k8s.io", "selfsubjectaccessreviews", "", ""),
    ("vic", ALL, "create", "authentication.k8s.io", "tokenreviews", "", ""),
    ("ann", &["viewers"], "watch", "apps", "replicasets", "default", ""),
    ("gus", &[], "get", "", "pods", "default", "p"),
    ("gus", &[], "get", "", "pods", "kube-public", "p"),
    ("gus", ALL, "create", "authentication.k8s.io", "selfsubjectreviews", "", ""),
    ("root", &["system:masters"], "any", "thing", "what/ever", "x", "y"),
    ("system:node:t-node", NODES, "get", "", "secrets", "default", "t-secret"),
    ("system:node:t-node", NODES, "get", "", "secrets", "default", "t-other"),
    ("system:node:t-node", NODES, "get", "", "secrets", "kube-public", "t-secret"),
    ("system:node:t-node", NODES, "list", "", "secrets", "default", ""),
    ("system:node:t-node", NODES, "update", "", "secrets", "default", "t-secret"),
    ("system:node:t-node", NODES, "get", "", "secrets", "", "t-secret"),
    ("system:node:t-node", NODES, "get", "", "configmaps", "default", "t-map"),
    ("system:node:t-node", NODES, "get", "", "configmaps", "default", "kube-root-ca.crt"),
    ("system:node:t-node", NODES, "get", "", "configmaps/status", "default", "t-map"),
    ("system:node:t-node", NODES, "get", "", "pods", "default", "t-pod"),
    ("system:node:t-node", NODES, "get", "", "pods", "default", "t-no-pod"),
    ("system:node:t-node", NODES, "get", "", "pods/log", "default", "t-pod"),
    ("system:node:t-node", NODES, "list", "", "pods", "", ""),
    ("system:node:t-node", NODES, "patch", "", "pods/status", "default", "t-pod"),
    ("system:node:t-node", NODES, "create", "", "pods/eviction", "default", "t-pod"),
    ("system:node:t-node", NODES, "delete", "", "pods", "default", "t-pod"),
    ("system:node:t-node", NODES, "get", "", "nodes", "", "t-node"),
    ("system:node:t-node", NODES, "get", "", "nodes", "", "t-other"),
    ("system:node:t-node", NODES, "list", "", "nodes", "", ""),
    ("system:node:t-node", NODES, "patch", "", "nodes/status", "", "t-node"),
    ("system:node:t-node", NODES, "get", "", "nodes/status", "", "t-node"),
    ("system:node:t-node", NODES, "delete", "", "nodes", "", "t-node"),
    ("system:node:t-node", NODES, "create", "", "serviceaccounts/token", "default", "default"),
    ("system:node:t-node", NODES, "create", "", "serviceaccounts/token", "default", "t-other"),
    ("system:node:t-node", NODES, "create", "", "serviceaccounts/token", "default", ""),
    ("system:node:t-node", NODES, "list", "", "serviceaccounts", "default", ""),
    ("system:node:t-node", NODES, "get", "coordination.k8s.io", "leases", "kube-node-lease", "t-node"),
    ("system:node:t-node", NODES, "get", "coordination.k8s.io", "leases", "kube-node-lease", "t-other"),
    ("system:node:t-node", NODES, "create", "coordination.k8s.io", "leases", "kube-node-lease", ""),
    ("system:node:t-node", NODES, "list", "coordination.k8s.io", "leases", "kube-node-lease", ""),
    ("system:node:t-node", NODES, "get", "coordination.k8s.io", "leases", "default", "t-node"),
    ("system:node:t-node", NODES, "get", "", "persistentvolumeclaims", "default", "c"),
    ("system:node:t-node", NODES, "get", "", "persistentvolumeclaims/status", "default", "c"),
    ("system:node:t-node", NODES, "list", "", "persistentvolumes", "", ""),
    ("system:node:t-node", NODES, "list", "", "services", "", ""),
    ("system:node:t-node", NODES, "create", "", "events", "default", ""),
    ("system:node:t-node", NODES, "delete", "apps", "deployments", "default", "x"),
    ("system:node:t-node", &[], "get", "", "pods", "default", "t-pod"),
    ("system:node:", NODES, "get", "", "pods", "default", "t-pod"),
];

const PATHS: &[(&str, &[&str], &str, &str)] = &[
    ("wal", &["walkers"], "get", "/t"),
    ("wal", &["walkers"], "get", "/t/"),
    ("wal", &["walkers"], "get", "/t/a/b"),
    ("wal", &["walkers"], "get", "/ta"),
    ("wal", &["walkers"], "get", "/prefixed/x"),
    ("wal", &["walkers"], "post", "/t"),
    ("wal", ALL, "get", "/apis/apps/v1"),
    ("wal", ALL, "get", "/metrics"),
    ("system:serviceaccount:a:b", &["system:serviceaccounts"], "get", "/openid/v1/jwks"),
    ("root", &["system:masters"], "get", "/anything"),
    ("mon", &["system:monitoring"], "get", "/metrics"),
];

/// A node with a pod that uses a secret and a config map.
async fn create_node_and_pod(server: &Server) -> anyhow::Result<()> {
    server
        .create("/api/v1/nodes", &json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "t-node" } }))
        .await?;
    let environment = json!([{ "secretRef": { "name": "t-secret" } }, { "configMapRef": { "name": "t-map" } }]);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "t-pod" },
        "spec": { "nodeName": "t-node", "containers": [{ "name": "c", "image": "x", "envFrom": environment }] },
    });
    server.create("/api/v1/namespaces/default/pods", &pod).await?;
    Ok(())
}

pub(crate) async fn decisions_are_equal(server: &Server) -> anyhow::Result<()> {
    create_node_and_pod(server).await?;
    server.create_roles(&roles_and_bindings()).await?;
    let roles = server.roles().await?;
    let objects = server.objects().await?;
    let (node, rbac) = (NodeAuthorizer::new(&objects), Rbac(&roles));
    let authorizers = Authorizers(vec![&node, &rbac]);
    let mut specs = Vec::new();
    for (user, groups, verb, group, resource, namespace, name) in QUESTIONS {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        specs.push(json!({ "user": user, "groups": groups, "resourceAttributes": {
            "verb": verb, "group": group, "resource": resource, "subresource": subresource, "namespace": namespace,
            "name": name,
        } }));
    }
    for (user, groups, verb, path) in PATHS {
        specs.push(json!({ "user": user, "groups": groups, "nonResourceAttributes": { "verb": verb, "path": path } }));
    }
    for selector in [
        json!({ "rawSelector": "spec.nodeName=t-node" }),
        json!({ "rawSelector": "spec.nodeName!=t-node" }),
        json!({ "requirements": [{ "key": "spec.nodeName", "operator": "In", "values": ["t-node"] }] }),
        json!({ "requirements": [{ "key": "spec.nodeName", "operator": "In", "values": ["t-other"] }] }),
    ] {
        let attributes = json!({ "verb": "list", "resource": "pods", "fieldSelector": selector });
        specs.push(json!({ "user": "system:node:t-node", "groups": NODES, "resourceAttributes": attributes }));
    }
    let mut allowed = 0;
    for spec in &specs {
        let review = json!({ "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec });
        let theirs = server.post(&format!("{REVIEWS}/subjectaccessreviews"), &review).await?;
        let ours = answered(subject_access_review(&review, &authorizers));
        assert_eq!(ours, theirs, "{spec}");
        allowed += usize::from(theirs.1["status"]["allowed"] == true);
    }
    // A comparison of refusals only would prove little.
    assert!(allowed > 30 && specs.len() - allowed > 30, "{allowed} of {}", specs.len());
    Ok(())
}

pub(crate) async fn odd_reviews_are_answered_equally(server: &Server) -> anyhow::Result<()> {
    let roles = server.roles().await?;
    let rbac = Rbac(&roles);
    let pods = |namespace: &str| json!({ "verb": "get", "resource": "pods", "namespace": namespace });
    let selected = |selector: Value| json!({ "user": "x", "resourceAttributes": { "verb": "list", "resource": "pods", "fieldSelector": selector } });
    let specs = [
        json!({}),
        json!({ "user": "x" }),
        json!({ "resourceAttributes": pods("") }),
        json!({ "user": "x", "resourceAttributes": {}, "nonResourceAttributes": {} }),
        json!({ "user": "x", "nonResourceAttributes": { "path": "/x", "verb": "get" } }),
        json!({ "user": "x", "resourceAttributes": pods("default"), "extra": { "a": ["b"] }, "uid": "u" }),
        json!({ "user": "x", "resourceAttributes": pods("other") }),
        json!({ "groups": ["g"], "resourceAttributes": pods("default") }),
        selected(json!({})),
        selected(json!({ "rawSelector": "a=b", "requirements": [{ "key": "a", "operator": "Exists" }] })),
        selected(json!({ "requirements": [{ "key": "", "operator": "In" }] })),
        selected(json!({ "requirements": [{ "key": "a", "operator": "DoesNotExist", "values": ["b"] }] })),
    ];
    let me = User::new("admin", &["system:masters", "system:authenticated"]);
    let all = Authorizers(vec![&rbac]);
    for spec in specs {
        let review = |kind: &str| json!({ "apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec });
        let asked = review("SubjectAccessReview");
        let theirs = server.post(&format!("{REVIEWS}/subjectaccessreviews"), &asked).await?;
        assert_eq!(answered(subject_access_review(&asked, &all)), theirs, "{asked}");
        let asked = review("LocalSubjectAccessReview");
        let theirs = server.post(&format!("{REVIEWS}/namespaces/default/localsubjectaccessreviews"), &asked).await?;
        assert_eq!(answered(local_subject_access_review(&asked, "default", &all)), theirs, "{asked}");
        if spec.get("user").is_none() && spec.get("groups").is_none() {
            let asked = review("SelfSubjectAccessReview");
            let theirs = server.post(&format!("{REVIEWS}/selfsubjectaccessreviews"), &asked).await?;
            assert_eq!(answered(self_subject_access_review(&asked, &me, &all)), theirs, "{asked}");
        }
    }
    Ok(())
}

pub(crate) async fn rules_are_listed_equally(server: &Server) -> anyhow::Result<()> {
    let roles = server.roles().await?;
    let objects = server.objects().await?;
    let (node, rbac) = (NodeAuthorizer::new(&objects), Rbac(&roles));
    let all = Authorizers(vec![&node, &rbac]);
    let path = format!("{REVIEWS}/selfsubjectrulesreviews");
    for (user, groups) in [
        ("vic", vec![]),
        ("sam", vec!["walkers", "viewers"]),
        ("gus", vec![]),
        ("system:node:t-node", vec!["system:nodes"]),
    ] {
        for spec in [json!({ "namespace": "default" }), json!({})] {
            let review =
                json!({ "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": spec });
            let mut headers = vec![("Impersonate-User", user)];
            headers.extend(groups.iter().map(|group| ("Impersonate-Group", *group)));
            let theirs = ask(&server.admin, "POST", &path, &headers, Some(&review)).await?;
            let mut membership = groups.clone();
            membership.push("system:authenticated");
            let ours = answered(self_subject_rules_review(&review, &User::new(user, &membership), &all));
            assert_eq!(in_order(ours), in_order(theirs), "{user}");
        }
    }
    Ok(())
}

/// The real server lists rules in an order of its own each time.
fn in_order((code, mut document): Answer) -> Answer {
    for list in ["resourceRules", "nonResourceRules"] {
        if let Some(rules) = document.pointer_mut(&format!("/status/{list}")).and_then(Value::as_array_mut) {
            rules.sort_by_key(ToString::to_string);
        }
    }
    (code, document)
}

pub(crate) async fn refusals_are_worded_equally(server: &Server) -> anyhow::Result<()> {
    let stranger = server.control_plane.client("str\"anger", None).await?;
    let gus = server.control_plane.client("gus", None).await?;
    let roles = server.roles().await?;
    let rbac = Rbac(&roles);
    for (method, path, verb, group, resource, namespace, name) in [
        ("GET", "/api/v1/pods", "list", "", "pods", "", ""),
        ("GET", "/api/v1/namespaces/default/pods", "list", "", "pods", "default", ""),
        ("GET", "/api/v1/namespaces/default/pods/x", "get", "", "pods", "default", "x"),
        ("GET", "/api/v1/namespaces/default/pods?watch=1", "watch", "", "pods", "default", ""),
        (
            "GET",
            "/api/v1/namespaces/default/pods?fieldSelector=metadata.name%3Dfoo",
            "list",
            "",
            "pods",
            "default",
            "foo",
        ),
        ("DELETE", "/api/v1/namespaces/default/pods", "deletecollection", "", "pods", "default", ""),
        ("DELETE", "/api/v1/namespaces/default/pods/x", "delete", "", "pods", "default", "x"),
        (
            "PATCH",
            "/apis/apps/v1/namespaces/default/deployments/x/scale",
            "patch",
            "apps",
            "deployments/scale",
            "default",
            "x",
        ),
        ("PUT", "/api/v1/namespaces/default/pods/x/status", "update", "", "pods/status", "default", "x"),
        ("POST", "/api/v1/namespaces/default/pods", "create", "", "pods", "default", ""),
        ("POST", "/api/v1/namespaces/default/pods/x/exec", "create", "", "pods/exec", "default", "x"),
        ("GET", "/api/v1/namespaces/default", "get", "", "namespaces", "default", "default"),
        ("GET", "/api/v1/namespaces", "list", "", "namespaces", "", ""),
        ("GET", "/api/v1/nodes/n", "get", "", "nodes", "", "n"),
        ("GET", "/apis/no.such/v1/things", "list", "no.such", "things", "", ""),
        ("GET", "/apis/no.such/v1/namespaces/default/things/a", "get", "no.such", "things", "default", "a"),
    ] {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let action = Action::Resource(ResourceAction {
            verb: verb.into(),
            group: group.into(),
            resource: resource.into(),
            subresource: subresource.into(),
            namespace: namespace.into(),
            name: name.into(),
            field_selector: Vec::new(),
        });
        for (client, user) in [(&stranger, "str\"anger"), (&gus, "gus")] {
            let theirs = ask(client, method, path, &[], Some(&json!({}))).await?;
            let ours = rbac.check(&User::new(user, ALL), &action).err().context("allowed")?;
            assert_eq!((ours.reason.code(), ours.status()), theirs, "{method} {path}");
        }
    }
    for (method, path, seen) in
        [("GET", "/nope", "/nope"), ("POST", "/no/%22pe%0a%C3%A9%01", "/no/\"pe\né\u{1}"), ("GET", "/", "/")]
    {
        let theirs = ask(&stranger, method, path, &[], Some(&json!({}))).await?;
        let action = Action::Path(PathAction { verb: method.to_lowercase(), path: seen.into() });
        let ours = forbidden(&User::new("str\"anger", ALL), &action, "");
        assert_eq!((ours.reason.code(), ours.status()), theirs, "{method} {path}");
    }
    Ok(())
}
