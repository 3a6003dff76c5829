//! `kubectl apply -k deploy`, on a real control plane: what a user gets, and an operator with exactly that.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use serde_json::{Value, json};
use skep_api::kind::Kind as _;
use skep_api::kinds::{MCPOIDCConfig, MCPRemoteProxy, MCPServer};
use skep_api::names::operator as names;
use skep_operator::operator::Operator;
use skep_operator::settings::Settings;

use crate::cluster::{Fixture, control_plane};
use crate::configs::Example as _;
use crate::{remote_proxies, servers};

/// The image of somebody who has built one.
const IMAGE: &str = "registry.example/team/skep:9";

/// The operator runs with a token of the service account that the manifests make, and may do what their roles say.
pub async fn what_is_deployed_can_work(fixture: Fixture) {
    let plane = control_plane().await.unwrap();
    let folder = plane.folder().join("deploy");
    copy(&[env!("CARGO_MANIFEST_DIR"), "..", "..", "deploy"].iter().collect::<PathBuf>(), &folder);
    let kustomization = folder.join("kustomization.yaml");
    let text = std::fs::read_to_string(&kustomization).unwrap();
    let (before, after) = text.split_once("- name: skep\n").unwrap();
    let (_, after) = after.split_once('\n').unwrap();
    let (name, tag) = IMAGE.split_once(':').unwrap();
    let image = format!("- name: skep\n  newName: {name}\n  newTag: \"{tag}\"\n");
    std::fs::write(&kustomization, format!("{before}{image}{after}")).unwrap();
    run(plane.kubectl().args(["apply", "--server-side", "-k"]).arg(&folder));

    let deployments: Api<Deployment> = Api::namespaced(fixture.client.clone(), names::DEFAULT_NAMESPACE);
    let deployment = json!(deployments.get(names::NAME).await.unwrap());
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], IMAGE);
    assert_eq!(variable(container, "TOOLHIVE_RUNNER_IMAGE"), IMAGE, "proxies get the same image");

    let account = ["-n", names::DEFAULT_NAMESPACE, "create", "token", names::NAME];
    let token = run(plane.kubectl().args(account));
    let client = plane.bearer(token.trim()).await.unwrap();
    let operator = Operator::start(client, &Settings::default(), Arc::default());
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
    let counted = operator.metrics().text();
    let passes = format!("skep_operator_reconcile_total{{controller=\"{}\"", MCPServer::DEFINITION.kind);
    assert!(counted.contains(&passes), "{counted}");
}

fn variable<'a>(container: &'a Value, name: &str) -> &'a Value {
    let variables = container["env"].as_array().into_iter().flatten();
    variables.into_iter().find(|variable| variable["name"] == name).map_or(&Value::Null, |found| &found["value"])
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
