//! Files that Kubernetes mounts into every pod, and what the cluster calls itself.

/// The certificate of the cluster's own authority.
pub const CA_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
/// The token of the pod's service account.
pub const TOKEN_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";
/// The namespace of the pod.
pub const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
/// Who issues service account tokens, unless the MCPOIDCConfig says otherwise.
pub const DEFAULT_ISSUER: &str = "https://kubernetes.default.svc";
