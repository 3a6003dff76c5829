//! The identity providers of the embedded authorization server.

use std::collections::{BTreeMap, BTreeSet};

use skep_api::kinds::auth_server::upstream::UpstreamProvider;
use skep_api::kinds::auth_server::upstream_oauth2::{ClientRegistration, OAuth2Upstream};

/// Parameters that the protocol itself uses.
const RESERVED_PARAMETERS: [&str; 8] = [
    "response_type",
    "client_id",
    "redirect_uri",
    "scope",
    "state",
    "code_challenge",
    "code_challenge_method",
    "nonce",
];

const LONGEST_ADDRESS: usize = 2_048;
const LONGEST_SOFTWARE_ID: usize = 255;
const LONGEST_SOFTWARE_STATEMENT: usize = 16_384;

pub(super) fn check(upstreams: &[UpstreamProvider]) -> Result<(), String> {
    if upstreams.is_empty() {
        return Err("upstreamProviders must have at least one entry".to_owned());
    }
    let mut names = BTreeSet::new();
    for (index, upstream) in upstreams.iter().enumerate() {
        if !names.insert(&upstream.name) {
            return Err(format!("upstreamProviders[{index}].name {:?} is the name of another one", upstream.name));
        }
        let parameters = match (&upstream.oidc_config, &upstream.oauth2_config) {
            (Some(oidc), _) => &oidc.additional_authorization_params,
            (None, Some(oauth2)) => {
                check_oauth2(oauth2)
                    .map_err(|complaint| format!("upstreamProviders[{index}]: oauth2Config{complaint}"))?;
                &oauth2.additional_authorization_params
            }
            (None, None) => continue,
        };
        check_parameters(parameters)
            .map_err(|complaint| format!("upstreamProviders[{index}].additionalAuthorizationParams: {complaint}"))?;
    }
    Ok(())
}

fn check_parameters(parameters: &BTreeMap<String, String>) -> Result<(), String> {
    match parameters.keys().find(|name| RESERVED_PARAMETERS.contains(&name.as_str())) {
        Some(name) => Err(format!("{name:?} is set by the protocol itself and must not be given")),
        None => Ok(()),
    }
}

fn check_oauth2(oauth2: &OAuth2Upstream) -> Result<(), String> {
    if let Some(registration) = &oauth2.dcr_config {
        check_registration(registration).map_err(|complaint| format!(".dcrConfig: {complaint}"))?;
    }
    if oauth2.identity_from_token.as_ref().is_some_and(|identity| identity.subject_path.is_empty()) {
        return Err(".identityFromToken.subjectPath must not be empty".to_owned());
    }
    Ok(())
}

