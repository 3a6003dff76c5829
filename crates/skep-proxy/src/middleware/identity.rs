//! Who calls.

use std::sync::{Arc, OnceLock};
use std::{fmt, io};

use aws_lc_rs::digest;
use http::HeaderValue;
use http::header::AUTHORIZATION;
use http::request::Parts;
use serde_json::{Map, Value};

use super::delegation::Delegation;
use super::exchange::Notes;

/// Somebody who calls. It is complete before anybody sees it, and never changed after.
#[derive(Clone, Default)]
pub struct Identity {
    /// What it is known by.
    pub subject: String,
    /// What is kept for it is kept under this; empty when nothing is.
    pub platform_user_id: String,
    pub name: String,
    pub email: String,
    /// What its issuer says about it. What belongs to the proxy alone is not in here.
    pub claims: Map<String, Value>,
    /// On whose behalf it calls.
    pub delegation: Option<Delegation>,
    /// What it proved itself with; empty when it did not have to.
    token: String,
    /// Who it is among all that any issuer speaks about.
    principal: Arc<str>,
    /// Whether the claims are what an issuer says. Those of others have the times of their call.
    is_proven: bool,
    digest: OnceLock<Option<ClaimsDigest>>,
}

/// What claims are known by. It tells nobody anything.
pub(crate) type ClaimsDigest = [u8; 32];

/// The claims that say when something holds.
pub(super) const TIMES: [&str; 3] = ["iat", "nbf", "exp"];

/// The claim that says how long a token is still good for, which is another time each time that its issuer is asked.
pub(super) const COUNTDOWN: &str = "expires_in";

/// The claims that are others in every token, whatever it allows.
const OF_ONE_TOKEN: [&str; 13] =
    ["iat", "nbf", "exp", COUNTDOWN, "jti", "auth_time", "nonce", "at_hash", "c_hash", "s_hash", "uti", "aio", "rh"];

/// The claim that links a token to what an authorization server of ours keeps for its user.
const LINK: &str = "tsid";

impl Identity {
    /// Whoever the claims of a token speak about. Nothing when they do not say.
    pub fn from_claims(mut claims: Map<String, Value>, token: &str) -> Option<Self> {
        claims.remove(LINK);
        let text = |name: &str| claims.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let subject = text("sub");
        if subject.is_empty() {
            return None;
        }
        Some(Self {
            platform_user_id: subject.clone(),
            principal: principal(&text("iss"), &subject),
            subject,
            name: text("name"),
            email: text("email"),
            delegation: Delegation::read(claims.get("act")),
            token: token.to_owned(),
            claims,
            is_proven: true,
            digest: OnceLock::new(),
        })
    }

    /// Somebody who was not asked for a proof, at some time in seconds.
    pub(super) fn unproven(subject: &str, name: &str, now: i64) -> Self {
        let email = format!("{subject}@localhost");
        let claims = serde_json::json!({
            "sub": subject,
            "name": name,
            "email": email,
            "iss": "toolhive-local",
            "aud": "toolhive",
            "iat": now,
            "nbf": now,
            "exp": now + 24 * 60 * 60,
        });
        let claims = if let Value::Object(claims) = claims { claims } else { Map::new() };
        Self { subject: subject.to_owned(), name: name.to_owned(), email, claims, ..Self::default() }
    }

    /// What it proved itself with, for the one place that needs it.
    pub fn expose_token(&self) -> &str {
        &self.token
    }

    /// Whether the claims are what an issuer says.
    pub(super) fn is_proven(&self) -> bool {
        self.is_proven
    }

    /// The same for the same claims, whenever and from whatever token they were read. Claims that nobody proved are the same at
    /// all times, and how long a token is still good for is no difference. It is found out once.
    pub(super) fn digest(&self) -> Option<ClaimsDigest> {
        let counts = |name: &str| name != COUNTDOWN && (self.is_proven || !TIMES.contains(&name));
        let digest = || digest_of(self.claims.iter().filter(|(name, _)| counts(name)));
        *self.digest.get_or_init(digest)
    }

    /// What the claims allow: the same for tokens that say the same, whenever they were given.
    pub(crate) fn allowed(&self) -> Option<ClaimsDigest> {
        digest_of(self.claims.iter().filter(|(name, _)| !OF_ONE_TOKEN.contains(&name.as_str())))
    }
}

