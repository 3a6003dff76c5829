//! Workloads with every combination of options, and everything that they name.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use skep_api::conditions::types;
use skep_api::kinds::{
    MCPAuthzConfig, MCPExternalAuthConfig, MCPOIDCConfig, MCPTelemetryConfig, MCPToolConfig, MCPWebhookConfig,
};
use skep_operator::proxy::{Inputs, Proxied, Resolved};
use skep_operator::settings::{DefaultRedis, ProxySettings};

use crate::cluster::Fixture;
use crate::configs::{ConfigExample, Example as _, condition};

#[path = "../../../src/proxy/pod/samples.rs"]
#[allow(dead_code, reason = "other tests need the rest of it")]
mod samples;

#[path = "../combinations.rs"]
mod combinations;

use samples::{OPTIONS, Sample, SampleOption};

/// The name of the first server, which has no option.
pub const FIRST: &str = "s-0";

/// The settings of an operator with every option that is not one of a workload.
pub fn settings() -> ProxySettings {
    Sample::new(false, "all").with(OPTIONS).settings
}

/// Workloads and the names of their options.
pub struct Samples {
    pub all: Vec<(Sample, Vec<&'static str>)>,
    /// The specs of config objects, by the member of a workload's spec that names them.
    configs: BTreeMap<&'static str, Vec<Value>>,
}

impl Samples {
    pub fn new(servers: usize, proxies: usize) -> Self {
        let mut samples = Self { all: Vec::new(), configs: BTreeMap::new() };
        for (remote, letter, count) in [(false, 's', servers), (true, 'r', proxies)] {
            for (index, mut options) in combinations::combinations().take(count).enumerate() {
                let has = |wanted: &str| options.iter().any(|(name, _)| name.starts_with(wanted));
                // Nothing is served with an authorization server of its own and nobody who checks what it hands out.
                if has("auth_server") && !has("oidc") {
                    options.extend(OPTIONS.iter().filter(|(name, _)| *name == "oidc"));
                }
                let names = options.iter().map(|(name, _)| *name).collect();
                let mut sample = Sample::new(remote, &format!("{letter}-{index}")).with(options);
                if sample.spec["oidcConfigRef"].is_object() {
                    // What an authorization server of its own hands out, it has to be for.
                    let resource = sample.spec["oidcConfigRef"]["audience"].clone();
                    sample.spec["oidcConfigRef"]["resourceUrl"] = resource;
                    sample.spec["oidcConfigRef"]["scopes"] = json!(["s"]);
                }
                samples.name_configs(&mut sample);
                samples.all.push((sample, names));
            }
        }
        samples
    }

    /// Has a workload name the objects that it is to have, one for all workloads that want the same.
    fn name_configs(&mut self, sample: &mut Sample) {
        let resolved = &sample.resolved;
        let wanted = [
            ("authServerRef", resolved.auth_server.as_ref().map(admissible)),
            (MCPAuthzConfig::MEMBER, resolved.authz.as_ref().map(admissible)),
            (MCPExternalAuthConfig::MEMBER, resolved.external_auth.as_ref().map(admissible)),
            (MCPOIDCConfig::MEMBER, resolved.oidc.as_ref().map(admissible)),
            (MCPTelemetryConfig::MEMBER, resolved.telemetry.as_ref().map(admissible)),
            (MCPToolConfig::MEMBER, resolved.tools.as_ref().map(admissible)),
            (MCPWebhookConfig::MEMBER, resolved.webhooks.as_ref().map(admissible)),
        ];
        for (member, spec) in wanted.into_iter().filter_map(|(member, spec)| Some((member, spec?))) {
            let known = self.configs.entry(member).or_default();
            let place = known.iter().position(|found| *found == spec).unwrap_or_else(|| {
                known.push(spec);
                known.len() - 1
            });
            sample.spec[member]["name"] = json!(name(member, place));
        }
    }

