//! What people do to their objects.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use skep_api::kinds::{
    MCPAuthzConfig, MCPExternalAuthConfig, MCPOIDCConfig, MCPRemoteProxy, MCPServer, MCPTelemetryConfig, MCPToolConfig,
    MCPWebhookConfig,
};
use skep_api::names::{annotations, field_managers};
use skep_operator::cluster::OwnKind;

use crate::cluster::Fixture;
use crate::configs::{Example, for_every_kind};
use crate::wire::Random;

pub const CONFIGS: [&str; 2] = ["a", "b"];
const SERVERS: [&str; 3] = ["x", "y", "z"];
const PROXIES: [&str; 2] = ["p", "q"];

/// Creates what configs name.
pub async fn prepare(fixture: &Fixture) {
    let api: Api<Secret> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    for number in 0..3 {
        let name = format!("secret-{number}");
        let secret = serde_json::from_value(json!({"metadata": {"name": name}, "stringData": {"k": "v"}})).unwrap();
        api.create(&PostParams::default(), &secret).await.unwrap();
    }
}

/// A change may come too late or too early, nothing else.
pub fn forgive<T>(done: kube::Result<T>) -> Option<T> {
    match done {
        Ok(done) => Some(done),
        Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => None,
        Err(error) => panic!("{error}"),
    }
}

/// A StatefulSet as the runner of a proxy writes it.
pub async fn run_backend(fixture: &Fixture, name: &str) {
    let backend = json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": name, "labels": {"toolhive": "true", "toolhive-name": name}},
        "spec": {"serviceName": name, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "mcp", "image": "i"}]}}}});
    let sets: Api<StatefulSet> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    let params = PatchParams::apply(field_managers::PROXY_RUNNER).force();
    forgive(sets.patch(name, &params, &Patch::Apply(&backend)).await);
}

pub struct Changes<'a> {
    pub fixture: &'a Fixture,
}

impl Changes<'_> {
    pub async fn change_something(&self, random: &mut Random) {
        match random.below(14) {
            0..=4 => self.change_some_config(random).await,
            5..=7 => self.write::<MCPServer>(random.pick(&SERVERS), server(random)).await,
            8..=9 => self.write::<MCPRemoteProxy>(random.pick(&PROXIES), proxy(random)).await,
            10 => self.delete::<MCPServer>(random.pick(&SERVERS)).await,
            11 => self.delete::<MCPRemoteProxy>(random.pick(&PROXIES)).await,
            12 => {
                let asked = json!({annotations::RESTARTED_AT: format!("2026-02-03T04:05:{:02}Z", random.below(60))});
                let patch = json!({"metadata": {"annotations": asked}});
                self.merge::<MCPServer>(random.pick(&SERVERS), &patch).await;
            }
            _ => {
                let name = random.pick(&SERVERS);
                let server = self.fixture.api::<MCPServer>().get_opt(name).await.unwrap();
                // The proxy of one that is on its way out makes nothing.
                if server.is_some_and(|server| server.metadata.deletion_timestamp.is_none()) {
                    run_backend(self.fixture, name).await;
                }
            }
        }
    }

    async fn change_some_config(&self, random: &mut Random) {
        match random.below(6) {
            0 => self.change_config::<MCPAuthzConfig>(random).await,
            1 => self.change_config::<MCPExternalAuthConfig>(random).await,
            2 => self.change_config::<MCPOIDCConfig>(random).await,
            3 => self.change_config::<MCPTelemetryConfig>(random).await,
            4 => self.change_config::<MCPToolConfig>(random).await,
            _ => self.change_config::<MCPWebhookConfig>(random).await,
        }
    }

    async fn change_config<K: Example>(&self, random: &mut Random) {
        let name = random.pick(&CONFIGS);
        let spec = match K::bad() {
            Some(bad) if random.below(3) == 0 => bad,
            _ => K::good(random.below(3)),
        };
        match random.below(6) {
            0 => self.delete::<K>(name).await,
            _ => self.write::<K>(name, spec).await,
        }
    }

    /// Corrects everything that is wrong, as far as that can be done.
    pub async fn heal(&self) {
        async fn heal<K: Example>(changes: &Changes<'_>) {
            for name in CONFIGS {
                changes.write::<K>(name, K::good(0)).await;
            }
        }
        for_every_kind!(heal, self);
        for name in SERVERS {
            self.merge::<MCPServer>(name, &json!({"spec": {"podTemplateSpec": null}})).await;
        }
        for name in PROXIES {
            self.merge::<MCPRemoteProxy>(name, &json!({"spec": {"remoteUrl": "https://mcp.example.com"}})).await;
        }
    }

    /// Creates an object or changes its spec.
    async fn write<K: OwnKind>(&self, name: &str, spec: Value) {
        let object = json!({"apiVersion": K::api_version(&()), "kind": K::DEFINITION.kind,
            "metadata": {"name": name}, "spec": spec});
        let object: K = serde_json::from_value(object).unwrap();
        if forgive(self.fixture.api::<K>().create(&PostParams::default(), &object).await).is_none() {
            self.merge::<K>(name, &json!({"spec": spec})).await;
        }
    }

    async fn merge<K: OwnKind>(&self, name: &str, patch: &Value) {
        forgive(self.fixture.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await);
    }

    async fn delete<K: OwnKind>(&self, name: &str) {
        forgive(self.fixture.api::<K>().delete(name, &DeleteParams::default()).await);
    }
}