fn digest_of<'a>(claims: impl Iterator<Item = (&'a String, &'a Value)>) -> Option<ClaimsDigest> {
    struct Digesting(digest::Context);

    impl io::Write for Digesting {
        fn write(&mut self, part: &[u8]) -> io::Result<usize> {
            self.0.update(part);
            Ok(part.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut digesting = Digesting(digest::Context::new(&digest::SHA256));
    for claim in claims {
        // A list for each of them, so that no two lists of claims look alike.
        serde_json::to_writer(&mut digesting, &claim).ok()?;
    }
    digesting.0.finish().as_ref().try_into().ok()
}

/// Whom a request has proved to come from, if it had to prove that.
pub(crate) fn proven(extensions: &http::Extensions) -> Option<&Arc<str>> {
    of_token(extensions).map(|identity| &identity.principal)
}

/// Who calls, if that was proved by a token.
pub(crate) fn of_token(extensions: &http::Extensions) -> Option<&Arc<Identity>> {
    let identity = extensions.get::<Arc<Notes>>()?.identity()?;
    Some(identity).filter(|identity| !identity.token.is_empty())
}

/// Removes the token that a caller proved itself with. It was issued for us, and whoever else has it could show it to us.
/// What a step of the chain has put in its place stays.
pub(crate) fn withhold(request: &mut Parts) {
    let identity = of_token(&request.extensions);
    let is_own = |value: &HeaderValue| {
        let token = value.to_str().ok().and_then(|value| value.strip_prefix("Bearer "));
        identity.is_some_and(|identity| token == Some(&*identity.token))
    };
    if request.headers.get_all(AUTHORIZATION).iter().any(is_own) {
        request.headers.remove(AUTHORIZATION);
    }
}

/// What stands for a subject of an issuer where others may read it.
fn principal(issuer: &str, subject: &str) -> Arc<str> {
    let mut context = digest::Context::new(&digest::SHA256);
    for part in [issuer, subject] {
        // With its length, so that no two pairs look alike.
        context.update(&part.len().to_be_bytes());
        context.update(part.as_bytes());
    }
    hex::encode(context.finish()).into()
}

impl fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Identity").field("subject", &self.subject).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claims(value: Value) -> Map<String, Value> {
        if let Value::Object(claims) = value { claims } else { panic!("{value} are no claims") }
    }

    #[test]
    fn auth_trap_7_the_link_to_kept_tokens_is_seen_by_nobody() {
        let read = claims(json!({"sub": "ann", "name": "Ann", "email": 7, "tsid": "s", "act": {"sub": "agent"}}));
        let identity = Identity::from_claims(read, "secret").unwrap();
        assert_eq!((identity.subject.as_str(), identity.name.as_str(), identity.email.as_str()), ("ann", "Ann", ""));
        assert_eq!(identity.platform_user_id, "ann");
        assert!(!identity.claims.contains_key("tsid"));
        assert!(identity.delegation.is_some());
        assert!(!format!("{identity:?}").contains("secret"));
    }

    #[test]
    fn somebody_is_a_subject_of_an_issuer() {
        let known = |issuer: &str, subject: &str| {
            let identity = Identity::from_claims(claims(json!({"iss": issuer, "sub": subject})), "t").unwrap();
            let mut extensions = http::Extensions::new();
            let notes = Notes::default();
            notes.identify(Arc::new(identity));
            extensions.insert(Arc::new(notes));
            proven(&extensions).cloned().unwrap()
        };
        assert_eq!(known("a", "ann"), known("a", "ann"));
        for other in [known("b", "ann"), known("a", "bob"), known("aa", "nn")] {
            assert_ne!(known("a", "ann"), other);
        }
    }

    #[test]
    fn claims_are_known_by_all_of_them_and_by_nothing_else() {
        let digest = |value: Value, token| Identity::from_claims(claims(value), token).unwrap().digest().unwrap();
        let ann = || json!({"sub": "ann", "exp": 100, "groups": ["a", "b"]});
        assert_eq!(digest(ann(), "one"), digest(ann(), "another"));
        for (name, value) in [("exp", json!(101)), ("groups", json!(["a"])), ("groups", json!("a")), ("x", json!(null))]
        {
            let mut other = ann();
            other[name] = value;
            assert_ne!(digest(ann(), "one"), digest(other, "one"), "{name}");
        }
        let counting = |seconds: u32| digest(json!({"sub": "ann", "expires_in": seconds}), "one");
        assert_eq!(counting(60), counting(59));
        let unproven = |name, now| Identity::unproven("local", name, now).digest().unwrap();
        assert_eq!(unproven("Local", 1), unproven("Local", 2));
        assert_ne!(unproven("Local", 1), unproven("Other", 1));
    }

    #[test]
    fn claims_without_a_subject_are_nobody() {
        for sub in [json!(""), json!(7), json!(null)] {
            assert!(Identity::from_claims(claims(json!({ "sub": sub })), "").is_none());
        }
    }
}
