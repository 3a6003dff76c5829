//! Which role a caller gets, by its claims.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use super::matcher::{Matcher, in_large_stack};
use crate::middleware::grants::{Given, GrantError, Kept, Key};
use crate::middleware::identity::Identity;

/// Callers whose expressions are evaluated at the same time. Each takes a thread with a large stack.
const AT_ONCE: usize = 4;
/// How long a caller waits for that, and for a turn before it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whom a role is for.
#[derive(Debug, Clone)]
pub enum RoleTest {
    /// Those with this value in the claim of roles.
    Claim(String),
    /// Those of whom this CEL expression over `claims` is true.
    Matcher(String),
}

/// A role, and whom it is for.
#[derive(Debug, Clone)]
pub struct RoleMapping {
    pub test: RoleTest,
    /// The ARN of the role.
    pub role: String,
    /// The lowest number wins, and the first of equals; whatever has none comes last.
    pub priority: Option<i64>,
}

/// What is wrong with roles.
#[derive(Debug, thiserror::Error)]
pub enum RolesError {
    /// Nobody could have a role.
    #[error("there is neither a fallback_role_arn nor one of role_mappings")]
    None,
    /// It is no role.
    #[error("{0}: {1:?} is no ARN of a role, like arn:aws:iam::123456789012:role/NAME")]
    Arn(String, String),
    /// It is no expression.
    #[error("role_mappings[{0}].matcher {1}")]
    Matcher(usize, String),
}

#[derive(Debug)]
enum Test {
    Claim(String),
    Matcher(Matcher),
}

/// All roles, the first that fits counts.
#[derive(Debug)]
pub(super) struct Roles {
    claim: String,
    mappings: Vec<(Test, Arc<str>)>,
    fallback: Option<Arc<str>>,
    turns: Arc<Semaphore>,
    /// What was found for claims.
    kept: Kept<Option<Arc<str>>>,
}

impl Roles {
    pub(super) fn new(claim: String, mappings: Vec<RoleMapping>, fallback: String) -> Result<Self, RolesError> {
        if mappings.is_empty() && fallback.is_empty() {
            return Err(RolesError::None);
        }
        if !fallback.is_empty() && !is_role(&fallback) {
            return Err(RolesError::Arn("fallback_role_arn".to_owned(), fallback));
        }
        let mut read = Vec::with_capacity(mappings.len());
        for (index, mapping) in mappings.into_iter().enumerate() {
            if !is_role(&mapping.role) {
                return Err(RolesError::Arn(format!("role_mappings[{index}].role_arn"), mapping.role));
            }
            let test = match mapping.test {
                RoleTest::Claim(value) => Test::Claim(value),
                RoleTest::Matcher(text) => {
                    Test::Matcher(Matcher::read(&text).map_err(|complaint| RolesError::Matcher(index, complaint))?)
                }
            };
            read.push((mapping.priority.unwrap_or(i64::MAX), test, mapping.role.into()));
        }
        read.sort_by_key(|(priority, ..)| *priority);
        let mappings = read.into_iter().map(|(_, test, role)| (test, role)).collect();
        Ok(Self {
            claim,
            mappings,
            fallback: (!fallback.is_empty()).then(|| fallback.into()),
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            kept: Kept::new(Duration::ZERO),
        })
    }

    /// The role of a caller, if there is one.
    pub(super) async fn of(self: &Arc<Self>, identity: &Arc<Identity>) -> Option<Arc<str>> {
        if self.mappings.iter().all(|(test, _)| matches!(test, Test::Claim(_))) {
            return self.find(&identity.claims);
        }
        let claims = Value::Object(identity.claims.clone());
        let (key, roles) = (Key::of(identity, &[&claims.to_string()]), Arc::clone(self));
        let found = self.kept.get(key, || async move {
            let evaluated = tokio::time::timeout(PATIENCE, roles.evaluate(claims)).await.ok().flatten();
            let value = evaluated.ok_or(GrantError::Unfinished)?;
            Ok(Given { value, lifetime: Some(Duration::MAX) })
        });
        found.await.inspect_err(|error| tracing::warn!(%error, "the role of a caller cannot be found")).ok()?
    }

