//! The rights of the operator. The tests run with exactly these.

use serde_json::{Value, json};
use skep_api::kind::GROUP;

/// Everything that can be done with an object, in the order in which the reference lists it.
const ALL: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];
const READ: &[&str] = &["get", "list", "watch"];

/// A rule of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    pub group: &'static str,
    pub resources: &'static [&'static str],
    pub verbs: &'static [&'static str],
}

impl Rule {
    const fn new(group: &'static str, resources: &'static [&'static str], verbs: &'static [&'static str]) -> Self {
        Self { group, resources, verbs }
    }

    /// The rule as it stands in a manifest.
    pub fn document(&self) -> Value {
        json!({"apiGroups": [self.group], "resources": self.resources, "verbs": self.verbs})
    }
}

/// The rules of the manager role. They equal those of the reference chart, element by element: whoever checks them finds
/// what they expect. What Skep does not use of them is listed in docs/compatibility.md.
pub const MANAGER: &[Rule] = &[
    Rule::new("", &["configmaps", "persistentvolumeclaims", "secrets", "serviceaccounts", "services"], ALL),
    Rule::new("", &["pods"], READ),
    Rule::new("", &["pods/attach"], &["create", "get"]),
    Rule::new("", &["pods/log"], &["get"]),
    Rule::new("apiextensions.k8s.io", &["customresourcedefinitions"], READ),
    Rule::new("apiextensions.k8s.io", &["customresourcedefinitions/status"], &["patch", "update"]),
    Rule::new("apps", &["deployments", "statefulsets"], ALL),
    Rule::new("coordination.k8s.io", &["leases"], ALL),
    Rule::new("events.k8s.io", &["events"], &["create", "patch"]),
    Rule::new("gateway.networking.k8s.io", &["gateways", "httproutes"], READ),
    Rule::new("rbac.authorization.k8s.io", &["rolebindings", "roles"], ALL),
    Rule::new(GROUP, &["*"], &["get", "list", "update"]),
    Rule::new(
        GROUP,
        &[
            "embeddingservers",
            "mcpauthzconfigs",
            "mcpexternalauthconfigs",
            "mcpgroups",
            "mcpoidcconfigs",
            "mcpregistries",
            "mcpremoteproxies",
            "mcpservers",
            "mcptoolconfigs",
            "mcpwebhookconfigs",
            "virtualmcpservers",
        ],
        ALL,
    ),
    Rule::new(
        GROUP,
        &[
            "embeddingservers/finalizers",
            "mcpauthzconfigs/finalizers",
            "mcpexternalauthconfigs/finalizers",
            "mcpgroups/finalizers",
            "mcpoidcconfigs/finalizers",
            "mcpregistries/finalizers",
            "mcpservers/finalizers",
            "mcptelemetryconfigs/finalizers",
            "mcptoolconfigs/finalizers",
            "mcpwebhookconfigs/finalizers",
        ],
        &["update"],
    ),
    Rule::new(
        GROUP,
        &[
            "embeddingservers/status",
            "mcpauthzconfigs/status",
            "mcpexternalauthconfigs/status",
            "mcpgroups/status",
            "mcpoidcconfigs/status",
            "mcpregistries/status",
            "mcpremoteproxies/status",
            "mcpserverentries/status",
            "mcpservers/status",
            "mcptelemetryconfigs/status",
            "mcptoolconfigs/status",
            "mcpwebhookconfigs/status",
            "virtualmcpservers/status",
        ],
        &["get", "patch", "update"],
    ),
    Rule::new(GROUP, &["mcpserverentries", "virtualmcpcompositetooldefinitions"], READ),
    Rule::new(GROUP, &["mcptelemetryconfigs"], &["get", "list", "patch", "update", "watch"]),
];

/// What Skep needs beyond that. Every rule here is used.
pub const EXTRA: &[Rule] = &[
    // A restart with the strategy `immediate`.
    Rule::new("", &["pods"], &["delete"]),
    // Permission profiles that are enforced.
    Rule::new("networking.k8s.io", &["networkpolicies"], &["create", "delete", "list", "patch", "watch"]),
    // Children that block the deletion of their owner, where the cluster asks for the right to do so.
    Rule::new(GROUP, &["mcpremoteproxies/finalizers"], &["update"]),
];

/// What the election of a leader needs, in the operator's own namespace.
pub const LEADER_ELECTION: &[Rule] = &[
    Rule::new("", &["configmaps"], ALL),
    Rule::new("coordination.k8s.io", &["leases"], ALL),
    Rule::new("events.k8s.io", &["events"], &["create", "patch"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules of the reference chart: group, resources, verbs. `C` is everything.
    const CHART: &str = "\
        core configmaps,persistentvolumeclaims,secrets,serviceaccounts,services C
        core pods get,list,watch
        core pods/attach create,get
        core pods/log get
        apiextensions.k8s.io customresourcedefinitions get,list,watch
        apiextensions.k8s.io customresourcedefinitions/status patch,update
        apps deployments,statefulsets C
        coordination.k8s.io leases C
        events.k8s.io events create,patch
        gateway.networking.k8s.io gateways,httproutes get,list,watch
        rbac.authorization.k8s.io rolebindings,roles C
        toolhive.stacklok.dev * get,list,update
        toolhive.stacklok.dev embeddingservers,mcpauthzconfigs,mcpexternalauthconfigs,mcpgroups,mcpoidcconfigs,\
            mcpregistries,mcpremoteproxies,mcpservers,mcptoolconfigs,mcpwebhookconfigs,virtualmcpservers C
        toolhive.stacklok.dev embeddingservers/finalizers,mcpauthzconfigs/finalizers,mcpexternalauthconfigs/finalizers,\
            mcpgroups/finalizers,mcpoidcconfigs/finalizers,mcpregistries/finalizers,mcpservers/finalizers,\
            mcptelemetryconfigs/finalizers,mcptoolconfigs/finalizers,mcpwebhookconfigs/finalizers update
        toolhive.stacklok.dev embeddingservers/status,mcpauthzconfigs/status,mcpexternalauthconfigs/status,\
            mcpgroups/status,mcpoidcconfigs/status,mcpregistries/status,mcpremoteproxies/status,\
            mcpserverentries/status,mcpservers/status,mcptelemetryconfigs/status,mcptoolconfigs/status,\
            mcpwebhookconfigs/status,virtualmcpservers/status get,patch,update
        toolhive.stacklok.dev mcpserverentries,virtualmcpcompositetooldefinitions get,list,watch
        toolhive.stacklok.dev mcptelemetryconfigs get,list,patch,update,watch";

    #[test]
    fn the_manager_role_is_that_of_the_chart() {
        let all = "create,delete,get,list,patch,update,watch";
        let expected: Vec<String> = CHART.lines().map(|line| line.trim().replace(" C", &format!(" {all}"))).collect();
        let text = |rule: &Rule| {
            let group = if rule.group.is_empty() { "core" } else { rule.group };
            format!("{group} {} {}", rule.resources.join(","), rule.verbs.join(","))
        };
        assert_eq!(MANAGER.iter().map(text).collect::<Vec<_>>(), expected);
    }
}
