//! The contract, spelled out: every function beside the literal it must give.

use std::collections::BTreeSet;

use super::webhook_secret::{List, Purpose};
use super::*;
use crate::kinds::transport::RemoteTransport;

fn check(table: &[(String, &str)]) {
    for (actual, expected) in table {
        assert_eq!(actual, expected);
    }
}

#[test]
fn children_of_mcp_server_have_their_names() {
    check(&[
        (mcp_server::deployment("x"), "x"),
        (mcp_server::proxy_service("x"), "mcp-x-proxy"),
        (mcp_server::proxy_runner("x"), "x-proxy-runner"),
        (mcp_server::backend_service_account("x"), "x-sa"),
        (mcp_server::stateful_set("x"), "x"),
        (mcp_server::backend_service("x"), "mcp-x"),
        (mcp_server::backend_headless_service("x"), "mcp-x-headless"),
        (mcp_server::backend_port(9000), "port-9000"),
        (mcp_server::backend_url("x", 9000), "http://mcp-x:9000"),
        (mcp_server::permission_profile("p.json"), "/etc/toolhive/profiles/p.json"),
        (mcp_server::url("x", "ns", 8080, RemoteTransport::Sse), "http://mcp-x-proxy.ns.svc.cluster.local:8080/sse#x"),
        (
            mcp_server::url("x", "ns", 80, RemoteTransport::StreamableHttp),
            "http://mcp-x-proxy.ns.svc.cluster.local:80/mcp",
        ),
        (proxy_pod::run_config("x"), "x-runconfig"),
        (proxy_pod::inline_authz("x"), "x-authz-inline"),
    ]);
    assert_eq!(
        proxy_pod::RUN_CONFIG_PATHS[0],
        format!("{}/{}", proxy_pod::RUN_CONFIG_DIRECTORY, proxy_pod::RUN_CONFIG_KEY)
    );
}

#[test]
fn children_of_the_other_kinds_have_their_names() {
    check(&[
        (mcp_remote_proxy::deployment("x"), "x"),
        (mcp_remote_proxy::proxy_service("x"), "mcp-x-remote-proxy"),
        (mcp_remote_proxy::proxy_runner("x"), "x-remote-proxy-runner"),
        (mcp_remote_proxy::url("x", "ns", 8080), "http://mcp-x-remote-proxy.ns.svc.cluster.local:8080"),
        (virtual_mcp_server::deployment("x"), "x"),
        (virtual_mcp_server::service("x"), "vmcp-x"),
        (virtual_mcp_server::config_map("x"), "x-vmcp-config"),
        (virtual_mcp_server::hmac_secret("x"), "x-hmac-secret"),
        (virtual_mcp_server::service_account("x"), "x-vmcp"),
        (virtual_mcp_server::url("x", "ns"), "http://vmcp-x.ns.svc.cluster.local:4483"),
        (embedding_server::stateful_set("x"), "x"),
        (embedding_server::service("x"), "x"),
        (embedding_server::model_cache_claim("x", 0), "model-cache-x-0"),
        (embedding_server::url("x", "ns", 8080), "http://x.ns.svc.cluster.local:8080"),
        (mcp_registry::api("r"), "r-api"),
        (mcp_registry::config_map("r"), "r-registry-server-config"),
        (mcp_registry::service_account("r"), "r-registry-api"),
        (mcp_registry::url("r", "ns"), "http://r-api.ns:8080"),
        (redis::auth_server("ns", "x"), "thv:auth:{ns:x}:"),
        (redis::rate_limits("ns", "x"), "thv:rl:{ns:x}:"),
    ]);
    assert_eq!(
        virtual_mcp_server::CONFIG_FILE,
        format!("{}/{}", virtual_mcp_server::CONFIG_DIRECTORY, virtual_mcp_server::CONFIG_KEY)
    );
    assert_eq!(mcp_registry::CONFIG_FILE, format!("{}/{}", mcp_registry::CONFIG_DIRECTORY, mcp_registry::CONFIG_KEY));
    assert!(mcp_registry::PASSWORD_FILE.ends_with(mcp_registry::PASSWORD_KEY));
}

