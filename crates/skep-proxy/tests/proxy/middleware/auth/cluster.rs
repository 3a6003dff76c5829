//! Service accounts of a real cluster.

use std::process::Command;

use skep_conformance::control_plane::ControlPlane;
use skep_proxy::middleware::OidcSettings;

use super::{call_with, guarded};

/// What a command prints, once it succeeds: a cluster that has just come up may still miss something.
async fn printed(make: impl Fn() -> Command) -> String {
    let patient = async {
        loop {
            let output = make().output().unwrap();
            if output.status.success() {
                return String::from_utf8(output.stdout).unwrap().trim().to_owned();
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::http::PATIENCE, patient).await.unwrap()
}

#[tokio::test]
async fn service_accounts_of_a_real_cluster_are_known_by_its_own_keys() {
    let test = "service_accounts_of_a_real_cluster_are_known_by_its_own_keys";
    let Some(cluster) = ControlPlane::start_or_skip(test).await else { return };
    let kubectl = |arguments: &[&str]| {
        let mut command = cluster.kubectl();
        command.args(["--namespace", "default"]).args(arguments);
        command
    };
    printed(|| kubectl(&["create", "serviceaccount", "bee"])).await;
    let token = printed(|| kubectl(&["create", "token", "bee", "--audience", "weather"])).await;
    let own = printed(|| kubectl(&["create", "token", "bee"])).await;
    let folder = tempfile::tempdir().unwrap();
    let (authority, token_file) = (folder.path().join("ca.crt"), folder.path().join("token"));
    std::fs::write(&authority, cluster.authority().certificate()).unwrap();
    std::fs::write(&token_file, &own).unwrap();
    // As the operator writes it, but for the name of the API server, which only pods can resolve.
    let settings = OidcSettings {
        issuer: "https://kubernetes.default.svc".to_owned(),
        audience: "weather".to_owned(),
        key_set_url: format!("{}/openid/v1/jwks", cluster.server()),
        authorities_file: Some(authority),
        token_file: Some(token_file),
        allows_private: true,
        ..OidcSettings::default()
    };
    let proxy = guarded(&settings).await;
    let mut answer = call_with(&proxy, &token).await;
    let told = answer.text().await;
    assert_eq!(answer.status, 200, "{told}");
    let mut refused = call_with(&proxy, &own).await;
    assert_eq!((refused.status, refused.text().await.contains("invalid audience")), (401, true));
    // Without a token of its own the proxy may not even see the keys.
    let nobody = guarded(&OidcSettings { token_file: None, ..settings }).await;
    let mut refused = call_with(&nobody, &token).await;
    assert_eq!((refused.status, refused.text().await.contains("failed to fetch JWKS")), (401, true));
}
