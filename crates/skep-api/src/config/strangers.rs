//! Members of a document that nobody declared. They are kept, and count for nothing: whoever has misspelled a name thinks
//! otherwise, and should be told.

use std::fmt;

use super::document::Part;

/// A member that counts for nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stranger {
    /// Where it is, such as `middleware_configs[2].parameters.oidcConfig`.
    pub path: String,
    /// The name that is likely meant.
    pub meant: Option<&'static str>,
}

impl fmt::Display for Stranger {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: no such member", self.path)?;
        self.meant.map_or(Ok(()), |meant| write!(formatter, "; did you mean {meant}?"))
    }
}

/// All members of a part that nobody declared, at every depth.
pub fn strangers(part: &impl Part) -> Vec<Stranger> {
    let mut search = Search::default();
    part.find_strangers(&mut search);
    search.found
}

/// Looks for strangers, at one place after the other.
#[derive(Debug, Default)]
pub struct Search {
    place: String,
    found: Vec<Stranger>,
}

impl Search {
    /// Looks at a member, or at an item such as `[2]`.
    pub(crate) fn below(&mut self, step: &str, look: impl FnOnce(&mut Self)) {
        let length = self.place.len();
        self.place = self.path(step);
        look(self);
        self.place.truncate(length);
    }

    /// Notes the members of this place that are not declared.
    pub(crate) fn note<'a>(&mut self, members: impl IntoIterator<Item = &'a String>, declared: &[&'static str]) {
        for name in members {
            let meant = nearest(name, declared).first().copied().filter(|meant| likeness(name, meant) >= ALIKE);
            self.found.push(Stranger { path: self.path(name), meant });
        }
    }

    fn path(&self, step: &str) -> String {
        let separator = if self.place.is_empty() || step.starts_with('[') { "" } else { "." };
        format!("{}{separator}{step}", self.place)
    }
}

/// How alike names are, at least, of which one is likely meant by the other.
const ALIKE: usize = 600;

