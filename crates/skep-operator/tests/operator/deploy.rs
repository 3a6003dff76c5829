//! `kubectl apply -k deploy`, on a real control plane: what a user gets, and an operator with exactly that.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::ListParams;
use kube::{Api, Client};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use skep_api::kinds::{MCPOIDCConfig, MCPRemoteProxy, MCPServer};
use skep_api::names::operator as names;
use skep_operator::operator::Operator;
use skep_operator::settings::Settings;

use crate::cluster::{Fixture, Kind, control_plane};
use crate::configs::Example as _;
use crate::{remote_proxies, servers};

/// The image of somebody who has built one.
const IMAGE: &str = "registry.example/team/skep:9";

/// There is no kubectl without a real control plane.
pub fn trials() -> [Trial; 3] {
    let everywhere = crate::trial(Kind::Real, "deploy::what_is_deployed_can_work", what_is_deployed_can_work);
    let name = "deploy::what_is_deployed_in_one_namespace_can_work_there";
    let there = crate::trial(Kind::Real, name, what_is_deployed_in_one_namespace_can_work_there);
    [everywhere, there, crate::trial(Kind::Real, "deploy::openshift_chooses_the_user", openshift_chooses_the_user)]
}

/// The operator runs with a token of the service account that the manifests make, and may do what their roles say.
async fn what_is_deployed_can_work(fixture: Fixture) {
    let deployed = deployed(&fixture, "deploy", names::DEFAULT_NAMESPACE).await;
    work(&fixture, &deployed, Settings::default()).await;
}

/// The same for an operator of one namespace, which may do nothing anywhere else.
async fn what_is_deployed_in_one_namespace_can_work_there(fixture: Fixture) {
    let deployed = deployed(&fixture, "deploy/namespaced", &fixture.namespace).await;
    let watched = variable(&deployed.container, "WATCH_NAMESPACE");
    assert_eq!(watched["valueFrom"]["fieldRef"]["fieldPath"], "metadata.namespace");
    work(&fixture, &deployed, Settings { namespaces: vec![fixture.namespace.clone()], ..Settings::default() }).await;
    let everywhere: Api<MCPServer> = Api::all(deployed.client.clone());
    let refused = everywhere.list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 403), "{refused}");
}

/// The component leaves everything else as it is.
async fn openshift_chooses_the_user(_: Fixture) {
    let plane = control_plane().await.unwrap();
    let folder = plane.folder().join("openshift");
    copy(&[env!("CARGO_MANIFEST_DIR"), "..", "..", "deploy"].iter().collect::<PathBuf>(), &folder.join("deploy"));
    for base in ["deploy", "deploy/namespaced"] {
        let operator = |components: &[&str]| {
            let kustomization = json!({"resources": [base], "components": components});
            std::fs::write(folder.join("kustomization.yaml"), kustomization.to_string()).unwrap();
            let rendered = run(plane.kubectl().arg("kustomize").arg(&folder));
            let documents = rendered.split("\n---\n").map(|text| serde_saphyr::from_str::<Value>(text).unwrap());
            documents.into_iter().find(|document| document["kind"] == "Deployment").unwrap()
        };
        let mut plain = operator(&[]);
        let context = &mut plain["spec"]["template"]["spec"]["containers"][0]["securityContext"];
        assert!(context.as_object_mut().unwrap().remove("runAsUser").is_some());
        assert_eq!(operator(&["deploy/openshift"]), plain, "{base}");
    }
}

struct Deployed {
    /// The container of the operator.
    container: Value,
    /// With a token of its service account.
    client: Client,
}

/// Has kubectl apply a folder of this repository, with another image and in a namespace.
async fn deployed(fixture: &Fixture, path: &str, namespace: &str) -> Deployed {
    let plane = control_plane().await.unwrap();
    let folder = plane.folder().join(namespace);
    copy(&[env!("CARGO_MANIFEST_DIR"), "..", "..", path].iter().collect::<PathBuf>(), &folder);
    let kustomization = folder.join("kustomization.yaml");
    let mut document: Value = serde_saphyr::from_str(&std::fs::read_to_string(&kustomization).unwrap()).unwrap();
    let (name, tag) = IMAGE.split_once(':').unwrap();
    document["images"] = json!([{"name": "skep", "newName": name, "newTag": tag}]);
    if document.get("namespace").is_some() {
        document["namespace"] = json!(namespace);
    }
    std::fs::write(&kustomization, document.to_string()).unwrap();
    // The definitions of these tests have a version more.
    run(plane.kubectl().args(["apply", "--server-side", "--force-conflicts", "-k"]).arg(&folder));

    let deployments: Api<Deployment> = Api::namespaced(fixture.client.clone(), namespace);
    let deployment = json!(deployments.get(names::NAME).await.unwrap());
    let container = deployment["spec"]["template"]["spec"]["containers"][0].clone();
    assert_eq!(container["image"], IMAGE);
    assert_eq!(variable(&container, "TOOLHIVE_RUNNER_IMAGE")["value"], IMAGE, "proxies get the same image");
    let token = run(plane.kubectl().args(["-n", namespace, "create", "token", names::NAME]));
    Deployed { container, client: plane.bearer(token.trim()).await.unwrap() }
}

/// An operator does its work.
async fn work(fixture: &Fixture, deployed: &Deployed, settings: Settings) {
    let operator = Operator::start(deployed.client.clone(), &settings, Arc::default());
    operator.ready().await;
    fixture.create::<MCPOIDCConfig>("o", MCPOIDCConfig::good(1)).await;
    let reference = MCPOIDCConfig::reference("o");
    fixture.create::<MCPServer>("s", json!({"image": "i", "oidcConfigRef": reference})).await;
    fixture.create::<MCPRemoteProxy>("p", json!({"remoteUrl": "https://mcp.example.com"})).await;
    fixture.until::<MCPServer>("s", "settled", servers::is_settled).await;
    fixture.until::<MCPRemoteProxy>("p", "settled", remote_proxies::is_settled).await;
    fixture.delete::<MCPOIDCConfig>("o").await;
    fixture.delete::<MCPServer>("s").await;
    fixture.delete::<MCPRemoteProxy>("p").await;
    fixture.until_gone::<MCPServer>("s").await;
    fixture.until_gone::<MCPOIDCConfig>("o").await;
}

fn variable<'a>(container: &'a Value, name: &str) -> &'a Value {
    let variables = container["env"].as_array().into_iter().flatten();
    variables.into_iter().find(|variable| variable["name"] == name).unwrap_or(&Value::Null)
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}
