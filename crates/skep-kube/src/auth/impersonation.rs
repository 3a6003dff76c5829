//! Acting as somebody else, by the Impersonate headers, for those who may.

use std::collections::BTreeMap;

use http::HeaderMap;

use super::action::{Action, ResourceAction};
use super::authorize::Authorizer;
use super::user::{
    ANONYMOUS_USER, AUTHENTICATED_GROUP, UNAUTHENTICATED_GROUP, User, service_account_groups, service_account_of,
};
use crate::go_text::quoted;
use crate::percent;
use crate::status::ApiError;

const USER_HEADER: &str = "impersonate-user";
const GROUP_HEADER: &str = "impersonate-group";
const UID_HEADER: &str = "impersonate-uid";
const EXTRA_PREFIX: &str = "impersonate-extra-";
const AUTHENTICATION_GROUP: &str = "authentication.k8s.io";

/// The user that the request shall count for, or `None` when no header asks for another one.
pub fn impersonate(user: &User, headers: &HeaderMap, authorizer: &dyn Authorizer) -> Result<Option<User>, ApiError> {
    let wanted = Wanted::read(headers);
    if wanted.is_empty() {
        return Ok(None);
    }
    if wanted.user.is_empty() {
        return Err(ApiError::bad_request(format!(
            "requested {} without impersonating a user name",
            wanted.in_go_syntax()
        )));
    }
    for action in wanted.actions() {
        authorizer.check(user, &Action::Resource(action))?;
    }
    Ok(Some(wanted.into_user()))
}

/// What the headers ask for.
struct Wanted {
    user: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

impl Wanted {
    fn read(headers: &HeaderMap) -> Self {
        let texts = |name: &str| headers.get_all(name).iter().map(|value| lossy(value.as_bytes())).collect::<Vec<_>>();
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in headers {
            if let Some(key) = name.as_str().strip_prefix(EXTRA_PREFIX) {
                extra.entry(percent_decoded(key)).or_default().push(lossy(value.as_bytes()));
            }
        }
        Self {
            user: texts(USER_HEADER).into_iter().next().unwrap_or_default(),
            uid: texts(UID_HEADER).into_iter().next().unwrap_or_default(),
            groups: texts(GROUP_HEADER),
            extra,
        }
    }

    fn is_empty(&self) -> bool {
        self.user.is_empty() && self.uid.is_empty() && self.groups.is_empty() && self.extra.is_empty()
    }

    /// What one must be allowed to do, in the order in which it is asked.
    fn actions(&self) -> Vec<ResourceAction> {
        let action = |group: &str, resource: &str, name: &str| ResourceAction {
            verb: "impersonate".to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            name: name.to_owned(),
            ..ResourceAction::default()
        };
        let mut actions = vec![match service_account_of(&self.user) {
            Some((namespace, name)) => {
                ResourceAction { namespace: namespace.to_owned(), ..action("", "serviceaccounts", name) }
            }
            None => action("", "users", &self.user),
        }];
        actions.extend(self.groups.iter().map(|group| action("", "groups", group)));
        for (key, values) in &self.extra {
            actions.extend(values.iter().map(|value| ResourceAction {
                subresource: key.clone(),
                ..action(AUTHENTICATION_GROUP, "userextras", value)
            }));
        }
        if !self.uid.is_empty() {
            actions.push(action(AUTHENTICATION_GROUP, "uids", &self.uid));
        }
        actions
    }

    fn into_user(self) -> User {
        let Self { user: name, uid, mut groups, extra } = self;
        if groups.is_empty()
            && let Some((namespace, _)) = service_account_of(&name)
        {
            groups = service_account_groups(namespace);
        }
        let has = |group: &str| groups.iter().any(|member| member == group);
        if name == ANONYMOUS_USER {
            if !has(UNAUTHENTICATED_GROUP) {
                groups.push(UNAUTHENTICATED_GROUP.to_owned());
            }
        } else if !has(AUTHENTICATED_GROUP) && !has(UNAUTHENTICATED_GROUP) {
            groups.push(AUTHENTICATED_GROUP.to_owned());
        }
        User { name, uid: (!uid.is_empty()).then_some(uid), groups, extra }
    }

