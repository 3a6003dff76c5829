//! Service account tokens, made for one pod and renewed before they end.
//!
//! They end by the clock on the wall, which goes on while the machine sleeps; timers do not.

use std::time::Duration;

use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount, ServiceAccountTokenProjection};
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt as _};
use tokio::time::sleep;

/// What the API server does when nothing is asked for.
const USUAL_LIFE: i64 = 3_600;
const LONGEST_USE: Duration = Duration::from_hours(24);
/// How long nobody looks at the clock.
const LOOK: Duration = Duration::from_mins(1);
/// A renewal that has just failed is not tried again at once.
const RETRY: Duration = Duration::from_secs(10);

/// One projected token.
pub(super) struct Token {
    pub(super) wanted: ServiceAccountTokenProjection,
    current: Option<Current>,
}

struct Current {
    text: String,
    renew: Timestamp,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Token").field("wanted", &self.wanted).finish_non_exhaustive()
    }
}

impl Token {
    pub(super) fn new(wanted: ServiceAccountTokenProjection) -> Self {
        Self { wanted, current: None }
    }

    /// How long it may still be used.
    fn left(&self) -> Duration {
        let left = self.current.as_ref().map(|current| current.renew.duration_since(Timestamp::now()));
        left.and_then(|left| Duration::try_from(left).ok()).unwrap_or_default()
    }

    /// Waits until it has to be renewed.
    pub(super) async fn outdated(&self) {
        sleep(self.left().clamp(RETRY, LOOK)).await;
        while !self.left().is_zero() {
            sleep(self.left().min(LOOK)).await;
        }
    }

    /// The token, asked for anew when the old one is about to end.
    pub(super) async fn get(&mut self, client: &Client, pod: &Pod) -> Result<String, kube::Error> {
        if let Some(current) = &self.current
            && !self.left().is_zero()
        {
            return Ok(current.text.clone());
        }
        let life = self.wanted.expiration_seconds.unwrap_or(USUAL_LIFE);
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                audiences: self.wanted.audience.clone().filter(|audience| !audience.is_empty()).map(|one| vec![one]),
                expiration_seconds: Some(life),
                bound_object_ref: Some(BoundObjectReference {
                    api_version: Some("v1".to_owned()),
                    kind: Some("Pod".to_owned()),
                    name: Some(pod.name_any()),
                    uid: pod.uid(),
                }),
            }),
            ..TokenRequest::default()
        };
        let account = pod.spec.as_ref().and_then(|spec| spec.service_account_name.as_deref()).unwrap_or("default");
        let api: Api<ServiceAccount> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
        let answer = api.create_token_request(account, &PostParams::default(), &request).await?;
        let status = answer.status.unwrap_or_default();
        let text = status.token.unwrap_or_default();
        let end = status.expiration_timestamp.map_or_else(Timestamp::now, |time| time.0);
        let left = Duration::try_from(end.duration_since(Timestamp::now())).unwrap_or_default();
        // The kubelet's rule: after four fifths of its life, and never later than a day.
        let renew = Timestamp::now() + left.mul_f64(0.8).min(LONGEST_USE);
        self.current = Some(Current { text: text.clone(), renew });
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::SignedDuration;
    use tokio::time::timeout;

    use super::*;

    fn token(left: SignedDuration) -> Token {
        let renew = Timestamp::now() + left;
        Token {
            wanted: ServiceAccountTokenProjection::default(),
            current: Some(Current { text: String::new(), renew }),
        }
    }

    /// The timers of this test run ahead of the clock on the wall, as that runs ahead of timers after a sleep.
    #[tokio::test(start_paused = true)]
    async fn the_clock_decides_and_not_the_timer() {
        let (fresh, old) = (token(SignedDuration::from_hours(1)), token(SignedDuration::from_secs(-1)));
        assert!(timeout(Duration::from_hours(24), fresh.outdated()).await.is_err(), "an hour has not passed");
        assert!(timeout(Duration::from_hours(1), old.outdated()).await.is_ok());
    }
}
