use serde_json::{Value, json};

use super::*;

struct Objects(Vec<Value>);

impl NodeObjects for Objects {
    fn any_pod(&self, node: &str, namespace: Option<&str>, fits: &mut dyn FnMut(&Value) -> bool) -> bool {
        let is_there = |pod: &&Value| namespace.is_none_or(|namespace| pod["metadata"]["namespace"] == namespace);
        self.0.iter().filter(|pod| pod["spec"]["nodeName"] == node).filter(is_there).any(fits)
    }

    fn volume_of_claim(&self, namespace: &str, claim: &str) -> Option<String> {
        Some(format!("pv-{namespace}-{claim}"))
    }
}

fn objects() -> Objects {
    let pod = json!({
        "metadata": { "name": "p", "namespace": "default" },
        "spec": {
            "nodeName": "n1",
            "serviceAccountName": "web",
            "imagePullSecrets": [{ "name": "pull" }],
            "initContainers": [{ "envFrom": [{ "secretRef": { "name": "whole" } }, { "configMapRef": { "name": "cm-whole" } }] }],
            "containers": [{ "env": [
                { "valueFrom": { "secretKeyRef": { "name": "key" } } },
                { "valueFrom": { "configMapKeyRef": { "name": "cm-key" } } },
            ] }],
            "volumes": [
                { "name": "a", "secret": { "secretName": "volume" } },
                { "name": "b", "configMap": { "name": "cm-volume" } },
                { "name": "c", "projected": { "sources": [{ "secret": { "name": "part" } }, { "configMap": { "name": "cm-part" } }] } },
                { "name": "d", "persistentVolumeClaim": { "claimName": "claim" } },
                { "name": "e", "ephemeral": {} },
                { "name": "f", "csi": { "nodePublishSecretRef": { "name": "driver" } } },
            ],
        },
    });
    Objects(vec![pod, json!({ "metadata": "odd", "spec": { "nodeName": "n1", "volumes": 7, "containers": [null] } })])
}

fn ask(verb: &str, resource: &str, namespace: &str, name: &str) -> ResourceAction {
    let (group, resource) = resource.split_once(':').unwrap_or(("", resource));
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    ResourceAction {
        verb: verb.into(),
        group: group.into(),
        resource: resource.into(),
        subresource: subresource.into(),
        namespace: namespace.into(),
        name: name.into(),
        field_selector: Vec::new(),
    }
}

fn decide(user: &str, action: ResourceAction) -> Decision {
    let objects = objects();
    NodeAuthorizer::new(&objects).decide(&User::new(user, &["system:nodes"]), &Action::Resource(action))
}

#[test]
fn a_node_reads_what_its_pods_need() {
    for secret in ["pull", "whole", "key", "volume", "part", "driver"] {
        assert!(decide("system:node:n1", ask("get", "secrets", "default", secret)).is_allowed(), "{secret}");
        assert!(!decide("system:node:n2", ask("get", "secrets", "default", secret)).is_allowed(), "{secret}");
        assert!(!decide("system:node:n1", ask("get", "secrets", "other", secret)).is_allowed(), "{secret}");
        assert!(!decide("system:node:n1", ask("get", "configmaps", "default", secret)).is_allowed(), "{secret}");
    }
    for map in ["cm-whole", "cm-key", "cm-volume", "cm-part"] {
        assert!(decide("system:node:n1", ask("watch", "configmaps", "default", map)).is_allowed(), "{map}");
    }
    for (resource, namespace, name) in [
        ("persistentvolumeclaims", "default", "claim"),
        ("persistentvolumeclaims", "default", "p-e"),
        ("persistentvolumes", "", "pv-default-claim"),
        ("serviceaccounts", "default", "web"),
        ("pods", "default", "p"),
    ] {
        assert!(decide("system:node:n1", ask("get", resource, namespace, name)).is_allowed(), "{resource} {name}");
        assert!(!decide("system:node:n2", ask("get", resource, namespace, name)).is_allowed(), "{resource} {name}");
    }
    assert!(decide("system:node:n1", ask("create", "serviceaccounts/token", "default", "web")).is_allowed());
    assert!(!decide("system:node:n1", ask("create", "serviceaccounts/token", "default", "default")).is_allowed());
}

#[test]
fn a_node_writes_only_its_own() {
    for (verb, resource, namespace, name, allowed) in [
        ("create", "nodes", "", "", true),
        ("patch", "nodes/status", "", "n1", true),
        ("patch", "nodes/status", "", "n2", false),
        ("update", "nodes", "", "n2", false),
        ("delete", "nodes", "", "n1", false),
        ("patch", "pods/status", "default", "p", true),
        ("patch", "pods/status", "default", "q", false),
        ("delete", "pods", "default", "p", true),
        ("create", "pods", "default", "", false),
        ("update", "coordination.k8s.io:leases", "kube-node-lease", "n1", true),
        ("update", "coordination.k8s.io:leases", "kube-node-lease", "n2", false),
        ("update", "coordination.k8s.io:leases", "default", "n1", false),
        ("create", "events", "default", "", true),
        ("delete", "apps:deployments", "default", "x", false),
        ("update", "secrets", "default", "pull", false),
        ("list", "secrets", "default", "", false),
    ] {
        let decision = decide("system:node:n1", ask(verb, resource, namespace, name));
        assert_eq!(decision.is_allowed(), allowed, "{verb} {resource} {name}: {decision:?}");
    }
}

#[test]
fn pods_are_listed_by_node() {
    let mut list = ask("list", "pods", "", "");
    assert_eq!(
        decide("system:node:n1", list.clone()).reason(),
        "can only list/watch pods with spec.nodeName field selector"
    );
    list.field_selector = vec![("spec.nodeName".into(), "n1".into())];
    assert!(decide("system:node:n1", list.clone()).is_allowed());
    assert!(!decide("system:node:n2", list).is_allowed());
}

#[test]
fn only_nodes_are_nodes() {
    let objects = objects();
    let authorizer = NodeAuthorizer::new(&objects);
    let action = Action::Resource(ask("get", "secrets", "default", "key"));
    assert_eq!(authorizer.decide(&User::new("system:node:n1", &[]), &action), Decision::NoOpinion(String::new()));
    assert_eq!(
        authorizer.decide(&User::new("system:node:", &["system:nodes"]), &action).reason(),
        "unknown node for user \"system:node:\""
    );
}
