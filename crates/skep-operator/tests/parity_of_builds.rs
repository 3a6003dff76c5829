//! What is built for a proxy is what an API server has afterwards: a second look at any combination of options finds
//! nothing to write, whatever the server has put in by default.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Service, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use skep_api::kind::Kind;
use skep_api::kinds::{MCPRemoteProxy, MCPServer};
use skep_conformance::control_plane::ControlPlane;
use skep_control::Key;
use skep_kube::auth::tokens::{SigningKey, TokenAuthority};
use skep_kube::server::Server;
use skep_kube::store::Store;
use skep_operator::cluster::Cluster;
use skep_operator::proxy::pod::{self, deployment};
use skep_operator::proxy::{Inputs, Proxied, Resolved, network_policy, role, role_binding, service, service_accounts};
use skep_operator::settings::{DefaultRedis, ProxySettings};
use skep_operator::write::{Applied, apply};
use tokio::task::JoinSet;

#[path = "../src/proxy/pod/samples.rs"]
mod samples;

#[path = "operator/combinations.rs"]
mod combinations;

use combinations::combinations;
use samples::{OPTIONS, Sample, SampleOption};

/// How many combinations are tried of each kind of workload: no option, all, each alone, all but each, and others.
const COMBINATIONS: usize = 120;

/// How often a workload is looked at before it counts as never settled.
const TRIES: usize = 5;

async fn ours() -> Client {
    let tokens = TokenAuthority::new(SigningKey::generate().unwrap());
    let client = Server::new(Store::open(None).unwrap(), tokens, "127.0.0.1:0").await.unwrap().client();
    with_namespace(client).await
}

async fn with_namespace(client: Client) -> Client {
    let namespace = serde_json::from_value(json!({"metadata": {"name": "ns"}})).unwrap();
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    client
}

/// A cluster as the controllers of workloads know it.
fn watched(client: Client) -> (Arc<Cluster>, JoinSet<()>) {
    let kinds = [MCPServer::DEFINITION.kind, MCPRemoteProxy::DEFINITION.kind];
    Cluster::watch(client, &[], kinds.map(|kind| (kind, Arc::default())).into())
}

/// Applies every child of a workload and says which of them were written.
async fn write<O: Kind>(cluster: &Cluster, owner: &O, inputs: &Inputs<'_>) -> Vec<String> {
    assert!(pod::parse_pod_template(inputs).is_ok());
    let mut written = Vec::new();
    let mut note = |what: &str, name: String, applied: Applied| {
        if applied == Applied::Written {
            written.push(format!("{what} {name}"));
        }
    };
    for account in service_accounts(inputs) {
        note("ServiceAccount", account.name_any(), apply(cluster, owner, &account).await.unwrap());
    }
    if let (Some(role), Some(binding)) = (role(inputs), role_binding(inputs)) {
        note("Role", role.name_any(), apply(cluster, owner, &role).await.unwrap());
        note("RoleBinding", binding.name_any(), apply(cluster, owner, &binding).await.unwrap());
    }
    if let Some(policy) = network_policy(inputs) {
        note("NetworkPolicy", policy.name_any(), apply(cluster, owner, &policy).await.unwrap());
    }
    let service = service(inputs);
    note("Service", service.name_any(), apply(cluster, owner, &service).await.unwrap());
    let deployment = deployment(inputs, "checksum").unwrap();
    note("Deployment", deployment.name_any(), apply(cluster, owner, &deployment).await.unwrap());
    written
}

async fn write_sample(cluster: &Cluster, sample: &Sample) -> Vec<String> {
    if sample.remote {
        let owner = sample.remote_proxy();
        write(cluster, &owner, &sample.inputs(&owner)).await
    } else {
        let owner = sample.server();
        write(cluster, &owner, &sample.inputs(&owner)).await
    }
}

/// Writes a workload and looks again until nothing is written. What differs for ever is written for ever; the few
/// tries are for a watch that is late.
async fn settle(cluster: &Cluster, sample: &Sample, what: &str) -> Vec<String> {
    let first = write_sample(cluster, sample).await;
    let mut again = Vec::new();
    for _ in 0..TRIES {
        again = write_sample(cluster, sample).await;
        if again.is_empty() {
            return first;
        }
    }
    panic!("{what} is never settled: {again:?}");
}

