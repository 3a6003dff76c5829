//! The control plane itself: it comes up, it authorises, and nothing of it is left afterwards.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::Api;
use kube::api::ListParams;
use skep_conformance::control_plane::ControlPlane;

#[tokio::test]
async fn it_serves_admins_and_refuses_strangers() {
    let Some(control_plane) = ControlPlane::start_or_skip("it_serves_admins_and_refuses_strangers").await else {
        return;
    };
    let admin = control_plane.admin().await.unwrap();
    assert!(Api::<Namespace>::all(admin.clone()).list(&ListParams::default()).await.unwrap().items.len() >= 4);

    let version = admin.apiserver_version().await.unwrap();
    assert_eq!((version.major.as_str(), version.minor.as_str()), ("1", "36"), "{version:?}");

    let stranger = control_plane.client("nobody", None).await.unwrap();
    let error = Api::<Pod>::default_namespaced(stranger).list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(&error, kube::Error::Api(status) if status.code == 403), "{error}");
}
