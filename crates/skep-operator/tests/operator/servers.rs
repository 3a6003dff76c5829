//! MCPServers: what is created for them, what survives, what is told, and that nothing is written at rest.

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Service, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use skep_api::conditions::{self, ConditionStatus};
use skep_api::kinds::mcp_server::MCPServerPhase;
use skep_api::kinds::{MCPOIDCConfig, MCPServer, MCPWebhookConfig};
use skep_api::names::{annotations, finalizers};

use crate::cluster::Fixture;
use crate::trials;

trials![
    everything_is_created_and_owned,
    nothing_is_written_at_rest,
    a_change_rolls_the_proxy,
    a_bad_pod_template_is_told_once_and_heals,
    what_others_write_survives,
    a_missing_reference_heals_when_it_appears,
    a_reference_that_breaks_leaves_the_pods_alone,
    deletion_takes_everything_along,
    children_of_others_are_left_alone,
    a_restart_is_carried_out_once,
    replicas_belong_to_whoever_sets_them,
    what_is_no_longer_wanted_goes,
    bad_names_are_told,
];

const CHECKSUM: &str = annotations::RUN_CONFIG_CHECKSUM;
const GENERATION: &str = annotations::MCP_SERVER_GENERATION;

fn condition(server: &MCPServer, type_: &str) -> Option<(ConditionStatus, String, String)> {
    let conditions = server.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let found = conditions::find(conditions, type_)?;
    Some((found.status, found.reason.clone(), found.message.clone()))
}

fn phase(server: &MCPServer) -> Option<MCPServerPhase> {
    server.status.as_ref()?.phase
}

/// Whether everything of the server is in place: it has an address, and no pods, since there is no node.
pub fn is_settled(server: &MCPServer) -> bool {
    server.status.as_ref().is_some_and(|status| {
        status.observed_generation == server.metadata.generation
            && status.phase == Some(MCPServerPhase::Pending)
            && status.url.is_some()
    })
}

fn template_annotations(deployment: &Value) -> Value {
    deployment["spec"]["template"]["metadata"]["annotations"].clone()
}

pub async fn settled(fixture: &Fixture, name: &str) -> MCPServer {
    fixture.until::<MCPServer>(name, "settled", is_settled).await
}

async fn everything_is_created_and_owned(fixture: Fixture) {
    let (_operator, _record) = fixture.operator().await;
    let server = fixture.create::<MCPServer>("s", json!({"image": "example/mcp:1", "args": ["--x"]})).await;
    let server = fixture.until::<MCPServer>(&server.metadata.name.unwrap(), "settled", is_settled).await;
    for child in [
        fixture.child::<Deployment>("s").await,
        fixture.child::<Service>("mcp-s-proxy").await,
        fixture.child::<ServiceAccount>("s-proxy-runner").await,
        fixture.child::<ServiceAccount>("s-sa").await,
        fixture.child::<Role>("s-proxy-runner").await,
        fixture.child::<RoleBinding>("s-proxy-runner").await,
        fixture.child::<ConfigMap>("s-runconfig").await,
    ] {
        let owner = json!([{"apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer", "name": "s",
            "uid": server.metadata.uid, "controller": true, "blockOwnerDeletion": true}]);
        assert_eq!(child["metadata"]["ownerReferences"], owner, "{child}");
    }
    let deployment = fixture.child::<Deployment>("s").await;
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["serviceAccountName"], "s-proxy-runner");
    let arguments: Vec<&str> =
        pod["containers"][0]["args"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!((arguments[0], arguments[arguments.len() - 1]), ("run", "example/mcp:1"));
    let generation = pod["containers"][0]["env"].as_array().unwrap();
    let generation = generation.iter().find(|env| env["name"] == "THV_MCPSERVER_GENERATION").unwrap();
    let path = format!("metadata.annotations['{GENERATION}']");
    assert_eq!(generation["valueFrom"]["fieldRef"], json!({"apiVersion": "v1", "fieldPath": path}));
    let config = fixture.child::<ConfigMap>("s-runconfig").await;
    let noted = template_annotations(&deployment);
    assert_eq!(noted[CHECKSUM], config["metadata"]["annotations"][annotations::CONTENT_CHECKSUM]);
    assert_eq!(noted[GENERATION], "1");
    let status = server.status.as_ref().unwrap();
    let url = format!("http://mcp-s-proxy.{}.svc.cluster.local:8080/mcp", fixture.namespace);
    assert_eq!(status.url.as_deref(), Some(url.as_str()));
    // Pods may be there already; there is no node that runs them.
    let message = status.message.as_deref().unwrap_or_default();
    assert!(["MCP server is being created", "MCP server is starting"].contains(&message), "{message}");
    for type_ in ["Ready", "StdioReplicaCapped", "SessionStorageWarning", "RateLimitConfigValid"] {
        assert!(condition(&server, type_).is_some(), "{type_}");
    }
}

