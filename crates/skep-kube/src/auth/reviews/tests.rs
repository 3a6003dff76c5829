use serde_json::{Value, json};

use super::*;
use crate::auth::authorize::Authorizer;
use crate::auth::rbac::{Rbac, RoleIndex, bootstrap};
use crate::auth::user::User;
use crate::status::ApiError;

fn index() -> RoleIndex {
    let documents: Vec<Value> =
        bootstrap::cluster_roles().into_iter().chain(bootstrap::cluster_role_bindings()).collect();
    RoleIndex::from_documents(&documents)
}

fn message(result: Result<Value, ApiError>) -> String {
    result.unwrap_err().message
}

#[test]
fn an_access_review_answers_with_the_reason() {
    let index = index();
    let authorizer = Rbac(&index);
    let review = json!({ "spec": {
        "user": "bob", "groups": ["system:authenticated"], "nonResourceAttributes": { "verb": "get", "path": "/api/v1" },
    } });
    assert_eq!(
        subject_access_review(&review, &authorizer).unwrap(),
        json!({
            "kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {},
            "spec": {
                "user": "bob", "groups": ["system:authenticated"],
                "nonResourceAttributes": { "verb": "get", "path": "/api/v1" },
            },
            "status": {
                "allowed": true,
                "reason": "RBAC: allowed by ClusterRoleBinding \"system:discovery\" of ClusterRole \
                           \"system:discovery\" to Group \"system:authenticated\"",
            },
        })
    );
    let review = json!({ "spec": { "resourceAttributes": { "verb": "get", "resource": "pods", "name": "" } } });
    let answer = self_subject_access_review(&review, &User::new("bob", &[]), &authorizer).unwrap();
    assert_eq!(answer["spec"], json!({ "resourceAttributes": { "verb": "get", "resource": "pods" } }));
    assert_eq!(answer["status"], json!({ "allowed": false }));
}

#[test]
fn bad_access_reviews_are_told_what_is_wrong() {
    let index = index();
    let authorizer = Rbac(&index);
    let judged = |review: &Value| message(subject_access_review(review, &authorizer));
    assert_eq!(
        judged(&json!({})),
        ".authorization.k8s.io \"\" is invalid: [spec.resourceAttributes: Invalid value: null: exactly one of \
         nonResourceAttributes or resourceAttributes must be specified, spec.user: Invalid value: \"\": at least one of \
         user or group must be specified]"
    );
    assert_eq!(
        judged(&json!({ "spec": { "user": "bob", "resourceAttributes": {}, "nonResourceAttributes": {} } })),
        ".authorization.k8s.io \"\" is invalid: spec.nonResourceAttributes: Invalid value: \
         {\"Path\":\"\",\"Verb\":\"\"}: cannot be specified in combination with resourceAttributes"
    );
    assert_eq!(
        judged(&json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "user": "b", "resourceAttributes": {} } })),
        ".authorization.k8s.io \"\" is invalid: metadata: Invalid value: {\"labels\":{\"a\":\"b\"}}: must be empty"
    );
    let local = |review: &Value| message(local_subject_access_review(review, "default", &authorizer));
    assert_eq!(
        local(&json!({ "spec": { "user": "bob", "resourceAttributes": { "namespace": "other" } } })),
        ".authorization.k8s.io \"\" is invalid: spec.resourceAttributes.namespace: Invalid value: \"other\": must match \
         metadata.namespace"
    );
    assert_eq!(
        local(&json!({ "spec": { "user": "bob", "nonResourceAttributes": { "path": "/x", "verb": "get" } } })),
        ".authorization.k8s.io \"\" is invalid: spec.nonResourceAttributes: Invalid value: \
         {\"Path\":\"/x\",\"Verb\":\"get\"}: disallowed on this kind of request"
    );
    assert_eq!(
        local(&json!({ "metadata": { "namespace": "other" } })),
        "the namespace of the provided object does not match the namespace sent on the request"
    );
    let error = subject_access_review(&json!({}), &authorizer).unwrap_err().status();
    assert_eq!(error["details"].get("kind"), None);
}

#[test]
fn odd_documents_do_not_panic() {
    let index = index();
    let authorizer: &dyn Authorizer = &Rbac(&index);
    let user = User::new("bob", &[]);
    for review in [
        json!(null),
        json!([]),
        json!("x"),
        json!(7),
        json!({ "spec": [] }),
        json!({ "metadata": 1, "spec": { "user": {}, "groups": {}, "extra": [], "resourceAttributes": [1] } }),
        json!({ "spec": { "user": "x", "extra": { "a": 1 }, "resourceAttributes": { "fieldSelector": { "requirements": [1, {}] } } } }),
    ] {
        let _ = local_subject_access_review(&review, "default", authorizer);
        let _ = subject_access_review(&review, authorizer);
        let _ = self_subject_access_review(&review, &user, authorizer);
        let _ = self_subject_rules_review(&review, &user, authorizer);
    }
}

#[test]
fn rules_are_listed_by_what_they_are_about() {
    let index = index();
    let authorizer = Rbac(&index);
    let user = User::new("bob", &["system:authenticated"]);
    let review = json!({ "spec": { "namespace": "default" } });
    let answer = self_subject_rules_review(&review, &user, &authorizer).unwrap();
    assert_eq!(answer["spec"], json!({}));
    assert_eq!(answer["status"]["incomplete"], false);
    assert_eq!(answer["status"]["resourceRules"].as_array().unwrap().len(), 2);
    assert_eq!(answer["status"]["nonResourceRules"].as_array().unwrap().len(), 2);
    assert_eq!(message(self_subject_rules_review(&json!({}), &user, &authorizer)), "no namespace on request");
}

#[test]
fn who_am_i() {
    let answer = self_subject_review(&User::new("bob", &["g"]), 0);
    assert_eq!(answer["metadata"], json!({ "creationTimestamp": "1970-01-01T00:00:00Z" }));
    assert_eq!(answer["status"], json!({ "userInfo": { "username": "bob", "groups": ["g"] } }));
}
