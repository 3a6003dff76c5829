//! A list that is longer than a piece comes in pieces, and is the same list in every form and encoding.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};
use skep_kube::auth::tokens::{SigningKey, TokenAuthority};
use skep_kube::protobuf;
use skep_kube::server::Server;
use skep_kube::store::Store;

const OBJECTS: usize = 150;
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// A piece and the longest object of this test.
const LONGEST_PIECE: usize = 64 * 1024 + 4096;

async fn with_objects() -> Client {
    let tokens = TokenAuthority::new(SigningKey::generate().unwrap());
    let client = Server::new(Store::open(None).unwrap(), tokens, "127.0.0.1:0").await.unwrap().client();
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    for number in 0..OBJECTS {
        let map = json!({ "metadata": { "name": name(number) }, "data": { "fill": "x".repeat(2000) } });
        maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
    }
    client
}

fn name(number: usize) -> String {
    format!("map-{number:03}")
}

/// The frames of an answer.
async fn frames(client: &Client, path: &str, accept: &str) -> Vec<Vec<u8>> {
    let request = http::Request::get(path).header("accept", accept).body(kube::client::Body::empty()).unwrap();
    let response = client.send(request).await.unwrap();
    assert_eq!(response.status(), 200, "{accept}");
    assert_eq!(response.headers()["content-type"], accept.split(';').next().unwrap());
    let mut body = response.into_body();
    let mut frames = Vec::new();
    while let Some(frame) = body.frame().await {
        frames.push(frame.unwrap().into_data().unwrap().to_vec());
    }
    frames
}

fn names(list: &Value, items: &str, name: &str) -> Vec<String> {
    list[items]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item.pointer(name).unwrap().as_str().unwrap().to_owned())
        .collect()
}

fn all_names() -> Vec<String> {
    (0..OBJECTS).map(name).collect()
}

#[tokio::test]
async fn no_form_of_a_long_list_is_written_at_once() {
    let client = with_objects().await;
    for (form, items, name) in [
        ("", "items", "/metadata/name"),
        (";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", "items", "/metadata/name"),
        (";as=Table;g=meta.k8s.io;v=v1", "rows", "/cells/0"),
    ] {
        let path = format!("{MAPS}?includeObject=Object");
        let frames = frames(&client, &path, &format!("application/json{form}")).await;
        assert!(frames.iter().all(|frame| frame.len() <= LONGEST_PIECE), "{form}");
        let list: Value = serde_json::from_slice(&frames.concat()).unwrap();
        assert_eq!(names(&list, items, name), all_names(), "{form}");
        assert!(frames.len() > 1 || form.contains("Partial"), "{form}");
    }
}

#[tokio::test]
async fn all_encodings_of_a_long_list_say_the_same() {
    let client = with_objects().await;
    let json: Value = serde_json::from_slice(&frames(&client, MAPS, "application/json").await.concat()).unwrap();
    assert_eq!(names(&json, "items", "/metadata/name"), all_names());
    let yaml = frames(&client, MAPS, "application/yaml").await.concat();
    let yaml = String::from_utf8(yaml).unwrap();
    assert_eq!(serde_saphyr::from_str::<Value>(&yaml).unwrap(), json);
    let message = frames(&client, MAPS, "application/vnd.kubernetes.protobuf").await;
    assert!(message.iter().all(|frame| frame.len() <= LONGEST_PIECE));
    assert_eq!(protobuf::decode(&message.concat()).unwrap(), json);
}

#[tokio::test]
async fn a_short_list_has_a_length() {
    let client = with_objects().await;
    let path = format!("{MAPS}?limit=3");
    let request = http::Request::get(path).body(kube::client::Body::empty()).unwrap();
    let body = client.send(request).await.unwrap().into_body();
    let length = http_body::Body::size_hint(&body).exact().unwrap();
    let list = body.collect().await.unwrap().to_bytes();
    assert_eq!(length, list.len() as u64);
    assert_eq!(names(&serde_json::from_slice(&list).unwrap(), "items", "/metadata/name"), all_names()[..3]);
}