fn check_registration(registration: &ClientRegistration) -> Result<(), String> {
    let given = |value: &Option<String>| value.as_ref().is_some_and(|value| !value.is_empty());
    if given(&registration.discovery_url) == given(&registration.registration_endpoint) {
        return Err("exactly one of discoveryUrl or registrationEndpoint must be set".to_owned());
    }
    let statement = registration.software_statement.as_ref().map(|statement| &statement.0);
    let members = [
        ("discoveryUrl", registration.discovery_url.as_ref(), LONGEST_ADDRESS),
        ("registrationEndpoint", registration.registration_endpoint.as_ref(), LONGEST_ADDRESS),
        ("softwareId", registration.software_id.as_ref(), LONGEST_SOFTWARE_ID),
        ("softwareStatement", statement, LONGEST_SOFTWARE_STATEMENT),
    ];
    for (member, value, longest) in members {
        if value.is_some_and(|value| value.chars().count() > longest) {
            return Err(format!("{member} must not be longer than {longest} characters"));
        }
    }
    let addresses = [&registration.discovery_url, &registration.registration_endpoint];
    match addresses.into_iter().flatten().find(|address| !address.is_empty() && !address.starts_with("https://")) {
        Some(address) => Err(format!("{address:?} must be an https address")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use skep_api::kinds::MCPExternalAuthConfig;

    use super::super::auth_server::tests::{oidc, with};
    use crate::config::judge;

    fn upstreams(list: &Value) -> Value {
        with(&json!({"upstreamProviders": list}))
    }

    fn oauth2(extra: &Value) -> Value {
        let mut config = json!({"authorizationEndpoint": "https://a", "tokenEndpoint": "https://t"});
        config.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        upstreams(&json!([{"name": "p", "type": "oauth2", "oauth2Config": config}]))
    }

    #[test]
    fn upstreams_are_judged() {
        let config = json!({"issuerUrl": "https://p", "clientId": "c"});
        let pairing = "embeddedAuthServer.upstreamProviders[0]: type must be 'oidc' or 'oauth2'; oidcConfig must be set \
                       when type is 'oidc' and oauth2Config must be set when type is 'oauth2' (and the other must not be \
                       set)";
        judge::<MCPExternalAuthConfig>([
            (upstreams(&json!([oidc("a"), oidc("b")])), ""),
            (upstreams(&json!([])), "upstreamProviders must have at least one entry"),
            (upstreams(&json!([oidc("a"), oidc("a")])), "upstreamProviders[1].name \"a\" is the name of another one"),
            (upstreams(&json!([{"name": "p", "type": "oidc"}])), pairing),
            (upstreams(&json!([{"name": "p", "type": "oauth2", "oidcConfig": config}])), pairing),
        ]);
    }

    #[test]
    fn parameters_of_the_protocol_are_not_given_twice() {
        for name in super::RESERVED_PARAMETERS {
            let config =
                json!({"issuerUrl": "https://p", "clientId": "c", "additionalAuthorizationParams": {name: "x"}});
            let told = crate::config::complaint_about::<MCPExternalAuthConfig>(&upstreams(
                &json!([oidc("a"), {"name": "p", "type": "oidc", "oidcConfig": config}]),
            ));
            let expected = format!(
                "upstreamProviders[1].additionalAuthorizationParams: {name:?} is set by the protocol itself and must not \
                 be given"
            );
            assert_eq!(told, expected);
        }
        let prompt = json!({"clientId": "c", "additionalAuthorizationParams": {"prompt": "consent"}});
        judge::<MCPExternalAuthConfig>([(oauth2(&prompt), "")]);
    }

    #[test]
    fn registrations_are_judged() {
        let registration = |registration: Value| oauth2(&json!({"dcrConfig": registration}));
        let long = |length: usize| "x".repeat(length);
        let where_ = "embeddedAuthServer.upstreamProviders[0].oauth2Config";
        let choice = "upstreamProviders[0]: oauth2Config.dcrConfig: exactly one of discoveryUrl or registrationEndpoint \
                      must be set";
        judge::<MCPExternalAuthConfig>([
            (registration(json!({"discoveryUrl": "https://d"})), ""),
            (registration(json!({"registrationEndpoint": "https://r"})), ""),
            (registration(json!({"discoveryUrl": "", "registrationEndpoint": "https://r"})), choice_of_schema()),
            (registration(json!({"discoveryUrl": ""})), choice),
            (
                registration(json!({"registrationEndpoint": "http://r"})),
                "upstreamProviders[0]: oauth2Config.dcrConfig: \"http://r\" must be an https address",
            ),
            (
                registration(json!({"discoveryUrl": "https://d", "softwareId": long(256)})),
                "upstreamProviders[0]: oauth2Config.dcrConfig: softwareId must not be longer than 255 characters",
            ),
            (
                registration(json!({"discoveryUrl": "https://d", "softwareStatement": long(16_385)})),
                "upstreamProviders[0]: oauth2Config.dcrConfig: softwareStatement must not be longer than 16384 characters",
            ),
            (
                registration(json!({"discoveryUrl": format!("https://{}", long(2_048))})),
                "upstreamProviders[0]: oauth2Config.dcrConfig: discoveryUrl must not be longer than 2048 characters",
            ),
        ]);
        let neither = format!("{where_}: exactly one of clientId or dcrConfig must be set");
        let both = json!({"clientId": "c", "dcrConfig": {"discoveryUrl": "https://d"}});
        let secret = json!({"dcrConfig": {"discoveryUrl": "https://d"}, "clientSecretRef": {"name": "s", "key": "k"}});
        for (spec, expected) in [
            (oauth2(&json!({})), neither.as_str()),
            (oauth2(&json!({"clientId": ""})), &neither),
            (oauth2(&both), &neither),
            (
                oauth2(&secret),
                "embeddedAuthServer.upstreamProviders[0].oauth2Config: clientSecretRef must not be set when dcrConfig is \
                 set; the client_secret is obtained at runtime via Dynamic Client Registration",
            ),
            (
                oauth2(&json!({"clientId": "c", "identityFromToken": {"subjectPath": ""}})),
                "upstreamProviders[0]: oauth2Config.identityFromToken.subjectPath must not be empty",
            ),
        ] {
            assert_eq!(crate::config::complaint_about::<MCPExternalAuthConfig>(&spec), expected);
        }
    }

    fn choice_of_schema() -> &'static str {
        "embeddedAuthServer.upstreamProviders[0].oauth2Config.dcrConfig: exactly one of discoveryUrl or \
         registrationEndpoint must be set"
    }
}
