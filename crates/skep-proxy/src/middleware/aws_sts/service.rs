//! The service that gives the credentials of a role for the token of a caller (AssumeRoleWithWebIdentity).

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::HeaderValue;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::signing::Credentials;
use crate::middleware::grants::{EndpointError, Given, GrantError, TokenEndpoint, form};

const ACTION: &str = "AssumeRoleWithWebIdentity";
const VERSION: &str = "2011-06-15";

/// The service of a region, or the one at another address.
pub(super) fn endpoint(region: &str, address: &str) -> Result<TokenEndpoint, EndpointError> {
    if !address.is_empty() {
        return TokenEndpoint::new(address, "", "");
    }
    let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    TokenEndpoint::new(&format!("https://sts.{region}.{domain}/"), "", "")
}

/// What a caller asks for.
pub(super) struct Assumption<'a> {
    pub(super) role: &'a str,
    pub(super) session: &'a str,
    pub(super) token: &'a str,
    pub(super) seconds: &'a str,
}

impl Assumption<'_> {
    pub(super) fn question(&self) -> String {
        form(&[
            ("Action", ACTION),
            ("Version", VERSION),
            ("RoleArn", self.role),
            ("RoleSessionName", self.session),
            ("DurationSeconds", self.seconds),
            ("WebIdentityToken", self.token),
        ])
    }
}

/// Asks for credentials.
pub(super) async fn ask(endpoint: &TokenEndpoint, question: String) -> Result<Given<Arc<Credentials>>, GrantError> {
    let answer = endpoint.post(question, "text/xml, application/xml").await?;
    read(&answer, OffsetDateTime::now_utc())
}

fn read(answer: &[u8], now: OffsetDateTime) -> Result<Given<Arc<Credentials>>, GrantError> {
    let answer = std::str::from_utf8(answer).map_err(|_| GrantError::Garbage)?;
    let given = element(answer, "Credentials").ok_or(GrantError::Garbage)?;
    let member = |name: &'static str| element(given, name).ok_or(GrantError::Missing(name));
    let mut token = HeaderValue::from_str(member("SessionToken")?).map_err(|_| GrantError::Unsendable)?;
    token.set_sensitive(true);
    // Part of a header, too.
    let id = Some(member("AccessKeyId")?).filter(|id| id.bytes().all(|byte| byte.is_ascii_graphic()));
    let end = OffsetDateTime::parse(member("Expiration")?, &Rfc3339).map_err(|_| GrantError::Garbage)?;
    let lifetime = Duration::try_from(end - now).ok();
    Ok(Given {
        value: Arc::new(Credentials {
            id: id.ok_or(GrantError::Garbage)?.to_owned(),
            secret: member("SecretAccessKey")?.to_owned(),
            token,
            until: lifetime.map(|lifetime| Instant::now() + lifetime),
        }),
        lifetime,
    })
}

/// What is in the one element of that name. What is written in another way than it is meant is not taken.
fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (inside, rest) = rest.split_once(&format!("</{name}>"))?;
    let inside = inside.trim();
    let is_plain = !inside.is_empty() && !inside.contains('&') && !rest.contains(&format!("<{name}>"));
    is_plain.then_some(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "<?xml version=\"1.0\"?>\n<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">
        <AssumeRoleWithWebIdentityResult><Credentials><SessionToken>to/ken+=</SessionToken><SecretAccessKey>hunter2
        </SecretAccessKey><Expiration>2026-01-01T01:00:00Z</Expiration><AccessKeyId>ASIA1</AccessKeyId></Credentials>
        <SubjectFromWebIdentityToken>ann</SubjectFromWebIdentityToken></AssumeRoleWithWebIdentityResult>
        </AssumeRoleWithWebIdentityResponse>";

    fn at() -> OffsetDateTime {
        OffsetDateTime::parse("2026-01-01T00:00:00Z", &Rfc3339).unwrap()
    }

    #[test]
    fn credentials_are_read_and_not_told() {
        let given = read(GOOD.as_bytes(), at()).unwrap();
        let credentials = given.value;
        assert_eq!((credentials.id.as_str(), credentials.secret.as_str()), ("ASIA1", "hunter2"));
        assert_eq!((credentials.token.to_str().unwrap(), given.lifetime), ("to/ken+=", Some(Duration::from_hours(1))));
        let told = format!("{credentials:?}");
        assert!(!told.contains("hunter2") && !told.contains("to/ken"), "{told}");
    }

    #[test]
    fn what_are_no_credentials_are_none() {
        for (from, to) in [
            ("<Credentials>", "<Other>"),
            ("<AccessKeyId>ASIA1</AccessKeyId>", ""),
            ("ASIA1", ""),
            ("ASIA1", "A&#83;IA"),
            ("ASIA1", "A\u{e9}IA"),
            ("ASIA1", "AS\nIA"),
            ("<AccessKeyId>", "<AccessKeyId>a</AccessKeyId><AccessKeyId>"),
            ("2026-01-01T01:00:00Z", "tomorrow"),
            ("to/ken+=", "to\nken"),
        ] {
            let answer = GOOD.replace(from, to);
            let refused = read(answer.as_bytes(), at()).map(drop).unwrap_err().to_string();
            assert!(!refused.contains("hunter2"), "{from}: {refused}");
        }
        assert!(read(b"{\"error\": \"hunter2\"}", at()).is_err());
        // What has ended already is used once and not kept.
        let old = GOOD.replace("2026-01-01T01", "2025-01-01T01");
        assert_eq!(read(old.as_bytes(), at()).unwrap().lifetime, None);
    }

    #[test]
    fn a_region_has_a_service_of_its_own() {
        for (region, address, host) in [
            ("eu-central-1", "", "sts.eu-central-1.amazonaws.com"),
            ("cn-north-1", "", "sts.cn-north-1.amazonaws.com.cn"),
            ("eu-central-1", "http://127.0.0.1:5000", "127.0.0.1"),
        ] {
            let made = format!("{:?}", endpoint(region, address).unwrap());
            assert!(made.contains(&format!("{host:?}")), "{made}");
        }
    }
}
