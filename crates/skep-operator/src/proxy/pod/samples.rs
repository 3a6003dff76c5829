//! Workloads with every option, for tests: what is built from them is compared with files here, and with what an API
//! server makes of it in `tests/parity_of_builds.rs`, which shares this file.

use serde_json::{Value, json};
use skep_api::config::run_config::PermissionProfile;
use skep_api::kinds::{MCPRemoteProxy, MCPServer};

use super::{DefaultRedis, Inputs, Proxied, ProxySettings, Resolved};

/// A workload and what it refers to.
#[derive(Clone)]
pub struct Sample {
    pub remote: bool,
    pub name: String,
    pub spec: Value,
    pub resolved: Resolved,
    pub settings: ProxySettings,
}

/// An option, and how a workload gets it.
pub type SampleOption = (&'static str, fn(&mut Sample));

impl Sample {
    pub fn new(remote: bool, name: &str) -> Self {
        let spec = if remote {
            json!({"remoteUrl": "https://mcp.example.com/mcp"})
        } else {
            json!({"image": "example.com/server:1", "transport": "streamable-http"})
        };
        let settings = ProxySettings { runner_image: "example.com/runner:1".to_owned(), ..ProxySettings::default() };
        Self { remote, name: name.to_owned(), spec, resolved: Resolved::default(), settings }
    }

    /// The workload with some options.
    pub fn with<'a>(mut self, options: impl IntoIterator<Item = &'a SampleOption>) -> Self {
        for (_, add) in options {
            add(&mut self);
        }
        self
    }

    fn object<K: serde::de::DeserializeOwned>(&self) -> K {
        let metadata =
            json!({"name": self.name, "namespace": "ns", "generation": 7, "uid": format!("uid-of-{}", self.name)});
        serde_json::from_value(json!({"metadata": metadata, "spec": self.spec})).unwrap()
    }

    pub fn server(&self) -> MCPServer {
        self.object()
    }

    pub fn remote_proxy(&self) -> MCPRemoteProxy {
        self.object()
    }

    pub fn inputs<'a, P: Proxied>(&'a self, object: &'a P) -> Inputs<'a> {
        Inputs { common: object.common(), target: object.target(), resolved: &self.resolved, settings: &self.settings }
    }

    /// What can be said about the workload as the objects of a proxy are built from it.
    pub fn with_inputs<T>(&self, body: impl FnOnce(&Inputs<'_>) -> T) -> T {
        if self.remote { body(&self.inputs(&self.remote_proxy())) } else { body(&self.inputs(&self.server())) }
    }

    /// Sets members of the spec.
    fn set(&mut self, members: Value) {
        let Value::Object(members) = members else { return };
        for (name, value) in members {
            self.spec[name] = value;
        }
    }
}

fn config<K: serde::de::DeserializeOwned>(spec: &Value) -> K {
    serde_json::from_value(json!({"metadata": {"name": "config", "namespace": "ns"}, "spec": spec})).unwrap()
}

fn secret(name: &str) -> Value {
    json!({"name": name, "key": "value"})
}

/// Every option that shows in the objects of a proxy.
pub const OPTIONS: &[SampleOption] = &[
    ("affinity", |sample| sample.set(json!({"sessionAffinity": "None", "proxyPort": 9090}))),
    ("auth_server_external", |sample| {
        sample.set(json!({"externalAuthConfigRef": {"name": "config"}}));
        sample.resolved.external_auth = Some(config(&json!({"type": "embeddedAuthServer", "embeddedAuthServer": {
            "issuer": "https://auth.example.com", "upstreamProviders": [
                {"name": "idp", "type": "oidc", "oidcConfig": {"clientId": "c",
                    "issuerUrl": "https://idp.example.com", "clientSecretRef": secret("upstream")}}]}})));
    }),
    ("auth_server_ref", |sample| {
        sample.set(json!({"authServerRef": {"kind": "MCPExternalAuthConfig", "name": "config"}}));
        sample.resolved.auth_server = Some(config(&embedded_auth_server()));
    }),
    ("authz_config_map", |sample| {
        sample.set(json!({"authzConfig": {"type": "configMap", "configMap": {"name": "policies", "key": "p.yaml"}}}));
    }),
    ("authz_inline", |sample| {
        let policies = json!(["permit(principal, action, resource);"]);
        sample.set(json!({"authzConfig": {"type": "inline", "inline": {"policies": policies}}}));
    }),
    ("bearer_token", |sample| {
        sample.set(json!({"externalAuthConfigRef": {"name": "config"}}));
        sample.resolved.external_auth =
            Some(config(&json!({"type": "bearerToken", "bearerToken": {"tokenSecretRef": secret("my-token.1")}})));
    }),
    ("default_pull_secrets", |sample| {
        sample.settings.image_pull_secrets = vec!["for-all".to_owned(), "shared".to_owned()];
    }),
    ("default_redis", |sample| {
        let password = Some(("redis".to_owned(), "redis-password".to_owned()));
        sample.settings.redis = Some(DefaultRedis { address: "redis:6379".to_owned(), password });
    }),
    ("enforced_network", |sample| {
        sample.settings.enforce_network_profiles = true;
        sample.resolved.permission_profile = Some(PermissionProfile::default());
    }),
    ("header_forward", |sample| {
        sample.set(json!({"headerForward": {"addHeadersFromSecret": [
            {"headerName": "X-Api-Key", "valueSecretRef": secret("api-key")},
            {"headerName": "X.Other", "valueSecretRef": secret("other")}]}}));
    }),
    ("oidc", |sample| {
        sample.set(json!({"oidcConfigRef": {"name": "config", "audience": "https://a.example"}}));
        sample.resolved.oidc = Some(config(&json!({"type": "inline", "inline": {"issuer": "https://idp.example.com",
            "clientSecretRef": secret("client"),
            "caBundleRef": {"configMapRef": {"name": "root.ca", "key": "ca.crt"}}}})));
        sample.resolved.oidc_client_secret = true;
    }),
    ("on_behalf_of", |sample| {
        sample.set(json!({"externalAuthConfigRef": {"name": "config"}}));
        sample.resolved.external_auth =
            Some(config(&json!({"type": "obo", "obo": {"clientSecretRef": secret("client")}})));
    }),
    ("openshift", |sample| sample.settings.openshift = true),
    ("overrides", |sample| sample.set(json!({"resourceOverrides": overrides()}))),
    ("permission_profile", |sample| {
        sample.set(json!({"permissionProfile": {"type": "configmap", "name": "profile", "key": "p.json"}}));
    }),
    ("pod_template", |sample| {
        let container = if sample.remote { "toolhive" } else { "mcp" };
        sample.set(json!({"podTemplateSpec": pod_template(container)}));
    }),
    ("redis", |sample| {
        sample
            .set(json!({"sessionStorage": {"provider": "redis", "address": "r:6379", "passwordRef": secret("redis")}}));
    }),
    ("replicas", |sample| sample.set(json!({"replicas": 3}))),
    ("replicas_none", |sample| sample.set(json!({"replicas": 0}))),
    ("resources", |sample| {
        sample.set(json!({"resources": {"limits": {"cpu": "1000m", "memory": "0.5Gi"}, "requests": {"cpu": "0.1", "memory": ""}}}));
    }),
    ("secrets", |sample| {
        sample.set(
            json!({"secrets": [{"name": "s", "key": "TOKEN"}, {"name": "t", "key": "k", "targetEnvName": "OTHER"}]}),
        );
    }),
    ("service_account", |sample| sample.set(json!({"serviceAccount": "theirs"}))),
    ("stdio", |sample| sample.set(json!({"transport": if sample.remote { "sse" } else { "stdio" }}))),
    ("telemetry", |sample| {
        sample.set(json!({"telemetryConfigRef": {"name": "config", "serviceName": "service"}}));
        sample.resolved.telemetry = Some(config(&json!({"openTelemetry": {"enabled": true, "endpoint": "otel:4318",
            "sensitiveHeaders": [{"name": "x-team", "secretKeyRef": secret("otel")}],
            "caBundleRef": {"configMapRef": {"name": "otel-ca", "key": "", "optional": true}}}})));
    }),
    ("token_exchange", |sample| {
        sample.set(json!({"externalAuthConfigRef": {"name": "config"}}));
        sample.resolved.external_auth = Some(config(&json!({"type": "tokenExchange", "tokenExchange": {
            "audience": "a", "tokenUrl": "https://idp.example.com/token", "clientSecretRef": secret("client")}})));
    }),
    ("volumes", |sample| {
        sample.set(json!({"volumes": [
            {"name": "data", "hostPath": "/srv/data", "mountPath": "/data"},
            {"name": "more", "hostPath": "/srv/more", "mountPath": "/more", "readOnly": true}]}));
    }),
    ("webhooks", |sample| {
        sample.set(json!({"webhookConfigRef": {"name": "config"}}));
        sample.resolved.webhooks = Some(config(&json!({
            "validating": [{"name": "check", "url": "https://check.example.com", "hmacSecretRef": secret("my-hmac.key"),
                "tlsConfig": {"caSecretRef": secret("ca"), "clientCertSecretRef": secret("cert"),
                    "clientKeySecretRef": secret("key")}}],
            "mutating": [{"name": "change", "url": "https://change.example.com", "hmacSecretRef": secret("my-hmac.key")}]})));
    }),
];

fn embedded_auth_server() -> Value {
    json!({"type": "embeddedAuthServer", "embeddedAuthServer": {
        "issuer": "https://auth.example.com",
        "signingKeySecretRefs": [secret("new-key"), secret("old-key")],
        "hmacSecretRefs": [secret("hmac")],
        "delegateClients": [{"clientId": "agent", "clientSecretRef": secret("agent"), "audiences": ["https://a.example"],
            "scopes": ["s"]}],
        "storage": {"type": "redis", "redis": {
            "sentinelConfig": {"masterName": "m", "sentinelAddrs": ["s:26379"]},
            "aclUserConfig": {"usernameSecretRef": secret("redis-user"), "passwordSecretRef": secret("redis-password")},
            "tls": {"caCertSecretRef": secret("redis-ca")}, "sentinelTls": {"caCertSecretRef": secret("sentinel-ca")}}},
        "upstreamProviders": [{"name": "my-idp", "type": "oauth2", "oauth2Config": {
            "authorizationEndpoint": "https://idp.example.com/authorize", "tokenEndpoint": "https://idp.example.com/token",
            "clientSecretRef": secret("upstream"),
            "dcrConfig": {"registrationEndpoint": "https://idp.example.com/register",
                "initialAccessTokenRef": secret("initial")}}}]}})
}

fn overrides() -> Value {
    json!({
        "proxyDeployment": {
            "labels": {"team": "a", "app": "not-mine"},
            "annotations": {"note": "of the Deployment", "toolhive.stacklok.io/podtemplatespec-hash": "not-mine"},
            "podTemplateMetadataOverrides": {
                "labels": {"tier": "b", "toolhive": "not-mine"},
                "annotations": {"mesh": "on", "toolhive.stacklok.dev/runconfig-checksum": "not-mine"}},
            "env": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}, {"name": "HOME", "value": "/home"},
                {"name": "EMPTY", "value": ""}, {"name": "TOOLHIVE_SECRETS_PROVIDER", "value": "theirs"},
                {"name": "THV_SESSION_REDIS_PASSWORD", "value": "theirs"}],
            "imagePullSecrets": [{"name": "own"}, {"name": "shared"}, {"name": "own"}, {"name": ""}]},
        "proxyService": {"labels": {"team": "a", "toolhive-name": "not-mine"}, "annotations": {"cloud": "internal"}}})
}

fn pod_template(container: &str) -> Value {
    json!({
        "metadata": {"labels": {"zone": "c", "toolhive": "not-mine"},
            "annotations": {"scrape": "yes", "toolhive.stacklok.dev/runconfig-checksum": "not-mine"}},
        "spec": {
            "runtimeClassName": "gvisor", "terminationGracePeriodSeconds": 10,
            "nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "k", "operator": "Exists"}],
            "securityContext": {"fsGroup": 2000},
            "volumes": [{"name": "cache", "emptyDir": {}}],
            "containers": [
                {"name": container, "resources": {"limits": {"memory": "1024Mi"}},
                    "env": [{"name": "TOKEN", "value": "theirs"}, {"name": "EXTRA", "value": "1"}],
                    "volumeMounts": [{"name": "cache", "mountPath": "/cache"}],
                    "ports": [{"containerPort": 9102, "name": "extra"}]},
                {"name": "sidecar", "image": "example.com/sidecar:1"}]}})
}
