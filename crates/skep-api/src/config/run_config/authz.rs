//! Who may do what, for the data plane.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::config::document::{Misfit, Part, object, read, word};
use crate::config::strangers::Search;
use crate::raw::{MemberNames, write_members};

/// An authorization document. It is kept whole, because each authorizer has its own sections; only `version` and
/// `type` mean the same in all of them.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AuthzConfig(#[serde(serialize_with = "write_members")] pub Map<String, Value>);

impl AuthzConfig {
    pub const VERSION: &str = "1.0";
    /// What every document may have, and the sections of the authorizers.
    pub const MEMBERS: &[&str] = &["cedar", "pdp", "type", "version"];

    /// A document for the Cedar authorizer.
    pub fn from_cedar(options: &CedarOptions) -> Self {
        let mut document = Map::new();
        document.insert("version".to_owned(), json!(Self::VERSION));
        document.insert("type".to_owned(), json!(AuthzType::Cedar));
        document.insert("cedar".to_owned(), json!(options));
        Self(document)
    }

    /// Empty when there is none.
    pub fn version(&self) -> &str {
        self.text("version")
    }

    pub fn authorizer(&self) -> AuthzType {
        self.text("type").into()
    }

    /// The section of the Cedar authorizer, if there is one.
    pub fn cedar(&self) -> Result<Option<CedarOptions>, Misfit> {
        read(self.0.get("cedar").cloned().unwrap_or_default())
    }

    /// The section of the HTTP authorizer, if there is one.
    pub fn http(&self) -> Result<Option<HttpPdpOptions>, Misfit> {
        read(self.0.get("pdp").cloned().unwrap_or_default())
    }

    /// A copy in which Cedar takes claims from the tokens of an upstream identity provider. Other authorizers have
    /// no such option: their documents stay as they are.
    #[must_use]
    pub fn with_primary_upstream_provider(&self, name: &str) -> Self {
        let mut copy = self.clone();
        if let (AuthzType::Cedar, Some(Value::Object(cedar))) = (self.authorizer(), copy.0.get_mut("cedar")) {
            cedar.insert("primary_upstream_provider".to_owned(), json!(name));
        }
        copy
    }

    fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }
}

impl fmt::Debug for AuthzConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AuthzConfig")
            .field("version", &self.version())
            .field("type", &self.authorizer())
            .field("members", &MemberNames(&self.0))
            .finish()
    }
}

impl Part for AuthzConfig {
    fn from_value(value: Value) -> Result<Self, Misfit> {
        match value {
            Value::Object(document) => Ok(Self(document)),
            value => Err(Misfit::new("an object", &value)),
        }
    }

    /// Sections that cannot be read are told by whoever looks at them.
    fn find_strangers(&self, search: &mut Search) {
        search.note(self.0.keys().filter(|name| !Self::MEMBERS.contains(&name.as_str())), Self::MEMBERS);
        search.below("cedar", |search| self.cedar().unwrap_or_default().find_strangers(search));
        search.below("pdp", |search| self.http().unwrap_or_default().find_strangers(search));
    }
}

word! {
    /// Kinds of authorizers.
    pub enum AuthzType {
        /// Cedar policies, evaluated in the process.
        Cedar = "cedarv1",
        /// A policy decision point that is asked over HTTP.
        Http = "httpv1",
    }
}

object! {
    /// Options of the Cedar authorizer.
    pub struct CedarOptions {
        /// Cedar entities as a JSON array in a text.
        always entities_json: String,
        omit group_claim_name: String,
        omit group_entity_type: String,
        /// The claims that are given to policies as sets, too.
        omit multi_valued_claims: Vec<String>,
        always policies: Vec<String>,
        /// The upstream identity provider whose claims the policies see.
        omit primary_upstream_provider: String,
        omit role_claim_name: String,
    }
}

impl CedarOptions {
    pub const DEFAULT_GROUP_ENTITY_TYPE: &str = "THVGroup";
    pub const NO_ENTITIES: &str = "[]";
}

object! {
    /// Options of the HTTP authorizer.
    pub struct HttpPdpOptions {
        always claim_mapping: ClaimMapping,
        omit context: Option<PdpContext>,
        omit http: Option<PdpEndpoint>,
    }
}

word! {
    /// How claims become the principal of a question.
    pub enum ClaimMapping {
        /// The names with the prefix `m`, such as `mroles`.
        Mpe = "mpe",
        /// The common names.
        Standard = "standard",
    }
}

object! {
    /// Where the policy decision point is.
    pub struct PdpEndpoint {
        omit insecure_skip_verify: bool,
        /// In seconds; 0 and less mean 30.
        omit timeout: i64,
        always url: String,
    }
}

object! {
    /// What is told to the policy decision point beyond the bare question.
    pub struct PdpContext {
        omit include_args: bool,
        omit include_operation: bool,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> AuthzConfig {
        let document = json!({
            "version": "1.0",
            "type": "cedarv1",
            "cedar": { "policies": ["permit(principal, action, resource);"], "entities_json": "[]", "later": 1 },
            "unheard_of": { "a": null },
        });
        read(document).unwrap()
    }

    #[test]
    fn cedar_can_be_viewed() {
        let cedar = document().cedar().unwrap().unwrap();
        assert_eq!(cedar.policies.len(), 1);
        assert_eq!(cedar.other.0["later"], 1);
        assert_eq!(document().authorizer(), AuthzType::Cedar);
        assert_eq!(document().version(), "1.0");
        assert!(document().http().unwrap().is_none());
    }

    #[test]
    fn a_section_of_the_wrong_shape_only_hurts_who_looks() {
        let document: AuthzConfig = read(json!({ "type": "cedarv1", "cedar": { "policies": "one" } })).unwrap();
        assert_eq!(document.cedar().unwrap_err().path, "policies");
    }

    #[test]
    fn the_upstream_provider_goes_into_cedar_and_nowhere_else() {
        let forced = document().with_primary_upstream_provider("github");
        assert_eq!(forced.cedar().unwrap().unwrap().primary_upstream_provider, "github");
        assert_eq!(forced.0["unheard_of"], document().0["unheard_of"]);
        let http: AuthzConfig = read(json!({ "type": "httpv1", "pdp": {}, "cedar": {} })).unwrap();
        assert_eq!(http.with_primary_upstream_provider("github"), http);
    }

    #[test]
    fn built_from_options() {
        let options = CedarOptions {
            entities_json: CedarOptions::NO_ENTITIES.to_owned(),
            policies: vec!["permit(principal, action, resource);".to_owned()],
            ..CedarOptions::default()
        };
        assert_eq!(AuthzConfig::from_cedar(&options).cedar(), Ok(Some(options)));
    }
}
