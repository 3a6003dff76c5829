use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use skep_kube::auth::impersonation::impersonate;
use skep_kube::auth::rbac::{EscalationCheck, Rbac};
use skep_kube::auth::reviews::self_subject_review;
use skep_kube::auth::{Authorizers, User};

use crate::server::{RBAC, Server, ask};

const GROUP: &str = "rbac.authorization.k8s.io";

fn rule(verbs: &[&str], groups: &[&str], resources: &[&str]) -> Value {
    json!({ "verbs": verbs, "apiGroups": groups, "resources": resources })
}

fn named(namespace: Option<&str>, kind: &str, name: &str) -> Value {
    let mut document = json!({ "apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": { "name": name } });
    if let Some(namespace) = namespace {
        document["metadata"]["namespace"] = namespace.into();
    }
    document
}

fn role(namespace: Option<&str>, name: &str, rules: &[Value]) -> Value {
    let mut document = named(namespace, if namespace.is_some() { "Role" } else { "ClusterRole" }, name);
    document["rules"] = rules.into();
    document
}

fn binding(namespace: Option<&str>, name: &str, kind: &str, role: &str, user: &str) -> Value {
    let of = if namespace.is_some() { "RoleBinding" } else { "ClusterRoleBinding" };
    let mut document = named(namespace, of, name);
    document["roleRef"] = json!({ "apiGroup": GROUP, "kind": kind, "name": role });
    document["subjects"] = json!([{ "apiGroup": GROUP, "kind": "User", "name": user }]);
    document
}

pub(crate) async fn escalation_is_refused_equally(server: &Server) -> anyhow::Result<()> {
    let default = Some("default");
    let public = Some("kube-public");
    server
        .create_roles(&[
            role(None, "w-writer", &[
                rule(&["create"], &[GROUP], &["roles", "rolebindings", "clusterroles", "clusterrolebindings"]),
                rule(&["get"], &["a"], &["*/scale"]),
                rule(&["get", "list"], &[""], &["pods"]),
                json!({ "verbs": ["get"], "nonResourceURLs": ["/w/*"] }),
            ]),
            binding(None, "w-writer", "ClusterRole", "w-writer", "will"),
            binding(None, "w-writer-gone", "ClusterRole", "w-writer", "gwen"),
            binding(None, "w-gone", "ClusterRole", "w-nope", "gwen"),
            binding(default, "w-gone", "Role", "w-nope-role", "gwen"),
            role(public, "w-lift", &[
                rule(&["escalate"], &[GROUP], &["roles"]),
                json!({ "verbs": ["bind"], "apiGroups": [GROUP], "resources": ["clusterroles"], "resourceNames": ["edit"] }),
            ]),
            binding(public, "w-lift", "Role", "w-lift", "will"),
        ])
        .await?;
    let all = rule(&["*"], &["*"], &["*"]);
    let mut with_names = rule(&["get", "list"], &["a", "b"], &["x/scale", "y"]);
    with_names["resourceNames"] = json!(["n1", "n2"]);
    let mut aggregating = role(None, "w-agg", &[]);
    aggregating["aggregationRule"] = json!({ "clusterRoleSelectors": [{ "matchLabels": { "a": "b" } }] });
    let writes = [
        role(None, "w-1", &[rule(&["get"], &["a"], &["x/scale", "*/scale"])]),
        role(None, "w-2", &[with_names]),
        role(None, "w-3", std::slice::from_ref(&all)),
        role(None, "w-4", &[json!({ "verbs": ["get", "post"], "nonResourceURLs": ["/w/x", "/x", "/w*"] })]),
        role(None, "w-5", &[rule(&["*"], &["a"], &["*"]), rule(&["get"], &["a"], &["*", "z"])]),
        role(default, "w-6", &[rule(&["get", "watch"], &["", "apps"], &["pods", "pods/log"])]),
        role(default, "w-7", &[rule(&["get"], &[""], &["pods"])]),
        role(public, "w-8", &[all]),
        binding(None, "w-9", "ClusterRole", "cluster-admin", "x"),
        binding(None, "w-10", "ClusterRole", "w-no-such", "x"),
        binding(default, "w-11", "ClusterRole", "view", "x"),
        binding(default, "w-12", "Role", "w-no-such", "x"),
        binding(public, "w-13", "ClusterRole", "edit", "x"),
        binding(public, "w-14", "ClusterRole", "view", "x"),
        binding(default, "w-15", "ClusterRole", "w-writer", "x"),
        aggregating,
    ];
    let roles = server.roles().await?;
    let rbac = Rbac(&roles);
    let check = EscalationCheck { source: &roles, authorizer: &rbac };
    for user in ["will", "gwen"] {
        let client = server.control_plane.client(user, Some("w-group")).await?;
        let me = User::new(user, &["w-group", "system:authenticated"]);
        for write in &writes {
            let plural = format!("{}s", write["kind"].as_str().unwrap_or_default().to_lowercase());
            let path = match write["metadata"]["namespace"].as_str() {
                Some(namespace) => format!("{RBAC}/namespaces/{namespace}/{plural}?dryRun=All"),
                None => format!("{RBAC}/{plural}?dryRun=All"),
            };
            let (code, theirs) = ask(&client, "POST", &path, &[], Some(write)).await?;
            match check.check(&me, None, write) {
                Ok(()) => assert_eq!(code, 201, "{user} {write} {theirs}"),
                Err(error) => assert_eq!((error.reason.code(), error.status()), (code, theirs), "{user} {write}"),
            }
        }
    }
    Ok(())
}

