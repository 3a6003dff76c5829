//! The layer as a whole, with a server that lists whatever it is told.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::body::Body;
use crate::limits::Limits;
use crate::listener::Peer;
use crate::middleware::layer::Destination;
use crate::upload::{Sent, Upload};

/// A server that answers everything with one page of tools.
struct Server(String);

impl Destination for Server {
    fn answer(&self, _peer: Peer, _request: Request<Upload>) -> BoxFuture<'_, Answer> {
        let answer = Response::builder().header("content-type", "application/json");
        let answer = answer.body(Body::Full(self.0.clone().into())).unwrap();
        std::future::ready(answer).boxed()
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// What a caller gets for a message.
async fn answer(authorizer: &Authorizer, claims: &Value, message: &str, page: &str) -> (u16, String) {
    let request = Request::builder().method("POST").uri("/mcp").header("content-type", "application/json");
    let upload = Upload::Read(Sent { text: Bytes::copy_from_slice(message.as_bytes()), payload: None });
    let peer = Peer { address: ([127, 0, 0, 1], 1).into(), scheme: "http" };
    let limits = Limits::default();
    let exchange = Exchange::new(peer, request.body(upload).unwrap(), &limits);
    if let Some(identity) = Identity::from_claims(claims.as_object().unwrap().clone(), "") {
        exchange.notes().identify(Arc::new(identity));
    }
    let server = Server(format!(r#"{{"jsonrpc":"2.0","id":1,"result":{page}}}"#));
    let answer = authorizer.pass(exchange, Next::new(&[], &server)).await;
    let (parts, body) = answer.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (parts.status.as_u16(), String::from_utf8(body.to_vec()).unwrap())
}

/// A string as JSON, with every letter written in the long way or none.
fn quoted(text: &str, is_long: bool) -> String {
    if !is_long {
        return skep_mcp::json::quote(text);
    }
    let escaped: Vec<String> = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
    format!("\"{}\"", escaped.concat())
}

fn tool(name: &str, is_long: bool, hint: Option<bool>) -> String {
    let hint = hint.map(|hint| format!(r#","annotations":{{"readOnlyHint":{hint}}}"#)).unwrap_or_default();
    format!(r#"{{"name":{}{hint}}}"#, quoted(name, is_long))
}

const POLICIES: [&str; 6] = [
    r#"permit(principal, action == Action::"call_tool", resource) when { resource has readOnlyHint && resource.readOnlyHint };"#,
    r#"permit(principal, action, resource == Tool::"a");"#,
    r#"permit(principal in THVGroup::"g", action, resource) when { resource.name like "*b*" };"#,
    "forbid(principal, action, resource) when { resource has readOnlyHint && !resource.readOnlyHint };",
    r#"permit(principal, action, resource) when { context.claim_level == "high" };"#,
    r#"permit(principal, action, resource in MCP::"hive") unless { resource.name == "" };"#,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Who sees a tool may call it, and who may call it sees it, however the server and the caller write its name.
    #[test]
    fn lists_and_calls_agree(
        chosen in proptest::sample::subsequence(POLICIES.to_vec(), 1..=3),
        tools in proptest::collection::btree_map("[ab\"\\\\é☃𝄞 ]{1,4}", (any::<bool>(), any::<bool>(), any::<Option<bool>>()), 1..5),
        level in proptest::option::of("high|low"),
        groups in proptest::sample::subsequence(vec!["g", "h"], 0..=2),
    ) {
        let policies = chosen.iter().map(|policy| (*policy).to_owned()).collect();
        let settings = CedarSettings { policies, server: "hive".to_owned(), ..CedarSettings::default() };
        let authorizer = Authorizer::cedar(settings).unwrap();
        let mut claims = json!({"sub": "u", "groups": groups});
        if let Some(level) = level {
            claims["level"] = json!(level);
        }
        let items: Vec<String> = tools.iter().map(|(name, (is_long, _, hint))| tool(name, *is_long, *hint)).collect();
        let page = format!(r#"{{"tools":[{}],"nextCursor":"x"}}"#, items.join(","));
        let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        let (status, text) = run(answer(&authorizer, &claims, list, &page));
        prop_assert_eq!(status, 200);
        let listed: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&listed["result"]["nextCursor"], "x");
        let shown: Vec<&str> = listed["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        for (name, (_, is_long, _)) in &tools {
            let call = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":{}}}}}"#, quoted(name, *is_long));
            let (status, _) = run(answer(&authorizer, &claims, &call, "{}"));
            prop_assert_eq!(status == 200, shown.contains(&name.as_str()), "{}: {}", name, status);
        }
    }
}

#[test]
fn nobody_sees_or_calls_anything_without_a_name() {
    let policies = vec!["permit(principal, action, resource);".to_owned()];
    let authorizer = Authorizer::cedar(CedarSettings { policies, ..CedarSettings::default() }).unwrap();
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let (_, text) = run(answer(&authorizer, &json!({}), list, r#"{"tools":[{"name":"a"}]}"#));
    assert_eq!(text, r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#);
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a"}}"#;
    let (status, text) = run(answer(&authorizer, &json!({}), call, "{}"));
    assert_eq!(status, 403);
    assert_eq!(text, r#"{"jsonrpc":"2.0","id":7,"error":{"code":403,"message":"Unauthorized"}}"#);
}
