//! What is known about a caller, as Cedar sees it: attributes from claims, parents from groups.

use std::borrow::Cow;
use std::collections::BTreeMap;

use cedar_policy::RestrictedExpression;
use serde_json::{Map, Value};

use super::Denied;
use super::values;
use crate::middleware::unverified::Unverified;

/// Where groups are looked for when nobody says where they are.
const GROUP_CLAIMS: [&str; 3] = ["groups", "roles", "cognito:groups"];
/// What an identity token may add to the claims of the access token that came with it.
const PROFILE: [&str; 2] = ["name", "email"];

/// Names and values that policies see.
pub(super) type Attributes = BTreeMap<String, RestrictedExpression>;

/// Claims as attributes. The two prefixes differ within the first six letters, so that no claim looks like a set.
pub(super) fn attributes(claims: &Map<String, Value>, multi_valued: &[String]) -> Attributes {
    let plain = |(name, claim): (&String, &Value)| values::value(claim).map(|value| (format!("claim_{name}"), value));
    let mut attributes: Attributes = claims.iter().filter_map(plain).collect();
    for name in multi_valued {
        let (text, elements): (Cow<'_, str>, Vec<&str>) = match claims.get(name) {
            Some(Value::Array(items)) => {
                let elements: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
                (elements.join(" ").into(), elements)
            }
            Some(Value::String(text)) => (text.into(), text.split_whitespace().collect()),
            _ => continue,
        };
        let elements = elements.into_iter().map(|element| RestrictedExpression::new_string(element.to_owned()));
        attributes.insert(format!("claimset_{name}"), RestrictedExpression::new_set(elements));
        attributes.insert(format!("claim_{name}"), RestrictedExpression::new_string(text.into_owned()));
    }
    attributes
}

/// The groups and roles that the claims name, each once.
pub(super) fn groups<'a>(claims: &'a Map<String, Value>, group_claim: &str, role_claim: &str) -> Vec<&'a str> {
    let named = list(claims, group_claim);
    let groups = named.or_else(|| GROUP_CLAIMS.iter().find_map(|name| claims.get(*name).and_then(Value::as_array)));
    let roles = list(claims, role_claim);
    let mut found: Vec<&str> = Vec::new();
    for group in groups.into_iter().chain(roles).flatten().filter_map(Value::as_str) {
        if !found.contains(&group) {
            found.push(group);
        }
    }
    found
}

/// The list at a claim, which may lie within others.
fn list<'a>(claims: &'a Map<String, Value>, path: &str) -> Option<&'a Vec<Value>> {
    let found = claims.get(path).or_else(|| {
        let mut names = path.split('.');
        let first = claims.get(names.next()?)?;
        names.try_fold(first, |value, name| value.get(name))
    })?;
    if !found.is_array() {
        tracing::warn!(claim = path, "the claim with the groups of a caller is no list, and so it names none");
    }
    found.as_array()
}

/// The claims of somebody whom an upstream provider knows. An access token that is no JWT says nothing, so that the
/// caller's own claims count; one that looks like a JWT and is none was tampered with.
pub(super) fn upstream(access: &str, identity: Option<&str>) -> Result<Option<Map<String, Value>>, Denied> {
    if access.split('.').count() != 3 {
        tracing::warn!("the upstream access token is no JWT; the caller's own claims count");
        return Ok(None);
    }
    let mut claims = unverified(access).ok_or(Denied::UpstreamToken)?;
    let profile = identity.and_then(unverified).unwrap_or_default();
    for name in PROFILE {
        if let (None, Some(value)) = (claims.get(name), profile.get(name)) {
            claims.insert(name.to_owned(), value.clone());
        }
    }
    Ok(Some(claims))
}

/// What a JWT says: whoever stored it has asked whether it is true.
fn unverified(token: &str) -> Option<Map<String, Value>> {
    Some(Unverified::read(token)?.claims)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde_json::json;

    use super::*;

    fn claims(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    fn token(claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        format!("{}.{}.c2ln", part(&json!({"alg": "none"})), part(claims))
    }

    #[test]
    fn trap_50_no_claim_looks_like_a_set() {
        let claims = claims(json!({"scope": "a b", "set_scope": ["admin"], "claimset_scope": ["admin"]}));
        let found = attributes(&claims, &["scope".to_owned(), "absent".to_owned()]);
        let set = |texts: &[&str]| {
            RestrictedExpression::new_set(texts.iter().map(|text| RestrictedExpression::new_string((*text).to_owned())))
        };
        assert_eq!(found["claimset_scope"], set(&["a", "b"]));
        assert_eq!(found["claim_scope"], RestrictedExpression::new_string("a b".to_owned()));
        assert_eq!(found["claim_set_scope"], set(&["admin"]));
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn lists_of_a_multi_valued_claim_are_joined_and_other_types_stay() {
        let found = attributes(&claims(json!({"a": ["x", 1, "y"], "b": true})), &["a".to_owned(), "b".to_owned()]);
        assert_eq!(found["claim_a"], RestrictedExpression::new_string("x y".to_owned()));
        assert_eq!(found["claim_b"], RestrictedExpression::new_bool(true));
        assert!(!found.contains_key("claimset_b"));
    }

    #[test]
    fn groups_are_where_they_are_said_to_be_or_where_they_usually_are() {
        let of = |value, group: &str, role: &str| -> Vec<String> {
            groups(&claims(value), group, role).into_iter().map(str::to_owned).collect()
        };
        assert_eq!(of(json!({"groups": ["a", 7, "a"], "roles": ["b"]}), "", ""), ["a"]);
        assert_eq!(of(json!({"groups": [], "roles": ["b"]}), "", ""), Vec::<String>::new());
        assert_eq!(of(json!({"groups": "a", "cognito:groups": ["c"]}), "", "roles"), ["c"]);
        assert_eq!(of(json!({"realm": {"access": ["a"]}, "groups": ["b"]}), "realm.access", ""), ["a"]);
        assert_eq!(of(json!({"realm.access": ["x"], "realm": {"access": ["a"]}}), "realm.access", ""), ["x"]);
        assert_eq!(of(json!({"team": "a", "groups": ["b"], "r": ["b", "c"]}), "team", "r"), ["b", "c"]);
    }

    #[test]
    fn trap_51_a_tampered_upstream_token_denies_and_an_opaque_one_says_nothing() {
        assert_eq!(upstream("opaque", None), Ok(None));
        assert_eq!(upstream("a.b.c", None), Err(Denied::UpstreamToken));
        let whole = token(&json!({"sub": "u"}));
        assert_eq!(upstream(&whole.replacen('.', ".!", 1), None), Err(Denied::UpstreamToken));
        let profile = token(&json!({"sub": "other", "name": "U", "email": "u@x", "groups": ["admin"]}));
        let found = upstream(&token(&json!({"sub": "u", "email": "own@x"})), Some(&profile)).unwrap().unwrap();
        assert_eq!(Value::Object(found), json!({"sub": "u", "email": "own@x", "name": "U"}));
    }
}