/// Names, those first that are written most like another one.
pub fn nearest(name: &str, names: &[&'static str]) -> Vec<&'static str> {
    let mut names = names.to_vec();
    names.sort_by_key(|known| std::cmp::Reverse(likeness(name, known)));
    names
}

/// How alike two names are, from 0 to 1000: by the pairs of letters that they share, whatever is between words.
fn likeness(one: &str, other: &str) -> usize {
    let pairs = |name: &str| -> Vec<(char, char)> {
        let letters: Vec<char> = name.chars().filter(char::is_ascii_alphanumeric).collect();
        letters.windows(2).map(|pair| (pair[0].to_ascii_lowercase(), pair[1].to_ascii_lowercase())).collect()
    };
    let (one, other) = (pairs(one), pairs(other));
    let shared = other.iter().filter(|pair| one.contains(pair)).count();
    2000 * shared / (one.len() + other.len()).max(1)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::config::run_config::{MiddlewareType, RunConfig};
    use crate::config::vmcp::outgoing_strategies::Obo;

    fn told(document: &Value) -> Vec<String> {
        let config = RunConfig::from_json(&document.to_string()).unwrap();
        strangers(&config).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn misspelled_members_are_told_with_what_was_meant() {
        let step =
            |type_: &str, parameters: Value| json!({"middleware_configs": [{"type": type_, "parameters": parameters}]});
        let of_step = |rest: &str| format!("middleware_configs[0].parameters.{rest}");
        for (document, told_of) in [
            (json!({"oidc_confg": {}}), "oidc_confg: no such member; did you mean oidc_config?".to_owned()),
            (json!({"oidcConfig": {}}), "oidcConfig: no such member; did you mean oidc_config?".to_owned()),
            (json!({"authz_confg": {}}), "authz_confg: no such member; did you mean authz_config?".to_owned()),
            (
                json!({"validating_webhook": []}),
                "validating_webhook: no such member; did you mean validating_webhooks?".to_owned(),
            ),
            (json!({"tools_overide": {}}), "tools_overide: no such member; did you mean tools_override?".to_owned()),
            (json!({"zzz": 1}), "zzz: no such member".to_owned()),
            (
                json!({"rate_limit_config": {"sharedd": {}}}),
                "rate_limit_config.sharedd: no such member; did you mean shared?".to_owned(),
            ),
            (
                json!({"audit_config": {"logfile": "/l", "includeRequestDat": true}}),
                "audit_config.includeRequestDat: no such member; did you mean includeRequestData?".to_owned(),
            ),
            (
                json!({"authz_config": {"type": "cedarv1", "cedar": {"group_claim": "teams"}}}),
                "authz_config.cedar.group_claim: no such member; did you mean group_claim_name?".to_owned(),
            ),
            (
                json!({"authz_config": {"type": "cedarv1", "Cedar": {}}}),
                "authz_config.Cedar: no such member; did you mean cedar?".to_owned(),
            ),
            (
                json!({"tools_override": {"a.b": {"descripton": "d"}}}),
                "tools_override.a.b.descripton: no such member; did you mean description?".to_owned(),
            ),
            (
                json!({"validating_webhooks": [{}, {"tls_config": {"ca_bundle": "/c"}}]}),
                "validating_webhooks[1].tls_config.ca_bundle: no such member; did you mean ca_bundle_path?".to_owned(),
            ),
            (step("auth", json!({"oidcConfig": {}})), of_step("oidcConfig: no such member; did you mean oidc_config?")),
            (
                step("authorization", json!({"config_data": {"pdp": {"http": {"uri": "u"}}}})),
                of_step("config_data.pdp.http.uri: no such member"),
            ),
            (
                step("obo", json!({"tokenUrl": "https://t", "clientID": "c"})),
                of_step("clientID: no such member; did you mean clientId?"),
            ),
            (step("strip-auth", json!({"headers": []})), of_step("headers: no such member")),
        ] {
            assert_eq!(told(&document), [told_of], "{document}");
        }
        let several = told(&json!({"x": 1, "a": {"b": 2}, "oidc_config": {"Isuer": ""}}));
        assert_eq!(several.len(), 3, "what is in a stranger is not looked at: {several:?}");
    }

    #[test]
    fn what_may_have_any_name_is_no_stranger() {
        let free = json!({"Any-Name": "v"});
        let document = json!({
            "env_vars": free, "container_labels": free, "runtime_config": {"any": {"thing": 1}},
            "header_forward": {"add_plaintext_headers": free, "add_headers_from_secret": free},
            "telemetry_config": {"headers": free, "customAttributes": free},
            "remote_auth_config": {"oauth_params": free, "headers": free, "env_vars": free},
            "tools_override": {"any": {}},
            "middleware_configs": [{"type": "header-forward", "parameters": {"add_headers": free}}, {"type": "recovery"}],
            "OIDC_config": {"issuer": "https://i"},
        });
        assert_eq!(told(&document), Vec::<String>::new());
        let older = json!({"remote_auth_config": {"ClientID": "c", "UsePKCE": true}});
        assert_eq!(told(&older), Vec::<String>::new());
    }

    #[test]
    fn members_of_steps_from_elsewhere_are_those_that_are_read() {
        let all = |value: Value| Obo::MEMBERS.iter().map(|name| ((*name).to_owned(), value.clone())).collect::<Value>();
        let mut document = all(json!("v"));
        document["scopes"] = json!([]);
        document["cacheSkewSeconds"] = json!(1);
        let read: Obo = serde_json::from_value(document).unwrap();
        assert!(read.other.is_empty(), "{read:?}");
        let written = serde_json::to_value(Obo { scopes: vec!["s".to_owned()], ..read }).unwrap();
        assert_eq!(written.as_object().unwrap().len(), Obo::MEMBERS.len());
    }

    #[test]
    fn whoever_mistypes_a_step_is_told_the_right_one_first() {
        for (written, meant) in [
            ("rate-limit", "ratelimit"),
            ("authorisation", "authorization"),
            ("Tool_Filter", "tool-filter"),
            ("body-limit", "bodylimit"),
            ("oauth", "auth"),
        ] {
            let nearest = nearest(written, MiddlewareType::KNOWN);
            assert_eq!((nearest[0], nearest.len()), (meant, MiddlewareType::KNOWN.len()), "{written}");
        }
    }
}
