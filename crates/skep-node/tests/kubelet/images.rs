//! Images that have to be pulled, by installers that are stand-ins.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::cluster::Cluster;
use crate::look::told;

crate::trials![the_cause_is_told_before_the_pause, what_is_never_pulled_has_a_reason_of_its_own, progress_is_told];

/// Says that the stand-ins are in front of everything else.
const VARIABLE: &str = "SKEP_KUBELET_STAND_INS";
/// Installs a package with one program as soon as it is let, and tells that it waits; fails for a certain version.
const NPM: &str = r#"#!/bin/sh
for word; do [ "$before" = --prefix ] && folder=$word; before=$word; done
case $word in *@0.0.0) echo "no such version" >&2; exit 1;; esac
mkdir -p "$folder/node_modules/${word%@*}"
echo '{"bin": "run.js"}' > "$folder/node_modules/${word%@*}/package.json"
touch "$folder/node_modules/${word%@*}/run.js"
until [ -e "$folder/go-on" ]; do echo "still at it"; sleep 0.2; done
"#;

pub fn has_stand_ins() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// This program again, with the stand-ins.
pub fn run_with_stand_ins() -> ExitCode {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stand-ins");
    fs::create_dir_all(&folder).unwrap();
    for (name, text) in [("npm", NPM), ("node", "#!/bin/sh\n")] {
        // Put into its place whole: another run may use it at this moment.
        let (file, draft) = (folder.join(name), folder.join(format!("{name}.{}", std::process::id())));
        fs::write(&draft, text).unwrap();
        fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(&draft, &file).unwrap();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([folder].into_iter().chain(std::env::split_paths(&path))).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    let error = command.args(std::env::args_os().skip(1)).env("PATH", path).env(VARIABLE, "1").exec();
    panic!("cannot start again: {error}")
}

/// Why the container of a pod waits, every reason once, until one of them comes.
async fn reasons(cluster: &Cluster, pod: &str, last: &str) -> Vec<String> {
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), "default");
    let config = watcher::Config::default().fields(&format!("metadata.name={pod}"));
    let mut changes = watcher(pods, config).default_backoff().touched_objects().boxed();
    let mut reasons: Vec<String> = Vec::new();
    while reasons.last().is_none_or(|reason| reason != last) {
        let Some(Ok(pod)) = changes.next().await else { continue };
        let statuses = pod.status.and_then(|status| status.container_statuses).unwrap_or_default();
        let waiting = statuses.into_iter().next().and_then(|status| status.state?.waiting?.reason);
        reasons.extend(waiting.filter(|reason| reasons.last() != Some(reason)));
    }
    reasons
}

async fn the_cause_is_told_before_the_pause(cluster: Arc<Cluster>) {
    for (pod, image, cause) in [
        ("unknown-image", "nowhere/nothing:1", "map it to a command in the image map"),
        ("broken-package", "npx://broken@0.0.0", "no such version"),
    ] {
        let begun = reasons(&cluster, pod, "ImagePullBackOff");
        cluster.pod(pod, json!([{"name": "main", "image": image}])).await;
        let reasons = begun.await;
        let at = |reason: &str| reasons.iter().position(|known| known == reason);
        assert!(at("ErrImagePull").is_some_and(|first| Some(first) < at("ImagePullBackOff")), "{reasons:?}");
        let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), "default");
        let pod = pods.get(pod).await.unwrap();
        let message = pod.status.as_ref().and_then(|status| {
            status.container_statuses.as_ref()?[0].state.as_ref()?.waiting.as_ref()?.message.clone()
        });
        assert!(message.is_some_and(|message| message.contains(cause)), "{}: {:?}", pod.name_any(), pod.status);
    }
}

async fn what_is_never_pulled_has_a_reason_of_its_own(cluster: Arc<Cluster>) {
    for (pod, image, policy, reason, cause) in [
        (
            "never-unknown",
            "nowhere/nothing:1",
            "Never",
            "ErrImageNeverPull",
            "is not present with pull policy of Never",
        ),
        (
            "never-package",
            "npx://never@1.0.0",
            "Never",
            "ErrImageNeverPull",
            "is not present with pull policy of Never",
        ),
        ("bad-name", "Nowhere/nothing", "Never", "InvalidImageName", "couldn't parse image name"),
        ("bad-name-pulled", "nowhere/nothing:", "Always", "InvalidImageName", "couldn't parse image name"),
        ("bad-package", "npx://../x", "IfNotPresent", "InvalidImageName", "is not a package"),
    ] {
        let begun = reasons(&cluster, pod, reason);
        cluster.pod(pod, json!([{"name": "main", "image": image, "imagePullPolicy": policy}])).await;
        let reasons = begun.await;
        assert!(!reasons.iter().any(|reason| reason == "ErrImagePull"), "{pod}: {reasons:?}");
        let event = if reason == "ErrImageNeverPull" { reason } else { "InspectFailed" };
        let line = told(&cluster, pod, cause).await;
        assert!(line.contains(event), "{line}");
    }
}

async fn progress_is_told(cluster: Arc<Cluster>) {
    cluster.pod("slow-pull", json!([{"name": "main", "image": "npx://slow-pull@1.0.0"}])).await;
    let line = told(&cluster, "slow-pull", "still at it").await;
    assert!(line.contains("Pulling"), "{line}");
    fs::write(cluster.folder().join("cache/npm/slow-pull@1.0.0/go-on"), "").unwrap();
    told(&cluster, "slow-pull", "Successfully pulled image").await;
}
