use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::middleware::authz::hints::Known as Listed;

fn settings(policies: &[&str]) -> CedarSettings {
    let policies = policies.iter().map(|policy| (*policy).to_owned()).collect();
    CedarSettings { policies, server: "hive".to_owned(), ..CedarSettings::default() }
}

fn claims(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap()
}

fn ask(cedar: &Cedar, claims_of: &Value, question: &Question<'_>, hints: Hints) -> Result<bool, Denied> {
    let caller = Caller { claims: Some(claims(claims_of)), ..Caller::default() };
    let told = arguments::told(&cedar.looked_at(question)?)?;
    cedar.decide(&cedar.principal(caller)?, question, told, hints).map(|verdict| verdict.is_ok())
}

/// Whether somebody may call the tool `weigh` with these arguments.
fn decide(settings: CedarSettings, claims: &Value, arguments: &[(&str, &'static str)]) -> Result<bool, Denied> {
    let arguments = arguments.iter().map(|(name, json)| ((*name).into(), *json)).collect();
    let question = Question { arguments, ..Question::about(Feature::Tool, "weigh") };
    ask(&Cedar::new(settings).unwrap(), claims, &question, Hints::default())
}

fn permits(condition: &str, claims: &Value, arguments: &[(&str, &'static str)]) -> bool {
    let policy = format!("permit(principal, action, resource) when {{ {condition} }};");
    decide(settings(&[&policy]), claims, arguments).unwrap_or_else(|reason| panic!("{condition}: {reason}"))
}

#[test]
fn policies_see_the_caller_the_action_and_the_resource() {
    let caller = json!({"sub": "ann", "email": "ann@hive", "level": 3, "groups": ["keepers"], "a": {"b": [true]}});
    for condition in [
        r#"principal == Client::"ann""#,
        r#"principal.claim_email == "ann@hive" && context.claim_email == "ann@hive""#,
        r#"principal.claim_level == decimal("3.0")"#,
        r#"principal in THVGroup::"keepers""#,
        "principal.claim_a.b.contains(true)",
        r#"action == Action::"call_tool" && action.operation == "call_tool""#,
        r#"resource == Tool::"weigh" && resource in MCP::"hive""#,
        r#"resource.name == "weigh" && resource.operation == "call" && resource.feature == "tool""#,
        r#"context.arg_hive == "north" && resource.arg_hive == "north""#,
        r#"context.arg_limit.lessThan(decimal("10.5")) && context.arg_dry && context.arg_list_present"#,
        "!(context has arg_list) && !(context has claim_absent)",
    ] {
        let arguments = [("hive", r#""north""#), ("limit", "1e1"), ("dry", "true"), ("list", "[1]")];
        assert!(permits(condition, &caller, &arguments), "{condition}");
    }
}

#[test]
fn prompts_and_resources_have_actions_of_their_own() {
    let policy = |action: &str| format!(r#"permit(principal, action == Action::"{action}", resource);"#);
    for (action, feature) in
        [("call_tool", Feature::Tool), ("get_prompt", Feature::Prompt), ("read_resource", Feature::Resource)]
    {
        let cedar = Cedar::new(settings(&[&policy(action)])).unwrap();
        for asked in Feature::ALL {
            let answer = ask(&cedar, &json!({"sub": "u"}), &Question::about(asked, "x"), Hints::default());
            assert_eq!(answer, Ok(asked == feature), "{action}");
        }
    }
}

#[test]
fn trap_48_resources_are_known_by_their_exact_addresses() {
    let policy =
        r#"permit(principal, action, resource == Resource::"file:///a/b") when { resource.uri == "file:///a/b" };"#;
    let cedar = Cedar::new(settings(&[policy])).unwrap();
    let may = |uri| ask(&cedar, &json!({"sub": "u"}), &Question::about(Feature::Resource, uri), Hints::default());
    assert_eq!(may("file:///a/b"), Ok(true));
    for other in ["file:///a_b", "file:///a/b/", "FILE:///a/b", "file:///a%2Fb", "file:///a/b\u{0}", "\"file:///a/b\""]
    {
        assert_eq!(may(other), Ok(false), "{other}");
    }
}

#[test]
fn trap_49_hints_come_from_the_server_and_overwrite_nothing() {
    let known = Listed::default();
    let page = r#"{"tools":[{"name":"weigh","annotations":{"readOnlyHint":true,"name":true,"operation":true}}]}"#;
    known.learn(skep_mcp::catalog::Catalog::read(skep_mcp::catalog::CatalogKind::Tools, page).unwrap().items());
    let policy = r#"permit(principal, action, resource)
        when { resource.readOnlyHint && resource.name == "weigh" && resource.operation == "call" };"#;
    let cedar = Cedar::new(settings(&[policy])).unwrap();
    let question = Question::about(Feature::Tool, "weigh");
    assert_eq!(ask(&cedar, &json!({"sub": "u"}), &question, known.of("weigh")), Ok(true));
    // A caller cannot bring them along: an argument is never an attribute under its own name.
    let spoofed = Question { arguments: vec![("readOnlyHint".into(), "true")], ..question };
    assert!(matches!(ask(&cedar, &json!({"sub": "u"}), &spoofed, Hints::default()), Err(Denied::Evaluation(_))));
}

#[test]
fn a_policy_that_cannot_be_evaluated_denies_whatever_others_permit() {
    let all = "permit(principal, action, resource);";
    let broken = r#"forbid(principal, action, resource) when { context.claim_absent == "x" };"#;
    assert_eq!(decide(settings(&[all]), &json!({"sub": "u"}), &[]), Ok(true));
    let answer = decide(settings(&[all, broken]), &json!({"sub": "u"}), &[]);
    assert!(matches!(&answer, Err(Denied::Evaluation(told)) if told.contains("policy1")), "{answer:?}");
}

#[test]
fn whoever_has_no_name_may_nothing() {
    let all = || Cedar::new(settings(&["permit(principal, action, resource);"])).unwrap();
    assert_eq!(all().principal(Caller::default()).err(), Some(Denied::NoCaller));
    for nobody in [json!({}), json!({"sub": ""}), json!({"sub": 7})] {
        let caller = Caller { claims: Some(claims(&nobody)), ..Caller::default() };
        assert_eq!(all().principal(caller).err(), Some(Denied::NoSubject));
    }
}

#[test]
fn what_cannot_be_told_about_a_call_denies_it() {
    let all = "permit(principal, action, resource);";
    let answer = decide(settings(&[all]), &json!({"sub": "u"}), &[("x", r#""\ud800""#)]);
    assert_eq!(answer, Err(Denied::Argument("x".to_owned())));
    // Whether something is there cannot be said by another argument, whichever comes first.
    for arguments in [[("x", "[1]"), ("x_present", "false")], [("x_present", "false"), ("x", "[1]")]] {
        let answer = decide(settings(&[all]), &json!({"sub": "u"}), &arguments);
        assert_eq!(answer, Err(Denied::Argument(arguments[1].0.to_owned())));
    }
}

/// Servers that do not care about capitals take `Hive` for `hive`.
#[test]
fn an_argument_in_other_capitals_does_not_evade_a_forbid() {
    let all = "permit(principal, action, resource);";
    let forbid = r#"forbid(principal, action == Action::"call_tool", resource == Tool::"weigh")
        when { context has arg_hive && context.arg_hive != "north" };"#;
    let cedar = Cedar::new(settings(&[all, forbid])).unwrap();
    let ann = cedar.caller(&Identity::from_claims(claims(&json!({"sub": "ann"})).clone(), "t").unwrap()).unwrap();
    let may = |feature: Feature, id: &str, arguments: &[(&'static str, &'static str)]| {
        let arguments = arguments.iter().map(|(name, json)| ((*name).into(), *json)).collect();
        let question = Question { arguments, ..Question::about(feature, id) };
        cedar.allows(&ann, &question, Hints::default()).map(|verdict| verdict.is_ok())
    };
    let overlooked = |given: &str| Err(Denied::Capitals { given: given.to_owned(), known: "hive".to_owned() });
    // Twice, because the second time everything was decided before.
    for _ in 0..2 {
        assert_eq!(may(Feature::Tool, "weigh", &[]), Ok(true));
        assert_eq!(may(Feature::Tool, "weigh", &[("hive", r#""north""#)]), Ok(true));
        assert_eq!(may(Feature::Tool, "weigh", &[("hive", r#""south""#)]), Ok(false));
        assert_eq!(may(Feature::Tool, "weigh", &[("yard", "1"), ("Hive", r#""south""#)]), overlooked("Hive"));
        assert_eq!(may(Feature::Tool, "weigh", &[("HIVE", r#""north""#)]), overlooked("HIVE"));
        assert_eq!(may(Feature::Tool, "weigh", &[("hiVe", "[]")]), overlooked("hiVe"));
        // Other things may have an argument of that name.
        assert_eq!(may(Feature::Tool, "feed", &[("Hive", r#""south""#)]), Ok(true));
        assert_eq!(may(Feature::Prompt, "weigh", &[("Hive", r#""south""#)]), Ok(true));
    }
    let told = overlooked("Hive").err().map(|reason: Denied| reason.to_string());
    let expected = r#"the argument "Hive" differs only in capitals from "hive", which policies know as arg_hive"#;
    assert_eq!(told.as_deref(), Some(expected));
}

#[test]
fn nothing_is_made_of_arguments_that_no_policy_looks_at() {
    let names: Vec<String> = (0..100_000).map(|number| format!("a{number}")).collect();
    let values = ["1.5", "[]", r#""text""#];
    let arguments = names.iter().zip(values.into_iter().cycle()).map(|(name, json)| (name.as_str().into(), json));
    let question = Question { arguments: arguments.collect(), ..Question::about(Feature::Tool, "weigh") };
    let decided = |condition: &str| {
        let policy = format!("permit(principal, action, resource) when {{ {condition} }};");
        let cedar = Cedar::new(settings(&[&policy])).unwrap();
        let told = arguments::told(&cedar.looked_at(&question)?)?.len();
        Ok((told, ask(&cedar, &json!({"sub": "u"}), &question, Hints::default())?))
    };
    assert_eq!(decided(r#"context.arg_a99998 == "text" && resource.arg_a4_present"#), Ok((2, true)));
    assert_eq!(decided("true"), Ok((0, true)));
    // All of them would have to be told.
    assert_eq!(decided("context != {}"), Err(Denied::TooMany));
}

#[test]
fn a_number_that_is_too_large_for_policies_is_only_there() {
    let caller = json!({"sub": "u"});
    let large = [("id", "1763238000000000")];
    assert_eq!(decide(settings(&["permit(principal, action, resource);"]), &caller, &large), Ok(true));
    assert!(permits("context.arg_id_present && !(context has arg_id)", &caller, &large));
    let compares = r#"permit(principal, action, resource) when { context.arg_id.lessThan(decimal("10.0")) };"#;
    assert!(matches!(decide(settings(&[compares]), &caller, &large), Err(Denied::Evaluation(_))));
}

#[test]
fn configured_entities_are_joined_with_those_of_the_request() {
    let entities = json!([
        {"uid": {"type": "THVGroup", "id": "keepers"}, "attrs": {"floor": 2}, "parents": [{"type": "THVGroup", "id": "staff"}]},
        {"uid": {"type": "Client", "id": "ann"}, "attrs": {"desk": "north", "claim_email": "old"}, "parents": [{"type": "THVGroup", "id": "night"}]},
        {"uid": {"type": "Tool", "id": "weigh"}, "attrs": {"owner": "ann", "name": "forged"}, "parents": [{"type": "Shelf", "id": "scales"}]},
        {"uid": {"type": "Action", "id": "call_tool"}, "attrs": {"kind": "call"}, "parents": []},
    ])
    .to_string();
    let caller = json!({"sub": "ann", "email": "new", "groups": ["keepers"]});
    for condition in [
        r#"principal in THVGroup::"staff""#,
        r#"principal in THVGroup::"night" && principal in THVGroup::"keepers""#,
        r#"principal.desk == "north" && principal.claim_email == "new""#,
        r#"resource.owner == "ann" && resource.name == "weigh""#,
        r#"resource in Shelf::"scales" && resource in MCP::"hive""#,
        r#"action.kind == "call" && action.operation == "call_tool""#,
        r#"THVGroup::"keepers".floor == 2"#,
    ] {
        let policy = format!("permit(principal, action, resource) when {{ {condition} }};");
        let settings = CedarSettings { entities: entities.clone(), ..settings(&[&policy]) };
        assert_eq!(decide(settings, &caller, &[]), Ok(true), "{condition}");
    }
}

#[test]
fn the_tokens_of_an_upstream_provider_take_the_place_of_the_callers_own() {
    let upstream =
        CedarSettings { upstream_provider: "github".to_owned(), ..settings(&["permit(principal, action, resource);"]) };
    let cedar = Cedar::new(upstream).unwrap();
    let own = json!({"sub": "own"});
    let told = |access_token| {
        let principal = cedar.principal(Caller { claims: Some(claims(&own)), access_token, identity_token: None });
        principal.map(|principal| principal.staged.entity.uid().id().unescaped().to_owned())
    };
    assert_eq!(told(None), Err(Denied::NoUpstreamToken("github".to_owned())));
    assert_eq!(told(Some("opaque")), Ok("own".to_owned()));
    // {"alg":"none"}.{"sub":"octo"}
    assert_eq!(told(Some("eyJhbGciOiJub25lIn0.eyJzdWIiOiJvY3RvIn0.")), Ok("octo".to_owned()));
    assert_eq!(told(Some("e30.e30.e30")), Err(Denied::NoSubject));
    assert_eq!(told(Some("e30.x.e30")), Err(Denied::UpstreamToken));
}

#[test]
fn what_is_wrong_with_the_settings_is_told() {
    let told = |settings| Cedar::new(settings).unwrap_err().to_string();
    assert_eq!(told(settings(&[])), "cedar.policies must have at least one policy");
    assert!(
        told(settings(&["permit(principal, action, resource);", "permit("])).starts_with("cedar.policies[1] is no")
    );
    // A template is not a policy yet, and two policies are not one.
    assert!(told(settings(&["permit(principal == ?principal, action, resource);"])).starts_with("cedar.policies[0]"));
    assert!(
        told(settings(&["permit(principal, action, resource); forbid(principal, action, resource);"])).contains("[0]")
    );
    let all = "permit(principal, action, resource);";
    for entities in ["{}", "[{}]", "nothing"] {
        let bad = CedarSettings { entities: entities.to_owned(), ..settings(&[all]) };
        assert!(told(bad).starts_with("cedar.entities_json is no"), "{entities}");
    }
    for group_type in ["A::B", "1a", "a b"] {
        let bad = CedarSettings { group_type: group_type.to_owned(), ..settings(&[all]) };
        assert!(told(bad).contains("group_entity_type"), "{group_type}");
    }
}

proptest! {
    /// Also where a decision fails, and where policies look at some arguments only.
    #[test]
    fn what_was_decided_before_is_what_would_be_decided_now(
        asked in prop::collection::vec((0_usize..2, 0_usize..3, 0_usize..3, 0_usize..3, 0_usize..3), 1..60),
    ) {
        let all = "permit(principal, action, resource);";
        let looks = r#"forbid(principal == Client::"bob", action, resource == Tool::"b") when { context.arg_x == 1 };"#;
        let hinted = "forbid(principal, action, resource) when { resource has readOnlyHint && context has arg_y };";
        let cedar = Cedar::new(settings(&[all, looks, hinted])).unwrap();
        let callers = ["ann", "bob"].map(|name| {
            Arc::new(Identity::from_claims(claims(&json!({"sub": name})).clone(), "t").unwrap())
        });
        let listed = Listed::default();
        let page = r#"{"tools":[{"name":"c","annotations":{"readOnlyHint":true}}]}"#;
        listed.learn(skep_mcp::catalog::Catalog::read(skep_mcp::catalog::CatalogKind::Tools, page).unwrap().items());
        for (caller, tool, x, y, z) in asked {
            let values = [None, Some("1"), Some(r#""\ud800""#)];
            let named = [("x", values[x]), ("y", values[y.min(1)]), ("z", values[z])];
            let arguments = named.iter().filter_map(|(name, value)| Some(((*name).into(), (*value)?))).collect();
            let question = Question { arguments, ..Question::about(Feature::Tool, ["a", "b", "c"][tool]) };
            let hints = listed.of(&question.id);
            let identity = &callers[caller];
            let fresh = ask(&cedar, &Value::Object(identity.claims.clone()), &question, hints);
            let known = cedar.allows(&cedar.caller(identity).unwrap(), &question, hints);
            prop_assert_eq!(known.map(|verdict| verdict.is_ok()), fresh);
        }
    }
}
