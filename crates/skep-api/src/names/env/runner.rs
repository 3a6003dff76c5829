//! What the proxy runner reads. The vMCP process shares the parts about runtime, secrets, telemetry, sessions and the
//! embedded auth server.

use crate::constants::constants;

constants! {
    // Process.

    /// Turns debug logging on.
    pub const DEBUG: &str = "TOOLHIVE_DEBUG";
    /// Where the backend runs; [`RUNTIME_KUBERNETES`] on every pod.
    pub const RUNTIME: &str = "TOOLHIVE_RUNTIME";
    /// Set by Kubernetes; tells a pod when [`RUNTIME`] does not.
    pub const KUBERNETES_SERVICE_HOST: &str = "KUBERNETES_SERVICE_HOST";
    /// Set by Kubernetes: the name of the pod, unless that is long or the pod has the network of its node.
    pub const HOSTNAME: &str = "HOSTNAME";
    /// Where files of the user go; [`WRITABLE_DIRECTORY`] on every pod.
    pub const HOME: &str = "HOME";
    /// Where configuration of the user goes; [`WRITABLE_DIRECTORY`] on every pod.
    pub const XDG_CONFIG_HOME: &str = "XDG_CONFIG_HOME";
    /// The generation of the MCPServer, frozen in the pod. Overrides the RunConfig.
    pub const MCP_SERVER_GENERATION: &str = "THV_MCPSERVER_GENERATION";
    /// `false` turns usage counting off. Skep counts nothing.
    pub const USAGE_METRICS_ENABLED: &str = "TOOLHIVE_USAGE_METRICS_ENABLED";

    // Secrets and sessions.

    /// Where secrets come from; [`SECRETS_PROVIDER_ENVIRONMENT`] as soon as a secret's variable is present.
    pub const SECRETS_PROVIDER: &str = "TOOLHIVE_SECRETS_PROVIDER";
    /// The password of the session store, also for the rate limiter.
    pub const SESSION_REDIS_PASSWORD: &str = "THV_SESSION_REDIS_PASSWORD";
    /// The secret that `requestState` is sealed with, which all replicas have to share. The reference has none.
    pub const REQUEST_STATE_KEY: &str = "SKEP_REQUEST_STATE_KEY";
    /// The file that has it.
    pub const REQUEST_STATE_KEY_FILE: &str = "SKEP_REQUEST_STATE_KEY_FILE";

    // Requests and health checks; durations unless said otherwise.

    /// How long a request to a stdio backend may take.
    pub const PROXY_REQUEST_TIMEOUT: &str = "TOOLHIVE_PROXY_REQUEST_TIMEOUT";
    /// How long there may be no pod of a stdio backend to attach to. The reference has none.
    pub const ATTACH_TIMEOUT: &str = "SKEP_ATTACH_TIMEOUT";
    /// `true` or `1` lets remote targets be checked.
    pub const REMOTE_HEALTH_CHECKS: &str = "TOOLHIVE_REMOTE_HEALTHCHECKS";
    /// The time between checks.
    pub const HEALTH_CHECK_INTERVAL: &str = "TOOLHIVE_HEALTH_CHECK_INTERVAL";
    /// How long a check may take.
    pub const HEALTH_CHECK_PING_TIMEOUT: &str = "TOOLHIVE_HEALTH_CHECK_PING_TIMEOUT";
    /// The time before a failed check is repeated.
    pub const HEALTH_CHECK_RETRY_DELAY: &str = "TOOLHIVE_HEALTH_CHECK_RETRY_DELAY";
    /// How many checks in a row may fail, a number.
    pub const HEALTH_CHECK_FAILURE_THRESHOLD: &str = "TOOLHIVE_HEALTH_CHECK_FAILURE_THRESHOLD";

    // Eras of the protocol. The reference has none of these.

    /// Of which era the backend is: `auto`, `legacy` or `modern`.
    pub const BACKEND_ERA: &str = "SKEP_BACKEND_ERA";
    /// Whether calls wait at the proxy for answers of their clients: `auto`, `on` or `off`.
    pub const PARKED_CALLS: &str = "SKEP_PARKED_CALLS";
    /// Who uses sessions that are opened for clients without any: `per-principal`, `per-request` or `shared`.
    pub const BACKEND_SESSIONS: &str = "SKEP_BACKEND_SESSIONS";
    /// How long such a session lives that nobody uses, a duration.
    pub const BACKEND_SESSION_IDLE: &str = "SKEP_BACKEND_SESSION_IDLE";

    // Authentication.

    /// The client secret for token introspection.
    pub const OIDC_CLIENT_SECRET: &str = "TOOLHIVE_OIDC_CLIENT_SECRET";
    /// The client secret for token exchange. vMCP pods have one variable per config.
    pub const TOKEN_EXCHANGE_CLIENT_SECRET: &str = "TOOLHIVE_TOKEN_EXCHANGE_CLIENT_SECRET";
    /// The client secret with which the proxy acts on behalf of users. The reference has none.
    pub const ON_BEHALF_OF_CLIENT_SECRET: &str = "TOOLHIVE_OBO_CLIENT_SECRET";
    /// Where AWS gives credentials, instead of the service of the region. The tools of AWS know it, too.
    pub const AWS_STS_ENDPOINT: &str = "AWS_ENDPOINT_URL_STS";
    /// A bearer token for a remote server, where its section names neither a secret nor a file.
    pub const REMOTE_AUTH_BEARER_TOKEN: &str = "TOOLHIVE_REMOTE_AUTH_BEARER_TOKEN";
    /// `true` allows plain http where https is demanded.
    pub const INSECURE_DISABLE_URL_VALIDATION: &str = "INSECURE_DISABLE_URL_VALIDATION";
    /// `true` skips OIDC discovery, for tests.
    pub const SKIP_OIDC_DISCOVERY: &str = "TOOLHIVE_SKIP_OIDC_DISCOVERY";
    /// The first pause before a token refresh is repeated.
    pub const TOKEN_REFRESH_INITIAL_RETRY_INTERVAL: &str = "TOOLHIVE_TOKEN_REFRESH_INITIAL_RETRY_INTERVAL";
    /// The longest pause before a token refresh is repeated.
    pub const TOKEN_REFRESH_MAX_RETRY_INTERVAL: &str = "TOOLHIVE_TOKEN_REFRESH_MAX_RETRY_INTERVAL";
    /// How often a token refresh is tried, a number.
    pub const TOKEN_REFRESH_MAX_TRIES: &str = "TOOLHIVE_TOKEN_REFRESH_MAX_TRIES";
    /// How long a token refresh is tried.
    pub const TOKEN_REFRESH_MAX_ELAPSED_TIME: &str = "TOOLHIVE_TOKEN_REFRESH_MAX_ELAPSED_TIME";
    /// The pause between rounds while authentication fails.
    pub const TOKEN_AUTH_RETRYING_TICK_INTERVAL: &str = "TOOLHIVE_TOKEN_AUTH_RETRYING_TICK_INTERVAL";
    /// When to give up while authentication fails.
    pub const TOKEN_AUTH_RETRYING_MAX_ELAPSED: &str = "TOOLHIVE_TOKEN_AUTH_RETRYING_MAX_ELAPSED";

    // Embedded auth server.

    /// The user name of its Redis.
    pub const AUTH_SERVER_REDIS_USERNAME: &str = "TOOLHIVE_AUTH_SERVER_REDIS_USERNAME";
    /// The password of its Redis.
    pub const AUTH_SERVER_REDIS_PASSWORD: &str = "TOOLHIVE_AUTH_SERVER_REDIS_PASSWORD";

    // Telemetry.

    /// Attributes of everything that is reported; see [`super::resource_attributes`].
    pub const OTEL_RESOURCE_ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";
}

/// The value of [`RUNTIME`] on pods.
pub const RUNTIME_KUBERNETES: &str = "kubernetes";
/// The value of [`SECRETS_PROVIDER`] on pods.
pub const SECRETS_PROVIDER_ENVIRONMENT: &str = "environment";
/// The value of [`HOME`] and [`XDG_CONFIG_HOME`] on pods, whose root file system is read-only.
pub const WRITABLE_DIRECTORY: &str = "/tmp";