async fn nothing_is_written_at_rest(fixture: Fixture) {
    let (operator, record) = fixture.operator().await;
    let spec = json!({"image": "i", "transport": "sse", "replicas": 2, "resources": {"limits": {"cpu": "1000m", "memory": "1Gi"}},
        "env": [{"name": "A", "value": "b"}], "volumes": [{"name": "v", "hostPath": "/h", "mountPath": "/m"}],
        "authzConfig": {"type": "inline", "inline": {"policies": ["permit(principal, action, resource);"]}},
        "sessionStorage": {"provider": "redis", "address": "r:6379", "passwordRef": {"name": "p", "key": "k"}},
        "resourceOverrides": {"proxyDeployment": {"labels": {"x": "y"}, "annotations": {"a": "b"},
            "podTemplateMetadataOverrides": {"labels": {"l": "m"}, "annotations": {"n": "o"}},
            "env": [{"name": "E", "value": "f"}], "imagePullSecrets": [{"name": "pull"}]},
            "proxyService": {"annotations": {"s": "t"}}}});
    fixture.create::<MCPServer>("s", spec).await;
    settled(&fixture, "s").await;
    let foreign = json!({"metadata": {"labels": {"foreign": "label"}, "annotations": {"foreign": "annotation"}}});
    fixture.patch::<Deployment>("s", foreign.clone()).await;
    fixture.patch::<Service>("mcp-s-proxy", foreign.clone()).await;
    fixture.patch::<ServiceAccount>("s-proxy-runner", foreign.clone()).await;
    fixture.patch::<Role>("s-proxy-runner", foreign.clone()).await;
    fixture.patch::<RoleBinding>("s-proxy-runner", foreign.clone()).await;
    fixture.patch::<ConfigMap>("s-runconfig", foreign).await;
    let sidecar = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "s"},
        "spec": {"template": {"spec": {"containers": [{"name": "sidecar", "image": "mesh"}]}}}});
    let api: Api<Deployment> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    api.patch("s", &PatchParams::apply("mesh"), &Patch::Apply(&sidecar)).await.unwrap();
    fixture.quiet(&record).await;
    let before = record.writes().len();
    for round in 0..3 {
        let passes = crate::cluster::passes(&operator, "MCPServer");
        let seen = fixture.child::<Deployment>("s").await["metadata"]["generation"].clone();
        fixture.merge::<MCPServer>("s", json!({"metadata": {"annotations": {"round": round.to_string()}}})).await;
        fixture.until_passed(&operator, "MCPServer", passes).await;
        fixture.quiet(&record).await;
        let after = record.writes();
        assert_eq!(after.len(), before, "{:#?}", &after[before..]);
        assert_eq!(fixture.child::<Deployment>("s").await["metadata"]["generation"], seen);
    }
    let deployment = fixture.child::<Deployment>("s").await;
    let names: Vec<&Value> = deployment["spec"]["template"]["spec"]["containers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|container| &container["name"])
        .collect();
    assert_eq!(names, ["toolhive", "sidecar"]);
    let mut noted: Vec<String> = template_annotations(&deployment).as_object().unwrap().keys().cloned().collect();
    noted.sort();
    assert_eq!(noted, ["n", GENERATION, CHECKSUM], "nothing leaks from the Deployment into the template");
}

