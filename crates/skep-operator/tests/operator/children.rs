//! Children that are lost, replaced, scaled or made by somebody else.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use skep_api::kinds::{MCPServer, MCPTelemetryConfig};
use skep_api::names::{annotations, labels};

use crate::cluster::{Fixture, passes};
use crate::configs::Example as _;
use crate::servers::settled;
use crate::trials;
use crate::wire::Sent;

trials![
    a_lost_configuration_comes_back_as_it_was,
    a_spec_reads_back_as_it_was_written,
    another_object_of_the_same_name_is_not_meant,
    children_without_an_owner_are_adopted,
    whoever_stops_a_server_meanwhile_is_not_overruled,
    what_a_platform_adds_stays,
    no_write_meets_another_one_of_ours,
    auth_trap_74_variables_are_put_right_once_in_whatever_order,
];

async fn a_lost_configuration_comes_back_as_it_was(fixture: Fixture) {
    let (_operator, record) = fixture.operator().await;
    fixture.create::<MCPServer>("s", json!({"image": "i"})).await;
    settled(&fixture, "s").await;
    let before = fixture.child::<ConfigMap>("s-runconfig").await;
    fixture.merge::<MCPServer>("s", json!({"metadata": {"annotations": {"a": "b"}, "labels": {"c": "d"}}})).await;
    fixture.quiet(&record).await;
    let same = fixture.child::<ConfigMap>("s-runconfig").await;
    assert_eq!(same["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
    let maps: Api<ConfigMap> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    maps.delete("s-runconfig", &DeleteParams::default()).await.unwrap();
    let is_another = |found: &Value| found["metadata"]["uid"] != before["metadata"]["uid"];
    let again = fixture.until_child::<ConfigMap>("s-runconfig", "there again", is_another).await;
    let checksum = |map: &Value| map["metadata"]["annotations"][annotations::CONTENT_CHECKSUM].clone();
    assert_eq!((checksum(&again), &again["data"]), (checksum(&before), &before["data"]));
    assert!(checksum(&again).is_string());
}

async fn a_spec_reads_back_as_it_was_written(fixture: Fixture) {
    let (_operator, record) = fixture.operator().await;
    let created = fixture.create::<MCPServer>("s", json!({"image": "i", "transport": "stdio", "replicas": 3})).await;
    let server = settled(&fixture, "s").await;
    fixture.quiet(&record).await;
    assert_eq!((server.spec, server.metadata.generation), (created.spec, created.metadata.generation));
    let deployment = fixture.child::<Deployment>("s").await;
    let containers = deployment["spec"]["template"]["spec"]["containers"].as_array().unwrap();
    assert_eq!((containers.len(), containers[0]["ports"].as_array().unwrap().len()), (1, 1));
    assert_eq!(deployment["spec"]["selector"]["matchLabels"], json!(labels::mcp_server("s")));
    assert_eq!(deployment["spec"]["replicas"], 1);
}

async fn auth_trap_74_variables_are_put_right_once_in_whatever_order(fixture: Fixture) {
    let (operator, record) = fixture.operator().await;
    fixture.create::<MCPTelemetryConfig>("t", MCPTelemetryConfig::good(1)).await;
    // In no order.
    let own = ["Z", "B", "Y", "A"].map(|name| json!({"name": name, "value": "v"}));
    let spec = json!({"image": "i", "telemetryConfigRef": {"name": "t"},
        "resourceOverrides": {"proxyDeployment": {"env": own}}});
    fixture.create::<MCPServer>("s", spec).await;
    settled(&fixture, "s").await;
    let again = async || {
        let before = passes(&operator, "MCPServer");
        operator.resync();
        fixture.until_passed(&operator, "MCPServer", before).await;
        fixture.quiet(&record).await;
        record.writes_to("/deployments/s").len()
    };
    let pods = |deployment: &Value| deployment["spec"]["template"]["spec"]["containers"].clone();
    let changed = |containers: &Value| json!({"spec": {"template": {"spec": {"containers": containers}}}});
    let written = again().await;
    let mut containers = pods(&fixture.child::<Deployment>("s").await);
    let names = |containers: &Value| -> Vec<Value> {
        containers[0]["env"].as_array().unwrap().iter().map(|variable| variable["name"].clone()).collect()
    };
    let built = names(&containers);
    assert!(built.len() > 6 && !built.is_sorted_by_key(ToString::to_string), "{built:?}");
    containers[0]["env"].as_array_mut().unwrap().reverse();
    fixture.patch::<Deployment>("s", changed(&containers)).await;
    assert_eq!(again().await, written, "another order is no difference");

    let own = containers[0]["env"].as_array_mut().unwrap().iter_mut().find(|variable| variable["name"] == "Y");
    own.unwrap()["value"] = json!("somebody's");
    fixture.patch::<Deployment>("s", changed(&containers)).await;
    let is_ours = |deployment: &Value| !pods(deployment)[0]["env"].to_string().contains("somebody's");
    fixture.until_child::<Deployment>("s", "as it was", is_ours).await;
    assert_eq!(again().await, written + 1);
    assert_eq!(again().await, written + 1);
}

async fn another_object_of_the_same_name_is_not_meant(fixture: Fixture) {
    let (_operator, record) = fixture.operator().await;
    fixture.create::<MCPServer>("s", json!({"image": "i"})).await;
    settled(&fixture, "s").await;
    let owners = json!([fixture.somebody().await]);
    let service = json!({"metadata": {"name": "mcp-s-proxy", "labels": {"mine": "yes"}, "ownerReferences": owners},
        "spec": {"ports": [{"port": 1}]}});
    let service: Service = serde_json::from_value(service).unwrap();
    let services: Api<Service> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    let mut stopped = record.stop("/services/mcp-s-proxy");
    fixture.merge::<MCPServer>("s", json!({"spec": {"proxyPort": 9090}})).await;
    stopped.arrived().await;
    services.delete("mcp-s-proxy", &DeleteParams::default()).await.unwrap();
    services.create(&PostParams::default(), &service).await.unwrap();
    drop(stopped);
    let told = |server: &MCPServer| {
        let message = server.status.as_ref().and_then(|status| status.message.as_deref()).unwrap_or_default();
        message.contains("Service mcp-s-proxy exists and belongs to ConfigMap somebody")
    };
    fixture.until::<MCPServer>("s", "told", told).await;
    let found = fixture.child::<Service>("mcp-s-proxy").await;
    assert_eq!(
        (&found["metadata"]["labels"], &found["spec"]["ports"][0]["port"]),
        (&json!({"mine": "yes"}), &json!(1))
    );
    let answers = answers(record.answered_writes().await, "/services/mcp-s-proxy");
    assert!(matches!(answers.last(), Some(Some(409 | 422))), "{answers:?}");
}

async fn children_without_an_owner_are_adopted(fixture: Fixture) {
    let account = json!({"metadata": {"name": "s-proxy-runner", "labels": {"mine": "yes"}}});
    fixture.create_child::<ServiceAccount>(account).await;
    let (operator, _record) = fixture.operator().await;
    let server = fixture.create::<MCPServer>("s", json!({"image": "i"})).await;
    settled(&fixture, "s").await;
    let owner = json!(server.metadata.uid);
    let is_ours = |found: &Value| found["metadata"]["ownerReferences"][0]["uid"] == owner;
    let account = fixture.until_child::<ServiceAccount>("s-proxy-runner", "adopted", is_ours).await;
    assert_eq!(account["metadata"]["labels"]["mine"], "yes");

    // Left behind by somebody who deleted the server alone, or restored from a backup.
    drop(operator);
    let orphaned = json!({"metadata": {"ownerReferences": null}});
    let before = fixture.child::<Deployment>("s").await;
    fixture.patch::<Deployment>("s", orphaned.clone()).await;
    fixture.patch::<Service>("mcp-s-proxy", orphaned.clone()).await;
    fixture.patch::<ConfigMap>("s-runconfig", orphaned.clone()).await;
    fixture.patch::<Role>("s-proxy-runner", orphaned.clone()).await;
    fixture.patch::<RoleBinding>("s-proxy-runner", orphaned).await;
    let (_operator, record) = fixture.operator().await;
    let deployment = fixture.until_child::<Deployment>("s", "adopted", is_ours).await;
    assert_eq!(deployment["metadata"]["uid"], before["metadata"]["uid"]);
    fixture.until_child::<Service>("mcp-s-proxy", "adopted", is_ours).await;
    fixture.until_child::<ConfigMap>("s-runconfig", "adopted", is_ours).await;
    fixture.until_child::<Role>("s-proxy-runner", "adopted", is_ours).await;
    fixture.until_child::<RoleBinding>("s-proxy-runner", "adopted", is_ours).await;
    fixture.quiet(&record).await;
}

fn answers(writes: Vec<Sent>, end: &str) -> Vec<Option<u16>> {
    writes.into_iter().filter(|sent| sent.path.ends_with(end)).map(|sent| sent.code).collect()
}

async fn whoever_stops_a_server_meanwhile_is_not_overruled(fixture: Fixture) {
    let (_operator, record) = fixture.operator().await;
    fixture.create::<MCPServer>("s", json!({"image": "i"})).await;
    settled(&fixture, "s").await;
    let mut stopped = record.stop("/deployments/s");
    fixture.patch::<Deployment>("s", json!({"spec": {"replicas": 3}})).await;
    stopped.arrived().await;
    fixture.patch::<Deployment>("s", json!({"spec": {"replicas": 0}})).await;
    drop(stopped);
    let seen = |server: &MCPServer| {
        let message = server.status.as_ref().and_then(|status| status.message.as_deref());
        message == Some("MCP server is stopped (scaled to zero)")
    };
    fixture.until::<MCPServer>("s", "stopped", seen).await;
    fixture.quiet(&record).await;
    assert_eq!(fixture.child::<Deployment>("s").await["spec"]["replicas"], 0);
    assert!(answers(record.answered_writes().await, "/deployments/s").contains(&Some(409)));
}

async fn what_a_platform_adds_stays(fixture: Fixture) {
    let (_operator, record) = fixture.operator().await;
    fixture.create::<MCPServer>("s", json!({"image": "i", "transport": "sse"})).await;
    settled(&fixture, "s").await;
    let added = json!({"secrets": [{"name": "s-token"}], "imagePullSecrets": [{"name": "s-dockercfg"}]});
    fixture.patch::<ServiceAccount>("s-sa", added.clone()).await;
    let cloud = json!({"metadata": {"annotations": {"cloud.example.com/neg": "{}"}, "labels": {"cloud": "yes"}}});
    fixture.patch::<Service>("mcp-s-proxy", cloud).await;
    let empty = json!({"proxyDeployment": {"imagePullSecrets": []}});
    fixture.merge::<MCPServer>("s", json!({"spec": {"proxyPort": 9090, "resourceOverrides": empty}})).await;
    let moved = |service: &Value| service["spec"]["ports"][0]["port"] == 9090;
    let service = fixture.until_child::<Service>("mcp-s-proxy", "moved", moved).await;
    fixture.quiet(&record).await;
    assert_eq!(service["metadata"]["annotations"]["cloud.example.com/neg"], "{}");
    assert_eq!(service["metadata"]["labels"]["cloud"], "yes");
    let account = fixture.child::<ServiceAccount>("s-sa").await;
    assert_eq!((&account["secrets"], &account["imagePullSecrets"]), (&added["secrets"], &added["imagePullSecrets"]));
}

async fn no_write_meets_another_one_of_ours(fixture: Fixture) {
    let (_operator, record) = fixture.operator().await;
    let api = fixture.api::<MCPServer>();
    fixture.create::<MCPServer>("s", json!({"image": "i"})).await;
    settled(&fixture, "s").await;
    // Whoever else writes at the same time is met, of course: the pod, too, may come late.
    let has_pod = |server: &MCPServer| {
        let message = server.status.as_ref().and_then(|status| status.message.as_deref());
        message == Some("MCP server is starting")
    };
    fixture.until::<MCPServer>("s", "with a pod", has_pod).await;
    fixture.quiet(&record).await;
    let overrides = json!({"proxyDeployment": {"labels": {"team": "a"}}});
    api.patch("s", &PatchParams::default(), &Patch::Merge(&json!({"spec": {"resourceOverrides": overrides}})))
        .await
        .unwrap();
    let changed = |found: &Value| found["metadata"]["labels"]["team"] == "a";
    fixture.until_child::<Deployment>("s", "changed", changed).await;
    settled(&fixture, "s").await;
    fixture.quiet(&record).await;
    fixture.delete::<MCPServer>("s").await;
    fixture.until_gone::<MCPServer>("s").await;
    let writes = record.answered_writes().await;
    let own: Vec<&Sent> = writes.iter().filter(|sent| sent.path.contains("/mcpservers/")).collect();
    assert!(own.iter().all(|sent| sent.code != Some(409)), "{own:#?}");
    assert!(own.iter().all(|sent| sent.content_type == "application/merge-patch+json"), "{own:#?}");
    let metadata: Vec<&Value> =
        own.iter().filter(|sent| sent.path.ends_with("/s")).map(|sent| &sent.body["metadata"]).collect();
    // What is gone may be let go once more, before its end is seen.
    let [added, removed, ..] = metadata.as_slice() else { panic!("{metadata:#?}") };
    assert_eq!(
        (&added["finalizers"][0], &removed["finalizers"]),
        (&json!("mcpserver.toolhive.stacklok.dev/finalizer"), &json!([]))
    );
    for patch in metadata {
        let members: Vec<&String> = patch.as_object().unwrap().keys().collect();
        assert_eq!(members, ["finalizers", "resourceVersion"]);
    }
}
