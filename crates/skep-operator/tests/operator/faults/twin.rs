//! The same objects in another namespace, where an operator has no troubles.

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use serde_json::json;
use skep_api::conditions::types;
use skep_api::kinds::{
    MCPAuthzConfig, MCPExternalAuthConfig, MCPOIDCConfig, MCPRemoteProxy, MCPServer, MCPTelemetryConfig, MCPToolConfig,
    MCPWebhookConfig,
};
use skep_operator::cluster::OwnKind;
use skep_operator::operator::Operator;

use super::changes::{prepare, run_backend};
use crate::cluster::Fixture;
use crate::configs::{Example, condition};

/// Copies everything that is to stay, and has a new operator look after it.
pub async fn of(original: &Fixture, twin: &Fixture) -> Operator {
    prepare(twin).await;
    copy_workloads::<MCPServer>(original, twin, "image").await;
    copy_workloads::<MCPRemoteProxy>(original, twin, "remoteUrl").await;
    let sets: Api<StatefulSet> = Api::namespaced(original.client.clone(), &original.namespace);
    for set in sets.list(&ListParams::default()).await.unwrap() {
        if twin.api::<MCPServer>().get_opt(&set.name_any()).await.unwrap().is_some() {
            run_backend(twin, &set.name_any()).await;
        }
    }
    let (operator, _record) = twin.operator().await;
    copy::<MCPAuthzConfig>(original, twin).await;
    copy::<MCPExternalAuthConfig>(original, twin).await;
    copy::<MCPOIDCConfig>(original, twin).await;
    copy::<MCPTelemetryConfig>(original, twin).await;
    copy::<MCPToolConfig>(original, twin).await;
    copy::<MCPWebhookConfig>(original, twin).await;
    operator
}

/// Copies workloads with their generation, which is part of what is built from them. `member` is changed until it is
/// reached.
async fn copy_workloads<K: OwnKind>(original: &Fixture, twin: &Fixture, member: &str) {
    for object in original.api::<K>().list(&ListParams::default()).await.unwrap() {
        if object.meta().deletion_timestamp.is_some() {
            continue;
        }
        let (name, spec) = (object.name_any(), json!(object.spec()));
        let generation = object.meta().generation.unwrap_or(1);
        let value = |number: i64| {
            if number == generation { spec[member].clone() } else { json!(format!("https://before-{number}")) }
        };
        let mut first = spec.clone();
        first[member] = value(1);
        twin.create::<K>(&name, first).await;
        for number in 2..=generation {
            twin.merge::<K>(&name, json!({"spec": {member: value(number)}})).await;
        }
    }
}

async fn copy<K: Example>(original: &Fixture, twin: &Fixture) {
    for object in original.api::<K>().list(&ListParams::default()).await.unwrap() {
        let name = object.name_any();
        twin.create::<K>(&name, json!(object.spec())).await;
        twin.until::<K>(&name, "judged", |object| condition(object, types::VALID).is_some()).await;
        if object.meta().deletion_timestamp.is_some() {
            twin.delete::<K>(&name).await;
        }
    }
}