async fn a_change_rolls_the_proxy(fixture: Fixture) {
    let (_operator, _record) = fixture.operator().await;
    fixture.create::<MCPServer>("s", json!({"image": "one"})).await;
    settled(&fixture, "s").await;
    let before = fixture.child::<Deployment>("s").await;
    fixture.merge::<MCPServer>("s", json!({"spec": {"image": "two"}})).await;
    let changed = |deployment: &Value| template_annotations(deployment)[GENERATION] == "2";
    let after = fixture.until_child::<Deployment>("s", "changed", changed).await;
    assert_ne!(template_annotations(&before)[CHECKSUM], template_annotations(&after)[CHECKSUM]);
    let arguments = after["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap();
    assert_eq!(arguments.last(), Some(&json!("two")));
}

async fn a_bad_pod_template_is_told_once_and_heals(fixture: Fixture) {
    let (operator, _record) = fixture.operator().await;
    fixture.create::<MCPServer>("s", json!({"image": "i", "podTemplateSpec": {"spec": {"containers": "none"}}})).await;
    let failed = |server: &MCPServer| phase(server) == Some(MCPServerPhase::Failed);
    let server = fixture.until::<MCPServer>("s", "failed", failed).await;
    let (status, reason, message) = condition(&server, "PodTemplateValid").unwrap();
    assert_eq!((status, reason.as_str()), (ConditionStatus::False, "InvalidPodTemplateSpec"));
    assert!(
        message.starts_with("Failed to parse PodTemplateSpec: ")
            && message.ends_with("Deployment blocked until fixed.")
    );
    let message = server.status.unwrap().message.unwrap();
    assert!(message.starts_with("Invalid PodTemplateSpec: failed to unmarshal PodTemplateSpec: "), "{message}");
    let passes = crate::cluster::passes(&operator, "MCPServer");
    fixture.merge::<MCPServer>("s", json!({"metadata": {"labels": {"a": "b"}}})).await;
    fixture.until_passed(&operator, "MCPServer", passes).await;
    assert!(fixture.maybe_child::<Deployment>("s").await.is_none());
    let events: Api<Event> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    let told = fixture.eventually("the event", async || {
        let events = events.list(&ListParams::default()).await.unwrap().items;
        let about: Vec<Event> =
            events.into_iter().filter(|event| event.reason.as_deref() == Some("InvalidPodTemplateSpec")).collect();
        (!about.is_empty()).then_some(about)
    });
    let told = told.await;
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].involved_object.name.as_deref(), told[0].type_.as_deref()), (Some("s"), Some("Warning")));
    fixture.merge::<MCPServer>("s", json!({"spec": {"podTemplateSpec": {"spec": {"containers": []}}}})).await;
    let healed = settled(&fixture, "s").await;
    assert_eq!(condition(&healed, "PodTemplateValid").unwrap().0, ConditionStatus::True);
    assert!(fixture.maybe_child::<Deployment>("s").await.is_some());
    fixture.merge::<MCPServer>("s", json!({"spec": {"podTemplateSpec": null}})).await;
    let without = |server: &MCPServer| is_settled(server) && condition(server, "PodTemplateValid").is_none();
    fixture.until::<MCPServer>("s", "without the condition", without).await;
}