    /// Creates everything that workloads name.
    pub async fn create_what_is_named(&self, fixture: &Fixture) {
        self.create_secrets(fixture).await;
        let maps: Api<ConfigMap> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
        let policies = json!({"version": "1.0", "type": "cedarv1",
            "cedar": {"policies": ["permit(principal, action, resource);"], "entities_json": "[]"}});
        for (name, key, text) in [
            ("policies", "p.yaml", policies.to_string()),
            ("root.ca", "ca.crt", String::new()),
            ("otel-ca", "ca.crt", String::new()),
            ("profile", "p.json", "{}".to_owned()),
        ] {
            let map = serde_json::from_value(json!({"metadata": {"name": name}, "data": {key: text}})).unwrap();
            maps.create(&PostParams::default(), &map).await.unwrap();
        }
        for (member, specs) in &self.configs {
            for (place, spec) in specs.iter().enumerate() {
                let (name, spec) = (name(member, place), spec.clone());
                match *member {
                    MCPAuthzConfig::MEMBER => drop(fixture.create::<MCPAuthzConfig>(&name, spec).await),
                    MCPOIDCConfig::MEMBER => drop(fixture.create::<MCPOIDCConfig>(&name, spec).await),
                    MCPTelemetryConfig::MEMBER => drop(fixture.create::<MCPTelemetryConfig>(&name, spec).await),
                    MCPToolConfig::MEMBER => drop(fixture.create::<MCPToolConfig>(&name, spec).await),
                    MCPWebhookConfig::MEMBER => drop(fixture.create::<MCPWebhookConfig>(&name, spec).await),
                    _ => drop(fixture.create::<MCPExternalAuthConfig>(&name, spec).await),
                }
            }
        }
    }

    async fn create_secrets(&self, fixture: &Fixture) {
        let mut named: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        self.all.iter().for_each(|(sample, _)| secrets(&sample.spec, &mut named));
        self.configs.values().flatten().for_each(|spec| secrets(spec, &mut named));
        if let Some((name, key)) = settings().redis.and_then(|redis| redis.password) {
            named.entry(name).or_default().insert(key);
        }
        let api: Api<Secret> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
        for (name, keys) in named {
            let data: BTreeMap<String, &str> = keys.into_iter().map(|key| (key, "secret")).collect();
            let secret = serde_json::from_value(json!({"metadata": {"name": name}, "stringData": data})).unwrap();
            api.create(&PostParams::default(), &secret).await.unwrap();
        }
    }

    /// Creates the workloads, once everything that they name has been judged.
    pub async fn create(&self, fixture: &Fixture) {
        let places = |member: &str| self.configs.get(member).map_or(0, Vec::len);
        judged::<MCPAuthzConfig>(fixture, places(MCPAuthzConfig::MEMBER)).await;
        judged::<MCPExternalAuthConfig>(fixture, places(MCPExternalAuthConfig::MEMBER)).await;
        judged::<MCPOIDCConfig>(fixture, places(MCPOIDCConfig::MEMBER)).await;
        judged::<MCPTelemetryConfig>(fixture, places(MCPTelemetryConfig::MEMBER)).await;
        judged::<MCPToolConfig>(fixture, places(MCPToolConfig::MEMBER)).await;
        judged::<MCPWebhookConfig>(fixture, places(MCPWebhookConfig::MEMBER)).await;
        for (sample, _) in &self.all {
            if sample.remote {
                fixture
                    .create::<skep_api::kinds::MCPRemoteProxy>(&sample.name, json!(sample.remote_proxy().spec))
                    .await;
            } else {
                fixture.create::<skep_api::kinds::MCPServer>(&sample.name, json!(sample.server().spec)).await;
            }
        }
    }
}

/// The spec of a sample as it can be written into a cluster. Samples have what shows in a pod, and no more.
fn admissible(object: &impl skep_api::kind::Kind) -> Value {
    let mut spec = json!(object.spec());
    if spec["type"] == "obo" {
        spec["obo"]["authority"] = json!("https://login.example.com");
        spec["obo"]["clientId"] = json!("client");
    }
    if spec["openTelemetry"].is_object() {
        spec["openTelemetry"]["tracing"] = json!({"enabled": true});
    }
    // One of two ways to get a client is accepted.
    let client =
        spec.pointer_mut("/embeddedAuthServer/upstreamProviders/0/oauth2Config").and_then(Value::as_object_mut);
    if let Some(client) = client.filter(|client| client.contains_key("dcrConfig")) {
        client.remove("clientSecretRef");
    }
    spec
}

fn name(member: &str, place: usize) -> String {
    format!("{}-{place}", member.to_lowercase())
}

async fn judged<K: ConfigExample>(fixture: &Fixture, count: usize) {
    for place in 0..count {
        let judged = |object: &K| condition(object, types::VALID).is_some();
        fixture.until::<K>(&name(K::MEMBER, place), "judged", judged).await;
    }
}

/// Every Secret and key that something names.
fn secrets(value: &Value, named: &mut BTreeMap<String, BTreeSet<String>>) {
    if let (Some(name), Some(key)) = (value["name"].as_str(), value["key"].as_str()) {
        named.entry(name.to_owned()).or_default().insert(if key.is_empty() { "value" } else { key }.to_owned());
    }
    match value {
        Value::Array(items) => items.iter().for_each(|item| secrets(item, named)),
        Value::Object(members) => members.values().for_each(|member| secrets(member, named)),
        _ => {}
    }
}
