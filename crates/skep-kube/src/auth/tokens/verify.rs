//! Whether a token is ours, still good, and speaks of things that still exist.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, Validation};

use super::TokenAuthority;
use super::claims::{Claims, ObjectReference};
use super::objects::{BoundKind, BoundObjects, ObjectState};
use crate::auth::user::{AUTHENTICATED_GROUP, CREDENTIAL_ID, User, service_account_groups, service_account_user_name};
use crate::go_text::{quoted, quoted_list};

/// Longer than any token that we sign; what is longer is not looked at.
const LONGEST_TOKEN: usize = 16 * 1024;
/// By how much clocks may differ, in seconds.
const CLOCK_TOLERANCE: i64 = 60;
/// How long a token outlives the deletion of what it is bound to, in seconds.
const DELETION_GRACE: i64 = 60;

/// Why a token is refused. No variant holds any part of the token but names, uids and audiences.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Not a token, or one of another issuer.
    #[error("not a token of this server")]
    NotOurs,
    // The real server's library says it so, and reviews repeat it.
    #[error("go-jose/go-jose: error in cryptographic primitive")]
    Signature,
    #[error("invalid signature, no keys found")]
    UnknownKey,
    #[error("malformed claims")]
    Claims,
    #[error("service account token has expired")]
    Expired,
    #[error("service account token is not valid yet")]
    NotYet,
    #[error("service account token is issued in the future")]
    IssuedLater,
    #[error("token audiences {} is invalid for the target audiences {}", list(.token), list(.wanted))]
    Audience { token: Vec<String>, wanted: Vec<String> },
    #[error("serviceaccounts {} not found", quoted(.0))]
    NoAccount(String),
    #[error("service account {0} has been deleted")]
    AccountDeleted(String),
    #[error("service account UID ({found}) does not match claim ({claimed})")]
    AccountReplaced { found: String, claimed: String },
    /// What it was bound to is gone.
    #[error("service account token has been invalidated")]
    Invalidated,
    #[error("{kind} UID ({found}) does not match service account {kind} ref claim ({claimed})")]
    Replaced { kind: &'static str, found: String, claimed: String },
}

fn list(items: &[String]) -> String {
    quoted_list(items.iter().map(String::as_str))
}

impl TokenError {
    /// The error as a TokenReview shows it.
    pub fn review_text(&self) -> String {
        match self {
            Self::NotOurs => "invalid bearer token".to_owned(),
            other => format!("[invalid bearer token, {other}]"),
        }
    }
}

/// A good token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    pub user: User,
    /// Those of the wanted audiences that the token is for.
    pub audiences: Vec<String>,
    /// The token is past the time at which its holder should have replaced it.
    pub stale: bool,
}

impl TokenAuthority {
    /// Checks a token for the given audiences (this server's own when there are none).
    pub fn verify(
        &self,
        token: &str,
        audiences: &[String],
        objects: &dyn BoundObjects,
        now: i64,
    ) -> Result<Verified, TokenError> {
        if token.len() > LONGEST_TOKEN || unverified_issuer(token).as_deref() != Some(self.issuer.as_str()) {
            return Err(TokenError::NotOurs);
        }
        if key_id(token).is_some_and(|id| !id.is_empty() && id != self.key.id()) {
            return Err(TokenError::UnknownKey);
        }
        let claims = self.signed_claims(token)?;
        let wanted = if audiences.is_empty() { self.audiences.as_slice() } else { audiences };
        let shared: Vec<String> = wanted.iter().filter(|audience| claims.aud.contains(audience)).cloned().collect();
        if shared.is_empty() {
            return Err(TokenError::Audience { token: claims.aud, wanted: wanted.to_vec() });
        }
        check_time(&claims, now)?;
        check_objects(&claims, objects, now)?;
        let stale = claims.kubernetes.warnafter.is_some_and(|warn_after| now > warn_after);
        Ok(Verified { user: user_of(&claims), audiences: shared, stale })
    }