fn built(sample: &Sample) -> Deployment {
    sample.with_inputs(|inputs| deployment(inputs, "checksum")).unwrap()
}

/// Additions that others make to a child: they are no reason to write.
async fn disturb(client: &Client, sample: &Sample) {
    let params = PatchParams::apply("somebody-else");
    let metadata = json!({"labels": {"foreign": "yes"}, "annotations": {"foreign": "yes"}});
    let service_name = if sample.remote { "mcp-{}-remote-proxy" } else { "mcp-{}-proxy" }.replace("{}", &sample.name);
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata});
    let services: Api<Service> = Api::namespaced(client.clone(), "ns");
    services.patch(&service_name, &params, &Patch::Apply(&service)).await.unwrap();
    let template = json!({"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}},
        "spec": {"containers": [{"name": "injected", "image": "example.com/injected"}]}});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
        "spec": {"template": template}});
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "ns");
    deployments.patch(&sample.name, &params, &Patch::Apply(&deployment)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_look_finds_nothing_to_write() {
    Box::pin(look_twice(ours().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_look_at_a_real_api_server_finds_nothing_to_write() {
    let Some(plane) = ControlPlane::start_bare_or_skip("what is built for a proxy, on a real API server").await else {
        return;
    };
    Box::pin(look_twice(with_namespace(plane.admin().await.unwrap()).await)).await;
}

async fn look_twice(client: Client) {
    let (cluster, _watches) = watched(client.clone());
    let mut samples = Vec::new();
    for remote in [false, true] {
        for (index, options) in combinations().take(COMBINATIONS).enumerate() {
            let names: Vec<&str> = options.iter().map(|(name, _)| *name).collect();
            let sample = Sample::new(remote, &format!("{}-{index}", if remote { "r" } else { "s" })).with(options);
            assert!(settle(&cluster, &sample, &format!("{remote} {names:?}")).await.len() >= 2, "{remote} {names:?}");
            disturb(&client, &sample).await;
            samples.push(sample);
        }
    }
    for sample in &samples {
        until_disturbed(&cluster, &sample.name).await;
        assert_eq!(write_sample(&cluster, sample).await, [""; 0], "{}: {:#}", sample.name, sample.spec);
    }
    // An operator that starts knows everything from lists, whose items do not say what they are.
    let (started, _watches) = watched(client);
    until_known(&started).await;
    for sample in &samples {
        assert_eq!(write_sample(&started, sample).await, [""; 0], "{}: {:#}", sample.name, sample.spec);
    }
}

/// Waits until the first list of every kind of child has arrived.
async fn until_known(cluster: &Cluster) {
    let known = |name: &str| Key::new("ns", name);
    for _ in 0..3_000 {
        let complete = cluster.child::<Deployment>(&known("s-0")).is_some()
            && cluster.child::<Service>(&known("mcp-s-0-proxy")).is_some()
            && cluster.child::<ServiceAccount>(&known("s-0-sa")).is_some()
            && cluster.child::<Role>(&known("s-0-proxy-runner")).is_some()
            && cluster.child::<RoleBinding>(&known("s-0-proxy-runner")).is_some();
        if complete {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("children are never listed");
}

/// Waits until the operator knows what others have added.
async fn until_disturbed(cluster: &Cluster, name: &str) {
    for _ in 0..3_000 {
        let child = cluster.child::<Deployment>(&Key::new("ns", name));
        let live = child.as_ref().and_then(|child| child.body());
        if live.is_some_and(|live| live["metadata"]["labels"]["foreign"] == "yes") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("additions to {name} are never seen");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_option_that_comes_or_goes_is_written() {
    let (cluster, _watches) = watched(ours().await);
    for remote in [false, true] {
        let plain = Sample::new(remote, if remote { "remote" } else { "server" });
        settle(&cluster, &plain, "without options").await;
        for option in OPTIONS {
            let changed = plain.clone().with([option]);
            let written = settle(&cluster, &changed, option.0).await;
            let restored = settle(&cluster, &plain, "without options").await;
            // Objects that only the plain workload has are not deleted here, and so not written again either.
            assert_eq!(written, restored, "{remote} {}", option.0);
            let noticed = written.iter().any(|written| written.starts_with("Deployment"));
            assert_eq!(noticed, built(&plain) != built(&changed), "{remote} {}", option.0);
        }
    }
}
