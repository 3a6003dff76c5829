//! The hashes that a workload copies from the objects that it names.

/// A hash for every object that a workload can name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hashes {
    pub auth_server: Option<String>,
    pub authz: Option<String>,
    pub external_auth: Option<String>,
    pub oidc: Option<String>,
    pub telemetry: Option<String>,
    pub tools: Option<String>,
    pub webhooks: Option<String>,
}
