use std::sync::Arc;

use serde_json::json;

use super::*;

fn objects<K: serde::de::DeserializeOwned>(values: Value) -> Vec<Arc<K>> {
    serde_json::from_value::<Vec<K>>(values).unwrap().into_iter().map(Arc::new).collect()
}

fn service(name: &str, local: &str, port: &Value) -> Value {
    json!({"metadata": {"namespace": "n", "name": name, "annotations": {"skep.dev/local-ports": local}},
        "spec": {"type": "LoadBalancer", "clusterIP": "10.96.0.7", "selector": {"app": name}, "ports": [port]}})
}

fn workload(name: &str, replicas: i32) -> Value {
    json!({"metadata": {"namespace": "n", "name": name}, "spec": {"replicas": replicas, "selector": {},
        "serviceName": "", "template": {"metadata": {"labels": {"app": name, "more": "x"}}}}})
}

fn pod(name: &str, ready: &str, state: &Value) -> Value {
    json!({"metadata": {"namespace": "n", "name": name, "labels": {"app": name}}, "spec": {"containers": []},
        "status": {"conditions": [{"type": "Ready", "status": ready}],
            "containerStatuses": [{"name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
                "state": state}]}})
}

#[test]
fn a_service_stands_for_the_workload_behind_it() {
    let observed = Observed {
        services: objects(json!([
            service("a", "8080:8081", &json!({"name": "mcp", "port": 8080})),
            service("b", "80:8082", &json!({"port": 80})),
            service("c", "80:8083", &json!({"port": 80})),
            service("inner", "", &json!({"port": 80})),
            service("d", "80:8084", &json!({"port": 80})),
        ])),
        deployments: objects(json!([workload("a", 1), workload("d", 0)])),
        stateful_sets: objects(json!([workload("b", 1)])),
        pods: objects(json!([
            pod("a", "True", &json!({"running": {}})),
            pod("b", "False", &json!({"waiting": {"reason": "ErrImagePull", "message": "no such package"}})),
            pod("c", "False", &json!({"waiting": {"reason": "ContainerCreating"}})),
        ])),
        servers: Vec::new(),
    };
    let found = endpoints(&observed);
    let lines: Vec<_> = found
        .iter()
        .map(|row| {
            let message = row.message.as_deref().unwrap_or("-");
            let (url, local) = (row.url.as_deref().unwrap(), row.local_url.as_deref().unwrap());
            format!("{} {} {} {} {url} {local} {message}", row.kind, row.name, row.phase, row.ready)
        })
        .collect();
    let expected = [
        "Deployment a Ready true http://a.n.svc.cluster.local:8080/mcp http://127.0.0.1:8081/mcp -",
        "StatefulSet b Failed false http://b.n.svc.cluster.local:80 http://127.0.0.1:8082 ErrImagePull: no such package",
        "Service c Pending false http://c.n.svc.cluster.local:80 http://127.0.0.1:8083 ContainerCreating",
        "Deployment d Stopped false http://d.n.svc.cluster.local:80 http://127.0.0.1:8084 -",
    ];
    assert_eq!(lines, expected);
    assert_eq!(found[0].inside, Some("10.96.0.7:8080".parse().unwrap()));
}

#[test]
fn a_port_of_somebody_else_is_no_endpoint() {
    let closed = |name: &str, ports: &str| {
        let mut service = service(name, "80:8081", &json!({"port": 80, "nodePort": 30001}));
        service["metadata"]["annotations"]["skep.dev/closed-ports"] = json!(ports);
        service
    };
    let observed = Observed {
        services: objects(json!([closed("a", "8081"), closed("b", "30001")])),
        pods: objects(json!([pod("a", "True", &json!({"running": {}})), pod("b", "True", &json!({"running": {}}))])),
        ..Observed::default()
    };
    let found = endpoints(&observed);
    assert_eq!((found[0].phase.as_str(), found[0].ready), ("Failed", false));
    let told = |row: &Endpoint| row.message.clone().unwrap();
    assert!(told(&found[0]).starts_with("port 8081 of 127.0.0.1 is in use by another program"), "{:?}", found[0]);
    assert_eq!((found[1].phase.as_str(), found[1].ready), ("Ready", true));
    assert!(told(&found[1]).starts_with("its URL works, but node port 30001 of 127.0.0.1 is in use"), "{:?}", found[1]);
}

#[test]
fn an_object_with_a_controller_speaks_for_itself() {
    let server = |name: &str, status: Value| {
        let object = json!({"apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer",
            "metadata": {"namespace": "n", "name": name}, "spec": {"transport": "stdio"}, "status": status});
        ("MCPServer", Arc::new(serde_json::from_value::<DynamicObject>(object).unwrap()))
    };
    let mut proxy = service("mcp-good-proxy", "8080:9000", &json!({"port": 8080}));
    proxy["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer", "name": "good", "uid": "u"}]);
    let observed = Observed {
        services: objects(json!([proxy])),
        servers: vec![
            server(
                "good",
                json!({"phase": "Ready", "url": "http://mcp-good-proxy.n.svc.cluster.local:8080/sse#good",
                    "conditions": [{"type": "Ready", "status": "True", "message": "it runs"}]}),
            ),
            server(
                "bad",
                json!({"phase": "Failed", "message": "later",
                    "conditions": [{"type": "Ready", "status": "False", "message": "no such image"}]}),
            ),
            server("new", Value::Null),
        ],
        ..Observed::default()
    };
    let found = endpoints(&observed);
    let brief: Vec<_> = found
        .iter()
        .map(|row| (row.name.as_str(), row.phase.as_str(), row.ready, row.local_url.as_deref(), row.message.as_deref()))
        .collect();
    let expected = [
        ("bad", "Failed", false, None, Some("no such image")),
        ("good", "Ready", true, Some("http://127.0.0.1:9000/sse#good"), None),
        ("new", "Pending", false, None, None),
    ];
    assert_eq!(brief, expected);
    assert_eq!(found[1].inside, Some("10.96.0.7:8080".parse().unwrap()));
    assert_eq!(found[1].transport.as_deref(), Some("stdio"));
}