async fn what_others_write_survives(fixture: Fixture) {
    // Another controller owns a member of the spec, and a finalizer, before the operator ever sees the object.
    let authz = json!({"type": "inline", "inline": {"policies": ["permit(principal, action, resource);"]}});
    let object = json!({"apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer",
        "metadata": {"name": "s", "finalizers": ["example.com/other"]}, "spec": {"image": "i", "authzConfig": authz}});
    let api = fixture.api::<MCPServer>();
    api.patch("s", &PatchParams::apply("other"), &Patch::Apply(&object)).await.unwrap();
    let (_operator, record) = fixture.operator().await;
    let server = settled(&fixture, "s").await;
    let finalizers = server.metadata.finalizers.clone().unwrap_or_default();
    assert_eq!(finalizers, ["example.com/other", finalizers::MCP_SERVER]);
    assert_eq!(
        serde_json::to_value(&server.spec.authz_config).unwrap()["inline"]["policies"],
        authz["inline"]["policies"]
    );
    let restart = json!({"metadata": {"annotations": {annotations::RESTARTED_AT: "2026-01-01T00:00:00Z"}}});
    fixture.merge::<MCPServer>("s", restart).await;
    let done = |server: &MCPServer| {
        let noted = server.metadata.annotations.as_ref().and_then(|all| all.get(annotations::LAST_PROCESSED_RESTART));
        noted.is_some_and(|noted| noted == "2026-01-01T00:00:00Z")
    };
    let server = fixture.until::<MCPServer>("s", "restarted", done).await;
    assert!(server.spec.authz_config.is_some());
    for sent in record.writes_to("/mcpservers/s") {
        assert_eq!(sent.content_type, "application/merge-patch+json");
        let members: Vec<&String> = sent.body.as_object().unwrap().keys().collect();
        assert_eq!(members, ["metadata"], "{sent:?}");
        assert!(sent.body["metadata"]["resourceVersion"].is_string(), "{sent:?}");
    }
    assert_eq!(record.writes_to("/mcpservers/s").len(), 2, "a finalizer and a stamp");
}

async fn a_missing_reference_heals_when_it_appears(fixture: Fixture) {
    let (_operator, record) = fixture.operator().await;
    fixture.create::<MCPServer>("s", json!({"image": "i", "webhookConfigRef": {"name": "w"}})).await;
    let failed = |server: &MCPServer| phase(server) == Some(MCPServerPhase::Failed);
    let server = fixture.until::<MCPServer>("s", "failed", failed).await;
    let (status, reason, message) = condition(&server, "Ready").unwrap();
    assert_eq!((status, reason.as_str()), (ConditionStatus::False, "NotReady"));
    assert!(message.contains("\"w\" not found"), "{message}");
    assert_eq!(condition(&server, "WebhookConfigValidated").unwrap().1, "WebhookConfigInvalid");
    let generation = server.metadata.generation;
    let hook = json!({"validating": [{"name": "v", "url": "https://hook.example/v"}]});
    fixture.create::<MCPWebhookConfig>("w", hook).await;
    let hashed = |server: &MCPServer| {
        is_settled(server) && server.status.as_ref().is_some_and(|status| status.webhook_config_hash.is_some())
    };
    let server = fixture.until::<MCPServer>("s", "healed", hashed).await;
    assert_eq!(server.metadata.generation, generation, "nobody touched the server");
    assert_eq!(condition(&server, "WebhookConfigValidated"), None);
    let config: MCPWebhookConfig = fixture.api().get("w").await.unwrap();
    assert_eq!(server.status.unwrap().webhook_config_hash, config.status.unwrap().config_hash);
    // The server's controller wrote nothing of the config.
    let config_writes = record.writes_to("/mcpwebhookconfigs/w/status");
    assert!(config_writes.iter().all(|sent| sent.body["status"].get("phase").is_none()));
}

async fn a_reference_that_breaks_leaves_the_pods_alone(fixture: Fixture) {
    let (_operator, _record) = fixture.operator().await;
    let issuer = |url: &str| json!({"type": "inline", "inline": {"issuer": url}});
    fixture.create::<MCPOIDCConfig>("o", issuer("https://one.example")).await;
    let reference = json!({"name": "o", "audience": "a"});
    fixture.create::<MCPServer>("s", json!({"image": "i", "oidcConfigRef": reference})).await;
    let server = settled(&fixture, "s").await;
    assert_eq!(condition(&server, "OIDCConfigRefValidated").unwrap().0, ConditionStatus::True);
    let before = fixture.child::<Deployment>("s").await;
    fixture.merge::<MCPOIDCConfig>("o", json!({"spec": {"inline": {"issuer": "http://one.example"}}})).await;
    let failed = |server: &MCPServer| phase(server) == Some(MCPServerPhase::Failed);
    let server = fixture.until::<MCPServer>("s", "failed", failed).await;
    let (status, reason, message) = condition(&server, "OIDCConfigRefValidated").unwrap();
    assert_eq!((status, reason.as_str()), (ConditionStatus::False, "OIDCConfigRefNotValid"));
    assert!(message.contains("insecureAllowHTTP"), "{message}");
    let after = fixture.child::<Deployment>("s").await;
    assert_eq!(before["spec"], after["spec"]);
    fixture
        .merge::<MCPOIDCConfig>(
            "o",
            issuer("https://two.example").as_object().map(|spec| json!({"spec": spec})).unwrap(),
        )
        .await;
    settled(&fixture, "s").await;
    let rolled =
        |deployment: &Value| template_annotations(deployment)[CHECKSUM] != template_annotations(&before)[CHECKSUM];
    fixture.until_child::<Deployment>("s", "rolled", rolled).await;
}

