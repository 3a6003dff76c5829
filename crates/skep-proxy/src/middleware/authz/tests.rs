//! The layer as a whole, with a server that lists whatever it is told.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::SocketAddr;
use std::sync::LazyLock;

use http::{Request, Response};
use http_body_util::BodyExt as _;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use super::*;
use crate::body::Body;
use crate::limits::Limits;
use crate::listener::Peer;
use crate::middleware::layer::Destination;
use crate::upload::{Sent, Upload};

/// How messages and answers come.
#[derive(Debug, Clone, Copy, Default)]
struct Form {
    is_batch: bool,
    is_stream: bool,
}

impl Form {
    fn written(self, message: &str) -> String {
        if self.is_batch { format!("[{message}]") } else { message.to_owned() }
    }

    /// The first message of an answer.
    fn read(self, text: &str) -> Value {
        let data = text.lines().find_map(|line| line.strip_prefix("data: ")).filter(|_| self.is_stream);
        let said: Value = serde_json::from_str(data.unwrap_or(text)).unwrap_or_else(|_| panic!("{text}"));
        if self.is_batch { said[0].clone() } else { said }
    }
}

/// A server that answers everything with one result.
struct Server(String, Form);

impl Destination for Server {
    fn answer<'a>(&'a self, _exchange: Box<Exchange<'a>>) -> BoxFuture<'a, Answer> {
        let text = self.1.written(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}}}"#, self.0));
        let (kind, text) = if self.1.is_stream {
            ("text/event-stream", format!("event: message\ndata: {text}\n\n"))
        } else {
            ("application/json", text)
        };
        let answer = Response::builder().header("content-type", kind).body(Body::Full(text.into())).unwrap();
        std::future::ready(answer).boxed()
    }
}

/// Everything runs in one place, because connections to a decision point outlive one question.
fn run<T>(future: impl Future<Output = T>) -> T {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
    RUNTIME.block_on(future)
}

/// A decision point that decides by a hash of what it is asked about, and nothing else.
async fn decide_by_hash(listener: TcpListener) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::spawn(async move {
            let mut text = Vec::new();
            let asked: Value = loop {
                let mut part = [0; 4096];
                let read = stream.read(&mut part).await.unwrap();
                text.extend_from_slice(&part[..read]);
                let body = memchr::memmem::find(&text, b"\r\n\r\n").map_or(&[][..], |end| &text[end + 4..]);
                if let Ok(asked) = serde_json::from_slice(body) {
                    break asked;
                }
            };
            let mut hasher = DefaultHasher::new();
            asked["resource"].as_str().unwrap().hash(&mut hasher);
            let said = json!({"allow": hasher.finish().is_multiple_of(2)}).to_string();
            let head = format!("HTTP/1.1 200 x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", said.len());
            // Whoever goes away has heard enough.
            let _ = stream.write_all((head + &said).as_bytes()).await;
        });
    }
}

/// Asks that decision point.
fn asking() -> Authorizer {
    static PLACE: LazyLock<SocketAddr> = LazyLock::new(|| {
        run(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let place = listener.local_addr().unwrap();
            tokio::spawn(decide_by_hash(listener));
            place
        })
    });
    Authorizer::pdp(PdpSettings {
        url: format!("http://{}", *PLACE),
        timeout: None,
        is_unverified: false,
        tells_arguments: true,
        tells_operation: true,
        claims: ClaimMapping::Standard,
        server: "hive".to_owned(),
    })
    .unwrap()
}

