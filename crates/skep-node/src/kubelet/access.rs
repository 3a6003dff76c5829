//! Who may use the API of a node: whoever the API server lets use `nodes/proxy` of it.
//!
//! A certificate of the cluster's authority is not enough: developers have one, too.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::{Method, StatusCode};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::Api;
use kube::api::PostParams;
use skep_kube::auth::User;
use skep_kube::auth::identity::Certificate;

use super::Kubelet;
use super::refusal::Refusal;

/// How long the API server may think about it.
const REVIEW_LIMIT: Duration = Duration::from_secs(10);

/// Lets requests through whose users may do what they ask for.
pub(super) async fn check(State(kubelet): State<Kubelet>, request: Request, next: Next) -> Result<Response, Refusal> {
    let Some(Certificate::Good(user)) = request.extensions().get() else {
        return Err(Refusal::new(StatusCode::UNAUTHORIZED, "Unauthorized"));
    };
    let verb = verb(request.method());
    let question = question(user, verb, kubelet.pods.node_name());
    let reviews: Api<SubjectAccessReview> = Api::all(kubelet.pods.client());
    let asked = tokio::time::timeout(REVIEW_LIMIT, reviews.create(&PostParams::default(), &question)).await;
    let Ok(Ok(review)) = asked else {
        let name = &user.name;
        let text = format!("Authorization error (user={name}, verb={verb}, resource=nodes, subresource=proxy)");
        return Err(Refusal::failed(text));
    };
    if review.status.is_some_and(|status| status.allowed) {
        return Ok(next.run(request).await);
    }
    let name = &user.name;
    let text = format!("Forbidden (user={name}, verb={verb}, resource=nodes, subresource(s)=[proxy])\n");
    Err(Refusal::new(StatusCode::FORBIDDEN, text))
}

fn verb(method: &Method) -> &'static str {
    match *method {
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "get",
    }
}

fn question(user: &User, verb: &str, node: &str) -> SubjectAccessReview {
    let User { name, uid, groups, extra } = user;
    let resource = ResourceAttributes {
        verb: Some(verb.to_owned()),
        version: Some("v1".to_owned()),
        resource: Some("nodes".to_owned()),
        subresource: Some("proxy".to_owned()),
        name: Some(node.to_owned()),
        ..ResourceAttributes::default()
    };
    let spec = SubjectAccessReviewSpec {
        user: Some(name.clone()),
        uid: uid.clone(),
        groups: Some(groups.clone()),
        extra: Some(extra.clone()),
        resource_attributes: Some(resource),
        ..SubjectAccessReviewSpec::default()
    };
    SubjectAccessReview { spec, ..SubjectAccessReview::default() }
}
