//! Sends every patch of a table to the real server and to ours, and compares what comes of it.
//!
//! Our result is handed to the real server as an update, so that it goes through the same decoding, defaulting and
//! validation as the patch; both are dry runs. Errors are compared as whole Status objects.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod patch_table;

use http::Request;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use skep_conformance::control_plane::ControlPlane;
use skep_kube::patch::{PatchKind, apply};
use skep_kube::schema::Schema;
use skep_kube::status::ApiError;

use patch_table::{Case, Target, cases};

/// Sends a request; the status code and the document that come back.
async fn send(client: &Client, method: &str, path: &str, content_type: &str, body: Vec<u8>) -> (u16, Value) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type)
        .header("accept", "application/json")
        .body(Body::from(body))
        .unwrap();
    let response = client.send(request).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    // Paths that are not served yet are answered in plain words.
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}

async fn get(client: &Client, path: &str) -> Value {
    let (code, document) = send(client, "GET", path, "application/json", Vec::new()).await;
    assert_eq!(code, 200, "{path}: {document}");
    document
}

/// A definition of an OpenAPI document with its references replaced by what they refer to.
fn resolve(definition: &Value, definitions: &Value) -> Value {
    let Some(members) = definition.as_object() else {
        return match definition {
            Value::Array(items) => items.iter().map(|item| resolve(item, definitions)).collect(),
            scalar => scalar.clone(),
        };
    };
    let mut resolved = serde_json::Map::new();
    for (name, member) in members {
        match name.as_str() {
            "$ref" => {
                let target = member.as_str().unwrap().trim_start_matches("#/components/schemas/");
                resolved.extend(resolve(&definitions[target], definitions).as_object().unwrap().clone());
            }
            // A reference with a description or default beside it.
            "allOf" => resolved.extend(resolve(&member[0], definitions).as_object().unwrap().clone()),
            _ => {
                resolved.insert(name.clone(), resolve(member, definitions));
            }
        }
    }
    Value::Object(resolved)
}

async fn schema(client: &Client, document: &str, definition: &str) -> Schema {
    let document = get(client, &format!("/openapi/v3/{document}")).await;
    let definitions = &document["components"]["schemas"];
    Schema::read(&resolve(&definitions[definition], definitions))
}

/// What does not depend on the patch: who changed the object when.
fn normalised(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
        metadata.remove("resourceVersion");
    }
    object
}

/// What differs between the two servers, if anything.
async fn difference(client: &Client, case: &Case, schema: &Schema) -> Option<String> {
    let path = case.target.path();
    let object = get(client, path).await;
    let dry = format!("{path}?dryRun=All");
    let content_type = case.kind.media_type();
    let (code, real) = send(client, "PATCH", &dry, content_type, case.document.clone()).await;
    let (our_code, ours) = match apply(case.kind, &case.document, &object, Some(schema)).map(|patched| patched.object) {
        Ok(patched) => send(client, "PUT", &dry, "application/json", patched.to_string().into_bytes()).await,
        Err(error) => {
            let error = ApiError::from(error);
            (error.reason.code(), error.status())
        }
    };
    // Documents that do not decode: the patch and the update put it in different words, and neither is ours.
    let undecodable = case.kind != PatchKind::Strategic
        && real["message"]
            .as_str()
            .is_some_and(|message| message.starts_with(" \"\" is invalid: patch: Invalid value: \"{"));
    if undecodable && our_code == 400 {
        return None;
    }
    let (real, ours) = (normalised(real), normalised(ours));
    (code != our_code || real != ours).then(|| {
        let document = String::from_utf8_lossy(&case.document);
        let shown: String = document.chars().take(300).collect();
        format!("{:?} {:?} {shown}\n  real: {code} {real}\n  ours: {our_code} {ours}", case.target, case.kind)
    })
}

#[tokio::test]
async fn patches_do_the_same_on_the_real_server() {
    let Some(control_plane) = ControlPlane::start_or_skip("patches_do_the_same_on_the_real_server").await else {
        return;
    };
    let client = control_plane.admin().await.unwrap();
    let mut schemas = Vec::new();
    for target in Target::ALL {
        let body = target.object().to_string().into_bytes();
        let (code, answer) = send(&client, "POST", target.collection(), "application/json", body).await;
        assert_eq!(code, 201, "{answer}");
        let (document, definition) = target.definition();
        schemas.push(schema(&client, document, definition).await);
    }
    // The controllers shall have done with them.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;

    let mut differences = Vec::new();
    let cases = cases();
    for case in &cases {
        let schema = Target::ALL.iter().position(|target| *target == case.target).map(|index| &schemas[index]).unwrap();
        differences.extend(difference(&client, case, schema).await);
    }
    assert!(differences.is_empty(), "{} of {} differ:\n{}", differences.len(), cases.len(), differences.join("\n"));
}

#[tokio::test]
async fn custom_resources_refuse_strategic_patches() {
    let Some(control_plane) = ControlPlane::start_or_skip("custom_resources_refuse_strategic_patches").await else {
        return;
    };
    let client = control_plane.admin().await.unwrap();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": "things.x.io" },
        "spec": {
            "group": "x.io", "scope": "Namespaced", "names": { "plural": "things", "kind": "Thing" },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                           "schema": { "openAPIV3Schema": { "type": "object" } } }],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (code, _) = send(&client, "POST", definitions, "application/json", definition.to_string().into_bytes()).await;
    assert_eq!(code, 201);
    let things = "/apis/x.io/v1/namespaces/default/things";
    let thing = json!({ "apiVersion": "x.io/v1", "kind": "Thing", "metadata": { "name": "t" } }).to_string();
    for _ in 0..50 {
        if send(&client, "POST", things, "application/json", thing.clone().into_bytes()).await.0 == 201 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    let strategic = PatchKind::Strategic.media_type();
    let (code, answer) = send(&client, "PATCH", &format!("{things}/t"), strategic, b"{}".to_vec()).await;
    assert_eq!(code, 415, "{answer}");
    assert_eq!(answer["message"], skep_kube::patch::UNSUPPORTED_FOR_CUSTOM_RESOURCES);
    let (code, answer) =
        send(&client, "PATCH", "/api/v1/namespaces/default/configmaps/kube-root-ca.crt", "text/plain", b"{}".to_vec())
            .await;
    assert_eq!(
        (code, answer["message"].as_str().unwrap()),
        (415, skep_kube::status::ApiError::unsupported_patch().message.as_str())
    );
}
