//! What has to be in a cluster for the operator to run there, besides the CRDs.

pub mod rules;

use serde_json::{Value, json};
use skep_api::names::env;
use skep_api::names::labels::{TOOLHIVE, TRUE};
use skep_api::names::operator::{
    CONTAINER, DEFAULT_NAMESPACE, LEADER_ELECTION_ROLE, LEADER_ELECTION_ROLE_BINDING, MANAGER_ROLE,
    MANAGER_ROLE_BINDING, NAME,
};

use rules::Rule;

/// The image that the manifests name; `kustomize edit set image` puts another in its place.
pub const IMAGE: &str = "skep";
/// The role of what Skep needs beyond the manager role, and its binding.
const EXTRA_ROLE: &str = "toolhive-operator-extra-role";
const EXTRA_ROLE_BINDING: &str = "toolhive-operator-extra-rolebinding";

const RBAC: &str = "rbac.authorization.k8s.io/v1";
/// Where the environment of the operator is in its Deployment.
const VARIABLES: &str = "/spec/template/spec/containers/0/env";
/// Where the user of the operator's container is.
const RUN_AS_USER: &str = "/spec/template/spec/containers/0/securityContext/runAsUser";
const METRICS_PORT: u16 = 8080;
const HEALTH_PORT: u16 = 8081;

/// The manifests, by the name of their file.
pub fn files(version: &str) -> Vec<(&'static str, Vec<Value>)> {
    vec![
        (
            "namespace.yaml",
            vec![json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": DEFAULT_NAMESPACE}})],
        ),
        ("service-account.yaml", vec![service_account()]),
        ("manager-role.yaml", vec![cluster_role(MANAGER_ROLE, rules::MANAGER)]),
        ("manager-role-binding.yaml", vec![cluster_binding(MANAGER_ROLE_BINDING, MANAGER_ROLE)]),
        (
            "extra-role.yaml",
            vec![cluster_role(EXTRA_ROLE, rules::EXTRA), cluster_binding(EXTRA_ROLE_BINDING, EXTRA_ROLE)],
        ),
        ("leader-election.yaml", leader_election()),
        ("deployment.yaml", vec![deployment(version)]),
        ("network-policy.yaml", vec![network_policy()]),
    ]
}

/// The manifests of an operator that looks after its own namespace and has rights nowhere else, by the name of their file.
pub fn namespaced_files(version: &str) -> Vec<(&'static str, Vec<Value>)> {
    let mut operator = deployment(version);
    let own = json!({"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}});
    let variable = json!({"name": env::operator::WATCH_NAMESPACE, "valueFrom": own});
    if let Some(variables) = operator.pointer_mut(VARIABLES).and_then(Value::as_array_mut) {
        variables.push(variable);
    }
    vec![
        ("service-account.yaml", vec![service_account()]),
        ("manager-role.yaml", role(MANAGER_ROLE, MANAGER_ROLE_BINDING, rules::MANAGER)),
        ("extra-role.yaml", role(EXTRA_ROLE, EXTRA_ROLE_BINDING, rules::EXTRA)),
        ("leader-election.yaml", leader_election()),
        ("deployment.yaml", vec![operator]),
        ("network-policy.yaml", vec![network_policy()]),
    ]
}

/// What `kubectl apply -k` reads for an operator of one namespace: these files, in whatever namespace is put here.
pub fn namespaced_kustomization(version: &str) -> Value {
    let resources: Vec<String> = namespaced_files(version).into_iter().map(|(name, _)| name.to_owned()).collect();
    let mut kustomization = kustomization(&resources, version);
    kustomization["namespace"] = json!(DEFAULT_NAMESPACE);
    kustomization
}

/// What `kubectl apply -k` reads: all of these files. Whatever image is put in place of ours, proxies have it, too.
pub fn kustomization(resources: &[String], version: &str) -> Value {
    let container = format!("spec.template.spec.containers.[name={CONTAINER}]");
    let deployment = json!({"kind": "Deployment", "name": NAME});
    let mut source = deployment.clone();
    source["fieldPath"] = json!(format!("{container}.image"));
    let variable = format!("{container}.env.[name={}].value", env::operator::RUNNER_IMAGE);
    json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": resources,
        "images": [{"name": IMAGE, "newTag": version}],
        "replacements": [{"source": source, "targets": [{"select": deployment, "fieldPaths": [variable]}]}],
    })
}

/// What `kubectl apply -k` takes into a kustomization for OpenShift, which chooses the users of pods itself and refuses
/// those that ask for one.
pub fn openshift_component() -> Value {
    let patch = json!([{"op": "remove", "path": RUN_AS_USER}]);
    json!({
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "patches": [{"target": {"kind": "Deployment", "name": NAME}, "patch": patch.to_string()}],
    })
}

fn labels() -> Value {
    json!({"app.kubernetes.io/name": NAME, "app.kubernetes.io/part-of": NAME})
}

fn selector() -> Value {
    json!({"app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": NAME, "app.kubernetes.io/part-of": NAME})
}

fn service_account() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": NAME, "namespace": DEFAULT_NAMESPACE, "labels": labels()},
        "automountServiceAccountToken": true,
    })
}

