//! Rules that the files alone do not show: orders, who wins, how many.

use k8s_openapi::api::core::v1::EnvVar;
use serde_json::{Value, json};
use skep_api::names::annotations;

use super::{CHECKSUM, built, everything, sample};
use crate::proxy::pod::samples::Sample;
use crate::proxy::run_config;

fn environment(sample: &Sample) -> Vec<EnvVar> {
    built(sample).spec.unwrap().template.spec.unwrap().containers.remove(0).env.unwrap()
}

fn names(sample: &Sample) -> Vec<String> {
    environment(sample).into_iter().map(|variable| variable.name).collect()
}

#[test]
fn variables_of_a_server_are_in_order() {
    let options = ["telemetry", "token_exchange", "oidc", "overrides", "redis", "auth_server_ref"];
    let expected = [
        "OTEL_RESOURCE_ATTRIBUTES",
        "TOOLHIVE_OTEL_HEADER_X_TEAM",
        "TOOLHIVE_TOKEN_EXCHANGE_CLIENT_SECRET",
        "TOOLHIVE_OIDC_CLIENT_SECRET",
        "HTTPS_PROXY",
        "HOME",
        "EMPTY",
        "TOOLHIVE_SECRETS_PROVIDER",
        "THV_SESSION_REDIS_PASSWORD",
        "THV_MCPSERVER_GENERATION",
        "TOOLHIVE_UPSTREAM_CLIENT_SECRET_MY_IDP",
        "TOOLHIVE_UPSTREAM_DCR_INITIAL_ACCESS_TOKEN_MY_IDP",
        "TOOLHIVE_DELEGATE_CLIENT_SECRET_0",
        "TOOLHIVE_AUTH_SERVER_REDIS_USERNAME",
        "TOOLHIVE_AUTH_SERVER_REDIS_PASSWORD",
        "XDG_CONFIG_HOME",
        "TOOLHIVE_RUNTIME",
        "UNSTRUCTURED_LOGS",
    ];
    assert_eq!(names(&sample(false, &options)), expected);
    let generation = environment(&sample(false, &[])).remove(0);
    let expected = json!({"name": "THV_MCPSERVER_GENERATION", "valueFrom": {"fieldRef": {"apiVersion": "v1",
        "fieldPath": "metadata.annotations['toolhive.stacklok.dev/mcpserver-generation']"}}});
    assert_eq!(serde_json::to_value(generation).unwrap(), expected);
}

#[test]
fn variables_of_a_remote_proxy_are_in_order() {
    let options = ["telemetry", "bearer_token", "oidc", "header_forward", "overrides", "redis", "auth_server_ref"];
    let expected = [
        "OTEL_RESOURCE_ATTRIBUTES",
        "TOOLHIVE_OTEL_HEADER_X_TEAM",
        "TOOLHIVE_OIDC_CLIENT_SECRET",
        "TOOLHIVE_SECRET_my-token.1",
        "TOOLHIVE_SECRET_MY_TOKEN_1",
        "TOOLHIVE_SECRET_HEADER_FORWARD_X_API_KEY_GITHUB",
        "TOOLHIVE_SECRET_HEADER_FORWARD_X_OTHER_GITHUB",
        "HTTPS_PROXY",
        "HOME",
        "EMPTY",
        "THV_SESSION_REDIS_PASSWORD",
        "XDG_CONFIG_HOME",
        "TOOLHIVE_RUNTIME",
        "UNSTRUCTURED_LOGS",
        "TOOLHIVE_SECRETS_PROVIDER",
        "TOOLHIVE_UPSTREAM_CLIENT_SECRET_MY_IDP",
        "TOOLHIVE_UPSTREAM_DCR_INITIAL_ACCESS_TOKEN_MY_IDP",
        "TOOLHIVE_DELEGATE_CLIENT_SECRET_0",
        "TOOLHIVE_AUTH_SERVER_REDIS_USERNAME",
        "TOOLHIVE_AUTH_SERVER_REDIS_PASSWORD",
    ];
    assert_eq!(names(&sample(true, &options)), expected);
}

#[test]
fn the_last_of_several_equal_variables_counts() {
    for remote in [false, true] {
        let variables = environment(&sample(remote, &["overrides", "redis", "bearer_token"]));
        let value = |name: &str| variables.iter().find(|variable| variable.name == name).unwrap().clone();
        assert!(value("THV_SESSION_REDIS_PASSWORD").value_from.is_some());
        assert_eq!(value("TOOLHIVE_SECRETS_PROVIDER").value.as_deref(), Some("environment"));
        assert_eq!(value("HOME").value.as_deref(), Some("/home"));
        assert_eq!(value("EMPTY").value, None);
    }
}

