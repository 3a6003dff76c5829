//! The rules of the default roles, as the real server (v1.36) has them, so that `kubectl auth can-i` agrees.
//!
//! They name a few kinds that this server does not serve: a role that is compared with its original is easier to
//! trust than one that has been trimmed.

/// Rules in a form that the compiler keeps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grant {
    pub(super) groups: &'static [&'static str],
    pub(super) resources: &'static [&'static str],
    pub(super) paths: &'static [&'static str],
    pub(super) verbs: &'static [&'static str],
}

type Texts = &'static [&'static str];

const READ: Texts = &["get", "list", "watch"];
const WRITE: Texts = &["create", "delete", "deletecollection", "patch", "update"];
const READ_WRITE: Texts = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

const fn on(groups: Texts, resources: Texts, verbs: Texts) -> Grant {
    Grant { groups, resources, paths: &[], verbs }
}

const fn paths(paths: Texts, verbs: Texts) -> Grant {
    Grant { groups: &[], resources: &[], paths, verbs }
}

pub(super) const CLUSTER_ADMIN: &[Grant] = &[on(&["*"], &["*"], &["*"]), paths(&["*"], &["*"])];

/// What `view` adds up from; `edit` and `admin` include it.
pub(super) const VIEW: &[Grant] = &[
    on(
        &[""],
        &[
            "configmaps",
            "endpoints",
            "persistentvolumeclaims",
            "persistentvolumeclaims/status",
            "pods",
            "replicationcontrollers",
            "replicationcontrollers/scale",
            "serviceaccounts",
            "services",
            "services/status",
        ],
        READ,
    ),
    on(
        &[""],
        &[
            "bindings",
            "limitranges",
            "namespaces/status",
            "pods/log",
            "pods/status",
            "replicationcontrollers/status",
            "resourcequotas",
            "resourcequotas/status",
        ],
        READ,
    ),
    on(&[""], &["namespaces"], READ),
    on(&["", "events.k8s.io"], &["events"], READ),
    on(&["discovery.k8s.io"], &["endpointslices"], READ),
    on(
        &["apps"],
        &[
            "controllerrevisions",
            "daemonsets",
            "daemonsets/status",
            "deployments",
            "deployments/scale",
            "deployments/status",
            "replicasets",
            "replicasets/scale",
            "replicasets/status",
            "statefulsets",
            "statefulsets/scale",
            "statefulsets/status",
        ],
        READ,
    ),
    on(&["autoscaling"], &["horizontalpodautoscalers", "horizontalpodautoscalers/status"], READ),
    on(&["batch"], &["cronjobs", "cronjobs/status", "jobs", "jobs/status"], READ),
    on(
        &["extensions"],
        &[
            "daemonsets",
            "daemonsets/status",
            "deployments",
            "deployments/scale",
            "deployments/status",
            "ingresses",
            "ingresses/status",
            "networkpolicies",
            "replicasets",
            "replicasets/scale",
            "replicasets/status",
            "replicationcontrollers/scale",
        ],
        READ,
    ),
    on(&["policy"], &["poddisruptionbudgets", "poddisruptionbudgets/status"], READ),
    on(&["networking.k8s.io"], &["ingresses", "ingresses/status", "networkpolicies"], READ),
    on(&["resource.k8s.io"], &["resourceclaims", "resourceclaims/status", "resourceclaimtemplates"], READ),
];