/// What a caller gets for a message.
async fn answer(authorizer: &Authorizer, claims: &Value, message: &str, result: &str, form: Form) -> (u16, String) {
    let request = Request::builder().method("POST").uri("/mcp").header("content-type", "application/json");
    let upload = Upload::Read(Sent { text: form.written(message).into(), payload: None });
    let peer = Peer { address: ([127, 0, 0, 1], 1).into(), scheme: "http" };
    let limits = Limits::default();
    let exchange = Exchange::new(peer, request.body(upload).unwrap(), &limits);
    if let Some(identity) = Identity::from_claims(claims.as_object().unwrap().clone(), "") {
        exchange.notes().identify(Arc::new(identity));
    }
    let server = Server(result.to_owned(), form);
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

/// How something is listed, what it is known by there, how it is used, and by what.
const FEATURES: [(&str, &str, &str, &str); 3] = [
    ("tools", "name", "tools/call", "name"),
    ("prompts", "name", "prompts/get", "name"),
    ("resources", "uri", "resources/read", "uri"),
];

fn item(key: &str, name: &str, is_long: bool, hint: Option<bool>) -> String {
    let hint = hint.map(|hint| format!(r#","annotations":{{"readOnlyHint":{hint}}}"#)).unwrap_or_default();
    format!(r#"{{"{key}":{}{hint}}}"#, quoted(name, is_long))
}

const POLICIES: [&str; 8] = [
    r#"permit(principal, action == Action::"call_tool", resource) when { resource has readOnlyHint && resource.readOnlyHint };"#,
    r#"permit(principal, action, resource == Tool::"a");"#,
    r#"permit(principal in THVGroup::"g", action, resource) when { resource.name like "*b*" };"#,
    "forbid(principal, action, resource) when { resource has readOnlyHint && !resource.readOnlyHint };",
    r#"permit(principal, action, resource) when { context.claim_level == "high" };"#,
    r#"permit(principal, action == Action::"get_prompt", resource == Prompt::"a");"#,
    r#"permit(principal, action == Action::"read_resource", resource) when { resource.uri like "a*" };"#,
    r#"permit(principal, action, resource in MCP::"hive") unless { resource.name == "" };"#,
];

/// What a server has: names, whether the server and the caller write them in the long way, and whether they only read.
type Things = BTreeMap<String, (bool, bool, Option<bool>)>;

fn things() -> impl Strategy<Value = Things> {
    let thing = (any::<bool>(), any::<bool>(), any::<Option<bool>>());
    proptest::collection::btree_map("[ab\"\\\\é☃𝄞 ]{1,4}", thing, 1..5)
}

/// Checks that who sees a thing may use it, and who may use it sees it.
fn agree(
    authorizer: &Authorizer,
    claims: &Value,
    (listed, key, method, param): (&str, &str, &str, &str),
    things: &Things,
    (form, is_given): (Form, bool),
) -> Result<(), TestCaseError> {
    let items: Vec<String> = things.iter().map(|(name, (is_long, _, hint))| item(key, name, *is_long, *hint)).collect();
    let page = format!(r#"{{"{listed}":[{}],"nextCursor":"x"}}"#, items.join(","));
    let list = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{listed}/list"}}"#);
    let (status, text) = run(answer(authorizer, claims, &list, &page, form));
    prop_assert_eq!(status, 200);
    let answered = form.read(&text);
    prop_assert_eq!(&answered["result"]["nextCursor"], "x");
    let shown = answered["result"][listed].as_array().unwrap().iter();
    let shown: Vec<&str> = shown.map(|thing| thing[key].as_str().unwrap()).collect();
    let given = if is_given { r#","arguments":{"path":"/a","list":[1],"id":1763238000000000}"# } else { "" };
    for (name, (_, is_long, _)) in things {
        let params = format!(r#"{{"{param}":{}{given}}}"#, quoted(name, *is_long));
        let call = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        let (status, _) = run(answer(authorizer, claims, &call, "{}", form));
        prop_assert_eq!(status == 200, shown.contains(&name.as_str()), "{}: {}", name, status);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Who sees a thing may use it, and who may use it sees it, however the server and the caller write its name, in which
    /// form they say it, and whatever it is given.
    #[test]
    fn lists_and_calls_agree(
        chosen in proptest::sample::subsequence(POLICIES.to_vec(), 1..=3),
        feature in proptest::sample::select(FEATURES.to_vec()),
        things in things(),
        level in proptest::option::of("high|low"),
        groups in proptest::sample::subsequence(vec!["g", "h"], 0..=2),
        (is_batch, is_stream, is_given) in any::<(bool, bool, bool)>(),
    ) {
        let policies = chosen.iter().map(|policy| (*policy).to_owned()).collect();
        let settings = CedarSettings { policies, server: "hive".to_owned(), ..CedarSettings::default() };
        let authorizer = Authorizer::cedar(settings).unwrap();
        let mut claims = json!({"sub": "u", "groups": groups});
        if let Some(level) = level {
            claims["level"] = json!(level);
        }
        agree(&authorizer, &claims, feature, &things, (Form { is_batch, is_stream }, is_given))?;
    }

    /// The same where somebody else decides.
    #[test]
    fn lists_and_calls_agree_before_a_decision_point(
        feature in proptest::sample::select(FEATURES.to_vec()),
        things in things(),
        (is_batch, is_stream, is_given) in any::<(bool, bool, bool)>(),
    ) {
        agree(&asking(), &json!({"sub": "u"}), feature, &things, (Form { is_batch, is_stream }, is_given))?;
    }
}

#[test]
fn a_list_that_is_asked_for_without_an_id_is_filtered() {
    let policies = vec![r#"permit(principal, action, resource == Tool::"a");"#.to_owned()];
    let authorizer = Authorizer::cedar(CedarSettings { policies, ..CedarSettings::default() }).unwrap();
    let (list, page) = (r#"{"jsonrpc":"2.0","method":"tools/list"}"#, r#"{"tools":[{"name":"a"},{"name":"b"}]}"#);
    for (is_batch, is_stream) in [(false, false), (false, true), (true, false), (true, true)] {
        let form = Form { is_batch, is_stream };
        let (status, text) = run(answer(&authorizer, &json!({"sub": "u"}), list, page, form));
        assert_eq!(status, 200, "{form:?}: {text}");
        assert_eq!(form.read(&text)["result"], json!({"tools": [{"name": "a"}]}), "{form:?}");
        // What is no list is nothing that may be shown either.
        for result in [r#"{"items":[{"name":"b"}]}"#, r#"[{"name":"b"}]"#, r#""b""#] {
            let (_, text) = run(answer(&authorizer, &json!({"sub": "u"}), list, result, form));
            assert!(text.contains("-32603") && !text.contains(r#""b""#), "{form:?}: {text}");
        }
    }
}

#[test]
fn the_log_repeats_no_secrets_of_an_address() {
    let (id, told_id) = ("https://ann:s@h/doc?token=s&page=2", "https://h/doc?token=[REDACTED]&page=2");
    let reason = format!("a policy cannot be evaluated: `Resource::\"{id}\"` has no attribute `x`");
    let expected = (told_id.to_owned(), reason.replace(id, told_id));
    assert_eq!(told(id, &reason), expected);
    assert_eq!(told("weigh", "no policy permits it"), ("weigh".to_owned(), "no policy permits it".to_owned()));
    let (name, reason) = told(&"é".repeat(1 << 20), &"é".repeat(1 << 20));
    assert_eq!((name.chars().count(), reason.chars().count()), (LONGEST_NAME, LONGEST_REASON));
}

#[test]
fn nobody_sees_or_calls_anything_without_a_name() {
    let policies = vec!["permit(principal, action, resource);".to_owned()];
    let authorizer = Authorizer::cedar(CedarSettings { policies, ..CedarSettings::default() }).unwrap();
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let (_, text) = run(answer(&authorizer, &json!({}), list, r#"{"tools":[{"name":"a"}]}"#, Form::default()));
    assert_eq!(text, r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#);
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a"}}"#;
    let (status, text) = run(answer(&authorizer, &json!({}), call, "{}", Form::default()));
    assert_eq!(status, 403);
    assert_eq!(text, r#"{"jsonrpc":"2.0","id":7,"error":{"code":403,"message":"Unauthorized"}}"#);
}
