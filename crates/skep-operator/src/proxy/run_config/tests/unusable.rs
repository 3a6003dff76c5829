//! What is said about documents that are complete, and that no proxy could run with.

use serde_json::{Value, json};

use super::super::BuildError;
use super::{Case, error, found, proxy, server};

fn invalid(case: &Value) -> String {
    let error = error(case);
    assert!(matches!(error, BuildError::Invalid(_)), "{error:?}");
    error.to_string()
}

#[test]
fn documents_that_no_proxy_can_run_with() {
    let tools = |tools: Value| found(server(&json!({ "toolConfigRef": { "name": "c" } })), "tools", &tools);
    let volume = |host: &str| {
        server(&json!({ "volumes": [{ "name": "v", "hostPath": host, "mountPath": "/m", "readOnly": true }] }))
    };
    let variable = |name: &str, value: &str| server(&json!({ "env": [{ "name": name, "value": value }] }));
    let plain =
        |name: &str, value: &str| proxy(&json!({ "headerForward": { "addPlaintextHeaders": { name: value } } }));
    let mut nameless = server(&json!({}));
    nameless["object"]["metadata"]["name"] = json!("");
    let mut host = server(&json!({}));
    host["settings"] = json!({ "host": "0.0.0.0 " });
    let bad_name =
        |name: &str| format!("spec.env[0].name {name:?} must not be empty and must not contain = or line breaks");
    let bad_volume = |volume: &str| {
        format!("volumes: {volume:?} must read host:mount or host:mount:ro; a path cannot be empty or contain a colon")
    };
    let bad_tool = |tool: &str| {
        format!("toolsFilter: the name {tool:?} must not be empty and must not contain commas or line breaks")
    };
    for (case, cause) in [
        (nameless, "name is required".to_owned()),
        (server(&json!({ "image": "" })), "spec.image is required".to_owned()),
        (proxy(&json!({ "remoteUrl": "" })), "spec.remoteUrl is required".to_owned()),
        (
            server(&json!({ "image": "--k8s-pod-patch={}" })),
            "spec.image \"--k8s-pod-patch={}\" must not begin with a hyphen: the proxy takes it for a flag".to_owned(),
        ),
        (
            plain("Bad Header", "v"),
            "spec.headerForward: \"Bad Header\" is no name of a header; use letters, digits and hyphens".to_owned(),
        ),
        (
            plain("X-Key", "hunter2\r\nX-Other: v"),
            "spec.headerForward.addPlaintextHeaders: the value of X-Key has characters that a header cannot hold, such as \
             line breaks"
                .to_owned(),
        ),
        (
            proxy(&json!({ "headerForward": { "addHeadersFromSecret": [
                { "headerName": "Host", "valueSecretRef": { "name": "s", "key": "k" } }] } })),
            "spec.headerForward: the header Host cannot be set: it says how a message travels, which the proxy decides"
                .to_owned(),
        ),
        (host, "host \"0.0.0.0 \" must not contain spaces".to_owned()),
        (server(&json!({ "proxyPort": 65536 })), "proxyPort 65536 is not between 1 and 65535".to_owned()),
        (server(&json!({ "transport": "sse", "mcpPort": -1 })), "mcpPort -1 is not between 1 and 65535".to_owned()),
        (variable("", "v"), bad_name("")),
        (variable("A=B", "v"), bad_name("A=B")),
        (variable("A\nB", "v"), bad_name("A\nB")),
        (variable("A", "hunter2\n"), "spec.env[0].value, that of A, must not contain line breaks".to_owned()),
        (volume(""), bad_volume(":/m:ro")),
        (volume("/a:b"), bad_volume("/a:b:/m:ro")),
        (tools(json!({ "toolsFilter": ["a", ""] })), bad_tool("")),
        (tools(json!({ "toolsFilter": ["a,b"] })), bad_tool("a,b")),
        (
            tools(json!({ "toolsOverride": { "": { "name": "a" } } })),
            "toolsOverride: the name of a tool must not be empty".to_owned(),
        ),
        (
            tools(json!({ "toolsOverride": { "a": { "name": "c" }, "b": { "name": "c" }, "d": { "description": "D." } } })),
            "toolsOverride: a and b are both to be shown as \"c\"; choose another name for one of them".to_owned(),
        ),
        (
            found(
                server(&json!({ "oidcConfigRef": { "name": "c", "audience": "a", "resourceUrl": "weather" } })),
                "oidc",
                &json!({ "type": "inline", "inline": { "issuer": "https://i" } }),
            ),
            "oidcConfigRef.resourceUrl \"weather\" is not a URL: relative URL without a base".to_owned(),
        ),
        (
            server(&json!({ "sessionStorage": { "provider": "redis", "address": "r:1", "keyPrefix": "thv" } })),
            "sessionStorage.keyPrefix \"thv\" must end with a colon".to_owned(),
        ),
    ] {
        assert_eq!(invalid(&case), format!("invalid RunConfig: {cause}"));
    }
    assert!(Case::read(&server(&json!({ "mcpPort": -1 }))).build().is_ok(), "stdio has no port");
    assert!(Case::read(&server(&json!({ "proxyPort": 0 }))).build().is_ok(), "no port is the usual port");
}
