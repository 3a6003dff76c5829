use proptest::prelude::*;
use serde_json::{Value, json};

use super::{EscalationCheck, Rbac, RoleIndex, Rule, bootstrap};
use crate::auth::action::{Action, PathAction, ResourceAction};
use crate::auth::authorize::{Authorizer, Authorizers, Decision};
use crate::auth::user::User;

fn role(namespace: &str, name: &str, rules: &Value) -> Value {
    let kind = if namespace.is_empty() { "ClusterRole" } else { "Role" };
    json!({ "kind": kind, "metadata": { "name": name, "namespace": namespace }, "rules": rules })
}

fn binding(namespace: &str, name: &str, role: (&str, &str), subjects: &Value) -> Value {
    let kind = if namespace.is_empty() { "ClusterRoleBinding" } else { "RoleBinding" };
    json!({
        "kind": kind,
        "metadata": { "name": name, "namespace": namespace },
        "roleRef": { "kind": role.0, "name": role.1 },
        "subjects": subjects,
    })
}

fn on(verb: &str, group: &str, resource: &str, namespace: &str, name: &str) -> Action {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    Action::Resource(ResourceAction {
        verb: verb.into(),
        group: group.into(),
        resource: resource.into(),
        subresource: subresource.into(),
        namespace: namespace.into(),
        name: name.into(),
        field_selector: Vec::new(),
    })
}

fn path(verb: &str, path: &str) -> Action {
    Action::Path(PathAction { verb: verb.into(), path: path.into() })
}

#[test]
fn rules_match_as_documented() {
    let rule = Rule::read(&json!({
        "verbs": ["get", "list"], "apiGroups": ["", "apps"], "resources": ["pods", "*/scale", "pods/log"],
    }));
    assert!(rule.allows(&on("get", "", "pods", "x", "y")));
    assert!(rule.allows(&on("get", "apps", "deployments/scale", "x", "y")));
    assert!(rule.allows(&on("list", "", "pods/log", "", "")));
    assert!(!rule.allows(&on("get", "", "pods/exec", "x", "y")));
    assert!(!rule.allows(&on("watch", "", "pods", "x", "y")));
    assert!(!rule.allows(&on("get", "batch", "pods", "x", "y")));
    assert!(!rule.allows(&on("get", "apps", "scale", "x", "y")));
    assert!(!rule.allows(&path("get", "/pods")));

    let named = Rule::read(&json!({
        "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "resourceNames": ["a"],
    }));
    assert!(named.allows(&on("delete", "q", "r/s", "", "a")));
    assert!(!named.allows(&on("list", "q", "r", "", "")));

    let paths = Rule::read(&json!({ "verbs": ["get"], "nonResourceURLs": ["/a", "/b/*", "/c*"] }));
    for (wanted, allowed) in
        [("/a", true), ("/a/", false), ("/b", false), ("/b/", true), ("/b/c/d", true), ("/cx", true)]
    {
        assert_eq!(paths.allows(&path("get", wanted)), allowed, "{wanted}");
    }
    assert!(!paths.allows(&path("post", "/a")));
}