#[test]
fn mounted_files_have_their_paths() {
    check(&[
        (auth_server::signing_key_volume(0), "authserver-signing-key-0"),
        (auth_server::signing_key_file(1), "/etc/toolhive/authserver/keys/key-1.pem"),
        (auth_server::hmac_volume(2), "authserver-hmac-secret-2"),
        (auth_server::hmac_file(0), "/etc/toolhive/authserver/hmac/hmac-0"),
        (auth_server::redirect_uri("https://a.example/mcp//"), "https://a.example/mcp/oauth/callback"),
        (ca_bundle::oidc_volume("cm"), "oidc-ca-bundle-cm"),
        (ca_bundle::oidc_file("cm", ""), "/config/certs/cm/ca.crt"),
        (ca_bundle::telemetry_volume("cm"), "otel-ca-bundle-cm"),
        (ca_bundle::telemetry_file("cm", "root.pem"), "/config/certs/otel/cm/root.pem"),
        (ca_bundle::entry_volume("e"), "ca-bundle-e"),
        (ca_bundle::entry_file("e", ""), "/etc/toolhive/ca-bundles/e/ca.crt"),
        (annotations::field_path(annotations::MCP_SERVER_GENERATION), GENERATION_FIELD),
    ]);
    assert!(auth_server::REDIS_CA_FILE.ends_with(auth_server::REDIS_CA_KEY));
    assert!(auth_server::SENTINEL_CA_FILE.ends_with(auth_server::SENTINEL_CA_KEY));
}

const GENERATION_FIELD: &str = "metadata.annotations['toolhive.stacklok.dev/mcpserver-generation']";

#[test]
fn volumes_of_ca_bundles_fit_into_a_label() {
    let longest = "c".repeat(ca_bundle::CONFIG_MAP_NAME_LIMIT);
    assert_eq!(longest.len(), 48);
    assert_eq!(ca_bundle::oidc_volume(&longest).len(), LABEL_LIMIT);
    assert_eq!(ca_bundle::telemetry_volume(&longest).len(), LABEL_LIMIT);

    let fitting = "e".repeat(53);
    assert_eq!(ca_bundle::entry_volume(&fitting), format!("ca-bundle-{fitting}"));
    // SHA-256 of 54 times `e`.
    assert_eq!(ca_bundle::entry_volume(&"e".repeat(54)), format!("ca-bundle-{}-{ENTRY_DIGEST}", "e".repeat(44)));
    let hyphens = format!("{}--{}", "e".repeat(42), "f".repeat(20));
    assert!(ca_bundle::entry_volume(&hyphens).starts_with(&format!("ca-bundle-{}-", "e".repeat(42))));
    assert!(!ca_bundle::entry_volume(&hyphens).contains("--"));
    // SHA-256 of `root.ca`.
    assert_eq!(ca_bundle::oidc_volume("root.ca"), "oidc-ca-bundle-root-ca-b9488fa6");
    assert_ne!(ca_bundle::telemetry_volume("root.ca"), ca_bundle::telemetry_volume("root-ca"));
}

const ENTRY_DIGEST: &str = "37989597";

#[test]
fn resource_url_is_the_service_unless_the_audience_is_the_old_one() {
    let url = |audience| default_resource_url("vmcp-x", "x", "ns", 4483, audience);
    assert_eq!(url("api"), "http://vmcp-x.ns.svc.cluster.local:4483");
    assert_eq!(url("http://x.ns.svc.cluster.local:4483"), "http://x.ns.svc.cluster.local:4483");
}

