//! Clients known from the start, and issuers elsewhere whose tokens are accepted in exchange.

use skep_api::config::run_config::{DelegateClient, JwtBearerGrant, SubjectBinding, TrustedIssuer};
use skep_api::kinds::auth_server::clients as kind;
use skep_api::kinds::auth_server::trusted_issuer as issuer_kind;
use skep_api::names::env;

use super::{Terms, text, unsupported_scope};

pub(super) fn delegates(clients: &[kind::DelegateClient], terms: &Terms<'_>) -> Result<Vec<DelegateClient>, String> {
    let numbered = clients.iter().enumerate();
    numbered
        .map(|(index, client)| {
            let earlier = &clients[..index];
            if earlier.iter().any(|other| other.client_id == client.client_id) {
                return Err(format!("delegateClients[{index}]: clientId {:?} is taken", client.client_id));
            }
            delegate(index, client, terms)
        })
        .collect()
}

/// The secret is named by the client's place in the list.
fn delegate(index: usize, client: &kind::DelegateClient, terms: &Terms<'_>) -> Result<DelegateClient, String> {
    let place = format!("delegateClients[{index}]");
    if let Some(scope) = client.scopes.iter().find(|scope| !terms.scopes.contains(scope)) {
        return Err(unsupported_scope(&format!("{place}.scopes"), scope, terms));
    }
    if let Some(audience) = client.audiences.iter().find(|audience| *audience != terms.resource) {
        return Err(not_the_resource(&format!("{place}.audiences"), audience, terms));
    }
    Ok(DelegateClient {
        audiences: client.audiences.clone(),
        client_id: client.client_id.clone(),
        client_secret_env_var: env::delegate_client_secret(index),
        scopes: client.scopes.clone(),
        ..DelegateClient::default()
    })
}

fn not_the_resource(field: &str, value: &str, terms: &Terms<'_>) -> String {
    format!("{field}: {value:?} is not the resource that tokens are issued for; use {:?}", terms.resource)
}

pub(super) fn trusted_issuers(
    issuers: &[issuer_kind::TrustedIssuer],
    terms: &Terms<'_>,
) -> Result<Vec<TrustedIssuer>, String> {
    let numbered = issuers.iter().enumerate();
    numbered.map(|(index, issuer)| trusted(&format!("trustedIssuers[{index}]"), issuer, terms)).collect()
}

fn trusted(place: &str, issuer: &issuer_kind::TrustedIssuer, terms: &Terms<'_>) -> Result<TrustedIssuer, String> {
    let grant = issuer.jwt_bearer_grant.as_ref();
    Ok(TrustedIssuer {
        actor_claim: text(issuer.actor_claim.as_deref()),
        actor_matcher: text(issuer.actor_matcher.as_deref()),
        allow_may_act: issuer.allow_may_act,
        allow_private_ips: issuer.allow_private_ips.unwrap_or_default(),
        allowed_actors: issuer.allowed_actors.clone(),
        allowed_delegate_clients: issuer.allowed_delegate_clients.clone(),
        expected_audience: text(issuer.expected_audience.as_deref()),
        insecure_allow_http: issuer.insecure_allow_http.unwrap_or_default(),
        issuer_url: issuer.issuer_url.clone(),
        jwks_url: text(issuer.jwks_url.as_deref()),
        jwt_bearer_grant: grant.map(|grant| bearer_grant(place, grant, terms)).transpose()?,
        ..TrustedIssuer::default()
    })
}

/// An assertion is addressed to this server, a token to the resource: the two must not be mistaken for each other.
fn bearer_grant(place: &str, grant: &issuer_kind::JwtBearerGrant, terms: &Terms<'_>) -> Result<JwtBearerGrant, String> {
    let place = format!("{place}.jwtBearerGrant");
    if grant.accepted_audiences.iter().any(|audience| audience == terms.resource) {
        return Err(format!(
            "{place}.acceptedAudiences: {:?} is the resource that tokens are issued for; assertions need an audience \
             of their own",
            terms.resource
        ));
    }
    let resources = grant.subject_bindings.iter().flat_map(|binding| &binding.allowed_resources);
    if let Some(resource) = resources.into_iter().find(|resource| *resource != terms.resource) {
        return Err(not_the_resource(&format!("{place}.subjectBindings"), resource, terms));
    }
    let binding = |binding: &issuer_kind::SubjectBinding| SubjectBinding {
        allowed_resources: binding.allowed_resources.clone(),
        subject: binding.subject.clone(),
        ..SubjectBinding::default()
    };
    Ok(JwtBearerGrant {
        accepted_audiences: grant.accepted_audiences.clone(),
        max_assertion_age: grant.max_assertion_age.clone(),
        subject_bindings: grant.subject_bindings.iter().map(binding).collect(),
        ..JwtBearerGrant::default()
    })
}
