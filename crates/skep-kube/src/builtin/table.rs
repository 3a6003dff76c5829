//! The names and verbs of the kinds that are always there, as discovery tells them.

use std::sync::LazyLock;

/// A kind that is part of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Builtin {
    /// Empty for the core group.
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    pub singular: &'static str,
    pub short_names: &'static [&'static str],
    pub categories: &'static [&'static str],
    pub namespaced: bool,
    pub verbs: &'static [&'static str],
    pub subresources: &'static [Subresource],
    /// What users of the kind are warned of.
    pub deprecation: Option<&'static str>,
}

/// What lies below an object in the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subresource {
    pub name: &'static str,
    pub kind: &'static str,
    /// Group and version of the kind, when they are not those of the resource.
    pub group_version: Option<(&'static str, &'static str)>,
    pub verbs: &'static [&'static str],
}

impl Builtin {
    /// `v1`, or `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The group and version in which the real server keeps objects of the kind, where it is not the one it serves.
    pub fn kept_as(&self) -> (&'static str, &'static str) {
        match (self.group, self.kind) {
            ("events.k8s.io", "Event") => ("", "v1"),
            ("apiextensions.k8s.io", "CustomResourceDefinition") => (self.group, "v1beta1"),
            _ => (self.group, self.version),
        }
    }

    /// What the real server calls the package of the kind, which some messages name.
    pub fn package(&self) -> &'static str {
        match self.kept_as().0 {
            "" => "core",
            group => group.split('.').next().unwrap_or_default(),
        }
    }

    /// The name of the kind's definition in OpenAPI documents: `io.k8s.api.core.v1.Pod`.
    pub fn definition_name(&self) -> String {
        let Self { group, version, kind, .. } = self;
        match *group {
            "" => format!("io.k8s.api.core.{version}.{kind}"),
            "apiextensions.k8s.io" => {
                format!("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}.{kind}")
            }
            // Only the first label of the group is part of the name: rbac for rbac.authorization.k8s.io.
            group => format!("io.k8s.api.{}.{version}.{kind}", group.split('.').next().unwrap_or_default()),
        }
    }
}

/// Every built-in kind.
pub fn table() -> &'static [Builtin] {
    static TABLE: LazyLock<Vec<Builtin>> = LazyLock::new(rows);
    &TABLE
}

/// The built-in kind of that name.
pub fn find(group: &str, version: &str, kind: &str) -> Option<&'static Builtin> {
    table().iter().find(|row| row.group == group && row.version == version && row.kind == kind)
}

/// The built-in kind with that plural name.
pub fn find_plural(group: &str, version: &str, plural: &str) -> Option<&'static Builtin> {
    table().iter().find(|row| row.group == group && row.version == version && row.plural == plural)
}

const ALL_VERBS: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// Namespaces are too much to delete in one go.
const ONE_BY_ONE: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];
const CREATE: &[&str] = &["create"];
const GET: &[&str] = &["get"];
const CONNECT: &[&str] = &["create", "get"];
const CHANGE: &[&str] = &["get", "patch", "update"];
const ALL: &[&str] = &["all"];

const fn part(name: &'static str, kind: &'static str, verbs: &'static [&'static str]) -> Subresource {
    Subresource { name, kind, group_version: None, verbs }
}

const fn status(kind: &'static str) -> Subresource {
    part("status", kind, CHANGE)
}

const SCALE: Subresource =
    Subresource { name: "scale", kind: "Scale", group_version: Some(("autoscaling", "v1")), verbs: CHANGE };

const NAMESPACE: &[Subresource] = &[part("finalize", "Namespace", &["update"]), status("Namespace")];
const NODE: &[Subresource] = &[status("Node")];
const POD: &[Subresource] = &[
    part("attach", "PodAttachOptions", CONNECT),
    part("binding", "Binding", CREATE),
    part("ephemeralcontainers", "Pod", CHANGE),
    Subresource { name: "eviction", kind: "Eviction", group_version: Some(("policy", "v1")), verbs: CREATE },
    part("exec", "PodExecOptions", CONNECT),
    part("log", "Pod", GET),
    part("portforward", "PodPortForwardOptions", CONNECT),
    status("Pod"),
];
const SERVICE: &[Subresource] = &[status("Service")];
const SERVICE_ACCOUNT: &[Subresource] = &[Subresource {
    name: "token",
    kind: "TokenRequest",
    group_version: Some(("authentication.k8s.io", "v1")),
    verbs: CREATE,
}];

/// A namespaced kind without short names and subresources; the rows say where they differ.
const fn kind(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
) -> Builtin {
    Builtin {
        group,
        version,
        kind,
        plural,
        singular,
        short_names: &[],
        categories: &[],
        namespaced: true,
        verbs: ALL_VERBS,
        subresources: &[],
        deprecation: None,
    }
}

/// A kind that is asked and answered, and of which nothing is kept.
const fn question(mut row: Builtin) -> Builtin {
    row.verbs = CREATE;
    row
}

const fn cluster(mut row: Builtin) -> Builtin {
    row.namespaced = false;
    row
}

const fn short(mut row: Builtin, names: &'static [&'static str]) -> Builtin {
    row.short_names = names;
    row
}

const fn parts(mut row: Builtin, subresources: &'static [Subresource]) -> Builtin {
    row.subresources = subresources;
    row
}

const fn in_all(mut row: Builtin) -> Builtin {
    row.categories = ALL;
    row
}

