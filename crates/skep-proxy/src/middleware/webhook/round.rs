//! One message, told to one callback after the other.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use time::OffsetDateTime;
use uuid::Uuid;

use super::document::{About, Verdict};
use super::signature::{self, Secret};
use super::{FailurePolicy, Power, WebhookError, WebhookSettings, patch};
use crate::fetch::{FetchPolicy, Fetcher};
use crate::lapses::Lapses;
use crate::middleware::refusal::Refusal;

/// Bytes of an answer.
const LARGEST_ANSWER: usize = 1 << 20;

/// A callback that is ready to be asked.
#[derive(Debug)]
pub(super) struct Hook {
    name: String,
    policy: FailurePolicy,
    url: Uri,
    fetcher: Fetcher,
    secret: Option<Secret>,
    /// How often it failed and requests passed all the same.
    lapses: Lapses,
}

/// A message that callbacks have changed.
pub(super) struct Changed {
    pub(super) text: String,
    /// Their names.
    pub(super) by: String,
}

/// What came of asking.
enum Reply {
    Verdict(Verdict),
    /// The callback cannot take the message, which is a no whatever the policy says.
    Unprocessable,
    Failed(String),
}

impl Hook {
    pub(super) fn new(settings: WebhookSettings) -> Result<Self, WebhookError> {
        let name = settings.name;
        let wrong = |problem| WebhookError::Settings { name: name.clone(), problem };
        if name.is_empty() {
            return Err(wrong("it needs a name"));
        }
        let url: Uri = settings.url.parse().map_err(|_| wrong("its url is no address"))?;
        if url.scheme_str() == Some("http") && !settings.tls.is_unverified {
            return Err(wrong("its url must use https, or set insecure_skip_verify to use http"));
        }
        if let Some(secret) = &settings.secret {
            secret.read().map_err(|cause| WebhookError::Secret { name: name.clone(), cause })?;
        }
        let policy = FetchPolicy {
            // Most of them are services of the same cluster.
            allows_private: true,
            allows_http: settings.tls.is_unverified,
            tls: settings.tls,
            head: settings.timeout,
            patience: settings.timeout,
        };
        let fetcher = Fetcher::new(policy).map_err(|cause| WebhookError::Files { name: name.clone(), cause })?;
        fetcher.check(&url).map_err(|cause| WebhookError::Address { name: name.clone(), cause })?;
        let (policy, secret) = (settings.failure_policy, settings.secret);
        Ok(Self { name, policy, url, fetcher, secret, lapses: Lapses::default() })
    }

    async fn ask(&self, document: Bytes, now: OffsetDateTime) -> Reply {
        let mut request = Request::new(document);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.url.clone();
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(secret) = &self.secret {
            match secret.read() {
                Ok(key) => signature::sign(&mut request, &key, now),
                Err(error) => return Reply::Failed(error.to_string()),
            }
        }
        let answer = match self.fetcher.send(request, LARGEST_ANSWER).await {
            Ok(answer) => answer,
            Err(error) => return Reply::Failed(error.to_string()),
        };
        match answer.status() {
            StatusCode::OK => match Verdict::read(answer.body()) {
                Some(verdict) => Reply::Verdict(verdict),
                None => Reply::Failed("the answer is no verdict".to_owned()),
            },
            StatusCode::UNPROCESSABLE_ENTITY => Reply::Unprocessable,
            status => Reply::Failed(format!("the answer has the status {status}")),
        }
    }

    /// Tells that it has failed: each time where a request is refused for that, and now and then where requests pass.
    fn fail(&self, error: &str) {
        let webhook = &self.name;
        match self.policy {
            FailurePolicy::Fail => tracing::warn!(webhook, error, "a webhook failed"),
            FailurePolicy::Ignore => {
                if let Some(times) = self.lapses.failed() {
                    tracing::warn!(webhook, error, times, "a webhook fails, and requests pass");
                }
            }
        }
    }

    /// Notes that it has not.
    fn succeed(&self) {
        if self.lapses.is_over() {
            tracing::info!(webhook = self.name, "a webhook does not fail any more");
        }
    }
}