    /// The real server prints its own structure in the one error about it.
    fn in_go_syntax(&self) -> String {
        let texts = |values: &[String]| {
            let values: Vec<String> = values.iter().map(|value| quoted(value)).collect();
            format!("[]string{{{}}}", values.join(", "))
        };
        let groups = if self.groups.is_empty() { "[]string(nil)".to_owned() } else { texts(&self.groups) };
        let extra: Vec<String> =
            self.extra.iter().map(|(key, values)| format!("{}:{}", quoted(key), texts(values))).collect();
        let extra = if extra.is_empty() { "(nil)".to_owned() } else { format!("{{{}}}", extra.join(", ")) };
        format!(
            "&user.DefaultInfo{{Name:{}, UID:{}, Groups:{groups}, Extra:map[string][]string{extra}}}",
            quoted(&self.user),
            quoted(&self.uid)
        )
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The key of an extra header may be percent-encoded; one that is not properly so is taken as it stands.
fn percent_decoded(key: &str) -> String {
    let decoded = Some(percent::decode(key)).filter(|decoded| decoded.is_proper);
    let text = decoded.and_then(|decoded| String::from_utf8(decoded.bytes).ok());
    text.map_or_else(|| key.to_owned(), |text| text.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::authorize::{Decision, UserRules};
    use http::HeaderValue;

    /// Allows what is in the list, as `resource/subresource name`.
    struct Only(&'static [&'static str]);

    impl Authorizer for Only {
        fn decide(&self, _: &User, action: &Action) -> Decision {
            let Action::Resource(action) = action else {
                return Decision::NoOpinion(String::new());
            };
            let asked = format!("{} {}", action.full_resource(), action.name);
            if self.0.contains(&asked.as_str()) {
                Decision::Allowed(String::new())
            } else {
                Decision::NoOpinion(String::new())
            }
        }

        fn rules_of(&self, _: &User, _: &str) -> UserRules {
            UserRules::default()
        }
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn who_one_becomes() {
        let all = Only(&[
            "users bob",
            "users system:anonymous",
            "groups g",
            "groups system:unauthenticated",
            "uids u",
            "userextras/acme.com/scopes view",
            "serviceaccounts x",
        ]);
        let me = User::new("me", &[]);
        let become_ = |pairs: &[(&'static str, &str)]| impersonate(&me, &headers(pairs), &all).unwrap();
        assert_eq!(become_(&[]), None);
        assert_eq!(become_(&[("impersonate-user", "")]), None);
        let bob = become_(&[
            ("impersonate-user", "bob"),
            ("impersonate-group", "g"),
            ("impersonate-uid", "u"),
            ("impersonate-extra-acme.com%2fscopes", "view"),
        ])
        .unwrap();
        assert_eq!(bob.groups, ["g", "system:authenticated"]);
        assert_eq!(bob.uid.as_deref(), Some("u"));
        assert_eq!(bob.extra["acme.com/scopes"], ["view"]);
        let account = become_(&[("impersonate-user", "system:serviceaccount:default:x")]).unwrap();
        assert_eq!(
            account.groups,
            ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]
        );
        assert_eq!(become_(&[("impersonate-user", "system:anonymous")]).unwrap().groups, ["system:unauthenticated"]);
        let stranger = become_(&[("impersonate-user", "bob"), ("impersonate-group", "system:unauthenticated")]);
        assert_eq!(stranger.unwrap().groups, ["system:unauthenticated"]);
    }

    #[test]
    fn each_part_needs_permission() {
        let me = User::new("me", &[]);
        let refused = |pairs: &[(&'static str, &str)]| {
            impersonate(&me, &headers(pairs), &Only(&["users bob"])).unwrap_err().message
        };
        assert_eq!(
            refused(&[("impersonate-user", "zed")]),
            r#"users "zed" is forbidden: User "me" cannot impersonate resource "users" in API group "" at the cluster scope"#
        );
        assert_eq!(
            refused(&[("impersonate-user", "system:serviceaccount:default:x")]),
            r#"serviceaccounts "x" is forbidden: User "me" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "default""#
        );
        assert_eq!(
            refused(&[("impersonate-user", "bob"), ("impersonate-extra-scopes", "v")]),
            r#"userextras.authentication.k8s.io "v" is forbidden: User "me" cannot impersonate resource "userextras/scopes" in API group "authentication.k8s.io" at the cluster scope"#
        );
        assert_eq!(
            refused(&[("impersonate-extra-a", "g")]),
            r#"requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string(nil), Extra:map[string][]string{"a":[]string{"g"}}} without impersonating a user name"#
        );
        assert_eq!(
            refused(&[("impersonate-group", "g")]),
            r#"requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"g"}, Extra:map[string][]string(nil)} without impersonating a user name"#
        );
    }

    #[test]
    fn odd_extra_keys_do_no_harm() {
        for (key, decoded) in
            [("a%2Fb", "a/b"), ("a%", "a%"), ("a%2", "a%2"), ("a%zz", "a%zz"), ("%ff", "%ff"), ("A", "a")]
        {
            assert_eq!(percent_decoded(key), decoded);
        }
    }
}
