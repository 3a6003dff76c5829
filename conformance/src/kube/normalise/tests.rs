use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::recording::{Exchange, Recording};

fn normalised(bodies: Vec<Value>) -> Vec<Value> {
    let exchange = |body| Exchange { step: 1, request: String::new(), status: 200, headers: BTreeMap::new(), body };
    let raw = Recording { scenario: "a/b".into(), exchanges: bodies.into_iter().map(exchange).collect() };
    let recording = super::normalise(raw, "ns-qxyz", "qxyz", true);
    recording.exchanges.into_iter().map(|exchange| exchange.body).collect()
}

#[test]
fn versions_keep_their_order() {
    let bodies = normalised(vec![
        json!({ "metadata": { "name": "a", "resourceVersion": "100" } }),
        json!({ "metadata": { "resourceVersion": "105" } }),
        json!({ "metadata": { "name": "a", "resourceVersion": "110" } }),
        json!({ "metadata": { "resourceVersion": "110" }, "items": [{ "metadata": { "name": "a", "resourceVersion": "110" } }] }),
        json!({ "metadata": { "name": "b", "resourceVersion": "9" } }),
    ]);
    let versions: Vec<_> = bodies.iter().map(|body| body["metadata"]["resourceVersion"].as_str().unwrap()).collect();
    assert_eq!(versions, ["rv2", "rv2+", "rv3", "rv3+", "rv1"]);
}

#[test]
fn what_the_server_makes_up_becomes_tokens() {
    let today = time::OffsetDateTime::now_utc().date();
    let second = format!("{:04}-{:02}-{:02}T01:02:03Z", today.year(), u8::from(today.month()), today.day());
    let bodies = normalised(vec![json!({
        "metadata": {
            "generateName": "bee-", "name": "bee-x7k2p", "namespace": "ns-qxyz", "creationTimestamp": second,
            "uid": "6f1a3b52-7a52-4b8e-9d8f-0d5a4b0c9f11",
        },
        "spec": { "clusterIP": "10.0.7.8", "clusterIPs": ["10.0.7.8"], "renewTime": "2020-01-02T03:04:05.000006Z" },
        "message": "bee-x7k2p of 6f1a3b52-7a52-4b8e-9d8f-0d5a4b0c9f11 in ns-qxyz, widgets.qxyz.example.com",
        "rows": [{ "cells": ["a", "5s", "2m3s", "5 s"] }],
    })]);
    assert_eq!(
        bodies[0],
        json!({
            "metadata": {
                "generateName": "bee-", "name": "bee-GENERATED1", "namespace": "NAMESPACE",
                "creationTimestamp": "TIME", "uid": "uid1",
            },
            "spec": {
                "clusterIP": "CLUSTERIP1", "clusterIPs": ["CLUSTERIP1"], "renewTime": "2020-01-02T03:04:05.000006Z",
            },
            "message": "bee-GENERATED1 of uid1 in NAMESPACE, widgets.UNIQUE.example.com",
            "rows": [{ "cells": ["a", "AGE", "AGE", "5 s"] }],
        })
    );
}