/// What `edit` has beyond `view`.
pub(super) const EDIT: &[Grant] = &[
    on(&[""], &["pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "secrets", "services/proxy"], READ),
    on(&[""], &["serviceaccounts"], &["impersonate"]),
    on(&[""], &["pods", "pods/attach", "pods/exec", "pods/portforward", "pods/proxy"], WRITE),
    on(&[""], &["pods/eviction"], &["create"]),
    on(
        &[""],
        &[
            "configmaps",
            "persistentvolumeclaims",
            "replicationcontrollers",
            "replicationcontrollers/scale",
            "secrets",
            "serviceaccounts",
            "services",
            "services/proxy",
        ],
        WRITE,
    ),
    on(&[""], &["serviceaccounts/token"], &["create"]),
    on(&["", "events.k8s.io"], &["events"], WRITE),
    on(
        &["apps"],
        &[
            "daemonsets",
            "deployments",
            "deployments/rollback",
            "deployments/scale",
            "replicasets",
            "replicasets/scale",
            "statefulsets",
            "statefulsets/scale",
        ],
        WRITE,
    ),
    on(&["autoscaling"], &["horizontalpodautoscalers"], WRITE),
    on(&["batch"], &["cronjobs", "jobs"], WRITE),
    on(
        &["extensions"],
        &[
            "daemonsets",
            "deployments",
            "deployments/rollback",
            "deployments/scale",
            "ingresses",
            "networkpolicies",
            "replicasets",
            "replicasets/scale",
            "replicationcontrollers/scale",
        ],
        WRITE,
    ),
    on(&["policy"], &["poddisruptionbudgets"], WRITE),
    on(&["networking.k8s.io"], &["ingresses", "networkpolicies"], WRITE),
    on(&["coordination.k8s.io"], &["leases"], READ_WRITE),
    on(&["resource.k8s.io"], &["resourceclaims", "resourceclaimtemplates"], WRITE),
];

/// What `admin` has beyond `edit`.
pub(super) const ADMIN: &[Grant] = &[
    on(&["authorization.k8s.io"], &["localsubjectaccessreviews"], &["create"]),
    on(&["rbac.authorization.k8s.io"], &["rolebindings", "roles"], READ_WRITE),
];

pub(super) const DISCOVERY: &[Grant] = &[paths(
    &[
        "/api",
        "/api/*",
        "/apis",
        "/apis/*",
        "/healthz",
        "/livez",
        "/openapi",
        "/openapi/*",
        "/readyz",
        "/version",
        "/version/",
    ],
    &["get"],
)];

pub(super) const PUBLIC_INFO_VIEWER: &[Grant] =
    &[paths(&["/healthz", "/livez", "/readyz", "/version", "/version/"], &["get"])];

pub(super) const BASIC_USER: &[Grant] = &[
    on(&["authorization.k8s.io"], &["selfsubjectaccessreviews", "selfsubjectrulesreviews"], &["create"]),
    on(&["authentication.k8s.io"], &["selfsubjectreviews"], &["create"]),
];

pub(super) const ISSUER_DISCOVERY: &[Grant] = &[paths(
    &["/.well-known/openid-configuration", "/.well-known/openid-configuration/", "/openid/v1/jwks", "/openid/v1/jwks/"],
    &["get"],
)];

pub(super) const AUTH_DELEGATOR: &[Grant] = &[
    on(&["authentication.k8s.io"], &["tokenreviews"], &["create"]),
    on(&["authorization.k8s.io"], &["subjectaccessreviews"], &["create"]),
];

pub(super) const MONITORING: &[Grant] = &[
    paths(
        &[
            "/flagz",
            "/healthz",
            "/healthz/*",
            "/livez",
            "/livez/*",
            "/metrics",
            "/metrics/slis",
            "/readyz",
            "/readyz/*",
            "/statusz",
        ],
        &["get"],
    ),
    on(&[""], &["nodes/metrics"], &["get"]),
];

/// Bound to nobody; the node authorizer uses it for what needs no relationship.
pub(super) const NODE: &[Grant] = &[
    on(&["authentication.k8s.io"], &["tokenreviews"], &["create"]),
    on(&["authorization.k8s.io"], &["localsubjectaccessreviews", "subjectaccessreviews"], &["create"]),
    on(&[""], &["services"], READ),
    on(&[""], &["nodes"], &["create", "get", "list", "watch"]),
    on(&[""], &["nodes/status"], &["patch", "update"]),
    on(&[""], &["nodes"], &["patch", "update"]),
    on(&["", "events.k8s.io"], &["events"], &["create", "patch", "update"]),
    on(&[""], &["pods"], READ),
    on(&[""], &["pods"], &["create", "delete"]),
    on(&[""], &["pods/status"], &["patch", "update"]),
    on(&[""], &["pods/eviction"], &["create"]),
    on(&[""], &["configmaps", "secrets"], READ),
    on(&[""], &["persistentvolumeclaims", "persistentvolumes"], &["get"]),
    on(&[""], &["endpoints"], &["get"]),
    on(&["certificates.k8s.io"], &["certificatesigningrequests"], &["create", "get", "list", "watch"]),
    on(&["coordination.k8s.io"], &["leases"], &["create", "delete", "get", "patch", "update"]),
    on(&["storage.k8s.io"], &["volumeattachments"], &["get"]),
    on(&[""], &["serviceaccounts/token"], &["create"]),
    on(&[""], &["persistentvolumeclaims/status"], &["get", "patch", "update"]),
    on(&["storage.k8s.io"], &["csidrivers"], READ),
    on(&["storage.k8s.io"], &["csinodes"], &["create", "delete", "get", "patch", "update"]),
    on(&["node.k8s.io"], &["runtimeclasses"], READ),
    on(&["resource.k8s.io"], &["resourceclaims"], &["get"]),
    on(&["resource.k8s.io"], &["resourceslices"], &["deletecollection"]),
    on(&[""], &["serviceaccounts"], &["get"]),
];