#[test]
fn a_rule_for_some_names_does_not_cover_one_for_all() {
    let pods = |names: &[&str]| {
        Rule::read(&json!({ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": names }))
    };
    assert!(pods(&[]).covers(&pods(&["a"])));
    assert!(pods(&["a", "b"]).covers(&pods(&["b"])));
    assert!(!pods(&["a"]).covers(&pods(&["b"])));
    assert!(!pods(&["a"]).covers(&pods(&[])));
}

#[test]
fn malformed_documents_grant_nothing() {
    for document in [
        json!(null),
        json!({}),
        json!({ "kind": "ClusterRole" }),
        json!({ "kind": "ClusterRole", "metadata": { "name": "x" }, "rules": "all" }),
        json!({ "kind": "ClusterRole", "metadata": { "name": "x" }, "rules": [{ "verbs": "*", "resources": [1] }, 7] }),
        json!({ "kind": "ClusterRoleBinding", "metadata": 7, "roleRef": { "kind": "X" }, "subjects": {} }),
        json!({ "kind": "RoleBinding", "metadata": { "name": "b" }, "roleRef": { "kind": "Role", "name": "x" },
            "subjects": [{ "kind": "Robot", "name": "a" }, { "kind": "User" }, 5, null] }),
    ] {
        let mut index = RoleIndex::from_documents([&document]);
        assert!(!Rbac(&index).decide(&User::new("a", &[]), &on("get", "", "pods", "", "")).is_allowed());
        index.remove(&document);
    }
}

#[test]
fn the_index_follows_events() {
    let user = User::new("ann", &["dev"]);
    let action = on("get", "", "pods", "web", "x");
    let read = json!([{ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"] }]);
    let mut index = RoleIndex::default();
    let decide = |index: &RoleIndex| Rbac(index).decide(&user, &action);

    let bound = binding("web", "b", ("Role", "r"), &json!([{ "kind": "Group", "name": "dev" }]));
    index.apply(&bound);
    assert_eq!(decide(&index), Decision::NoOpinion(r#"RBAC: role.rbac.authorization.k8s.io "r" not found"#.into()));
    let reader = role("web", "r", &read);
    index.apply(&reader);
    assert_eq!(
        decide(&index),
        Decision::Allowed(r#"RBAC: allowed by RoleBinding "b/web" of Role "r" to Group "dev""#.into())
    );
    index.apply(&role("web", "r", &json!([])));
    assert!(!decide(&index).is_allowed());
    index.apply(&reader);
    index.apply(&binding("web", "b", ("Role", "r"), &json!([{ "kind": "User", "name": "bob" }])));
    assert!(!decide(&index).is_allowed());
    index.apply(&bound);
    assert!(decide(&index).is_allowed());
    index.remove(&bound);
    assert_eq!(decide(&index), Decision::NoOpinion(String::new()));
    // A role of the same name elsewhere is another role.
    index.apply(&binding("other", "b", ("Role", "r"), &json!([{ "kind": "User", "name": "ann" }])));
    assert!(!decide(&index).is_allowed());
}

#[test]
fn masters_need_no_role() {
    let index = RoleIndex::default();
    let rbac = Rbac(&index);
    let all = Authorizers(vec![&rbac]);
    assert_eq!(
        all.decide(&User::new("root", &["system:masters"]), &path("get", "/x")),
        Decision::Allowed(String::new())
    );
    assert_eq!(all.decide(&User::new("root", &[]), &path("get", "/x")), Decision::NoOpinion(String::new()));
}

#[test]
fn the_default_roles_do_what_they_are_for() {
    let documents: Vec<Value> =
        bootstrap::cluster_roles().into_iter().chain(bootstrap::cluster_role_bindings()).collect();
    let mut index = RoleIndex::from_documents(&documents);
    index.apply(&binding("web", "v", ("ClusterRole", "view"), &json!([{ "kind": "User", "name": "vic" }])));
    index.apply(&binding("web", "e", ("ClusterRole", "edit"), &json!([{ "kind": "User", "name": "eve" }])));
    let rbac = Rbac(&index);
    let may = |user: &User, action: Action| rbac.decide(user, &action).is_allowed();
    let vic = User::new("vic", &["system:authenticated"]);
    let eve = User::new("eve", &["system:authenticated"]);
    assert!(may(&vic, on("list", "", "pods", "web", "")));
    assert!(!may(&vic, on("list", "", "pods", "other", "")));
    assert!(!may(&vic, on("get", "", "secrets", "web", "s")));
    assert!(may(&eve, on("get", "", "secrets", "web", "s")));
    assert!(may(&eve, on("create", "", "serviceaccounts/token", "web", "s")));
    assert!(!may(&eve, on("create", "rbac.authorization.k8s.io", "roles", "web", "s")));
    assert!(may(&vic, path("get", "/apis/apps/v1")));
    assert!(may(&User::anonymous(), path("get", "/version")));
    assert!(!may(&User::anonymous(), path("get", "/apis")));
    assert!(may(&vic, on("create", "authorization.k8s.io", "selfsubjectaccessreviews", "", "")));
}

mod escalation {
    use super::*;

    fn index() -> RoleIndex {
        let rules = json!([
            { "verbs": ["create"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"] },
            { "verbs": ["get"], "apiGroups": ["a"], "resources": ["*/scale"] },
            { "verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"] },
        ]);
        RoleIndex::from_documents(&[
            role("", "maker", &rules),
            role("", "pods", &json!([{ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"] }])),
            role("", "all", &json!([{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }])),
            binding("", "maker", ("ClusterRole", "maker"), &json!([{ "kind": "User", "name": "gail" }])),
            binding("", "gone", ("ClusterRole", "gone"), &json!([{ "kind": "User", "name": "gail" }])),
            role(
                "lift",
                "lift",
                &json!([
                    { "verbs": ["escalate"], "apiGroups": ["*"], "resources": ["roles"] },
                    { "verbs": ["bind"], "apiGroups": ["*"], "resources": ["clusterroles"], "resourceNames": ["all"] },
                ]),
            ),
            binding("lift", "lift", ("Role", "lift"), &json!([{ "kind": "User", "name": "gail" }])),
        ])
    }

    fn check(new: &Value) -> Result<(), String> {
        let index = index();
        let authorizer = Rbac(&index);
        let check = EscalationCheck { source: &index, authorizer: &authorizer };
        check.check(&User::new("gail", &["g1", "system:authenticated"]), None, new).map_err(|error| error.message)
    }

    #[test]
    fn what_is_held_may_be_given() {
        let rules = json!([{ "verbs": ["get"], "apiGroups": ["a"], "resources": ["x/scale", "*/scale"] }]);
        assert_eq!(check(&role("", "w2", &rules)), Ok(()));
        assert_eq!(check(&binding("", "b", ("ClusterRole", "pods"), &json!([]))), Ok(()));
    }

    #[test]
    fn what_is_missing_is_listed() {
        let rules = json!([
            { "verbs": ["get", "list"], "apiGroups": ["a"], "resources": ["y", "x/scale"], "resourceNames": ["n1", "n2"] },
            { "verbs": ["get", "post"], "nonResourceURLs": ["/x"] },
        ]);
        assert_eq!(
            check(&role("", "w1", &rules)).unwrap_err(),
            "clusterroles.rbac.authorization.k8s.io \"w1\" is forbidden: user \"gail\" (groups=[\"g1\" \
             \"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n\
             {APIGroups:[\"a\"], Resources:[\"x/scale\"], ResourceNames:[\"n1\"], Verbs:[\"list\"]}\n\
             {APIGroups:[\"a\"], Resources:[\"x/scale\"], ResourceNames:[\"n2\"], Verbs:[\"list\"]}\n\
             {APIGroups:[\"a\"], Resources:[\"y\"], ResourceNames:[\"n1\"], Verbs:[\"get\" \"list\"]}\n\
             {APIGroups:[\"a\"], Resources:[\"y\"], ResourceNames:[\"n2\"], Verbs:[\"get\" \"list\"]}\n\
             {NonResourceURLs:[\"/x\"], Verbs:[\"get\"]}\n\
             {NonResourceURLs:[\"/x\"], Verbs:[\"post\"]}\
             ; resolution errors: [clusterroles.rbac.authorization.k8s.io \"gone\" not found]"
        );
    }

    #[test]
    fn two_verbs_lift_the_rule() {
        let all = json!([{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }]);
        assert!(check(&role("", "r", &all)).is_err());
        assert!(check(&role("other", "r", &all)).is_err());
        assert_eq!(check(&role("lift", "r", &all)), Ok(()));
        assert_eq!(check(&binding("lift", "b", ("ClusterRole", "all"), &json!([]))), Ok(()));
        assert!(check(&binding("other", "b", ("ClusterRole", "all"), &json!([]))).is_err());
        assert_eq!(
            check(&binding("other", "b", ("ClusterRole", "nope"), &json!([]))).unwrap_err(),
            r#"rolebindings.rbac.authorization.k8s.io "nope" not found"#
        );
    }

    #[test]
    fn aggregation_needs_everything() {
        let mut aggregating = role("", "agg", &json!([]));
        aggregating["aggregationRule"] = json!({ "clusterRoleSelectors": [] });
        assert_eq!(
            check(&aggregating).unwrap_err(),
            "clusterroles.rbac.authorization.k8s.io \"agg\" is forbidden: must have cluster-admin privileges to use the \
             aggregationRule"
        );
    }

    #[test]
    fn a_huge_rule_is_judged_quickly() {
        let many = |prefix: &str| (0..2_000).map(|number| format!("{prefix}{number}")).collect::<Vec<_>>();
        let rules =
            json!([{ "verbs": many("v"), "apiGroups": many("g"), "resources": many("r"), "resourceNames": many("n") }]);
        assert!(check(&role("", "r", &rules)).is_err());
    }

    #[test]
    fn the_collector_may_let_go() {
        let all = json!([{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }]);
        let new = role("", "r", &all);
        let mut old = new.clone();
        old["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
        let index = index();
        let authorizer = Rbac(&index);
        let check = EscalationCheck { source: &index, authorizer: &authorizer };
        let collector = User::new("collector", &[]);
        assert!(check.check(&collector, Some(&old), &new).is_ok());
        old["metadata"]["labels"] = json!({ "a": "b" });
        assert!(check.check(&collector, Some(&old), &new).is_err());
    }
}

/// A model that is as slow and as plain as can be: no index, no early exit.
mod model {
    use super::{Action, User, Value};

    pub(super) fn allows(documents: &[Value], user: &User, action: &Action) -> bool {
        let namespace = match action {
            Action::Resource(action) => action.namespace.as_str(),
            Action::Path(_) => "",
        };
        documents.iter().any(|binding| {
            let of_cluster = binding["kind"] == "ClusterRoleBinding";
            let here = binding["kind"] == "RoleBinding"
                && !namespace.is_empty()
                && binding["metadata"]["namespace"] == namespace;
            (of_cluster || here)
                && binding["subjects"].as_array().unwrap().iter().any(|subject| concerns(subject, user))
                && documents.iter().any(|role| {
                    role["kind"] == binding["roleRef"]["kind"]
                        && role["metadata"]["name"] == binding["roleRef"]["name"]
                        && (role["kind"] == "ClusterRole"
                            || (here && role["metadata"]["namespace"] == binding["metadata"]["namespace"]))
                        && role["rules"].as_array().unwrap().iter().any(|rule| matches(rule, action))
                })
        })
    }

    fn concerns(subject: &Value, user: &User) -> bool {
        let name = subject["name"].as_str().unwrap();
        match subject["kind"].as_str().unwrap() {
            "User" => user.name == name,
            "Group" => user.groups.iter().any(|group| group == name),
            _ => user.name == format!("system:serviceaccount:{}:{name}", subject["namespace"].as_str().unwrap()),
        }
    }

    fn any(rule: &Value, field: &str, wanted: &[String]) -> bool {
        rule[field].as_array().into_iter().flatten().any(|item| wanted.iter().any(|wanted| item == wanted.as_str()))
    }

    fn matches(rule: &Value, action: &Action) -> bool {
        let star = "*".to_owned();
        match action {
            Action::Resource(action) => {
                let full = action.full_resource();
                let mut resources = vec![star.clone(), full];
                if !action.subresource.is_empty() {
                    resources.push(format!("*/{}", action.subresource));
                }
                any(rule, "verbs", &[star.clone(), action.verb.clone()])
                    && any(rule, "apiGroups", &[star, action.group.clone()])
                    && any(rule, "resources", &resources)
                    && (rule["resourceNames"].as_array().is_none_or(Vec::is_empty)
                        || any(rule, "resourceNames", std::slice::from_ref(&action.name)))
            }
            Action::Path(action) => {
                let mut urls = vec![action.path.clone()];
                urls.extend((0..=action.path.len()).map(|end| format!("{}*", &action.path[..end])));
                any(rule, "verbs", &[star, action.verb.clone()]) && any(rule, "nonResourceURLs", &urls)
            }
        }
    }
}

fn pick(items: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::sample::select(items).prop_map(str::to_owned)
}

fn some(items: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(pick(items), 0..3)
}

const VERBS: &[&str] = &["get", "list", "*"];
const GROUPS: &[&str] = &["", "apps", "*"];
const RESOURCES: &[&str] = &["pods", "pods/log", "*/scale", "deployments/scale", "deployments", "*"];
const NAMESPACES: &[&str] = &["one", "two"];
const URLS: &[&str] = &["/a", "/a/*", "/a/b", "*", "/ab*"];

fn any_rule() -> impl Strategy<Value = Value> {
    (some(VERBS), some(GROUPS), some(RESOURCES), some(&["x", "y"]), some(URLS), any::<bool>()).prop_map(
        |(verbs, groups, resources, names, urls, on_paths)| {
            if on_paths {
                json!({ "verbs": verbs, "nonResourceURLs": urls })
            } else {
                json!({ "verbs": verbs, "apiGroups": groups, "resources": resources, "resourceNames": names })
            }
        },
    )
}

fn any_role() -> impl Strategy<Value = Value> {
    (pick(&["", "one", "two"]), pick(&["r", "s"]), prop::collection::vec(any_rule(), 0..3))
        .prop_map(|(namespace, name, rules)| role(&namespace, &name, &json!(rules)))
}

fn any_subject() -> impl Strategy<Value = Value> {
    prop_oneof![
        pick(&["ann", "bob"]).prop_map(|name| json!({ "kind": "User", "name": name })),
        pick(&["dev", "ops"]).prop_map(|name| json!({ "kind": "Group", "name": name })),
        pick(NAMESPACES)
            .prop_map(|namespace| json!({ "kind": "ServiceAccount", "name": "web", "namespace": namespace })),
    ]
}

fn any_binding() -> impl Strategy<Value = Value> {
    let subjects = prop::collection::vec(any_subject(), 0..3);
    (pick(&["", "one", "two"]), pick(&["b", "c", "d"]), any::<bool>(), pick(&["r", "s"]), subjects).prop_map(
        |(namespace, name, cluster, role, subjects)| {
            let kind = if cluster || namespace.is_empty() { "ClusterRole" } else { "Role" };
            binding(&namespace, &name, (kind, &role), &json!(subjects))
        },
    )
}

fn any_action() -> impl Strategy<Value = Action> {
    let resource = pick(&["pods", "pods/log", "pods/scale", "deployments", "deployments/scale"]);
    prop_oneof![
        (pick(&["get", "list"]), pick(&["", "apps"]), resource, pick(&["", "one", "two"]), pick(&["", "x", "y"]))
            .prop_map(|(verb, group, resource, namespace, name)| on(&verb, &group, &resource, &namespace, &name)),
        (pick(&["get", "list"]), pick(&["/a", "/a/", "/a/b", "/abc", "/"])).prop_map(|(verb, url)| path(&verb, &url)),
    ]
}

fn any_user() -> impl Strategy<Value = User> {
    (pick(&["ann", "bob", "system:serviceaccount:one:web"]), some(&["dev", "ops"])).prop_map(|(name, groups)| {
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        User::new(name, &groups)
    })
}

/// Of documents with the same key only the last counts, as in a store.
fn latest(documents: Vec<Value>) -> Vec<Value> {
    let mut kept: Vec<Value> = Vec::new();
    for document in documents {
        kept.retain(|old| old["kind"] != document["kind"] || old["metadata"] != document["metadata"]);
        kept.push(document);
    }
    kept
}

proptest! {
    #[test]
    fn the_index_agrees_with_the_model(
        roles in prop::collection::vec(any_role(), 0..5),
        bindings in prop::collection::vec(any_binding(), 0..5),
        removed in prop::collection::vec(any_binding(), 0..2),
        cases in prop::collection::vec((any_user(), any_action()), 1..8),
    ) {
        let documents: Vec<Value> = roles.into_iter().chain(bindings).collect();
        let mut index = RoleIndex::from_documents(&documents);
        let mut kept = latest(documents);
        for gone in &removed {
            index.remove(gone);
            kept.retain(|old| old["kind"] != gone["kind"] || old["metadata"] != gone["metadata"]);
        }
        for (user, action) in cases {
            let decided = Rbac(&index).decide(&user, &action).is_allowed();
            prop_assert_eq!(decided, model::allows(&kept, &user, &action), "{:?} {:?} {:?}", kept, user, action);
        }
    }

    /// What a covering rule allows includes everything that the covered one does.
    #[test]
    fn covering_is_sound(wide in any_rule(), narrow in any_rule(), actions in prop::collection::vec(any_action(), 1..20)) {
        let (wide, narrow) = (Rule::read(&wide), Rule::read(&narrow));
        if wide.covers(&narrow) {
            for action in actions {
                prop_assert!(!narrow.allows(&action) || wide.allows(&action), "{wide:?} {narrow:?} {action:?}");
            }
        }
    }
}