fn rows() -> Vec<Builtin> {
    let mut rows = core();
    rows.extend(workloads());
    rows.extend(access());
    rows.extend(questions());
    rows.extend(others());
    rows
}

fn core() -> Vec<Builtin> {
    let core = |name, plural, singular| kind("", "v1", name, plural, singular);
    let mut namespace = parts(short(cluster(core("Namespace", "namespaces", "namespace")), &["ns"]), NAMESPACE);
    namespace.verbs = ONE_BY_ONE;
    let mut endpoints = short(core("Endpoints", "endpoints", "endpoints"), &["ep"]);
    endpoints.deprecation = Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice");
    vec![
        short(core("ConfigMap", "configmaps", "configmap"), &["cm"]),
        endpoints,
        short(core("Event", "events", "event"), &["ev"]),
        namespace,
        parts(short(cluster(core("Node", "nodes", "node")), &["no"]), NODE),
        parts(
            short(core("PersistentVolumeClaim", "persistentvolumeclaims", "persistentvolumeclaim"), &["pvc"]),
            const { &[status("PersistentVolumeClaim")] },
        ),
        parts(
            short(cluster(core("PersistentVolume", "persistentvolumes", "persistentvolume")), &["pv"]),
            const { &[status("PersistentVolume")] },
        ),
        parts(in_all(short(core("Pod", "pods", "pod"), &["po"])), POD),
        core("Secret", "secrets", "secret"),
        parts(short(core("ServiceAccount", "serviceaccounts", "serviceaccount"), &["sa"]), SERVICE_ACCOUNT),
        parts(in_all(short(core("Service", "services", "service"), &["svc"])), SERVICE),
    ]
}

fn workloads() -> Vec<Builtin> {
    let apps = |name, plural, singular| kind("apps", "v1", name, plural, singular);
    vec![
        apps("ControllerRevision", "controllerrevisions", "controllerrevision"),
        parts(
            in_all(short(apps("Deployment", "deployments", "deployment"), &["deploy"])),
            const { &[SCALE, status("Deployment")] },
        ),
        parts(
            in_all(short(apps("ReplicaSet", "replicasets", "replicaset"), &["rs"])),
            const { &[SCALE, status("ReplicaSet")] },
        ),
        parts(
            in_all(short(apps("StatefulSet", "statefulsets", "statefulset"), &["sts"])),
            const { &[SCALE, status("StatefulSet")] },
        ),
        parts(
            in_all(short(
                kind(
                    "autoscaling",
                    "v2",
                    "HorizontalPodAutoscaler",
                    "horizontalpodautoscalers",
                    "horizontalpodautoscaler",
                ),
                &["hpa"],
            )),
            const { &[status("HorizontalPodAutoscaler")] },
        ),
        parts(
            short(kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", "poddisruptionbudget"), &["pdb"]),
            const { &[status("PodDisruptionBudget")] },
        ),
    ]
}

fn access() -> Vec<Builtin> {
    let rbac = |name, plural, singular| kind("rbac.authorization.k8s.io", "v1", name, plural, singular);
    vec![
        cluster(rbac("ClusterRoleBinding", "clusterrolebindings", "clusterrolebinding")),
        cluster(rbac("ClusterRole", "clusterroles", "clusterrole")),
        rbac("RoleBinding", "rolebindings", "rolebinding"),
        rbac("Role", "roles", "role"),
    ]
}

fn questions() -> Vec<Builtin> {
    let authentication =
        |name, plural, singular| question(cluster(kind("authentication.k8s.io", "v1", name, plural, singular)));
    let authorization = |name, plural, singular| question(kind("authorization.k8s.io", "v1", name, plural, singular));
    vec![
        authentication("SelfSubjectReview", "selfsubjectreviews", "selfsubjectreview"),
        authentication("TokenReview", "tokenreviews", "tokenreview"),
        authorization("LocalSubjectAccessReview", "localsubjectaccessreviews", "localsubjectaccessreview"),
        cluster(authorization("SelfSubjectAccessReview", "selfsubjectaccessreviews", "selfsubjectaccessreview")),
        cluster(authorization("SelfSubjectRulesReview", "selfsubjectrulesreviews", "selfsubjectrulesreview")),
        cluster(authorization("SubjectAccessReview", "subjectaccessreviews", "subjectaccessreview")),
    ]
}

fn others() -> Vec<Builtin> {
    let networking = |name, plural, singular| kind("networking.k8s.io", "v1", name, plural, singular);
    let mut definitions = cluster(kind(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "customresourcedefinition",
    ));
    definitions.categories = &["api-extensions"];
    vec![
        kind("coordination.k8s.io", "v1", "Lease", "leases", "lease"),
        kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", "endpointslice"),
        short(kind("events.k8s.io", "v1", "Event", "events", "event"), &["ev"]),
        cluster(networking("IngressClass", "ingressclasses", "ingressclass")),
        parts(short(networking("Ingress", "ingresses", "ingress"), &["ing"]), const { &[status("Ingress")] }),
        short(networking("NetworkPolicy", "networkpolicies", "networkpolicy"), &["netpol"]),
        short(cluster(kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", "priorityclass")), &["pc"]),
        short(cluster(kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", "storageclass")), &["sc"]),
        parts(short(definitions, &["crd", "crds"]), const { &[status("CustomResourceDefinition")] }),
    ]
}
