//! The embedded authorization server: its own address, its clients, and whether it learns who users are.

use skep_api::conditions::{Statement, reasons, types};
use skep_api::kinds::auth_server::EmbeddedAuthServer;
use skep_api::kinds::auth_server::upstream::UpstreamProvider;
use url::{Host, Url};

use super::{trusted_issuers, upstreams};

pub(super) fn check(server: &EmbeddedAuthServer) -> Result<(), String> {
    upstreams::check(&server.upstream_providers)?;
    check_transport(server)?;
    check_forced(&server.force_confidential_redirect_uris)?;
    trusted_issuers::check(server).map_err(|complaint| format!("trustedIssuers: {complaint}"))
}

/// Secrets of clients do not travel in clear text. The words are those of the run configuration, where the same is
/// asked again.
fn check_transport(server: &EmbeddedAuthServer) -> Result<(), String> {
    let clients = if server.allow_confidential_client_registration {
        "allow_confidential_client_registration"
    } else if server.delegate_clients.is_empty() {
        return Ok(());
    } else {
        "delegate_clients"
    };
    if server.insecure_allow_http {
        return Err(format!(
            "{clients} cannot be combined with insecure_allow_http: secrets would travel in clear text"
        ));
    }
    let plain = Url::parse(&server.issuer).ok().filter(|issuer| issuer.scheme() == "http");
    if plain.is_some_and(|issuer| is_loopback(&issuer)) && !server.insecure_allow_confidential_over_loopback_http {
        return Err(format!(
            "{clients} with the http issuer {:?} requires insecure_allow_confidential_over_loopback_http",
            server.issuer
        ));
    }
    Ok(())
}

fn check_forced(addresses: &[String]) -> Result<(), String> {
    for (index, address) in addresses.iter().enumerate() {
        let suits =
            Url::parse(address).is_ok_and(|url| url.scheme() == "https" && url.has_host() && !is_loopback(&url));
        if !suits {
            return Err(format!(
                "force_confidential_redirect_uris[{index}] {address:?} must be an https address that is not on the \
                 loopback interface"
            ));
        }
    }
    Ok(())
}

/// `localhost` in any case or a loopback address; not a longer name that begins or ends like one.
fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        None => false,
    }
}

/// Whether the users of some upstream are strangers at every sign-in.
pub(super) fn identity(server: &EmbeddedAuthServer) -> Statement {
    let mut strangers: Vec<&str> = server
        .upstream_providers
        .iter()
        .filter(|upstream| tells_nothing(upstream))
        .map(|found| found.name.as_str())
        .collect();
    strangers.sort_unstable();
    let type_ = types::IDENTITY_SYNTHESIZED;
    if strangers.is_empty() {
        let message = "Every upstream provider tells who its users are";
        return Statement::fails(type_, reasons::ALL_UPSTREAMS_HAVE_USER_INFO, message);
    }
    let message = format!(
        "These OAuth 2 upstream providers have neither userInfo nor identityFromToken, so each sign-in is a user of its \
         own: {}",
        strangers.join(", ")
    );
    Statement::holds(type_, reasons::OAUTH2_UPSTREAM_WITHOUT_USER_INFO, message)
}

