//! Names that belong to the operator itself.

/// The operator's Deployment, ServiceAccount and chart.
pub const NAME: &str = "toolhive-operator";
/// The container of the operator's Deployment.
pub const CONTAINER: &str = "manager";
/// The lease that decides which replica reconciles.
pub const LEADER_ELECTION_ID: &str = "toolhive-operator-leader-election";
/// The ClusterRole whose rules equal those of the reference chart.
pub const MANAGER_ROLE: &str = "toolhive-operator-manager-role";
/// The binding of [`MANAGER_ROLE`], for the cluster or for each allowed namespace.
pub const MANAGER_ROLE_BINDING: &str = "toolhive-operator-manager-rolebinding";
/// The Role for the lease, in the operator's namespace.
pub const LEADER_ELECTION_ROLE: &str = "toolhive-operator-leader-election-role";
/// The binding of [`LEADER_ELECTION_ROLE`].
pub const LEADER_ELECTION_ROLE_BINDING: &str = "toolhive-operator-leader-election-rolebinding";
/// The ConfigMap that remembers the instance between update checks.
pub const TELEMETRY_CONFIG_MAP: &str = "toolhive-operator-telemetry";
/// The key of the instance in [`TELEMETRY_CONFIG_MAP`].
pub const TELEMETRY_INSTANCE_KEY: &str = "instance-id";
/// Where [`TELEMETRY_CONFIG_MAP`] lives when the operator does not know its own namespace.
pub const DEFAULT_NAMESPACE: &str = "toolhive-system";
