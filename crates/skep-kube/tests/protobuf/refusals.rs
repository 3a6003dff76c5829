//! What a server says to bodies that it cannot read and to clients that want what it does not have.

use serde_json::{Value, json};

use crate::client::{Client, JSON, PROTOBUF};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const BEES: &str = "/apis/hive.example.com/v1/namespaces/default/bees";

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "bees.hive.example.com" },
        "spec": {
            "group": "hive.example.com", "scope": "Namespaced", "names": { "plural": "bees", "kind": "Bee" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
            }],
        },
    })
}

pub(crate) async fn compare(client: &Client) -> Vec<String> {
    let mut differences = bodies(client).await;
    differences.extend(custom_resources(client).await);
    differences
}

async fn bodies(client: &Client) -> Vec<String> {
    let unrecognised = "the object provided is unrecognized (must be of type ConfigMap): ";
    let table: [(&[u8], String); 8] = [
        (b"", format!("{unrecognised}empty data (<empty>)")),
        (b"k8s\0", format!("{unrecognised}empty body (6b387300)")),
        (b"k8s\0\xff", format!("{unrecognised}unexpected EOF (6b387300ff)")),
        (
            br#"{"metadata":{"name":"a"}, "more": "than thirty bytes"}"#,
            format!(
                "{unrecognised}provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] \
                 ({{\"metadata\":{{\"name\":\"a\"}}, \"mor ...)"
            ),
        ),
        (
            b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x01\xff",
            "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: unexpected EOF".to_owned(),
        ),
        (
            b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x02\x10\x00",
            "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: proto: wrong wireType = 0 for field Data"
                .to_owned(),
        ),
        (
            b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Secret\x12\x00",
            "Secret in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): \
             unknown conversion"
                .to_owned(),
        ),
        (
            b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Nonsen\x12\x00",
            "Nonsen in version \"v1\" cannot be handled as a ConfigMap: no kind \"Nonsen\" is registered for version \
             \"v1\" in scheme \"pkg/runtime/scheme.go:111\""
                .to_owned(),
        ),
    ];
    let mut differences = Vec::new();
    for (body, expected) in table {
        let answer = client.send("POST", MAPS, PROTOBUF, (PROTOBUF, body.to_vec())).await;
        let status = answer.document();
        if answer.content_type != PROTOBUF || status["code"] != 400 || status["message"] != expected.as_str() {
            differences.push(format!("{body:?}: {expected}\n  but {status}"));
        }
    }
    // The path tells the kind when the body does not.
    let untyped = client.send("POST", MAPS, JSON, (PROTOBUF, b"k8s\0\x0a\x00".to_vec())).await.document();
    if untyped["details"]["causes"][0]["field"] != "metadata.name" {
        differences.push(format!("no type at all: {untyped}"));
    }
    let options = client.send("DELETE", &format!("{MAPS}/none"), JSON, (PROTOBUF, b"{}".to_vec())).await.document();
    if options["message"] != "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]" {
        differences.push(format!("options: {options}"));
    }
    differences
}

async fn custom_resources(client: &Client) -> Vec<String> {
    let mut differences = Vec::new();
    let created = client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", PROTOBUF, &definition()).await;
    assert_eq!(created.status, 201, "{}", created.document());
    let bee = json!({ "apiVersion": "hive.example.com/v1", "kind": "Bee", "metadata": { "name": "maja" } });
    // The resource is there soon after its definition.
    for _ in 0..100 {
        if client.post(BEES, JSON, &bee).await.status == 201 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let maja = format!("{BEES}/maja");
    let both = format!("{PROTOBUF},{JSON}");
    let metadata = format!("{PROTOBUF};as=PartialObjectMetadata;v=v1;g=meta.k8s.io");
    let table = format!("{PROTOBUF};as=Table;v=v1;g=meta.k8s.io");
    let missing = format!("{BEES}/willi");
    let watch = format!("{BEES}?watch=true&timeoutSeconds=1");
    for (path, accept, status, content_type) in [
        (&maja, PROTOBUF, 406, PROTOBUF),
        (&maja, &both, 200, JSON),
        (&maja, &metadata, 200, PROTOBUF),
        (&maja, &table, 406, JSON),
        (&missing, &both, 404, PROTOBUF),
        (&watch, PROTOBUF, 406, PROTOBUF),
        (&watch, &metadata, 200, "application/vnd.kubernetes.protobuf;stream=watch"),
        (&MAPS.to_owned(), &table, 406, JSON),
    ] {
        let answer = client.get(path, accept).await;
        if (answer.status, answer.content_type.as_str()) != (status, content_type) {
            differences.push(format!(
                "{path} as {accept}: {status} {content_type}\n  but {} {}",
                answer.status, answer.content_type
            ));
        }
    }
    differences
}