/// Asks callbacks about a message until one says no. Gives the message as they have changed it, if they have.
pub(super) async fn run(
    hooks: &[Hook],
    power: Power,
    about: &About<'_>,
    message: &str,
) -> Result<Option<Changed>, Refusal> {
    let shared = Uuid::new_v4();
    let mut current: Option<String> = None;
    let mut by = Vec::new();
    for hook in hooks {
        let now = OffsetDateTime::now_utc();
        let uid = if power == Power::Refuse { shared } else { Uuid::new_v4() };
        let text = current.as_deref().unwrap_or(message);
        let document = about.document(uid, now, text);
        match (hook.ask(document.into(), now).await, power) {
            (Reply::Verdict(verdict), _) if !verdict.is_allowed => {
                hook.succeed();
                tracing::info!(webhook = hook.name, reason = verdict.reason, "a webhook refused a request");
                return Err(denied(power));
            }
            (Reply::Verdict(verdict), Power::Change) => {
                match verdict.change.map(|change| patch::apply(text, &change)).transpose() {
                    Ok(changed) => {
                        hook.succeed();
                        by.extend(changed.is_some().then_some(hook.name.as_str()));
                        current = changed.or(current);
                    }
                    Err(error) => {
                        hook.fail(&format!("its change cannot be made: {error}"));
                        if hook.policy == FailurePolicy::Fail {
                            return Err(Refusal::PatchFromWebhook(error.told()));
                        }
                    }
                }
            }
            (Reply::Verdict(_), Power::Refuse) => hook.succeed(),
            (Reply::Unprocessable, Power::Change) => return Err(Refusal::UnprocessableByWebhook),
            (Reply::Unprocessable, Power::Refuse) => return Err(denied(power)),
            (Reply::Failed(error), _) => {
                hook.fail(&error);
                match (hook.policy, power) {
                    (FailurePolicy::Ignore, _) => {}
                    (FailurePolicy::Fail, Power::Change) => return Err(Refusal::WebhookFailed),
                    (FailurePolicy::Fail, Power::Refuse) => return Err(denied(power)),
                }
            }
        }
    }
    Ok(current.map(|text| Changed { text, by: by.join(", ") }))
}

fn denied(power: Power) -> Refusal {
    match power {
        Power::Change => Refusal::DeniedByWebhook,
        Power::Refuse => Refusal::DeniedByPolicy,
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Duration;

    use super::*;
    use crate::fetch::TlsFiles;

    /// A name leads to a callback when the proxy starts, and to where a cloud answers machines about themselves later on.
    #[tokio::test]
    async fn a_callback_whose_name_leads_elsewhere_later_on_is_not_asked() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = listener.local_addr().unwrap();
        let tls = TlsFiles { is_unverified: true, ..TlsFiles::default() };
        let mut hook = Hook::new(WebhookSettings {
            name: "hook".to_owned(),
            url: "http://callbacks.example/".to_owned(),
            timeout: Duration::from_secs(30),
            failure_policy: FailurePolicy::Fail,
            tls: tls.clone(),
            secret: None,
        })
        .unwrap();
        let policy = FetchPolicy { allows_private: true, allows_http: true, tls, ..FetchPolicy::default() };
        let metadata = SocketAddr::from(([169, 254, 169, 254], place.port()));
        hook.fetcher = Fetcher::finding(policy, vec![place, metadata]);
        let answering = async {
            use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await.unwrap();
            let verdict = r#"{"version":"v0.1.0","uid":"u","allowed":true}"#;
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", verdict.len());
            stream.write_all((head + verdict).as_bytes()).await.unwrap();
        };
        let ask = || hook.ask(Bytes::from_static(b"{}"), OffsetDateTime::UNIX_EPOCH);
        let (first, ()) = futures::future::join(ask(), answering).await;
        assert!(!matches!(first, Reply::Failed(why) if why.contains("not allowed")));
        let Reply::Failed(why) = ask().await else { panic!("it was asked") };
        assert!(why.contains("callbacks.example is at a private, link-local or reserved address"), "{why}");
    }
}
