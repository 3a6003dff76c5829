//! Whether the cluster is OpenShift, which chooses users and groups of pods itself, and what it writes onto our objects.

use std::time::Duration;

use http::Request;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Client;

/// Where OpenShift's routes are described.
const ROUTES: &str = "/apis/route.openshift.io/v1";

/// How often, and after which pause, a cluster that does not answer is asked again by those who have to know.
const ATTEMPTS: u32 = 10;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// What the variable says, or else what the cluster has. A cluster that does not answer counts as plain Kubernetes.
pub async fn detect(client: &Client, variable: Option<&str>) -> bool {
    match look(client, variable).await {
        Ok(found) => found,
        Err(error) => {
            tracing::warn!(%error, "cannot ask whether this is OpenShift; taken for Kubernetes");
            false
        }
    }
}

/// The same, for one who cannot go on without an answer.
pub async fn require(client: &Client, variable: Option<&str>) -> Result<bool, kube::Error> {
    let mut pause = FIRST_PAUSE;
    for _ in 1..ATTEMPTS {
        match look(client, variable).await {
            Ok(found) => return Ok(found),
            Err(error) => tracing::warn!(%error, "cannot ask whether this is OpenShift; asking again"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    look(client, variable).await
}

async fn look(client: &Client, variable: Option<&str>) -> Result<bool, kube::Error> {
    if let Some(said) = variable {
        return Ok(said.eq_ignore_ascii_case("true"));
    }
    let request = Request::get(ROUTES).body(Vec::new()).map_err(kube::Error::HttpError)?;
    match client.request_text(request).await {
        Ok(_) => Ok(true),
        // A server in trouble has not said that it knows no routes.
        Err(kube::Error::Api(status)) if status.code < 500 => Ok(false),
        Err(error) => Err(error),
    }
}

/// Leaves the secrets in place that OpenShift has put onto an account for its own registry.
///
/// The list has one owner. Without them it would lack what OpenShift looks for, and OpenShift would make new ones for
/// ever. An account without secrets of ours says nothing about the list, and so loses nothing. What is in place may have
/// changed by the time the account is written; it is refused then, and made again.
pub fn keep_pull_secrets(live: &ServiceAccount, account: &mut ServiceAccount) {
    let own = format!("{}-dockercfg-", account.metadata.name.as_deref().unwrap_or_default());
    let Some(wanted) = &mut account.image_pull_secrets else { return };
    let theirs = live.image_pull_secrets.iter().flatten().filter(|secret| secret.name.starts_with(&own));
    wanted.extend(theirs.cloned());
    account.metadata.resource_version.clone_from(&live.metadata.resource_version);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn account(secrets: &[&str]) -> ServiceAccount {
        let secrets: Vec<_> = secrets.iter().map(|name| json!({"name": name})).collect();
        serde_json::from_value(json!({"metadata": {"name": "a"}, "imagePullSecrets": secrets})).unwrap()
    }

    #[test]
    fn only_its_own_secrets_are_kept() {
        let mut live = account(&["removed", "a-dockercfg-x7f2k", "b-dockercfg-x7f2k"]);
        live.metadata.resource_version = Some("7".to_owned());
        let mut wanted = account(&["mine"]);
        keep_pull_secrets(&live, &mut wanted);
        assert_eq!(wanted.metadata.resource_version.as_deref(), Some("7"));
        wanted.metadata.resource_version = None;
        assert_eq!(wanted, account(&["mine", "a-dockercfg-x7f2k"]));
        let mut silent = ServiceAccount { image_pull_secrets: None, ..account(&[]) };
        keep_pull_secrets(&live, &mut silent);
        assert_eq!((silent.image_pull_secrets, silent.metadata.resource_version), (None, None));
    }
}
