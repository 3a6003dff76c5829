//! What is built for a document.

use serde_json::{Value, json};
use skep_api::config::run_config::RunConfig;

use super::{RunnerError, services, stateful_set};

fn config(changes: &Value) -> RunConfig {
    let mut document = json!({
        "name": "n", "image": "acme/server:1", "transport": "sse", "target_port": 9000, "mcpserver_generation": 7,
        "container_labels": {"toolhive-name": "n", "team": "bees"}, "cmd_args": ["--last"],
        "env_vars": {"ZED": "z", "ALPHA": "a", "MCP_PORT": "1", "MCP_TRANSPORT": "carrier-pigeon"},
    });
    for (name, value) in changes.as_object().unwrap() {
        document[name] = value.clone();
    }
    RunConfig::from_json(&document.to_string()).unwrap()
}

fn container(object: &Value) -> &Value {
    let containers = object["spec"]["template"]["spec"]["containers"].as_array().unwrap();
    containers.iter().find(|container| container["name"] == "mcp").unwrap()
}

fn variables(object: &Value) -> Vec<(String, Value)> {
    let env = container(object)["env"].as_array().unwrap();
    env.iter().map(|entry| (entry["name"].as_str().unwrap().to_owned(), entry["value"].clone())).collect()
}

#[test]
fn a_document_becomes_a_stateful_set() {
    let object = stateful_set(&config(&json!({})), false).unwrap();
    let labels = json!({"app": "n", "toolhive": "true", "toolhive-name": "n", "team": "bees"});
    assert_eq!(object["metadata"], json!({"name": "n", "labels": labels}));
    assert_eq!(object["spec"]["selector"], json!({"matchLabels": {"app": "n"}}));
    assert_eq!(object["spec"]["serviceName"], "n");
    assert_eq!(object["spec"].get("replicas"), None, "their number is somebody else's");
    let template = &object["spec"]["template"];
    assert_eq!(template["metadata"]["labels"], labels);
    assert_eq!(template["metadata"]["annotations"], json!({"toolhive.stacklok.dev/mcpserver-generation": "7"}));
    assert_eq!(template["spec"]["restartPolicy"], "Always");
    assert_eq!(template["spec"]["securityContext"]["fsGroup"], 1000);
    let server = container(&object);
    assert_eq!((&server["image"], &server["args"]), (&json!("acme/server:1"), &json!(["--last"])));
    assert_eq!((&server["stdin"], &server["tty"]), (&json!(false), &json!(false)));
    assert_eq!(server["ports"], json!([{"containerPort": 9000, "protocol": "TCP"}]));
    assert_eq!(server["securityContext"]["readOnlyRootFilesystem"], true);
    let expected = [("ALPHA", "a"), ("FASTMCP_PORT", "9000"), ("MCP_HOST", "0.0.0.0"), ("MCP_PORT", "9000")];
    let expected = expected.into_iter().chain([("MCP_TRANSPORT", "sse"), ("ZED", "z")]);
    let expected: Vec<_> = expected.map(|(name, value)| (name.to_owned(), json!(value))).collect();
    assert_eq!(variables(&object), expected);
}

#[test]
fn a_server_on_standard_streams_has_no_ports() {
    let stdio =
        config(&json!({"transport": "stdio", "mcpserver_generation": 0, "scaling_config": {"backend_replicas": 0}}));
    let object = stateful_set(&stdio, false).unwrap();
    let server = container(&object);
    assert_eq!((&server["stdin"], server.get("ports")), (&json!(true), None));
    assert_eq!(object["spec"]["replicas"], 0);
    assert_eq!(object["spec"]["template"]["metadata"].get("annotations"), None, "there is no generation to tell");
    assert!(variables(&object).iter().all(|(name, _)| name != "MCP_HOST" && name != "FASTMCP_PORT"));
    assert_eq!(services(&stdio).unwrap(), Vec::<Value>::new());
}

#[test]
fn what_the_user_says_about_pods_is_kept() {
    let patch = json!({
        "metadata": {"labels": {"app": "mine", "own": "label"}, "annotations": {"own": "annotation"}},
        "spec": {
            "novel": true, "securityContext": {"runAsUser": 7},
            "containers": [
                {"name": "sidecar", "image": "other"},
                {"name": "mcp", "image": "mine", "args": ["--first"], "stdin": true, "resources": {"limits": {"cpu": "1"}},
                    "env": [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                        {"name": "ZED", "value": "mine"}],
                    "securityContext": {"readOnlyRootFilesystem": false}},
            ],
        },
    });
    let patched = config(&json!({"k8s_pod_template_patch": patch.to_string()}));
    let object = stateful_set(&patched, false).unwrap();
    let template = &object["spec"]["template"];
    assert_eq!(
        (&template["metadata"]["labels"]["app"], &template["metadata"]["labels"]["own"]),
        (&json!("n"), &json!("label"))
    );
    assert_eq!(template["metadata"]["annotations"]["own"], "annotation");
    assert_eq!(
        (&template["spec"]["novel"], &template["spec"]["containers"][0]["name"]),
        (&json!(true), &json!("sidecar"))
    );
    let rights = &template["spec"]["securityContext"];
    assert_eq!((&rights["runAsUser"], &rights["runAsGroup"]), (&json!(7), &json!(1000)));
    let server = container(&object);
    assert_eq!((&server["image"], &server["args"]), (&json!("acme/server:1"), &json!(["--first", "--last"])));
    assert_eq!((&server["stdin"], &server["resources"]["limits"]["cpu"]), (&json!(false), &json!("1")));
    assert_eq!(server["securityContext"]["readOnlyRootFilesystem"], false);
    let names: Vec<_> = variables(&object).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["KEY", "ALPHA", "FASTMCP_PORT", "MCP_HOST", "MCP_PORT", "MCP_TRANSPORT", "ZED"]);
}