async fn deletion_takes_everything_along(fixture: Fixture) {
    let (_operator, _record) = fixture.operator().await;
    fixture.create::<MCPServer>("s", json!({"image": "i"})).await;
    settled(&fixture, "s").await;
    let backend = json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "s", "labels": {"toolhive": "true", "toolhive-name": "s"}},
        "spec": {"serviceName": "s", "selector": {"matchLabels": {"app": "s"}},
            "template": {"metadata": {"labels": {"app": "s"}}, "spec": {"containers": [{"name": "mcp", "image": "i"}]}}}});
    let sets: Api<StatefulSet> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    sets.patch("s", &PatchParams::apply("toolhive-container-manager"), &Patch::Apply(&backend)).await.unwrap();
    let adopted = |set: &Value| set["metadata"]["ownerReferences"][0]["kind"] == "MCPServer";
    fixture.until_child::<StatefulSet>("s", "adopted", adopted).await;
    fixture.delete::<MCPServer>("s").await;
    fixture.until_gone::<MCPServer>("s").await;
    fixture.until_child_gone::<StatefulSet>("s").await;
    fixture.until_child_gone::<ConfigMap>("s-runconfig").await;
    fixture.until_child_gone::<Deployment>("s").await;
    fixture.until_child_gone::<ServiceAccount>("s-sa").await;
}

async fn children_of_others_are_left_alone(fixture: Fixture) {
    let owners = json!([fixture.somebody().await]);
    let account = json!({"metadata": {"name": "s-sa", "labels": {"mine": "yes"}, "ownerReferences": owners}});
    fixture.create_child::<ServiceAccount>(account).await;
    let (_operator, _record) = fixture.operator().await;
    fixture.create::<MCPServer>("s", json!({"image": "i"})).await;
    let failed = |server: &MCPServer| phase(server) == Some(MCPServerPhase::Failed);
    let server = fixture.until::<MCPServer>("s", "failed", failed).await;
    let message = condition(&server, "Ready").unwrap().2;
    assert!(message.contains("ServiceAccount s-sa exists and belongs to ConfigMap somebody"), "{message}");
    let account = fixture.child::<ServiceAccount>("s-sa").await;
    assert_eq!(
        (&account["metadata"]["ownerReferences"], &account["metadata"]["labels"]),
        (&owners, &json!({"mine": "yes"}))
    );
    // Named in the spec it is used as it is.
    fixture.merge::<MCPServer>("s", json!({"spec": {"serviceAccount": "s-sa"}})).await;
    settled(&fixture, "s").await;
    assert_eq!(fixture.child::<ServiceAccount>("s-sa").await["metadata"]["ownerReferences"], owners);
}

async fn a_restart_is_carried_out_once(fixture: Fixture) {
    let (_operator, record) = fixture.operator().await;
    fixture.create::<MCPServer>("s", json!({"image": "i"})).await;
    settled(&fixture, "s").await;
    let ask = json!({"metadata": {"annotations": {annotations::RESTARTED_AT: "2026-02-03T04:05:06Z"}}});
    fixture.merge::<MCPServer>("s", ask).await;
    let stamped = |deployment: &Value| template_annotations(deployment)[annotations::RESTARTED_AT].is_string();
    let deployment = fixture.until_child::<Deployment>("s", "stamped", stamped).await;
    fixture.quiet(&record).await;
    let kubectl =
        json!({"spec": {"template": {"metadata": {"annotations": {annotations::KUBECTL_RESTARTED_AT: "now"}}}}});
    fixture.patch::<Deployment>("s", kubectl).await;
    fixture.quiet(&record).await;
    let after = fixture.child::<Deployment>("s").await;
    assert_eq!(template_annotations(&after)[annotations::KUBECTL_RESTARTED_AT], "now");
    assert_eq!(
        template_annotations(&after)[annotations::RESTARTED_AT],
        template_annotations(&deployment)[annotations::RESTARTED_AT]
    );
}

