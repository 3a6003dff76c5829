//! What holds for every input.

use proptest::prelude::*;
use serde_json::{Value, json};
use skep_api::config::run_config::RunConfig;

use super::super::{BuildError, config_map, inline_authz, needed_secrets};
use super::{Case, cases, found, proxy, server};

fn of_kind(kind: &str) -> Vec<Value> {
    cases::inputs().into_values().filter(|case| case["object"]["kind"] == kind).collect()
}

/// The options of several cases at once.
fn combined(names: &[prop::sample::Index], kind: &str) -> Value {
    let of_kind = of_kind(kind);
    let mut case = json!({});
    for name in names {
        json_patch::merge(&mut case, name.get(&of_kind));
    }
    case
}

fn bytes(case: &Case) -> Result<String, BuildError> {
    let inputs = case.inputs();
    let map = config_map(&inputs, &case.build()?);
    Ok(serde_json::to_string(&(map, inline_authz(&inputs))).unwrap())
}

/// Texts that a schema would not let through, too.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-z]{1,8}", "[ -~]{0,12}", "\\PC{0,6}", "[\r\n:=, ]{1,3}", "[0-9]{1,3}(ms|s|m)"]
}

/// Of two options one may forbid the other; most do not.
#[test]
fn pairs_of_options_mostly_go_together() {
    for kind in ["MCPServer", "MCPRemoteProxy"] {
        let cases = of_kind(kind);
        let (mut built, mut refused) = (0, 0);
        for one in &cases {
            for other in &cases {
                let mut case = one.clone();
                json_patch::merge(&mut case, other);
                let case = Case::read(&case);
                let first = bytes(&case);
                assert_eq!(first, bytes(&case));
                match first {
                    Ok(_) => built += 1,
                    Err(_) => refused += 1,
                }
            }
        }
        assert!(built > 4 * refused, "{kind}: {built} pairs were built, {refused} refused");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn equal_inputs_give_equal_bytes(
        names in prop::collection::vec(any::<prop::sample::Index>(), 1..6),
        kind in prop_oneof![Just("MCPServer"), Just("MCPRemoteProxy")],
    ) {
        let case = combined(&names, kind);
        let first = bytes(&Case::read(&case));
        prop_assert_eq!(&first, &bytes(&Case::read(&case)));
        if first.is_ok() {
            let config = Case::read(&case).build().unwrap();
            prop_assert_eq!(&RunConfig::from_json(&config.to_json()).unwrap(), &config);
            let types: Vec<&str> = config.middleware_configs.iter().map(|step| step.type_.as_str()).collect();
            prop_assert_eq!((types[0], types[types.len() - 1]), ("bodylimit", "recovery"));
        }
    }

    #[test]
    fn no_text_makes_a_build_panic(
        texts in prop::collection::vec(text(), 12),
        port in any::<i32>(),
        number in any::<i32>(),
        is_server in any::<bool>(),
    ) {
        let secret = json!({ "name": texts[0], "key": texts[1] });
        let spec = json!({
            "image": texts[0], "remoteUrl": texts[1], "proxyPort": port, "mcpPort": number,
            "env": [{ "name": texts[2], "value": texts[3] }],
            "volumes": [{ "name": "v", "hostPath": texts[4], "mountPath": texts[5] }],
            "permissionProfile": { "name": texts[6] },
            "sessionStorage": { "provider": "redis", "address": texts[7], "keyPrefix": texts[8] },
            "rateLimiting": { "shared": { "maxTokens": number, "refillPeriod": texts[9] } },
            "toolConfigRef": { "name": "c" }, "externalAuthConfigRef": { "name": "c" },
            "oidcConfigRef": { "name": "c", "audience": texts[10], "resourceUrl": texts[11] },
        });
        let case = if is_server { server(&spec) } else { proxy(&spec) };
        let case = found(case, "tools", &json!({ "toolsFilter": [texts[2]], "toolsOverride": { &texts[3]: { "name": texts[4] } } }));
        let case = found(case, "externalAuth", &json!({
            "type": "obo", "obo": { "cacheSkew": texts[9], "tenantId": texts[5], "clientSecretRef": secret },
        }));
        let case = found(case, "oidc", &json!({
            "type": "inline",
            "inline": { "issuer": texts[6], "caBundleRef": { "configMapRef": { "name": texts[7], "key": texts[8] } } },
        }));
        let case = Case::read(&case);
        needed_secrets(&case.inputs());
        if let Ok(config) = case.build() {
            prop_assert!((1..=65535).contains(&config.port));
            prop_assert!(config.env_vars.keys().all(|name| !name.is_empty() && !name.contains('=')));
        }
    }
}