fn tells_nothing(upstream: &UpstreamProvider) -> bool {
    let oauth2 = upstream.oauth2_config.as_ref();
    oauth2.is_some_and(|config| config.user_info.is_none() && config.identity_from_token.is_none())
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::{Value, json};
    use skep_api::conditions::ConditionStatus;
    use skep_api::kinds::MCPExternalAuthConfig;

    use super::*;
    use crate::config::{ConfigKind as _, judge};

    pub(in super::super) fn oidc(name: &str) -> Value {
        json!({"name": name, "type": "oidc", "oidcConfig": {"issuerUrl": "https://p", "clientId": "c"}})
    }

    /// The spec of a server with these members beside an issuer and an upstream.
    pub(in super::super) fn with(extra: &Value) -> Value {
        let mut server = json!({"issuer": "https://own.example", "upstreamProviders": [oidc("p")]});
        server.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        json!({"type": "embeddedAuthServer", "embeddedAuthServer": server})
    }

    fn delegate() -> Value {
        json!([{"clientId": "d", "clientSecretRef": {"name": "s", "key": "k"}, "scopes": ["s"], "audiences": ["a"]}])
    }

    #[test]
    fn secrets_of_clients_need_a_safe_way() {
        let loopback = "http://LOCALHOST:8080";
        judge::<MCPExternalAuthConfig>([
            (with(&json!({})), ""),
            (with(&json!({"insecureAllowHTTP": true, "issuer": "http://own.example"})), ""),
            (with(&json!({"allowConfidentialClientRegistration": true})), ""),
            (with(&json!({"delegateClients": delegate()})), ""),
            (
                with(&json!({"allowConfidentialClientRegistration": true, "insecureAllowHTTP": true})),
                "embeddedAuthServer: allowConfidentialClientRegistration cannot be combined with insecureAllowHTTP; \
                 client secrets would be issued in cleartext over an unauthenticated endpoint",
            ),
            (
                with(&json!({"delegateClients": delegate(), "insecureAllowHTTP": true})),
                "delegate_clients cannot be combined with insecure_allow_http: secrets would travel in clear text",
            ),
            (
                with(&json!({"delegateClients": delegate(), "issuer": "http://own.example"})),
                "embeddedAuthServer: delegateClients require an https:// issuer; delegate client secrets must not be sent \
                 over plaintext HTTP",
            ),
            (
                with(&json!({"allowConfidentialClientRegistration": true, "issuer": loopback})),
                "allow_confidential_client_registration with the http issuer \"http://LOCALHOST:8080\" requires \
                 insecure_allow_confidential_over_loopback_http",
            ),
            (
                with(&json!({"allowConfidentialClientRegistration": true, "issuer": loopback,
                    "insecureAllowConfidentialOverLoopbackHTTP": true})),
                "",
            ),
            (
                with(&json!({"delegateClients": [{"clientId": "d", "clientSecretRef": {"name": "", "key": "k"},
                    "scopes": ["s"], "audiences": ["a"]}]})),
                "embeddedAuthServer.delegateClients[0]: clientSecretRef.name and clientSecretRef.key are required and \
                 must be non-empty",
            ),
        ]);
    }

    #[test]
    fn forced_redirect_addresses_are_https_and_elsewhere() {
        let forced = |address: &str| {
            with(&json!({"allowConfidentialClientRegistration": true, "forceConfidentialRedirectUris": [address]}))
        };
        judge::<MCPExternalAuthConfig>([
            (forced("https://app.example/callback"), ""),
            (forced("https://localhost.evil.example/callback"), ""),
            (
                with(&json!({"forceConfidentialRedirectUris": ["https://app.example/callback"]})),
                "embeddedAuthServer: forceConfidentialRedirectUris requires allowConfidentialClientRegistration to be true",
            ),
        ]);
        for address in
            ["http://app.example/callback", "https://localhost/callback", "https://127.9.0.1/", "https://[::1]/", "app"]
        {
            let expected = format!(
                "force_confidential_redirect_uris[0] {address:?} must be an https address that is not on the loopback \
                 interface"
            );
            assert_eq!(crate::config::complaint_about::<MCPExternalAuthConfig>(&forced(address)), expected);
        }
    }

    #[test]
    fn the_store_is_reached_in_one_way() {
        let redis = |redis: Value| {
            let mut whole = json!({"aclUserConfig": {"passwordSecretRef": {"name": "s", "key": "k"}}});
            whole.as_object_mut().unwrap().extend(redis.as_object().unwrap().clone());
            with(&json!({"storage": {"type": "redis", "redis": whole}}))
        };
        let one_way = "embeddedAuthServer.storage.redis: exactly one of addr or sentinelConfig must be set";
        let sentinel = json!({"masterName": "m", "sentinelAddrs": ["s:1"]});
        judge::<MCPExternalAuthConfig>([
            (redis(json!({"addr": "r:6379"})), ""),
            (redis(json!({"sentinelConfig": sentinel})), ""),
            (redis(json!({})), one_way),
            (redis(json!({"addr": "r:6379", "sentinelConfig": sentinel})), one_way),
            (
                redis(json!({"clusterMode": true, "sentinelConfig": sentinel})),
                "embeddedAuthServer.storage.redis: clusterMode requires addr to be set",
            ),
        ]);
    }

    #[test]
    fn strangers_are_advised_about_whether_the_spec_is_valid_or_not() {
        let oauth2 = |name: &str, extra: Value| {
            let mut config =
                json!({"authorizationEndpoint": "https://a", "tokenEndpoint": "https://t", "clientId": "c"});
            config.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            json!({"name": name, "type": "oauth2", "oauth2Config": config})
        };
        let advice = |upstreams: Value, issuer: &str| {
            let spec = with(&json!({"upstreamProviders": upstreams, "issuer": issuer,
                "allowConfidentialClientRegistration": true}));
            let object: MCPExternalAuthConfig =
                serde_json::from_value(json!({"metadata": {"name": "c"}, "spec": spec})).unwrap();
            (object.validate().is_ok(), object.advice().remove(0))
        };
        let strangers = json!([
            oauth2("z", json!({})),
            oauth2("b", json!({})),
            oidc("o"),
            oauth2("known", json!({"userInfo": {"endpointUrl": "https://u"}}))
        ]);
        for (issuer, valid) in [("https://own.example", true), ("http://localhost", false)] {
            let (was_valid, statement) = advice(strangers.clone(), issuer);
            assert_eq!((was_valid, statement.status), (valid, ConditionStatus::True));
            assert_eq!(statement.reason, reasons::OAUTH2_UPSTREAM_WITHOUT_USER_INFO);
            assert!(statement.message.ends_with(": b, z"), "{}", statement.message);
        }
        let from_token = json!([oauth2("t", json!({"identityFromToken": {"subjectPath": "sub"}}))]);
        let (_, statement) = advice(from_token, "https://own.example");
        assert_eq!((statement.status, statement.reason.as_ref()), (ConditionStatus::False, "AllUpstreamsHaveUserInfo"));
    }
}
