//! Policies by the resource that they are about, so that a question is put to those only that can have something to say.
//!
//! A policy whose scope names one resource says nothing about any other. Cedar finds that out itself, policy by policy and
//! each time anew; a scope comes before all conditions and cannot fail, so that the answer is the same.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use cedar_policy::{EntityUid, Policy, PolicySet, ResourceConstraint};

use super::spellings::Spellings;
use super::{CedarError, Denied};

/// So many policies are held for single resources at most. With more of them, every question is put to all policies.
const MOST: usize = 10_000;

/// The policies.
#[derive(Debug)]
pub(super) struct Slices {
    /// Those about more than one resource, or all of them.
    general: Slice,
    /// The same, and those about one resource.
    special: HashMap<EntityUid, Slice>,
    /// How all of them spell arguments.
    spellings: Spellings,
}

/// Some of the policies.
#[derive(Debug, Clone, Default)]
struct Slice {
    policies: PolicySet,
    spellings: Spellings,
}

impl Slice {
    fn new(policies: &[&Policy]) -> Result<Self, CedarError> {
        let mut slice = Self::default();
        policies.iter().try_for_each(|policy| slice.add(policy))?;
        Ok(slice)
    }

    fn add(&mut self, policy: &Policy) -> Result<(), CedarError> {
        self.spellings.add(policy);
        self.policies.add(policy.clone()).map_err(|error| CedarError::Together(error.to_string()))
    }
}

impl Slices {
    pub(super) fn new(policies: &[Policy]) -> Result<Self, CedarError> {
        Self::holding(policies, MOST)
    }

    fn holding(policies: &[Policy], most: usize) -> Result<Self, CedarError> {
        let mut spellings = Spellings::default();
        for policy in policies {
            spellings.add(policy);
        }
        let (special, general): (Vec<_>, Vec<_>) = policies.iter().partition(|policy| resource(policy).is_some());
        let resources: HashSet<EntityUid> = special.iter().filter_map(|policy| resource(policy)).collect();
        if special.len() + general.len() * resources.len() > most {
            let all: Vec<&Policy> = policies.iter().collect();
            return Ok(Self { general: Slice::new(&all)?, special: HashMap::new(), spellings });
        }
        let general = Slice::new(&general)?;
        let mut slices: HashMap<EntityUid, Slice> = HashMap::new();
        for policy in special {
            if let Some(resource) = resource(policy) {
                slices.entry(resource).or_insert_with(|| general.clone()).add(policy)?;
            }
        }
        Ok(Self { general, special: slices, spellings })
    }

    /// The policies that can have something to say about a resource.
    pub(super) fn about(&self, resource: &EntityUid) -> &PolicySet {
        &self.slice(resource).policies
    }

    /// Refuses arguments that these policies would overlook, because they spell them in another way.
    pub(super) fn check_spelling(
        &self,
        arguments: &[(Cow<'_, str>, &str)],
        resource: impl FnOnce() -> EntityUid,
    ) -> Result<(), Denied> {
        // What none of all policies would overlook is overlooked by none of some, and that is what most calls have.
        if self.spellings.check(arguments).is_ok() {
            return Ok(());
        }
        self.slice(&resource()).spellings.check(arguments)
    }

    fn slice(&self, resource: &EntityUid) -> &Slice {
        self.special.get(resource).unwrap_or(&self.general)
    }
}

/// The one resource that a policy is about.
fn resource(policy: &Policy) -> Option<EntityUid> {
    match policy.resource_constraint() {
        ResourceConstraint::Eq(resource) => Some(resource),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use cedar_policy::{Authorizer, Context, Entities, Request};

    use super::*;

    const POLICIES: [&str; 8] = [
        "permit(principal, action, resource);",
        r#"permit(principal == Client::"ann", action, resource == Tool::"a");"#,
        r#"permit(principal, action, resource == Tool::"b") when { context.x == 1 };"#,
        r#"permit(principal, action, resource in MCP::"hive");"#,
        "permit(principal, action, resource is Tool) when { context.y == 1 };",
        r#"forbid(principal == Client::"bob", action, resource == Tool::"a");"#,
        r#"forbid(principal, action, resource) when { resource == Tool::"b" };"#,
        r#"forbid(principal, action, resource == Prompt::"a") unless { context.absent };"#,
    ];

    fn chosen(choice: usize) -> Vec<Policy> {
        let chosen = POLICIES.iter().enumerate().filter(|(index, _)| choice & (1 << index) != 0);
        chosen
            .map(|(index, text)| Policy::parse(Some(cedar_policy::PolicyId::new(index.to_string())), text).unwrap())
            .collect()
    }

    /// What all of some policies say, and whether one of them fails.
    fn answers(slices: &Slices) -> Vec<(cedar_policy::Decision, usize)> {
        let mut answers = Vec::new();
        for principal in [r#"Client::"ann""#, r#"Client::"bob""#] {
            for resource in [r#"Tool::"a""#, r#"Tool::"b""#, r#"Tool::"c""#, r#"Prompt::"a""#] {
                let resource: EntityUid = resource.parse().unwrap();
                let context = Context::from_json_value(serde_json::json!({"x": 1}), None).unwrap();
                let action = r#"Action::"call_tool""#.parse().unwrap();
                let request =
                    Request::new(principal.parse().unwrap(), action, resource.clone(), context, None).unwrap();
                let said = Authorizer::new().is_authorized(&request, slices.about(&resource), &Entities::empty());
                answers.push((said.decision(), said.diagnostics().errors().count()));
            }
        }
        answers
    }

    #[test]
    fn slices_say_what_all_policies_say() {
        for choice in 0..1 << POLICIES.len() {
            let whole = Slices::holding(&chosen(choice), 0).unwrap();
            let slices = Slices::new(&chosen(choice)).unwrap();
            assert_eq!(answers(&slices), answers(&whole), "{choice:b}");
        }
    }

    #[test]
    fn a_question_is_put_to_those_policies_that_it_concerns() {
        let slices = Slices::new(&chosen(usize::MAX)).unwrap();
        let asked = |resource: &str| slices.about(&resource.parse().unwrap()).num_of_policies();
        assert_eq!([r#"Tool::"a""#, r#"Tool::"b""#, r#"Tool::"c""#].map(asked), [6, 5, 4]);
        let whole = Slices::holding(&chosen(usize::MAX), POLICIES.len()).unwrap();
        assert_eq!(whole.about(&r#"Tool::"c""#.parse().unwrap()).num_of_policies(), POLICIES.len());
    }

    #[test]
    fn how_a_policy_about_another_resource_spells_an_argument_does_not_matter() {
        let policy = r#"forbid(principal, action, resource == Tool::"a") when { context has arg_path };"#;
        let policies = [Policy::parse(None, policy).unwrap()];
        let is_good = |slices: &Slices, name: &str, resource: &str| {
            slices.check_spelling(&[(name.into(), "1")], || resource.parse().unwrap()).is_ok()
        };
        let slices = Slices::new(&policies).unwrap();
        for (name, resource, expected) in [
            ("path", r#"Tool::"a""#, true),
            ("Path", r#"Tool::"a""#, false),
            ("Path", r#"Tool::"b""#, true),
            ("Path", r#"Prompt::"a""#, true),
        ] {
            assert_eq!(is_good(&slices, name, resource), expected, "{name} of {resource}");
        }
        // Where there are too many, all of them count.
        assert!(!is_good(&Slices::holding(&policies, 0).unwrap(), "Path", r#"Tool::"b""#));
    }
}