pub(crate) async fn impersonation_is_judged_equally(server: &Server) -> anyhow::Result<()> {
    let mut zed = rule(&["impersonate"], &[""], &["users"]);
    zed["resourceNames"] = json!(["zed", "system:anonymous", "system:node:x", "system:serviceaccount:bad"]);
    let mut extra = rule(&["impersonate"], &["authentication.k8s.io"], &["userextras/scopes", "uids"]);
    extra["resourceNames"] = json!(["v", "u"]);
    let mut groups = rule(&["impersonate"], &[""], &["groups"]);
    groups["resourceNames"] = json!(["g", "system:authenticated"]);
    let review = rule(&["create"], &["authentication.k8s.io"], &["selfsubjectreviews"]);
    server
        .create_roles(&[
            role(None, "i-actor", &[zed, extra, groups]),
            binding(None, "i-actor", "ClusterRole", "i-actor", "ivy"),
            role(Some("default"), "i-accounts", &[rule(&["impersonate"], &[""], &["serviceaccounts"])]),
            binding(Some("default"), "i-accounts", "Role", "i-accounts", "ivy"),
            // Whoever one becomes must be able to ask who that is.
            role(None, "i-review", &[review]),
            binding(None, "i-review", "ClusterRole", "i-review", "system:anonymous"),
        ])
        .await?;
    let roles = server.roles().await?;
    let rbac = Rbac(&roles);
    let all = Authorizers(vec![&rbac]);
    let ivy = server.control_plane.client("ivy", None).await?;
    let me = User::new("ivy", &["system:authenticated"]);
    let cases: &[&[(&str, &str)]] = &[
        &[("impersonate-user", "zed")],
        &[("impersonate-user", "zed"), ("impersonate-group", "g")],
        &[("impersonate-user", "zed"), ("impersonate-group", "g"), ("impersonate-group", "system:authenticated")],
        &[("impersonate-user", "zed"), ("impersonate-group", "h")],
        &[("impersonate-user", "zed"), ("impersonate-group", "system:masters")],
        &[("impersonate-user", "zed"), ("impersonate-uid", "u")],
        &[("impersonate-user", "zed"), ("impersonate-uid", "w")],
        &[("impersonate-user", "zed"), ("impersonate-extra-scopes", "v")],
        &[("impersonate-user", "zed"), ("impersonate-extra-scopes", "w")],
        &[("impersonate-user", "zed"), ("impersonate-extra-acme%2fscopes", "v")],
        &[("impersonate-user", "ned")],
        &[("impersonate-user", "system:anonymous")],
        &[("impersonate-user", "system:node:x")],
        &[("impersonate-user", "system:serviceaccount:bad")],
        &[("impersonate-user", "system:serviceaccount:default:x")],
        &[("impersonate-user", "system:serviceaccount:default:x"), ("impersonate-group", "g")],
        &[("impersonate-user", "system:serviceaccount:kube-public:x")],
        &[("impersonate-group", "g")],
        &[("impersonate-uid", "u")],
        &[
            ("impersonate-extra-b", "1"),
            ("impersonate-extra-a", "2"),
            ("impersonate-group", "g"),
            ("impersonate-group", "h"),
        ],
    ];
    let asked = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
    for case in cases {
        let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let (code, mut theirs) = ask(&ivy, "POST", path, case, Some(&asked)).await?;
        let mut headers = HeaderMap::new();
        for (name, value) in *case {
            headers.append(HeaderName::try_from(*name)?, HeaderValue::from_str(value)?);
        }
        let ours = match impersonate(&me, &headers, &all) {
            Ok(user) => (201, self_subject_review(&user.unwrap_or_default(), 0)),
            Err(error) => (error.reason.code(), error.status()),
        };
        if code == 201 {
            theirs["metadata"]["creationTimestamp"] = "1970-01-01T00:00:00Z".into();
        }
        assert_eq!(ours, (code, theirs), "{case:?}");
    }
    Ok(())
}
