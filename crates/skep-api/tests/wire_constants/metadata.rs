//! What stands in the metadata of objects: 10 §3, §8.1, §10.1, §17; 20 §1, §2.5, §10.2–10.3, §11; 40 §3.2.

use skep_api::names::{annotations, field_managers, finalizers, labels, operator};

use super::pinned;

#[test]
fn annotations_have_their_names() {
    pinned!(annotations {
        CONFIG_HASH = "toolhive.stacklok.dev/config-hash",
        CONTENT_CHECKSUM = "toolhive.stacklok.dev/content-checksum",
        IMAGE_PULL_SECRETS_HASH = "toolhive.stacklok.io/imagepullsecrets-hash",
        KUBECTL_RESTARTED_AT = "kubectl.kubernetes.io/restartedAt",
        // kubectl's own; the specifications do not name it.
        KUBECTL_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration",
        LAST_PROCESSED_RESTART = "mcpserver.toolhive.stacklok.dev/last-processed-restart",
        MCP_SERVER_GENERATION = "toolhive.stacklok.dev/mcpserver-generation",
        POD_TEMPLATE_SPEC_HASH = "toolhive.stacklok.io/podtemplatespec-hash",
        PURPOSE = "toolhive.stacklok.dev/purpose",
        RESTARTED_AT = "mcpserver.toolhive.stacklok.dev/restarted-at",
        RESTART_STRATEGY = "mcpserver.toolhive.stacklok.dev/restart-strategy",
        RUN_CONFIG_CHECKSUM = "toolhive.stacklok.dev/runconfig-checksum",
        // Skep's own.
        STDIO_PROCESSES_TAKEN = "toolhive.stacklok.dev/stdio-processes-taken",
        STDIO_PROCESS_PER_SESSION = "toolhive.stacklok.dev/stdio-process-per-session",
    });
    assert_eq!(annotations::RESTART_ROLLING, "rolling");
    assert_eq!(annotations::RESTART_IMMEDIATE, "immediate");
    assert_eq!(annotations::PURPOSE_SESSION_BINDING, "hmac-secret-for-session-token-binding");
    // 40 §9.
    let foreign = ["kubectl.kubernetes.io/", "kubernetes.io/", "deployment.kubernetes.io/", "k8s.io/"];
    assert_eq!(annotations::FOREIGN_PREFIXES, foreign);
}

#[test]
fn finalizers_have_their_names() {
    pinned!(finalizers {
        EMBEDDING_SERVER = "embeddingserver.toolhive.stacklok.dev/finalizer",
        MCP_AUTHZ_CONFIG = "mcpauthzconfig.toolhive.stacklok.dev/finalizer",
        MCP_EXTERNAL_AUTH_CONFIG = "mcpexternalauthconfig.toolhive.stacklok.dev/finalizer",
        MCP_GROUP = "toolhive.stacklok.dev/mcpgroup-finalizer",
        MCP_OIDC_CONFIG = "mcpoidcconfig.toolhive.stacklok.dev/finalizer",
        MCP_REGISTRY = "mcpregistry.toolhive.stacklok.dev/finalizer",
        MCP_SERVER = "mcpserver.toolhive.stacklok.dev/finalizer",
        MCP_TELEMETRY_CONFIG = "mcptelemetryconfig.toolhive.stacklok.dev/finalizer",
        MCP_TOOL_CONFIG = "toolhive.stacklok.dev/toolconfig-finalizer",
        MCP_WEBHOOK_CONFIG = "mcpwebhookconfig.toolhive.stacklok.dev/finalizer",
    });
}

#[test]
fn labels_have_their_names() {
    pinned!(labels {
        APP = "app",
        AUTHZ = "toolhive.stacklok.io/authz",
        COMPONENT = "app.kubernetes.io/component",
        CONFIG_COMPONENT = "toolhive.stacklok.io/component",
        CONFIG_MANAGED_BY = "toolhive.stacklok.io/managed-by",
        CONFIG_MCP_REMOTE_PROXY = "toolhive.stacklok.io/mcp-remote-proxy",
        CONFIG_MCP_SERVER = "toolhive.stacklok.io/mcp-server",
        CONFIG_VIRTUAL_MCP_SERVER = "toolhive.stacklok.io/virtual-mcp-server",
        INSTANCE = "app.kubernetes.io/instance",
        MANAGED_BY = "app.kubernetes.io/managed-by",
        NAME = "app.kubernetes.io/name",
        PART_OF = "app.kubernetes.io/part-of",
        REGISTRY_NAME = "toolhive.stacklok.io/registry-name",
        TOOLHIVE = "toolhive",
        TOOLHIVE_BASENAME = "toolhive-basename",
        TOOLHIVE_NAME = "toolhive-name",
        TOOLHIVE_PORT = "toolhive-port",
        TOOLHIVE_TRANSPORT = "toolhive-transport",
    });
    assert_eq!(labels::AUTO_MIGRATE_LABEL, "toolhive.stacklok.dev/auto-migrate-storage-version");
}

#[test]
fn values_of_labels_are_as_they_were() {
    assert_eq!(labels::MCP_SERVER, "mcpserver");
    assert_eq!(labels::MCP_REMOTE_PROXY, "mcpremoteproxy");
    assert_eq!(labels::VIRTUAL_MCP_SERVER, "virtualmcpserver");
    assert_eq!(labels::EMBEDDING_SERVER, "embeddingserver");
    assert_eq!(labels::COMPONENT_EMBEDDING_SERVER, "embedding-server");
    assert_eq!(labels::COMPONENT_REGISTRY_API, "registry-api");
    assert_eq!(labels::COMPONENT_SESSION_SECURITY, "session-security");
    assert_eq!(labels::COMPONENT_RUN_CONFIG, "run-config");
    assert_eq!(labels::COMPONENT_VIRTUAL_MCP_CONFIG, "vmcp-config");
    assert_eq!(labels::AUTHZ_INLINE, "inline");
    assert_eq!(labels::TRUE, "true");
}

#[test]
fn field_managers_and_names_of_the_operator_are_as_they_were() {
    assert_eq!(field_managers::PROXY_RUNNER, "toolhive-container-manager");
    assert_eq!(operator::NAME, "toolhive-operator");
    assert_eq!(operator::CONTAINER, "manager");
    assert_eq!(operator::LEADER_ELECTION_ID, "toolhive-operator-leader-election");
    assert_eq!(operator::MANAGER_ROLE, "toolhive-operator-manager-role");
    assert_eq!(operator::MANAGER_ROLE_BINDING, "toolhive-operator-manager-rolebinding");
    assert_eq!(operator::LEADER_ELECTION_ROLE, "toolhive-operator-leader-election-role");
    assert_eq!(operator::LEADER_ELECTION_ROLE_BINDING, "toolhive-operator-leader-election-rolebinding");
    assert_eq!(operator::TELEMETRY_CONFIG_MAP, "toolhive-operator-telemetry");
    assert_eq!(operator::TELEMETRY_INSTANCE_KEY, "instance-id");
    assert_eq!(operator::DEFAULT_NAMESPACE, "toolhive-system");
}
