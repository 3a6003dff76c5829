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

fn server(name: &str, status: &Value) -> (&'static str, Arc<DynamicObject>) {
    let object = json!({"apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer",
        "metadata": {"namespace": "n", "name": name, "generation": 2}, "spec": {"transport": "stdio"}, "status": status});
    ("MCPServer", Arc::new(serde_json::from_value::<DynamicObject>(object).unwrap()))
}

/// A pod of the server itself.
fn server_pod(name: &str, ready: &str, state: &Value) -> Value {
    let mut pod = pod(&format!("{name}-0"), ready, state);
    pod["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name, "uid": "u", "controller": true}]);
    pod
}

#[test]
fn an_object_with_a_controller_speaks_for_itself() {
    let mut proxy = service("mcp-good-proxy", "8080:9000", &json!({"port": 8080}));
    proxy["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer", "name": "good", "uid": "u"}]);
    let observed = Observed {
        services: objects(json!([proxy])),
        pods: objects(json!([
            pod("mcp-good-proxy", "True", &json!({"running": {}})),
            server_pod("good", "True", &json!({"running": {}})),
        ])),
        servers: vec![
            server(
                "good",
                &json!({"phase": "Ready", "url": "http://mcp-good-proxy.n.svc.cluster.local:8080/sse#good",
                    "conditions": [{"type": "Ready", "status": "True", "message": "it runs"},
                        {"type": "Verified", "status": "True", "observedGeneration": 2}]}),
            ),
            server(
                "bad",
                &json!({"phase": "Failed", "message": "later",
                    "conditions": [{"type": "Ready", "status": "False", "message": "no such image"}]}),
            ),
            server("new", &Value::Null),
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

#[test]
fn a_server_is_ready_when_it_answers() {
    let pulling = json!({"waiting": {"reason": "ContainerCreating"}});
    let missing = json!({"waiting": {"reason": "ImagePullBackOff", "message": "map it"}});
    let up = json!({"running": {}});
    let verified = |status: &str, generation: i64| json!({"type": "Verified", "status": status, "observedGeneration": generation, "message": "it is mute"});
    let no_handshake = "no MCP handshake with the server has succeeded yet";
    let table = [
        ("True", &up, "True", &up, verified("True", 2), ("Ready", None)),
        // Only a user may see more.
        ("True", &up, "True", &up, verified("Unknown", 2), ("Ready", None)),
        ("True", &up, "True", &up, verified("True", 1), ("Pending", Some(no_handshake))),
        ("True", &up, "True", &up, json!({"type": "Other", "status": "True"}), ("Pending", Some(no_handshake))),
        ("True", &up, "True", &up, verified("False", 2), ("Pending", Some("it is mute"))),
        ("True", &up, "False", &missing, verified("False", 2), ("Failed", Some("ImagePullBackOff: map it"))),
        ("True", &up, "False", &pulling, verified("False", 2), ("Pending", Some("ContainerCreating"))),
        // What was said before the machine was stopped.
        ("True", &up, "False", &pulling, verified("True", 2), ("Pending", Some("ContainerCreating"))),
        ("False", &pulling, "True", &up, verified("True", 2), ("Pending", Some("ContainerCreating"))),
    ];
    for (proxy_ready, proxy_state, server_ready, server_state, verified, expected) in table {
        let mut proxy = service("mcp-s-proxy", "8080:9000", &json!({"port": 8080}));
        proxy["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer", "name": "s", "uid": "u"}]);
        let status = json!({"phase": "Ready", "url": "http://mcp-s-proxy.n.svc.cluster.local:8080/mcp",
            "conditions": [{"type": "Ready", "status": "True"}, &verified]});
        let observed = Observed {
            services: objects(json!([proxy])),
            stateful_sets: objects(json!([workload("s", 1)])),
            pods: objects(json!([
                pod("mcp-s-proxy", proxy_ready, proxy_state),
                server_pod("s", server_ready, server_state)
            ])),
            servers: vec![server("s", &status)],
            ..Observed::default()
        };
        let found = endpoints(&observed);
        let row = found.iter().find(|row| row.kind == "MCPServer").unwrap();
        assert_eq!((row.phase.as_str(), row.message.as_deref()), expected, "{verified}");
        assert_eq!(row.ready, expected.0 == "Ready", "{verified}");
    }
}

/// What is printed before such a server has answered is what is printed afterwards.
#[test]
fn a_proxy_that_names_no_path_is_where_servers_usually_are() {
    let local = |transport: Option<&str>, url: &str| {
        let object = json!({"apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPRemoteProxy",
            "metadata": {"namespace": "n", "name": "far"}, "spec": {"transport": transport}, "status": {"url": url}});
        let observed = Observed {
            services: objects(json!([service("far", "8080:9000", &json!({"port": 8080}))])),
            servers: vec![("MCPRemoteProxy", Arc::new(serde_json::from_value(object).unwrap()))],
            ..Observed::default()
        };
        let row = endpoints(&observed).into_iter().find(|row| row.kind == "MCPRemoteProxy").unwrap();
        let (url, local) = (row.url.unwrap(), row.local_url.unwrap());
        assert_eq!(split(&url).1, split(&local).1);
        split(&local).1.to_owned()
    };
    let url = "http://far.n.svc.cluster.local:8080";
    assert_eq!(local(Some("streamable-http"), url), "/mcp");
    assert_eq!(local(Some("sse"), &format!("{url}/")), "/sse");
    assert_eq!(local(Some("streamable-http"), &format!("{url}/other")), "/other");
    assert_eq!(local(None, url), "", "nobody knows what it speaks");
}