    fn signed_claims(&self, token: &str) -> Result<Claims, TokenError> {
        use jsonwebtoken::errors::ErrorKind;
        jsonwebtoken::decode_header(token).map_err(|_| TokenError::Signature)?;
        let mut validation = Validation::new(Algorithm::ES256);
        // Times and audiences are judged above, with the real server's tolerance and words.
        validation.validate_exp = false;
        validation.validate_nbf = false;
        validation.validate_aud = false;
        validation.required_spec_claims.clear();
        match jsonwebtoken::decode::<Claims>(token, &self.key.decoding, &validation) {
            Ok(decoded) => Ok(decoded.claims),
            Err(error) => match error.kind() {
                // The signature is checked before the claims are read.
                ErrorKind::Json(_) | ErrorKind::InvalidClaimFormat(_) | ErrorKind::MissingRequiredClaim(_) => {
                    Err(TokenError::Claims)
                }
                _ => Err(TokenError::Signature),
            },
        }
    }
}

/// Who the token says has issued it, before anything is checked.
fn unverified_issuer(token: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Issuer {
        iss: String,
    }
    let parts: Vec<&str> = token.splitn(4, '.').collect();
    let [_, payload, _] = parts.as_slice() else {
        return None;
    };
    Some(decoded::<Issuer>(payload)?.iss)
}

/// The key that the token says has signed it.
fn key_id(token: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Header {
        kid: String,
    }
    Some(decoded::<Header>(token.split('.').next()?)?.kid)
}

fn decoded<T: serde::de::DeserializeOwned>(part: &str) -> Option<T> {
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

fn check_time(claims: &Claims, now: i64) -> Result<(), TokenError> {
    if now > claims.exp.saturating_add(CLOCK_TOLERANCE) {
        return Err(TokenError::Expired);
    }
    let latest_start = now.saturating_add(CLOCK_TOLERANCE);
    if claims.nbf > latest_start {
        return Err(TokenError::NotYet);
    }
    if claims.iat > latest_start {
        return Err(TokenError::IssuedLater);
    }
    Ok(())
}

fn check_objects(claims: &Claims, objects: &dyn BoundObjects, now: i64) -> Result<(), TokenError> {
    let kubernetes = &claims.kubernetes;
    let (namespace, account) = (kubernetes.namespace.as_str(), &kubernetes.serviceaccount);
    let gone = |state: &ObjectState| state.deleted_at.is_some_and(|at| at < now.saturating_sub(DELETION_GRACE));
    let state = objects
        .find(BoundKind::ServiceAccount, namespace, &account.name)
        .ok_or_else(|| TokenError::NoAccount(account.name.clone()))?;
    if gone(&state) {
        return Err(TokenError::AccountDeleted(format!("{namespace}/{}", account.name)));
    }
    if state.uid != account.uid {
        return Err(TokenError::AccountReplaced { found: state.uid, claimed: account.uid.clone() });
    }
    let check = |kind: BoundKind, word: &'static str, namespace: &str, reference: &ObjectReference| {
        let state = objects.find(kind, namespace, &reference.name).filter(|state| !gone(state));
        let state = state.ok_or(TokenError::Invalidated)?;
        if state.uid == reference.uid {
            Ok(())
        } else {
            Err(TokenError::Replaced { kind: word, found: state.uid, claimed: reference.uid.clone() })
        }
    };
    if let Some(secret) = &kubernetes.secret {
        check(BoundKind::Secret, "secret", namespace, secret)?;
    }
    // The node of a pod is told for information only: the pod decides.
    match (&kubernetes.pod, &kubernetes.node) {
        (Some(pod), _) => check(BoundKind::Pod, "pod", namespace, pod),
        (None, Some(node)) => check(BoundKind::Node, "node", "", node),
        (None, None) => Ok(()),
    }
}

fn user_of(claims: &Claims) -> User {
    let kubernetes = &claims.kubernetes;
    let mut groups = service_account_groups(&kubernetes.namespace);
    groups.push(AUTHENTICATED_GROUP.to_owned());
    // From the claims that were checked, not from the subject.
    let name = service_account_user_name(&kubernetes.namespace, &kubernetes.serviceaccount.name);
    let mut user = User { name, uid: Some(kubernetes.serviceaccount.uid.clone()), groups, ..User::default() };
    if !claims.jti.is_empty() {
        user.extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("JTI={}", claims.jti)]);
    }
    for (word, reference) in [("pod", &kubernetes.pod), ("node", &kubernetes.node)] {
        let Some(ObjectReference { name, uid }) = reference else {
            continue;
        };
        for (part, value) in [("name", name), ("uid", uid)] {
            if !value.is_empty() {
                user.extra.insert(format!("authentication.kubernetes.io/{word}-{part}"), vec![value.clone()]);
            }
        }
    }
    user
}
