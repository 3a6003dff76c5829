use anyhow::Context as _;
use kube::config::Kubeconfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use serde_json::json;
use skep_conformance::control_plane::Authority;
use skep_kube::auth::identity::{Certificate, authenticate};
use skep_kube::auth::rbac::Rbac;
use skep_kube::auth::reviews::self_subject_review;
use skep_kube::auth::tls::ClientCertificates;
use skep_kube::auth::{Action, Authorizer as _, ResourceAction};
use skep_kube::status::ApiError;

use crate::server::{Server, ask};
use crate::tokens::{authority, now};

pub(crate) async fn certificates_are_read_equally(server: &Server) -> anyhow::Result<()> {
    let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
    let clients = ClientCertificates::new(&server.control_plane.authority().certificate())?;
    for (user, group) in [("c-user", None), ("c-user", Some("c-group")), ("system:node:c", Some("system:nodes"))] {
        let identity = server.control_plane.authority().client(user, group)?;
        let client = server.client_of(&identity, |_| {}).await?;
        let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let (_, mut theirs) = ask(&client, "POST", path, &[], Some(&review)).await?;
        theirs["metadata"]["creationTimestamp"] = "1970-01-01T00:00:00Z".into();
        let certificate = CertificateDer::from_pem_slice(identity.certificate.as_bytes())?;
        let Certificate::Good(ours) = clients.judge(Some(&[certificate]), UnixTime::now()) else {
            anyhow::bail!("the certificate of {user} is no good");
        };
        assert_eq!(self_subject_review(&ours, 0), theirs);
    }
    Ok(())
}

/// Headers that hold a token, something else or nothing, and what becomes of a request with them.
pub(crate) async fn credentials_are_judged_equally(server: &Server) -> anyhow::Result<()> {
    let authority_of_others = Authority::new()?;
    let foreign = authority_of_others.client("admin", Some("system:masters"))?;
    let without = |kubeconfig: &mut Kubeconfig| {
        for user in &mut kubeconfig.auth_infos {
            user.auth_info = Some(kube::config::AuthInfo::default());
        }
    };
    let clients = [
        (server.client_of(&foreign, without).await?, Certificate::Absent),
        (server.client_of(&foreign, |_| {}).await?, Certificate::Bad),
    ];
    let (tokens, objects, roles) = (authority(server)?, server.objects().await?, server.roles().await?);
    let issue = |spec: serde_json::Value| -> anyhow::Result<String> {
        let issued = tokens.issue("default", "default", &json!({ "spec": spec }), &objects, now()?)?;
        Ok(issued.document["status"]["token"].as_str().context("token")?.to_owned())
    };
    let (good, elsewhere) = (issue(json!({}))?, issue(json!({ "audiences": ["elsewhere"] }))?);
    let headers = [
        None,
        Some(format!("Bearer {good}")),
        Some(format!("bearer {good}")),
        Some(format!("Bearer {good} more")),
        Some(format!("Bearer  {good}")),
        Some(format!("Bearer {elsewhere}")),
        Some("Bearer x".to_owned()),
        Some("Bearer".to_owned()),
        Some("Bearer ".to_owned()),
        Some("Basic dTpw".to_owned()),
        Some(good),
    ];
    let pods = ResourceAction { verb: "list".into(), resource: "pods".into(), ..ResourceAction::default() };
    for (client, certificate) in &clients {
        for header in &headers {
            let given: Vec<(&str, &str)> = header.iter().map(|value| ("authorization", value.as_str())).collect();
            let theirs = ask(client, "GET", "/api/v1/pods", &given, None).await?;
            let error = match authenticate(certificate, header.as_deref(), &tokens, &objects, now()?) {
                Ok(user) => Rbac(&roles).check(&user, &Action::Resource(pods.clone())).err().context("allowed")?,
                Err(unauthorized) => ApiError::from(unauthorized),
            };
            assert_eq!((error.reason.code(), error.status()), theirs, "{certificate:?} {header:?}");
        }
    }
    Ok(())
}
