//! Lists objects of the real server by many selectors, and compares the names and the errors with ours.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use http::Request;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use skep_conformance::control_plane::ControlPlane;
use skep_kube::selector::{FieldSelector, FieldSupport, LabelSelector};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

const LABEL_SELECTORS: &[&str] = &[
    "a=b",
    "a==b",
    "a!=b",
    "a in (b,c)",
    "a notin (b)",
    "a",
    "!a",
    "n>5",
    "n<6",
    "n>x",
    "n<5,a",
    "a=",
    "a!=",
    "a in ()",
    "a in (,b)",
    "a in (b,)",
    "a in b",
    "a in (b",
    "a notin",
    "",
    "  ",
    ",",
    ",a",
    "a,",
    "a,,b",
    "a b",
    "=b",
    "a=b=c",
    "a=b c",
    "!",
    "!a=b",
    "!!a",
    "a>",
    "a>-1",
    "(a)",
    "a=!b",
    "a in (b c)",
    "x.io/y=z",
    "x.io/=z",
    "/y=z",
    "x.io/y/q=z",
    "-a=b",
    "a=-b",
    "X.io/y=z",
    "a in (b,-c)",
    "a notin (b,c),a",
    "n > 5",
    "n gt 5",
    "a =b",
    "a= b",
    "a  in  ( b , c )",
    "in in (in)",
    "in",
    "notin",
    "notin in (x)",
    "a in (in)",
    "a=in",
    "!in",
    "a\t=\nb",
    "a=b;c",
    "a\\=b",
    "a=\"b\"",
    "a=é",
    "é=b",
    "a in (in,notin)",
    "a=b,a=c",
    "a!=b,c!=d",
    "n>5,n<20",
    "n>99999999999999999999",
    "a in (b)(c)",
    "a===b",
    "a=>b",
    "a<>b",
    "a!",
    "a!b",
    "a=b,!c,",
    "a in",
    "a (b)",
    "a,b in (x),c!=y,!d,e",
    "a in (a,(b)",
    "a in ((b))",
    "a in (b))",
    "a=,b=",
    "a>1,",
    "a!==b",
    "a=!=b",
    "a=)",
    "a=(",
    ")",
    "(",
    ">",
    "<",
    "a>5.5",
    "a>0x5",
    "a>+5",
    "a> 5",
    "-a=-b",
    "a in (-b,-c)",
    "a>-x",
    "a in (-b,-b)",
    "x.io/-a in (-b,c,-d)",
    "A..b/c=d",
    "a in (b,,c)",
    "a in (,)",
    "a in (,,b)",
    "a in (b,(c))",
    "a in (!b)",
    "a notin (=)",
    "!a,!a",
    "a\u{a0}=b",
    "a=\u{0}",
    "a in (in notin)",
    "n<-5,a",
];

const FIELD_SELECTORS: &[&str] = &[
    "metadata.name=cm",
    "metadata.name==cm",
    "metadata.name!=cm",
    "metadata.name",
    "metadata.name=",
    "=",
    "",
    "  ",
    ",",
    "metadata.name=cm,",
    "metadata.name=cm,metadata.namespace=default",
    "metadata.name=cm,,",
    "foo=bar",
    "foo",
    "metadata.name in (cm)",
    "metadata.name=c\\,m",
    "metadata.name=c\\=m",
    "metadata.name=c\\m",
    "metadata.name=cm\\",
    "metadata.name=c=m",
    "metadata.name=c!=m",
    "metadata.name!=",
    "metadata.name=a b",
    "metadata.name =cm",
    "metadata.namespace=x",
    "metadata.name=cm,foo=bar",
    "foo=bar,metadata.name",
    "!metadata.name",
    "metadata.name=a==b",
    "==x",
    "=x",
    "!=x",
    "!=",
    "==",
    "metadata.name=é",
    "metadata.name=c\\\\m",
    "a\\,b=c",
    "metadata.name=cm!",
    "\\",
    "metadata.name!=cm,metadata.name!=l0",
    "metadata.name=\\",
    "metadata.name=!x",
    "a!b=c",
    "metadata.name===cm",
];

const RESOURCES: &[(&str, &str, &str)] = &[
    ("", "pods", "/api/v1/namespaces/default/pods"),
    ("", "events", "/api/v1/namespaces/default/events"),
    ("events.k8s.io", "events", "/apis/events.k8s.io/v1/namespaces/default/events"),
    ("", "nodes", "/api/v1/nodes"),
    ("", "namespaces", "/api/v1/namespaces"),
    ("", "secrets", "/api/v1/namespaces/default/secrets"),
    ("", "services", "/api/v1/namespaces/default/services"),
    ("", "serviceaccounts", "/api/v1/namespaces/default/serviceaccounts"),
    ("", "endpoints", "/api/v1/namespaces/default/endpoints"),
    ("", "persistentvolumeclaims", "/api/v1/namespaces/default/persistentvolumeclaims"),
    ("", "replicationcontrollers", "/api/v1/namespaces/default/replicationcontrollers"),
    ("apps", "replicasets", "/apis/apps/v1/namespaces/default/replicasets"),
    ("apps", "deployments", "/apis/apps/v1/namespaces/default/deployments"),
    ("apps", "statefulsets", "/apis/apps/v1/namespaces/default/statefulsets"),
    ("batch", "jobs", "/apis/batch/v1/namespaces/default/jobs"),
    ("coordination.k8s.io", "leases", "/apis/coordination.k8s.io/v1/namespaces/default/leases"),
    ("rbac.authorization.k8s.io", "clusterroles", "/apis/rbac.authorization.k8s.io/v1/clusterroles"),
];

const FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "name",
    "type",
    "reason",
    "source",
    "action",
    "status.phase",
    "spec.nodeName",
    "spec.host",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.podIP",
    "status.podIPs",
    "status.hostIP",
    "status.nominatedNodeName",
    "spec.unschedulable",
    "spec.podCIDR",
    "spec.clusterIP",
    "spec.type",
    "status.replicas",
    "status.successful",
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reportingComponent",
    "reportingController",
    "source.component",
    "deprecatedSource.component",
];

async fn send(client: &Client, method: &str, path: &str, body: Vec<u8>) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let response = client.send(request.body(Body::from(body)).unwrap()).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap())
}

fn encoded(text: &str) -> String {
    text.bytes().flat_map(|byte| format!("%{byte:02X}").into_bytes()).map(char::from).collect()
}

fn names(items: &[Value]) -> String {
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
}

/// The names of the selected objects, or the error.
async fn real_answer(client: &Client, path: &str, parameter: &str, selector: &str) -> Result<String, String> {
    let (code, answer) = send(client, "GET", &format!("{path}?{parameter}={}", encoded(selector)), Vec::new()).await;
    match code {
        200 => Ok(names(answer["items"].as_array().unwrap())),
        400 => Err(answer["message"].as_str().unwrap().to_owned()),
        _ => panic!("{selector}: {answer}"),
    }
}

fn by_labels(selector: &str, objects: &[Value]) -> Result<String, String> {
    let selector = LabelSelector::parse(selector).map_err(|error| error.to_string())?;
    let selected: Vec<Value> = objects.iter().filter(|object| selector.matches_object(object)).cloned().collect();
    Ok(names(&selected))
}

fn by_fields(selector: &str, support: &FieldSupport, objects: &[Value]) -> Result<String, String> {
    let selector = FieldSelector::parse(selector).and_then(|selector| selector.check(support));
    let selector = selector.map_err(|error| error.to_string())?;
    let selected: Vec<Value> = objects.iter().filter(|object| selector.matches(object, support)).cloned().collect();
    Ok(names(&selected))
}

#[tokio::test]
async fn selectors_mean_the_same_on_the_real_server() {
    let Some(control_plane) = ControlPlane::start_or_skip("selectors_mean_the_same_on_the_real_server").await else {
        return;
    };
    let client = control_plane.admin().await.unwrap();
    let labels =
        [json!({ "a": "b" }), json!({ "a": "c", "n": "5" }), json!({ "n": "10", "x.io/y": "z" }), json!({ "a": "" })];
    for (index, labels) in labels.iter().enumerate() {
        let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": format!("l{index}"), "labels": labels } });
        assert_eq!(send(&client, "POST", CONFIG_MAPS, object.to_string().into_bytes()).await.0, 201);
    }
    let cm = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "cm" } });
    assert_eq!(send(&client, "POST", CONFIG_MAPS, cm.to_string().into_bytes()).await.0, 201);
    // A scheduler would write events while we compare.
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "pod" },
        "spec": { "schedulerName": "nobody", "containers": [{ "name": "c", "image": "i" }] },
    });
    assert_eq!(send(&client, "POST", "/api/v1/namespaces/default/pods", pod.to_string().into_bytes()).await.0, 201);
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": { "name": "event" }, "reason": "x", "type": "Normal",
        "source": { "component": "x" },
        "involvedObject": { "apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "x" },
    });
    assert_eq!(send(&client, "POST", "/api/v1/namespaces/default/events", event.to_string().into_bytes()).await.0, 201);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;

    let mut differences = Vec::new();
    let mut compare = |what: String, real: Result<String, String>, ours: Result<String, String>| {
        if real != ours {
            differences.push(format!("{what}\n  real: {real:?}\n  ours: {ours:?}"));
        }
    };
    let objects = send(&client, "GET", CONFIG_MAPS, Vec::new()).await.1["items"].as_array().unwrap().clone();
    for selector in LABEL_SELECTORS {
        let real = real_answer(&client, CONFIG_MAPS, "labelSelector", selector).await;
        compare(format!("labels {selector:?}"), real, by_labels(selector, &objects));
    }
    let support = FieldSupport::built_in("", "configmaps");
    for selector in FIELD_SELECTORS {
        let real = real_answer(&client, CONFIG_MAPS, "fieldSelector", selector).await;
        compare(format!("fields {selector:?}"), real, by_fields(selector, &support, &objects));
    }
    for (group, resource, path) in RESOURCES {
        let support = FieldSupport::built_in(group, resource);
        let objects = send(&client, "GET", path, Vec::new()).await.1["items"].as_array().unwrap().clone();
        for field in FIELDS {
            for value in ["", "x", "false", "0", "default", "Pending", "Active", "ClusterIP", "Normal", "Pod", "v1"] {
                let selector = format!("{field}={value}");
                let real = real_answer(&client, path, "fieldSelector", &selector).await;
                let failed = real.is_err();
                compare(format!("{resource}.{group} {selector}"), real, by_fields(&selector, &support, &objects));
                if failed {
                    break;
                }
            }
        }
    }
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}
