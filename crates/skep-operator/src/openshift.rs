//! Whether the cluster is OpenShift, which chooses users and groups of pods itself.

use http::{Request, StatusCode};
use kube::Client;
use kube::client::Body;

/// Where OpenShift's routes are described.
const ROUTES: &str = "/apis/route.openshift.io/v1";

/// What the variable says, or else what the cluster has. A cluster that does not answer counts as plain Kubernetes.
pub async fn detect(client: &Client, variable: Option<&str>) -> bool {
    if let Some(said) = variable {
        return said.eq_ignore_ascii_case("true");
    }
    let Ok(request) = Request::get(ROUTES).body(Body::empty()) else { return false };
    match client.send(request).await {
        Ok(answer) => answer.status() == StatusCode::OK,
        Err(error) => {
            tracing::warn!(%error, "cannot ask whether this is OpenShift; taken for Kubernetes");
            false
        }
    }
}