#[test]
fn sessions_in_memory_stay_there() {
    for remote in [false, true] {
        let mut sample = sample(remote, &["default_redis"]);
        assert!(names(&sample).contains(&"THV_SESSION_REDIS_PASSWORD".to_owned()));
        sample.spec["sessionStorage"] = json!({"provider": "memory"});
        assert!(!names(&sample).contains(&"THV_SESSION_REDIS_PASSWORD".to_owned()));
    }
}

#[test]
fn keys_of_users_never_replace_ours() {
    for remote in [false, true] {
        let found = built(&sample(remote, &["overrides", "pod_template"]));
        let template = found.spec.as_ref().unwrap().template.metadata.clone().unwrap();
        let annotations = template.annotations.unwrap();
        assert_eq!(annotations[annotations::RUN_CONFIG_CHECKSUM], CHECKSUM);
        assert!(!annotations.contains_key("note"), "an annotation of the Deployment is on the pods");
        let mut expected = vec!["mesh", annotations::RUN_CONFIG_CHECKSUM];
        if remote {
            expected.insert(1, "scrape");
        } else {
            expected.insert(1, annotations::MCP_SERVER_GENERATION);
        }
        assert_eq!(annotations.keys().collect::<Vec<_>>(), expected);
        let labels = template.labels.unwrap();
        let selector = found.spec.as_ref().unwrap().selector.match_labels.as_ref().unwrap();
        assert!(selector.iter().all(|(name, value)| labels.get(name) == Some(value)), "{labels:?}");
        assert_eq!((selector.len(), labels["tier"].as_str()), (5, "b"));
        let hash = found.metadata.annotations.as_ref().unwrap().get(annotations::POD_TEMPLATE_SPEC_HASH).unwrap();
        assert_eq!(hash.len() == 64, remote, "{hash}");
    }
}

#[test]
fn a_stdio_server_has_at_most_one_proxy() {
    for (options, expected) in [
        (&["replicas"][..], Some(3)),
        (&["replicas", "stdio"], Some(1)),
        (&["replicas_none", "stdio"], Some(0)),
        (&["stdio"], None),
    ] {
        assert_eq!(built(&sample(false, options)).spec.unwrap().replicas, expected, "{options:?}");
    }
    assert_eq!(built(&sample(true, &["replicas", "stdio"])).spec.unwrap().replicas, Some(3));
}

/// A file that is mounted by its `subPath` stays what it was when the pod began.
#[test]
fn keys_of_webhooks_follow_their_secrets() {
    let pod = built(&sample(false, &["webhooks"])).spec.unwrap().template.spec.unwrap();
    let (container, volumes) = (&pod.containers[0], pod.volumes.as_ref().unwrap());
    let mut files = Vec::new();
    for mount in container.volume_mounts.iter().flatten().filter(|mount| mount.name.starts_with("whsec-")) {
        assert_eq!((mount.sub_path.as_ref(), mount.read_only), (None, Some(true)), "{mount:?}");
        let volume = volumes.iter().find(|volume| volume.name == mount.name).unwrap();
        let items = volume.secret.as_ref().unwrap().items.as_ref().unwrap();
        files.extend(items.iter().map(|item| format!("{}/{}", mount.mount_path, item.path)));
    }
    let document = sample(false, &["webhooks"]).with_inputs(|inputs| run_config::build(inputs).unwrap());
    let hooks = document.mutating_webhooks.iter().chain(&document.validating_webhooks);
    let named = hooks.flat_map(|hook| {
        let tls = hook.tls_config.iter();
        let tls = tls.flat_map(|tls| [&tls.ca_bundle_path, &tls.client_cert_path, &tls.client_key_path]);
        std::iter::once(&hook.hmac_secret_ref).chain(tls)
    });
    assert_eq!(files, named.filter(|path| !path.is_empty()).cloned().collect::<Vec<_>>());
}

#[test]
fn a_pod_patch_says_something_or_is_absent() {
    let mut quiet = sample(false, &[]);
    quiet.spec["serviceAccount"] = json!("");
    quiet.spec["podTemplateSpec"] = json!({"metadata": {}, "spec": {"containers": null}});
    assert_eq!(everything(&quiet)["podPatch"], Value::Null);
    assert_eq!(everything(&quiet)["serviceAccounts"].as_array().unwrap().len(), 1);
    let container = built(&quiet).spec.unwrap().template.spec.unwrap().containers.remove(0);
    assert_eq!(container.args.unwrap(), ["run", "example.com/server:1"]);

    let patch = everything(&sample(false, &["secrets", "pod_template", "service_account"]))["podPatch"].clone();
    assert_eq!(patch["spec"]["serviceAccountName"], "theirs");
    let env: Vec<&str> = patch["spec"]["containers"][0]["env"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|item| item["name"].as_str())
        .collect();
    assert_eq!(env, ["EXTRA", "TOKEN", "OTHER"]);
}