fn reference<K: Example>(random: &mut Random) -> Value {
    if random.below(3) == 0 { K::reference(random.pick(&CONFIGS)) } else { Value::Null }
}

/// What both kinds of workload have. Members that are null are taken away by a patch.
fn workload(random: &mut Random) -> Value {
    let overrides = json!({"proxyDeployment": {"labels": {"team": "a"}, "env": [{"name": "E", "value": "f"}]}});
    let policies = json!({"type": "inline", "inline": {"policies": ["permit(principal, action, resource);"]}});
    let policy = random.below(3);
    let mut one_of = |value: Value| if random.below(3) == 0 { value } else { Value::Null };
    let mut spec = json!({
        "resourceOverrides": one_of(overrides),
        "serviceAccount": one_of(json!("theirs")),
        "replicas": one_of(json!(2)),
        // Policies are given at one place only.
        "authzConfig": if policy == 0 { policies } else { Value::Null },
    });
    spec[MCPAuthzConfig::MEMBER] =
        if policy == 1 { MCPAuthzConfig::reference(random.pick(&CONFIGS)) } else { Value::Null };
    spec[MCPExternalAuthConfig::MEMBER] = reference::<MCPExternalAuthConfig>(random);
    spec[MCPOIDCConfig::MEMBER] = reference::<MCPOIDCConfig>(random);
    spec[MCPTelemetryConfig::MEMBER] = reference::<MCPTelemetryConfig>(random);
    spec[MCPToolConfig::MEMBER] = reference::<MCPToolConfig>(random);
    spec
}

fn server(random: &mut Random) -> Value {
    let mut spec = workload(random);
    spec["image"] = json!(random.pick(&["i", "j"]));
    spec["transport"] = json!(random.pick(&["stdio", "sse", "streamable-http"]));
    spec[MCPWebhookConfig::MEMBER] = reference::<MCPWebhookConfig>(random);
    spec["podTemplateSpec"] = match random.below(6) {
        0 => json!({"spec": {"containers": [{"name": "mcp", "env": [{"name": "A", "value": "b"}]}]}}),
        1 => json!({"spec": {"containers": "none"}}),
        _ => Value::Null,
    };
    spec
}

fn proxy(random: &mut Random) -> Value {
    let mut spec = workload(random);
    spec["remoteUrl"] =
        json!(random.pick(&["https://mcp.example.com", "https://other.example.com", "http://10.0.0.1"]));
    spec
}
