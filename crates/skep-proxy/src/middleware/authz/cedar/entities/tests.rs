use cedar_policy::{Authorizer, Context, Request};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::middleware::authz::cedar::{Caller, Cedar, CedarSettings, uid};
use crate::middleware::authz::hints::Hints;
use crate::middleware::authz::question::{Feature, Question};

fn cedar(policies: &[&str], entities: &Value) -> Cedar {
    let policies = policies.iter().map(|policy| (*policy).to_owned()).collect();
    Cedar::new(CedarSettings { policies, entities: entities.to_string(), ..CedarSettings::default() }).unwrap()
}

fn group(number: usize) -> Value {
    json!({"type": "THVGroup", "id": format!("g{number}")})
}

/// What Cedar is given for a question about the tool `weigh`.
fn given(cedar: &Cedar, claims: &Value) -> Entities {
    let principal = cedar.principal(Caller { claims: claims.as_object(), ..Caller::default() }).unwrap();
    let tool = cedar.stage.entity(&uid(&cedar.types.features[0], "weigh"), Attributes::new(), HashSet::new()).unwrap();
    cedar.stage.with(&[&principal.staged, &tool]).unwrap()
}

#[test]
fn cedar_is_given_what_a_question_can_lead_to_and_nothing_else() {
    let chain = |number: usize| {
        let parents = if number.is_multiple_of(10) { vec![] } else { vec![group(number - 1)] };
        json!({"uid": group(number), "attrs": {}, "parents": parents})
    };
    let mut entities: Vec<Value> = (0..1000).map(chain).collect();
    entities[7]["attrs"] = json!({"boss": {"__entity": group(21)}});
    let policies = [
        r#"permit(principal in THVGroup::"g500", action, resource);"#,
        r#"permit(principal, action, resource) when { THVGroup::"g42" in THVGroup::"g40" };"#,
    ];
    let cedar = cedar(&policies, &Value::Array(entities));
    // Three actions, the caller and the tool; what a condition names, and what that leads to.
    assert_eq!(given(&cedar, &json!({"sub": "ann"})).len(), 5 + 3);
    // Eight groups up to the first one, and two of the boss.
    assert_eq!(given(&cedar, &json!({"sub": "ann", "groups": ["g7"]})).len(), 5 + 3 + 8 + 2);
}

/// A group with the groups that it is in, and the one that it speaks about. Groups are in those that come after them only.
fn entity(kind: &Value, within: &[usize], boss: Option<usize>) -> Value {
    let parents: Vec<Value> = within.iter().map(|number| group(*number)).collect();
    let attributes =
        boss.map_or(json!({}), |boss| json!({"boss": {"__entity": group(boss)}, "all": [{"__entity": group(boss)}]}));
    json!({"uid": kind, "attrs": attributes, "parents": parents})
}

const CONDITIONS: [&str; 9] = [
    r#"principal in THVGroup::"g3""#,
    r#"principal has boss && principal.boss in THVGroup::"g4""#,
    "principal.boss.boss == principal",
    r#"principal has boss && principal.boss has boss && principal.boss.boss in THVGroup::"g5""#,
    r#"THVGroup::"g1" in THVGroup::"g4""#,
    r#"THVGroup::"g0".boss in resource"#,
    r#"resource in [THVGroup::"g2", THVGroup::"g5"]"#,
    r#"action in Action::"any" || (action has boss && action.boss in THVGroup::"g4")"#,
    r#"principal has all && principal.all.contains(THVGroup::"g2")"#,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn it_decides_as_if_it_were_given_everything(
        shape in prop::collection::vec((prop::collection::vec(0_usize..6, 0..3), prop::option::of(0_usize..6)), 9),
        groups in prop::collection::vec(0_usize..6, 0..3),
        condition in prop::sample::select(CONDITIONS.to_vec()),
    ) {
        let named = |kind: &str, id: &str| json!({"type": kind, "id": id});
        let known = [named("Client", "ann"), named("Tool", "weigh"), named("Action", "call_tool")];
        let mut entities: Vec<Value> = shape.iter().zip(&known).map(|((within, boss), kind)| entity(kind, within, *boss)).collect();
        for (number, (within, boss)) in shape[3..].iter().enumerate() {
            let later: Vec<usize> = within.iter().copied().filter(|other| *other > number).collect();
            entities.push(entity(&group(number), &later, *boss));
        }
        // Actions are in actions only.
        let is_any = shape[2].0.len() == 1;
        entities[2]["parents"] = if is_any { json!([named("Action", "any")]) } else { json!([]) };
        let entities = Value::Array(entities);
        let policy = format!("permit(principal, action, resource) when {{ {condition} }};");
        let cedar = cedar(&[&policy], &entities);
        let groups: Vec<String> = groups.iter().map(|number| format!("g{number}")).collect();
        let claims = json!({"sub": "ann", "groups": groups});
        let principal = cedar.principal(Caller { claims: claims.as_object(), ..Caller::default() }).unwrap();
        let question = Question::about(Feature::Tool, "weigh");
        let decided = cedar.decide(&principal, &question, Attributes::new(), Hints::default());

        let tool = uid(&cedar.types.features[0], "weigh");
        let resource = cedar.stage.entity(&tool, Attributes::new(), HashSet::new()).unwrap().entity;
        let action = uid(&cedar.types.action, "call_tool");
        let staged = cedar.stage.entity(&action, Attributes::new(), HashSet::new()).unwrap().entity;
        let all = Entities::from_json_value(entities, None).unwrap();
        let all = all.upsert_entities([principal.staged.entity.clone(), resource, staged], None).unwrap();
        let request = Request::new(principal.staged.entity.uid(), action, tool, Context::empty(), None).unwrap();
        let whole = Authorizer::new().is_authorized(&request, &policy.parse().unwrap(), &all);
        let failed = whole.diagnostics().errors().next().is_some();
        prop_assert_eq!(decided.is_err(), failed);
        let is_allowed = whole.decision() == cedar_policy::Decision::Allow;
        prop_assert!(failed || decided.is_ok_and(|verdict| verdict.is_ok()) == is_allowed);
    }
}