/// A role for the whole cluster.
pub fn cluster_role(name: &str, rules: &[Rule]) -> Value {
    let rules: Vec<Value> = rules.iter().map(Rule::document).collect();
    json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": name, "labels": labels()}, "rules": rules})
}

fn cluster_binding(name: &str, role: &str) -> Value {
    json!({
        "apiVersion": RBAC,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name, "labels": labels()},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": subjects(),
    })
}

fn subjects() -> Value {
    json!([{"kind": "ServiceAccount", "name": NAME, "namespace": DEFAULT_NAMESPACE}])
}

fn leader_election() -> Vec<Value> {
    role(LEADER_ELECTION_ROLE, LEADER_ELECTION_ROLE_BINDING, rules::LEADER_ELECTION)
}

/// A role in the namespace of the operator, and its binding.
fn role(name: &str, binding: &str, rules: &[Rule]) -> Vec<Value> {
    let rules: Vec<Value> = rules.iter().map(Rule::document).collect();
    let metadata = |name: &str| json!({"name": name, "namespace": DEFAULT_NAMESPACE, "labels": labels()});
    vec![
        json!({"apiVersion": RBAC, "kind": "Role", "metadata": metadata(name), "rules": rules}),
        json!({
            "apiVersion": RBAC,
            "kind": "RoleBinding",
            "metadata": metadata(binding),
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": subjects(),
        }),
    ]
}

fn deployment(version: &str) -> Value {
    let probe = |path: &str, initial: u32, period: u32| json!({"httpGet": {"path": path, "port": "health"}, "initialDelaySeconds": initial, "periodSeconds": period});
    let image = format!("{IMAGE}:{version}");
    let container = json!({
        "name": CONTAINER,
        "image": image,
        "args": ["operator", "--leader-elect"],
        "ports": [
            {"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"},
            {"name": "health", "containerPort": HEALTH_PORT, "protocol": "TCP"},
        ],
        "env": [
            {"name": env::operator::UNSTRUCTURED_LOGS, "value": "false"},
            {"name": env::operator::POD_NAMESPACE,
                "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}},
            {"name": env::operator::RUNNER_IMAGE, "value": image},
        ],
        "livenessProbe": probe("/healthz", 15, 20),
        "readinessProbe": probe("/readyz", 5, 10),
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"cpu": "500m", "memory": "128Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "runAsNonRoot": true,
            "runAsUser": 1000,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    });
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": DEFAULT_NAMESPACE, "labels": labels()},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": selector()},
            "template": {
                "metadata": {"labels": selector()},
                "spec": {
                    "serviceAccountName": NAME,
                    "terminationGracePeriodSeconds": 10,
                    "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
                    "containers": [container],
                },
            },
        },
    })
}

/// Anybody may ask how the operator fares; it talks to the API server, to the name server and to the proxies that it has
/// made, and to nobody else.
fn network_policy() -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": NAME, "namespace": DEFAULT_NAMESPACE, "labels": labels()},
        "spec": {
            "podSelector": {"matchLabels": selector()},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"ports": [
                {"protocol": "TCP", "port": METRICS_PORT},
                {"protocol": "TCP", "port": HEALTH_PORT},
            ]}],
            // API servers listen on 443 or, behind their Service, on 6443; minikube's on 8443, MicroK8s' on 16443.
            "egress": [{"ports": [
                {"protocol": "TCP", "port": 443},
                {"protocol": "TCP", "port": 6443},
                {"protocol": "TCP", "port": 8443},
                {"protocol": "TCP", "port": 16443},
                {"protocol": "UDP", "port": 53},
                {"protocol": "TCP", "port": 53},
            ]}, {"to": [{"namespaceSelector": {}, "podSelector": {"matchLabels": {TOOLHIVE: TRUE}}}]}],
        },
    })
}
