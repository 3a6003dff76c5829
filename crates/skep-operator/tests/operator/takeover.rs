//! Fields that somebody else has written: an operator before this one, or a person.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use skep_api::kinds::MCPServer;
use skep_api::names::{annotations, labels};

use crate::cluster::{Fixture, passes};
use crate::servers::settled;
use crate::trials;

trials![a_workload_of_another_operator_becomes_ours, what_others_put_among_ours_is_no_obstacle];

/// Who the other operator says it is.
fn predecessor() -> PostParams {
    PostParams { field_manager: Some("manager".to_owned()), ..PostParams::default() }
}

/// What another operator made for the server: of an older version, by creating it and replacing it as a whole.
async fn leave_behind(fixture: &Fixture, server: &MCPServer) {
    let labels = labels::mcp_server("s");
    let owner = json!({"apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer", "name": "s",
        "uid": server.metadata.uid, "controller": true, "blockOwnerDeletion": true});
    let probe = json!({"httpGet": {"path": "/health", "port": "http"}, "initialDelaySeconds": 30, "periodSeconds": 10});
    let container = json!({"name": "toolhive", "image": "runner:0", "args": ["run", "old"],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": "HOME", "value": "/tmp"}, {"name": "DROPPED", "value": "long ago"}],
        "volumeMounts": [{"name": "dropped", "mountPath": "/dropped"}], "livenessProbe": probe});
    let pod = json!({"containers": [container], "volumes": [{"name": "dropped", "emptyDir": {}}]});
    let metadata = json!({"name": "s", "labels": labels, "ownerReferences": [owner]});
    let deployment = json!({"metadata": metadata, "spec": {"replicas": 2, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels, "annotations": {"dropped": "too"}}, "spec": pod}}});
    let deployment: Deployment = serde_json::from_value(deployment).unwrap();
    let deployments: Api<Deployment> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    deployments.create(&predecessor(), &deployment).await.unwrap();
    let service = json!({"metadata": {"name": "mcp-s-proxy", "labels": labels, "ownerReferences": [owner]},
        "spec": {"selector": labels, "ports": [{"name": "http", "port": 8080, "targetPort": 8080, "protocol": "TCP"}]}});
    let service: Service = serde_json::from_value(service).unwrap();
    let services: Api<Service> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    services.create(&predecessor(), &service).await.unwrap();
    let sidecar = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "s"},
        "spec": {"template": {"spec": {"containers": [{"name": "sidecar", "image": "mesh"}]}}}});
    deployments.patch("s", &PatchParams::apply("mesh"), &Patch::Apply(&sidecar)).await.unwrap();
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(|item| item["name"].as_str()).collect()
}

async fn a_workload_of_another_operator_becomes_ours(fixture: Fixture) {
    let server = fixture.create::<MCPServer>("s", json!({"image": "i", "transport": "sse"})).await;
    leave_behind(&fixture, &server).await;
    let old = fixture.child::<Deployment>("s").await;
    let (operator, record) = fixture.operator().await;
    settled(&fixture, "s").await;
    fixture.quiet(&record).await;
    assert_eq!(record.writes_to("/deployments/s").len(), 2, "one write takes it over, and one completes it");
    let new = fixture.child::<Deployment>("s").await;
    let template = &new["spec"]["template"];
    assert_eq!(new["metadata"]["uid"], old["metadata"]["uid"]);
    assert_eq!(template["metadata"]["annotations"][annotations::MCP_SERVER_GENERATION], "1");
    assert_eq!(new["spec"]["replicas"], 2, "their number is somebody else's");
    assert_eq!(names(&template["spec"]["containers"]), ["toolhive", "sidecar"]);
    let container = &template["spec"]["containers"][0];
    assert_eq!(container["args"].as_array().unwrap().last(), Some(&json!("i")));
    assert!(names(&container["env"]).contains(&"THV_MCPSERVER_GENERATION"), "{container}");
    // What it wrote and this operator does not say is gone.
    for list in [&container["env"], &container["volumeMounts"], &template["spec"]["volumes"]] {
        let found = names(list);
        assert!(!found.contains(&"dropped") && !found.contains(&"DROPPED"), "{found:?}");
    }
    assert_eq!(template["metadata"]["annotations"].get("dropped"), None);
    assert_eq!(container["livenessProbe"].get("initialDelaySeconds"), None);

    // At rest nothing is written, and a change finds nothing in its way.
    let before = (passes(&operator, "MCPServer"), record.writes().len());
    operator.resync();
    fixture.until_passed(&operator, "MCPServer", before.0).await;
    fixture.quiet(&record).await;
    assert_eq!(record.writes().len(), before.1);
    fixture.merge::<MCPServer>("s", json!({"spec": {"proxyPort": 9090}})).await;
    let moved = |service: &Value| service["spec"]["ports"][0]["port"] == 9090;
    let service = fixture.until_child::<Service>("mcp-s-proxy", "moved", moved).await;
    assert_eq!(service["spec"]["ports"].as_array().unwrap().len(), 1, "{service}");
    settled(&fixture, "s").await;
    let ports = &fixture.child::<Deployment>("s").await["spec"]["template"]["spec"]["containers"][0]["ports"];
    assert_eq!((ports.as_array().unwrap().len(), &ports[0]["containerPort"]), (1, &json!(9090)));
}

async fn what_others_put_among_ours_is_no_obstacle(fixture: Fixture) {
    let (_operator, record) = fixture.operator().await;
    fixture.create::<MCPServer>("s", json!({"image": "i"})).await;
    settled(&fixture, "s").await;
    fixture.quiet(&record).await;
    // Another port of the same name cannot stand beside ours, nor can a value beside a source.
    let ports = json!([{"name": "http", "port": 9999, "protocol": "TCP"}]);
    fixture.patch::<Service>("mcp-s-proxy", json!({"spec": {"ports": ports}})).await;
    let ours = |service: &Value| {
        let ports = service["spec"]["ports"].as_array().unwrap();
        ports.len() == 1 && ports[0]["port"] == 8080
    };
    fixture.until_child::<Service>("mcp-s-proxy", "as it was", ours).await;
    let value = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"spec": {"containers": [
        {"name": "toolhive", "env": [{"name": "THV_MCPSERVER_GENERATION", "value": "7", "valueFrom": null}]}]}}}});
    let deployments: Api<Deployment> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    let params = PatchParams { field_manager: Some("kubectl-set".to_owned()), ..PatchParams::default() };
    deployments.patch("s", &params, &Patch::Strategic(&value)).await.unwrap();
    let sourced = |deployment: &Value| {
        let env = &deployment["spec"]["template"]["spec"]["containers"][0]["env"];
        let found = env.as_array().unwrap().iter().find(|variable| variable["name"] == "THV_MCPSERVER_GENERATION");
        found.is_some_and(|found| found.get("value").is_none() && found["valueFrom"].is_object())
    };
    fixture.until_child::<Deployment>("s", "as it was", sourced).await;
    fixture.merge::<MCPServer>("s", json!({"spec": {"image": "j"}})).await;
    settled(&fixture, "s").await;
}