async fn replicas_belong_to_whoever_sets_them(fixture: Fixture) {
    let (_operator, record) = fixture.operator().await;
    fixture.create::<MCPServer>("free", json!({"image": "i", "transport": "sse"})).await;
    fixture.create::<MCPServer>("stdio", json!({"image": "i"})).await;
    settled(&fixture, "free").await;
    settled(&fixture, "stdio").await;
    fixture.patch::<Deployment>("free", json!({"spec": {"replicas": 3}})).await;
    fixture.patch::<Deployment>("stdio", json!({"spec": {"replicas": 3}})).await;
    fixture.until_child::<Deployment>("stdio", "capped", |deployment| deployment["spec"]["replicas"] == 1).await;
    fixture.merge::<MCPServer>("free", json!({"spec": {"image": "j"}})).await;
    let changed = |deployment: &Value| template_annotations(deployment)[GENERATION] == "2";
    let deployment = fixture.until_child::<Deployment>("free", "changed", changed).await;
    assert_eq!(deployment["spec"]["replicas"], 3);
    fixture.patch::<Deployment>("stdio", json!({"spec": {"replicas": 0}})).await;
    let stopped = |server: &MCPServer| phase(server) == Some(MCPServerPhase::Stopped);
    fixture.until::<MCPServer>("stdio", "stopped", stopped).await;
    fixture.quiet(&record).await;
    assert_eq!(fixture.child::<Deployment>("stdio").await["spec"]["replicas"], 0);
}

async fn what_is_no_longer_wanted_goes(fixture: Fixture) {
    let (_operator, _record) = fixture.operator().await;
    let policies = json!({"type": "inline", "inline": {"policies": ["permit(principal, action, resource);"]}});
    let spec = json!({"image": "i", "authzConfig": policies, "resourceOverrides": {"proxyDeployment": {"labels": {"x": "y"}, "env": [{"name": "E", "value": "f"}]}}});
    fixture.create::<MCPServer>("s", spec).await;
    settled(&fixture, "s").await;
    fixture.patch::<Deployment>("s", json!({"metadata": {"labels": {"foreign": "stays"}}})).await;
    fixture.merge::<MCPServer>("s", json!({"spec": {"resourceOverrides": null}})).await;
    let gone = |deployment: &Value| deployment["metadata"]["labels"].get("x").is_none();
    let deployment = fixture.until_child::<Deployment>("s", "without the label", gone).await;
    assert_eq!(deployment["metadata"]["labels"]["foreign"], "stays");
    let env = deployment["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap();
    assert!(env.iter().all(|variable| variable["name"] != "E"));
    fixture.child::<ServiceAccount>("s-sa").await;
    let fewer = json!({"authzConfig": null, "serviceAccount": "theirs"});
    fixture.merge::<MCPServer>("s", json!({"spec": fewer})).await;
    fixture.until_child_gone::<ServiceAccount>("s-sa").await;
    // Pods that have not been replaced yet may start again.
    fixture.child::<ConfigMap>("s-authz-inline").await;
    fixture.child::<ServiceAccount>("s-proxy-runner").await;
}

async fn bad_names_are_told(fixture: Fixture) {
    let (_operator, _record) = fixture.operator().await;
    let long = "l".repeat(60);
    for name in ["mcpserver", long.as_str()] {
        fixture.create::<MCPServer>(name, json!({"image": "i"})).await;
        let failed = |server: &MCPServer| phase(server) == Some(MCPServerPhase::Failed);
        let server = fixture.until::<MCPServer>(name, "failed", failed).await;
        assert_eq!(condition(&server, "Ready").unwrap().1, "NameReserved");
        assert!(fixture.maybe_child::<Deployment>(name).await.is_none());
    }
    fixture.create::<MCPServer>("good", json!({"image": "i"})).await;
    settled(&fixture, "good").await;
}
