//! Who may do what.

use serde_json::{Value, json};
use skep_api::config::run_config::{AuthzConfig as Document, AuthzType, CedarOptions};
use skep_api::kind::Kind as _;
use skep_api::kinds::MCPAuthzConfig;
use skep_api::kinds::authz::{AuthzConfig, AuthzSource, InlineAuthz};

use super::{named, text};
use crate::config::authz::{self, check_cedar, check_http};
use crate::proxy::Inputs;

/// The policies, wherever they stand.
pub(super) fn document(inputs: &Inputs<'_>) -> Result<Option<Document>, String> {
    let common = &inputs.common;
    match (common.authz_config, common.authz_config_ref) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err("authzConfig and authzConfigRef are mutually exclusive; use authzConfigRef to \
                                   reference a shared MCPAuthzConfig"
            .to_owned()),
        (Some(config), None) => own(inputs, config).map(Some),
        (None, reference) => {
            let object = named(MCPAuthzConfig::DEFINITION.kind, reference, inputs.resolved.authz.as_ref())?;
            object.map(|object| authz::document(&object.spec).and_then(checked)).transpose()
        }
    }
}

/// Inline policies without the claims that they are read with: what is mounted as a file.
pub fn inline(config: &AuthzConfig) -> Option<&InlineAuthz> {
    config.inline.as_ref().filter(|_| config.type_ == AuthzSource::Inline)
}

fn own(inputs: &Inputs<'_>, config: &AuthzConfig) -> Result<Document, String> {
    match config.type_ {
        AuthzSource::Inline => {
            let inline = inline(config).ok_or("authzConfig.inline must be set when type is 'inline'")?;
            let options = CedarOptions {
                entities_json: entities(inline).to_owned(),
                policies: inline.policies.clone(),
                ..CedarOptions::default()
            };
            checked(with_claims(Document::from_cedar(&options), config))
        }
        AuthzSource::ConfigMap => {
            let source =
                config.config_map.as_ref().ok_or("authzConfig.configMap must be set when type is 'configMap'")?;
            let document =
                named("authorization ConfigMap", Some(&source.name), inputs.resolved.authz_document.as_ref())?;
            let document = document.cloned().unwrap_or_default();
            checked(with_claims(document, config))
                .map_err(|cause| format!("authorization ConfigMap {:?} is invalid: {cause}", source.name))
        }
    }
}

/// The entities of inline policies; none is an empty list.
pub(super) fn entities(inline: &InlineAuthz) -> &str {
    if inline.entities_json.is_empty() { CedarOptions::NO_ENTITIES } else { &inline.entities_json }
}

/// What the workload says about claims wins over the document. Only Cedar knows such options.
fn with_claims(mut document: Document, config: &AuthzConfig) -> Document {
    let is_cedar = document.authorizer() == AuthzType::Cedar;
    let Some(Value::Object(cedar)) = document.0.get_mut("cedar").filter(|_| is_cedar) else { return document };
    for (option, value) in [
        ("group_claim_name", &config.group_claim_name),
        ("group_entity_type", &config.group_entity_type),
        ("role_claim_name", &config.role_claim_name),
    ] {
        let value = text(value.as_deref());
        if !value.is_empty() {
            cedar.insert(option.to_owned(), json!(value));
        }
    }
    document
}

fn checked(document: Document) -> Result<Document, String> {
    check_policies(&document).map(|()| document)
}

/// Whether a proxy can start with a document.
pub fn check_policies(document: &Document) -> Result<(), String> {
    if document.version().is_empty() {
        return Err("version must be set".to_owned());
    }
    match document.authorizer() {
        AuthzType::Cedar => match document.cedar() {
            Err(misfit) => return Err(format!("cedar: {misfit}")),
            Ok(options) => check_cedar(&options.unwrap_or_default()).map_err(|problem| format!("cedar.{problem}"))?,
        },
        AuthzType::Http => match document.http() {
            Err(misfit) => return Err(format!("pdp: {misfit}")),
            Ok(options) => check_http(&options.unwrap_or_default()).map_err(|problem| format!("pdp.{problem}"))?,
        },
        AuthzType::Other(type_) => return Err(format!("type {type_:?} is not one of cedarv1 and httpv1")),
    }
    Ok(())
}
