//! The objects of the race.

use serde_json::{Value, json};

use super::{Place, WRITER};

/// The annotation that carries the generation of a template.
pub(super) const GENERATION: &str = "race/generation";

/// What pods read from their live mount.
#[derive(Debug, Clone)]
pub(super) struct Orders {
    pub(super) generation: i64,
    /// Pods up to this generation may become ready.
    pub(super) go: i64,
    /// The pod whose container has to end, once.
    pub(super) die: String,
}

/// What a pod is made of.
#[derive(Debug)]
pub(super) struct Template {
    pub(super) generation: i64,
    /// Whether the pod is told its own generation.
    pub(super) frozen: bool,
}

/// A namespace whose pods may do everything, and their program.
pub(super) fn surroundings(namespace: &str) -> [Value; 3] {
    let rights = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"});
    [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "race", "namespace": namespace}, "roleRef": rights,
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}]}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "writer", "namespace": namespace},
            "data": {"writer.py": WRITER}}),
    ]
}

pub(super) fn orders(namespace: &str, orders: &Orders) -> Value {
    let Orders { generation, go, die } = orders;
    let text = json!({"generation": generation, "go": go, "die": die}).to_string();
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "orders", "namespace": namespace},
        "data": {"orders": text}})
}

pub(super) fn deployment(namespace: &str, place: &Place, template: &Template) -> Value {
    let Template { generation, frozen } = template;
    let field = |path: String| json!({"fieldRef": {"apiVersion": "v1", "fieldPath": path}});
    let mut env = vec![
        json!({"name": "API", "value": place.server}),
        json!({"name": "POD", "valueFrom": field("metadata.name".to_owned())}),
    ];
    if *frozen {
        env.push(json!({"name": "GENERATION", "valueFrom": field(format!("metadata.annotations['{GENERATION}']"))}));
    }
    let container = json!({
        "name": "writer", "image": place.image, "imagePullPolicy": "IfNotPresent", "env": env,
        "command": ["python3", "/etc/writer/writer.py", generation.to_string()],
        "readinessProbe": {"exec": {"command": ["test", "-e", "/state/ready"]}, "periodSeconds": 1},
        "volumeMounts": [{"name": "writer", "mountPath": "/etc/writer"}, {"name": "orders", "mountPath": "/etc/race"},
            {"name": "state", "mountPath": "/state"}],
    });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "race", "namespace": namespace},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "race"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {
                "metadata": {"labels": {"app": "race"}, "annotations": {GENERATION: generation.to_string()}},
                "spec": {
                    "terminationGracePeriodSeconds": 1, "hostNetwork": place.host_network, "containers": [container],
                    "volumes": [{"name": "writer", "configMap": {"name": "writer"}},
                        {"name": "orders", "configMap": {"name": "orders"}}, {"name": "state", "emptyDir": {}}],
                },
            },
        },
    })
}
