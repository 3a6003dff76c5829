//! `src/protobuf/messages.tsv` is what Kubernetes' own types say.
//!
//! ```sh
//! UPDATE_MESSAGES=1 cargo test -p skep-kube --test protobuf_messages        # writes it anew
//! ```

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

use skep_conformance::control_plane::binaries_or_skip;
use skep_conformance::skip::skip_outside_ci;
use skep_kube::builtin;

/// What requests and answers are about beside the kinds that are stored.
const OTHERS: [&str; 10] = [
    "authentication.k8s.io/v1/SelfSubjectReview",
    "authentication.k8s.io/v1/TokenRequest",
    "authentication.k8s.io/v1/TokenReview",
    "authorization.k8s.io/v1/LocalSubjectAccessReview",
    "authorization.k8s.io/v1/SelfSubjectAccessReview",
    "authorization.k8s.io/v1/SelfSubjectRulesReview",
    "authorization.k8s.io/v1/SubjectAccessReview",
    "autoscaling/v1/Scale",
    "policy/v1/Eviction",
    "v1/Binding",
];

#[test]
fn the_table_of_messages_is_up_to_date() {
    let test = "the_table_of_messages_is_up_to_date";
    // Whoever has built the control plane has the sources of it, and Go.
    if binaries_or_skip(test).is_none() {
        return;
    }
    if Command::new("go").arg("version").output().is_err() {
        skip_outside_ci(test, "Go is not installed");
        return;
    }
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let kinds = builtin::table().iter().flat_map(|kind| {
        let name = format!("{}/{}", kind.api_version(), kind.kind);
        let list = kind.verbs.contains(&"list").then(|| format!("{name}List"));
        list.into_iter().chain([name])
    });
    let made = Command::new("go")
        .args(["run", "./messages"])
        .args(kinds.chain(OTHERS.map(str::to_owned)))
        .current_dir(crate_folder.join("../../tools/control-plane"))
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let file = crate_folder.join("src/protobuf/messages.tsv");
    if std::env::var_os("UPDATE_MESSAGES").is_some() {
        std::fs::write(&file, &made.stdout).unwrap();
    }
    let kept = std::fs::read(&file).unwrap();
    assert!(kept == made.stdout, "{} is stale; run this test with UPDATE_MESSAGES=1", file.display());
}