#[test]
fn trap_65_equal_documents_make_equal_pods() {
    let variables = |order: &[&str]| {
        let entries: Vec<String> = order.iter().map(|name| format!("{name:?}: \"1\"")).collect();
        let text = format!(
            r#"{{"name": "n", "transport": "sse", "target_port": 8080, "env_vars": {{{}}}}}"#,
            entries.join(", ")
        );
        stateful_set(&RunConfig::from_json(&text).unwrap(), false).unwrap().to_string()
    };
    assert_eq!(variables(&["C", "A", "B"]), variables(&["B", "C", "A"]));
}

#[test]
fn trap_69_pods_are_restricted_and_openshift_chooses_their_users() {
    let object = stateful_set(&config(&json!({})), false).unwrap();
    let (pod, server) = (&object["spec"]["template"]["spec"], container(&object));
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    assert_eq!(server["securityContext"]["allowPrivilegeEscalation"], false);
    assert_eq!(server["securityContext"]["capabilities"]["drop"], json!(["ALL"]));
    let chosen = json!({"runAsUser": 7, "runAsGroup": 7, "fsGroup": 7});
    let patch =
        json!({"spec": {"securityContext": chosen, "containers": [{"name": "mcp", "securityContext": chosen}]}});
    let object = stateful_set(&config(&json!({"k8s_pod_template_patch": patch.to_string()})), true).unwrap();
    for rights in [&object["spec"]["template"]["spec"]["securityContext"], &container(&object)["securityContext"]] {
        assert!(chosen.as_object().unwrap().keys().all(|name| rights.get(name).is_none()), "{rights}");
        assert_eq!(rights["runAsNonRoot"], true);
    }
}

#[test]
fn pods_of_sessions_end_when_they_are_left() {
    let patch = json!({"metadata": {"annotations": {"toolhive.stacklok.dev/stdio-process-per-session": "true"}}});
    for (replicas, expected) in [(3, json!(true)), (1, Value::Null)] {
        let document = json!({"transport": "stdio", "k8s_pod_template_patch": patch.to_string(),
            "scaling_config": {"backend_replicas": replicas}});
        let object = stateful_set(&config(&document), false).unwrap();
        assert_eq!(container(&object)["stdinOnce"], expected, "{replicas}");
    }
}

#[test]
fn a_patch_that_is_none_is_refused_without_repeating_it() {
    for patch in ["[hunter2", "[]", r#"{"spec": {"containers": {"hunter2": 1}}}"#, r#"{"metadata": "hunter2"}"#] {
        let error = stateful_set(&config(&json!({"k8s_pod_template_patch": patch})), false).unwrap_err();
        assert!(matches!(error, RunnerError::Patch(_)), "{error}");
        assert!(error.to_string().contains("--k8s-pod-patch") && !error.to_string().contains("hunter2"), "{error}");
    }
}

#[test]
fn services_lead_to_the_pods() {
    let published = config(&json!({"target_port": 31000, "publish": ["30080:80", "31000", "9:90"]}));
    let [headless, balancing] = services(&published).unwrap().try_into().unwrap();
    assert_eq!(headless["metadata"]["name"], "mcp-n-headless");
    assert_eq!(headless["spec"]["clusterIP"], "None");
    assert_eq!(headless["metadata"]["annotations"], json!({"toolhive.stacklok.dev/mcpserver-generation": "7"}));
    let numbers = |service: &Value| -> Vec<(Value, Value)> {
        let ports = service["spec"]["ports"].as_array().unwrap();
        ports.iter().map(|port| (port["port"].clone(), port["nodePort"].clone())).collect()
    };
    let null = || Value::Null;
    assert_eq!(numbers(&headless), [(json!(31000), null()), (json!(80), null()), (json!(90), null())]);
    assert_eq!(numbers(&balancing), [(json!(31000), null()), (json!(80), json!(30080)), (json!(90), null())]);
    assert_eq!((&balancing["metadata"]["name"], &balancing["spec"]["type"]), (&json!("mcp-n"), &json!("NodePort")));
    assert_eq!(balancing["spec"]["sessionAffinityConfig"], json!({"clientIP": {"timeoutSeconds": 1800}}));
    assert_eq!(balancing["spec"]["ports"][1]["name"], "port-80");
    for (outer, type_) in [(8080, "ClusterIP"), (29999, "ClusterIP"), (30000, "NodePort"), (32768, "ClusterIP")] {
        let published = config(&json!({"target_port": outer, "publish": [format!("{outer}:80")]}));
        let [headless, balancing] = services(&published).unwrap().try_into().unwrap();
        assert_eq!((&headless["spec"]["type"], &balancing["spec"]["type"]), (&null(), &json!(type_)), "{outer}");
        let [_, alone] = services(&config(&json!({"target_port": outer}))).unwrap().try_into().unwrap();
        assert_eq!(alone["spec"]["type"], "ClusterIP", "{outer} is not published");
    }
    for bad in ["x", "1:2:3", "0", ":80", "80:", "70000"] {
        let error = services(&config(&json!({"publish": [bad]}))).unwrap_err().to_string();
        assert!(error.contains(&format!("{bad:?}")), "{error}");
    }
}