#[test]
fn variables_have_their_names() {
    check(&[
        (env::sanitize("my-hmac.key_2é"), "MY_HMAC_KEY_2_"),
        (env::secret("my-token"), "TOOLHIVE_SECRET_my-token"),
        (env::workload_secret("X"), "TOOLHIVE_SECRET___thv_workloads_X"),
        (env::header_forward_identifier("X-Api-Key", "my.proxy"), "HEADER_FORWARD_X_API_KEY_MY_PROXY"),
        (env::header_forward_secret("X-Api-Key", "my-proxy"), "TOOLHIVE_SECRET_HEADER_FORWARD_X_API_KEY_MY_PROXY"),
        (env::header_forward_manifest("my-entry"), "TOOLHIVE_HEADER_FORWARD_MY_ENTRY"),
        (env::telemetry_header("x-honeycomb-team"), "TOOLHIVE_OTEL_HEADER_X_HONEYCOMB_TEAM"),
        (env::token_exchange_client_secret("my-cfg"), "TOOLHIVE_TOKEN_EXCHANGE_CLIENT_SECRET_MY_CFG"),
        (env::header_injection_value("my-cfg"), "TOOLHIVE_HEADER_INJECTION_VALUE_MY_CFG"),
        (env::xaa_idp_client_secret("my-cfg"), "TOOLHIVE_XAA_IDP_CLIENT_SECRET_MY_CFG"),
        (env::xaa_target_client_secret("my-cfg"), "TOOLHIVE_XAA_TARGET_CLIENT_SECRET_MY_CFG"),
        (env::upstream_client_secret("my-idp"), "TOOLHIVE_UPSTREAM_CLIENT_SECRET_MY_IDP"),
        (env::upstream_initial_access_token("my-idp"), "TOOLHIVE_UPSTREAM_DCR_INITIAL_ACCESS_TOKEN_MY_IDP"),
        (env::delegate_client_secret(0), "TOOLHIVE_DELEGATE_CLIENT_SECRET_0"),
        (env::resource_attributes("x", "ns"), "service.name=x,service.namespace=ns"),
    ]);
}

#[test]
fn a_telemetry_header_is_found_again_by_its_variable() {
    for (variable, header) in [
        ("TOOLHIVE_OTEL_HEADER_X_HONEYCOMB_TEAM", Some("x-honeycomb-team")),
        ("TOOLHIVE_OTEL_HEADER_", None),
        ("OTEL_HEADER_X", None),
    ] {
        assert_eq!(env::telemetry_header_name(variable).as_deref(), header, "{variable}");
    }
}

#[test]
fn a_bearer_secret_has_an_alias_only_when_its_name_is_not_portable() {
    assert_eq!(env::secret_alias("my-hmac.key"), Some("TOOLHIVE_SECRET_MY_HMAC_KEY".to_owned()));
    assert_eq!(env::secret_alias("token"), None);
}

#[test]
fn derived_and_fixed_variables_are_portable() {
    for text in ["", "a-b.c", "ÄÖ/ü", "0", "x y", "日本"] {
        for name in [
            env::header_forward_secret(text, text),
            env::header_forward_manifest(text),
            env::telemetry_header(text),
            env::token_exchange_client_secret(text),
            env::header_injection_value(text),
            env::xaa_idp_client_secret(text),
            env::xaa_target_client_secret(text),
            env::upstream_client_secret(text),
            env::upstream_initial_access_token(text),
        ] {
            assert!(env::is_portable(&name), "{name}");
        }
    }
    for list in [env::operator::ALL, env::runner::ALL, env::virtual_mcp::ALL, env::backend::ALL] {
        assert!(list.iter().all(|name| env::is_portable(name)));
    }
    assert!(!env::is_portable("") && !env::is_portable("0A") && !env::is_portable("A-B"));
}

#[test]
fn webhook_secrets_are_files_without_the_name_of_the_secret() {
    let identifier = webhook_secret::identifier(List::Validating, "val-1.x", Purpose::Hmac, "my-secret", "key");
    let digits = identifier.strip_prefix("WEBHOOK_VALIDATING_VAL_1_X_HMAC_").unwrap();
    assert_eq!(digits.len(), 16);
    assert_eq!(
        webhook_secret::file(&identifier, Purpose::Hmac),
        format!("/etc/toolhive/webhooks/webhook_validating_val_1_x_hmac_{}/hmac", digits.to_ascii_lowercase())
    );
    assert_eq!(webhook_secret::volume(&identifier).len(), "whsec-".len() + 12);
    assert_ne!(
        identifier,
        webhook_secret::identifier(List::Validating, "val-1.x", Purpose::Hmac, "my-secret", "other")
    );
}

#[test]
fn webhook_secrets_sort_by_list_webhook_and_purpose() {
    let id = |list, webhook, purpose| webhook_secret::identifier(list, webhook, purpose, "s", "k");
    let sorted = [
        id(List::Mutating, "mut1", Purpose::TlsCa),
        id(List::Mutating, "mut1", Purpose::TlsClientCert),
        id(List::Mutating, "mut1", Purpose::TlsClientKey),
        id(List::Validating, "ab", Purpose::Hmac),
        id(List::Validating, "a", Purpose::Hmac),
    ];
    assert!(sorted.is_sorted());
    let files = [Purpose::Hmac, Purpose::TlsCa, Purpose::TlsClientCert, Purpose::TlsClientKey].map(Purpose::file_name);
    assert_eq!(files, ["hmac", "ca.crt", "tls.crt", "tls.key"]);
}