    /// The role for claims, once it is their turn. Nothing when that cannot be told.
    async fn evaluate(self: Arc<Self>, claims: Value) -> Option<Option<Arc<str>>> {
        let turn = Arc::clone(&self.turns).acquire_owned().await.ok()?;
        let (tell, told) = tokio::sync::oneshot::channel();
        in_large_stack(move || {
            let found = claims.as_object().and_then(|claims| self.find(claims));
            // The turn ends with the thread, also when nobody waits for it any more.
            drop(turn);
            tell.send(found)
        })?;
        told.await.ok()
    }

    fn find(&self, claims: &Map<String, Value>) -> Option<Arc<str>> {
        let fits = |test: &Test| match test {
            Test::Claim(value) => match claims.get(&self.claim) {
                Some(Value::Array(values)) => values.iter().any(|it| it.as_str() == Some(value)),
                Some(Value::Object(members)) => members.contains_key(value),
                _ => false,
            },
            Test::Matcher(matcher) => matcher.is_true(claims),
        };
        let found = self.mappings.iter().find(|(test, _)| fits(test)).map(|(_, role)| role);
        found.or(self.fallback.as_ref()).cloned()
    }
}

/// Whether a text names a role, in any partition.
fn is_role(text: &str) -> bool {
    let parts: Vec<&str> = text.splitn(6, ':').collect();
    let [arn, partition, service, region, account, resource] = parts[..] else { return false };
    let name = resource.strip_prefix("role/").unwrap_or_default();
    (arn, service, region) == ("arn", "iam", "")
        && !partition.is_empty()
        && account.len() == 12
        && account.bytes().all(|digit| digit.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arn(name: &str) -> String {
        format!("arn:aws:iam::123456789012:role/{name}")
    }

    fn mapping(test: RoleTest, name: &str, priority: Option<i64>) -> RoleMapping {
        RoleMapping { test, role: arn(name), priority }
    }

    fn claim(value: &str) -> RoleTest {
        RoleTest::Claim(value.to_owned())
    }

    async fn found(mappings: Vec<RoleMapping>, fallback: &str, mut claims: Value) -> Option<String> {
        claims["sub"] = json!("ann");
        let Value::Object(claims) = claims else { panic!("{claims} are no claims") };
        let identity = Arc::new(Identity::from_claims(claims, "t").unwrap());
        let fallback = if fallback.is_empty() { String::new() } else { arn(fallback) };
        let roles = Arc::new(Roles::new("groups".to_owned(), mappings, fallback).unwrap());
        let role = roles.of(&identity).await?;
        Some(role.rsplit('/').next().unwrap().to_owned())
    }

    #[tokio::test]
    async fn auth_trap_21_a_value_is_compared_and_never_part_of_an_expression() {
        for (value, groups, fits) in [
            ("admins", json!(["users", "admins"]), true),
            ("admins", json!(["admin"]), false),
            // A text is no list, and what is in it does not count.
            ("admins", json!("admins"), false),
            ("admins", json!(null), false),
            ("admins", json!({"admins": false}), true),
            ("7", json!([7]), false),
            ("' in claims.groups || true || '", json!(["x"]), false),
            ("') || ('a' == 'a", json!(["x"]), false),
            ("' in claims.groups || true || '", json!(["' in claims.groups || true || '"]), true),
        ] {
            let role = found(vec![mapping(claim(value), "r", None)], "", json!({"groups": groups})).await;
            assert_eq!(role.is_some(), fits, "{value} in {groups}");
        }
    }

    #[tokio::test]
    async fn auth_trap_22_the_lowest_number_wins_and_none_comes_last() {
        let everybody = || RoleTest::Matcher("true".to_owned());
        let all = |order: &[(&str, Option<i64>)]| {
            order.iter().map(|(name, priority)| mapping(everybody(), name, *priority)).collect::<Vec<_>>()
        };
        for (order, winner) in [
            (&[("a", None), ("b", Some(5)), ("c", Some(0))][..], "c"),
            (&[("a", None), ("b", None)], "a"),
            (&[("a", Some(1)), ("b", Some(1))], "a"),
            (&[("a", None), ("b", Some(i64::MAX))], "a"),
        ] {
            assert_eq!(found(all(order), "", json!({})).await.as_deref(), Some(winner), "{order:?}");
        }
        // What does not fit, or cannot be evaluated, leaves it to the next.
        let broken = mapping(RoleTest::Matcher("claims.missing.deep".to_owned()), "broken", Some(0));
        let fitting = mapping(claim("a"), "fits", Some(1));
        let claims = json!({"groups": ["a"]});
        assert_eq!(found(vec![broken.clone(), fitting], "", claims.clone()).await.as_deref(), Some("fits"));
        assert_eq!(found(vec![broken.clone()], "rest", claims.clone()).await.as_deref(), Some("rest"));
        assert_eq!(found(vec![broken], "", claims).await, None);
    }

    /// The threads of this process that evaluate something.
    fn evaluating() -> usize {
        let names = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        names.map(name).filter(|name| name.trim() == "cel").count()
    }

    #[tokio::test]
    async fn many_callers_share_a_few_threads_and_each_is_evaluated_once() {
        // Slow enough for all of them to be there at the same time.
        let slow = RoleTest::Matcher("!claims.l.exists(a, claims.l.exists(b, a + b == -1))".to_owned());
        let roles = Arc::new(Roles::new(String::new(), vec![mapping(slow, "r", None)], String::new()).unwrap());
        let numbers: Vec<usize> = (0..30).collect();
        let caller = |number: usize| {
            let claims = json!({"sub": format!("caller-{}", number % 16), "l": numbers});
            let Value::Object(claims) = claims else { panic!("{claims} are no claims") };
            (Arc::new(Identity::from_claims(claims, "t").unwrap()), Arc::clone(&roles))
        };
        let mut asking: tokio::task::JoinSet<_> = (0..32)
            .map(|number| {
                let (identity, roles) = caller(number);
                async move { roles.of(&identity).await.is_some() }
            })
            .collect();
        let mut most = 0;
        loop {
            most = most.max(evaluating());
            match asking.try_join_next() {
                Some(found) => assert!(found.unwrap()),
                None if asking.is_empty() => break,
                None => tokio::task::yield_now().await,
            }
        }
        // Other tests evaluate, too.
        assert!(most <= 3 * AT_ONCE, "{most}");
        assert_eq!(roles.turns.available_permits(), AT_ONCE);
    }

    #[test]
    fn roles_that_are_none_are_named() {
        let told = |mappings, fallback: &str| {
            Roles::new("groups".to_owned(), mappings, fallback.to_owned()).unwrap_err().to_string()
        };
        assert!(told(vec![], "").contains("neither"));
        for role in [
            "role/x",
            "arn:aws:iam::123:role/x",
            "arn:aws:s3::123456789012:role/x",
            "arn:aws:iam::123456789012:user/x",
            "arn:aws:iam::123456789012:role/",
            "arn::iam::123456789012:role/x",
            "arn:aws:iam:eu:123456789012:role/x",
            "arn:aws:iam::123456789012:role/a b",
        ] {
            assert!(told(vec![], role).contains(role), "{role}");
        }
        let mapping = |role: &str, matcher: &str| RoleMapping {
            test: RoleTest::Matcher(matcher.to_owned()),
            role: role.to_owned(),
            priority: None,
        };
        assert!(told(vec![mapping(&arn("x"), "true"), mapping("x", "true")], "").contains("role_mappings[1].role_arn"));
        assert!(told(vec![mapping(&arn("x"), "claims.")], "").contains("role_mappings[0].matcher is not a CEL"));
        assert!(is_role("arn:aws-cn:iam::123456789012:role/path/to/it"));
    }
}
