//! What conditions of a workload are about. What one says stands while that is there, also when a pass ends before it was
//! looked at: a condition that went and came back would tell of a transition that never was.

use skep_api::conditions::types;

use super::{Common, Target};

/// The conditions whose input is there.
pub fn conditions_with_input(common: Common<'_>, target: Target<'_>) -> impl Iterator<Item = &'static str> {
    let (has_template, has_webhooks) = match target {
        Target::Server(spec) => (spec.pod_template_spec.is_some(), spec.webhook_config_ref.is_some()),
        Target::Remote(spec) => (spec.pod_template_spec.is_some(), false),
    };
    let inline = common.authz_config.and_then(|authz| authz.inline.as_ref());
    let provider = inline.and_then(|inline| inline.primary_upstream_provider.as_deref());
    let inputs = [
        (types::POD_TEMPLATE_VALID, has_template),
        (types::GROUP_REF_VALIDATED, common.group_ref.is_some()),
        (types::AUTHZ_PRIMARY_UPSTREAM_PROVIDER_IGNORED, provider.is_some_and(|provider| !provider.is_empty())),
        (types::TOOL_CONFIG_VALIDATED, common.tool_config_ref.is_some()),
        (types::TELEMETRY_CONFIG_REF_VALIDATED, common.telemetry_config_ref.is_some()),
        (types::EXTERNAL_AUTH_CONFIG_VALIDATED, common.external_auth_config_ref.is_some()),
        (types::WEBHOOK_CONFIG_VALIDATED, has_webhooks),
        (types::AUTH_SERVER_REF_VALIDATED, common.auth_server_ref.is_some()),
        (types::OIDC_CONFIG_REF_VALIDATED, common.oidc_config_ref.is_some()),
        (types::CA_BUNDLE_REF_VALIDATED, common.oidc_config_ref.is_some()),
        (types::AUTHZ_CONFIG_REF_VALIDATED, common.authz_config_ref.is_some()),
        // About the pods, which run on.
        (types::VERIFIED, matches!(target, Target::Server(_))),
    ];
    inputs.into_iter().filter_map(|(type_, is_there)| is_there.then_some(type_))
}