#[test]
fn label_sets_are_complete() {
    check(&[
        (
            labels::selector_text(&labels::mcp_server("x")),
            "app=mcpserver,app.kubernetes.io/instance=x,app.kubernetes.io/name=mcpserver,toolhive=true,toolhive-name=x",
        ),
        (
            labels::selector_text(&labels::mcp_remote_proxy("x")),
            "app=mcpremoteproxy,app.kubernetes.io/instance=x,app.kubernetes.io/name=mcpremoteproxy,toolhive=true,\
             toolhive-name=x",
        ),
        (
            labels::selector_text(&labels::virtual_mcp_server("x")),
            "app=virtualmcpserver,app.kubernetes.io/instance=x,app.kubernetes.io/name=virtualmcpserver,\
             toolhive=true,toolhive-name=x",
        ),
        (
            labels::selector_text(&labels::embedding_server("x")),
            "app.kubernetes.io/component=embedding-server,app.kubernetes.io/instance=x,\
             app.kubernetes.io/managed-by=toolhive-operator,app.kubernetes.io/name=embeddingserver",
        ),
        (
            labels::selector_text(&labels::mcp_registry_child("r", "r-api")),
            "app.kubernetes.io/component=registry-api,app.kubernetes.io/managed-by=toolhive-operator,\
             app.kubernetes.io/name=r-api,toolhive.stacklok.io/registry-name=r",
        ),
        (
            labels::selector_text(&labels::mcp_registry_selector("r")),
            "app.kubernetes.io/component=registry-api,app.kubernetes.io/name=r-api",
        ),
        (
            labels::selector_text(&labels::session_secret("x")),
            "app.kubernetes.io/component=session-security,app.kubernetes.io/instance=x,\
             app.kubernetes.io/managed-by=toolhive-operator,app.kubernetes.io/name=virtualmcpserver",
        ),
    ]);
}

#[test]
fn labels_of_config_maps_and_backends_are_complete() {
    check(&[
        (
            labels::selector_text(&labels::mcp_server_run_config("x")),
            "toolhive.stacklok.io/component=run-config,toolhive.stacklok.io/managed-by=toolhive-operator,\
             toolhive.stacklok.io/mcp-server=x",
        ),
        (
            labels::selector_text(&labels::mcp_remote_proxy_run_config("x")),
            "toolhive.stacklok.io/component=run-config,toolhive.stacklok.io/managed-by=toolhive-operator,\
             toolhive.stacklok.io/mcp-remote-proxy=x",
        ),
        (
            labels::selector_text(&labels::virtual_mcp_server_config("x")),
            "toolhive.stacklok.io/component=vmcp-config,toolhive.stacklok.io/managed-by=toolhive-operator,\
             toolhive.stacklok.io/virtual-mcp-server=x",
        ),
        (
            labels::selector_text(&labels::backend(labels::container("x", "sse", 8080), "x")),
            "app=x,toolhive=true,toolhive-basename=x,toolhive-name=x,toolhive-port=8080,toolhive-transport=sse",
        ),
        (labels::selector_text(&labels::backend_selector("x")), "app=x"),
    ]);
    let inline = labels::inline_authz(labels::mcp_server("x"));
    assert_eq!(inline.len(), 6);
    assert_eq!(inline["toolhive.stacklok.io/authz"], "inline");
}

#[test]
fn names_that_would_select_foreign_pods_are_reserved() {
    for name in ["mcpserver", "mcpremoteproxy", "virtualmcpserver"] {
        assert!(mcp_server::is_reserved(name));
    }
    assert!(!mcp_server::is_reserved("github"));
}

#[test]
fn no_list_has_a_name_twice() {
    let variables = [env::operator::ALL, env::runner::ALL, env::virtual_mcp::ALL, env::backend::ALL].concat();
    for list in
        [&variables[..], annotations::ALL, finalizers::ALL, labels::ALL, events::reasons::ALL, events::actions::ALL]
    {
        assert_eq!(list.iter().collect::<BTreeSet<_>>().len(), list.len());
    }
}
