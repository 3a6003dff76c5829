//! Lists in every form that a server may send them in.

use serde_json::{Value, json};
use skep_proxy::middleware::{Authentication, Authorizer, CedarSettings, Step};
use skep_proxy::transparent::Dialect;

use super::{Guarded, names, rules};
use crate::http::{Request, request};
use crate::transparent::server::{Seen, reply};

const LIST: &str =
    r#"{"jsonrpc":"2.0","id":5,"result":{"tools":[{"name":"secret"},{"name":"feed"}],"nextCursor":"n"}}"#;
const SHOWN: &str = r#"{"jsonrpc":"2.0","id":5,"result":{"tools":[{"name":"feed"}],"nextCursor":"n"}}"#;
const EVENTS: &str = "text/event-stream";

fn steps() -> Vec<Step> {
    vec![Step::ToolLists(rules(&["feed"], &[]))]
}

/// What a client gets that asks for a list, when the server answers so.
async fn told(steps: Vec<Step>, status: u16, kind: Option<&'static str>, body: impl Into<Vec<u8>>) -> (u16, String) {
    told_to(&request(5, "tools/list", &json!({})), steps, (status, kind), body).await
}

/// The same, for one who wants no answer. Some servers give one all the same, under whatever id.
async fn told_quietly(steps: Vec<Step>, kind: Option<&'static str>, body: impl Into<Vec<u8>>) -> String {
    told_to(&json!({"jsonrpc": "2.0", "method": "tools/list"}), steps, (200, kind), body).await.1
}

async fn told_to(
    message: &Value,
    steps: Vec<Step>,
    (status, kind): (u16, Option<&'static str>),
    body: impl Into<Vec<u8>>,
) -> (u16, String) {
    let body: Vec<u8> = body.into();
    let guarded = Guarded::new(steps, move |_| {
        let headers: Vec<_> = kind.map(|kind| ("content-type", kind)).into_iter().collect();
        reply(status, &headers, body.clone())
    })
    .await;
    let mut answer = guarded.send(Request::post(message)).await;
    (answer.status, answer.text().await)
}

fn refusal() -> Value {
    json!({"jsonrpc": "2.0", "id": 5, "error": {"code": -32603, "message": "internal error"}})
}

/// The list in all forms in which somebody may read one.
fn forms() -> Vec<(Option<&'static str>, String)> {
    vec![
        (Some("application/json"), LIST.to_owned()),
        (Some("Application/JSON; charset=utf-8"), LIST.to_owned()),
        (Some("application/json"), format!("\u{feff}{LIST}")),
        (Some("text/plain"), LIST.to_owned()),
        (Some("text/plain"), format!("\u{feff}\n {LIST}")),
        (None, LIST.to_owned()),
        (None, format!("data: {LIST}\n\n")),
        (Some("text/plain"), format!("event: message\r\ndata: {LIST}\r\n\r\n")),
        (Some("TEXT/Event-Stream"), format!("data: {LIST}\n\n")),
        (Some(EVENTS), format!("data: {LIST}\n")),
        (Some(EVENTS), format!("data: {LIST}")),
        (Some(EVENTS), format!("data:{LIST}\r\n\n")),
        (Some(EVENTS), format!("\u{feff}data: {LIST}\n\n")),
        (Some(EVENTS), format!("data: \u{a0}{LIST}\u{2003}\n\n")),
        (Some(EVENTS), format!("id: 7\nevent: odd\ndata: {LIST}\n\n")),
        (Some(EVENTS), format!("data: {}\n\n", LIST.replace(",\"result\"", ",\ndata: \"result\""))),
        (Some(EVENTS), format!("data: {}\n\n", LIST.replace("tools", r"t\u006fols"))),
        (Some(EVENTS), format!("data: [{LIST}]\n\n")),
        (Some("application/json"), format!("[{LIST}]")),
    ]
}

#[tokio::test]
async fn trap_42_no_form_of_a_list_shows_what_is_hidden() {
    for (kind, body) in forms() {
        for status in [200, 201] {
            let (told_status, text) = told(steps(), status, kind, body.clone()).await;
            assert!(!text.contains("secret") && text.contains("feed"), "{kind:?} {body:?}: {text:?}");
            assert_eq!(told_status, status, "{kind:?} {body:?}");
        }
        for body in [body.clone(), body.replace(r#""id":5"#, r#""id":null"#)] {
            let text = told_quietly(steps(), kind, body.clone()).await;
            assert!(!text.contains("secret"), "{kind:?} {body:?} to a notification: {text:?}");
        }
    }
}

#[tokio::test]
async fn trap_42_no_form_of_a_list_shows_what_policies_hide() {
    let cut = [
        format!("data: {}\n\n", LIST.replace(",\"result\"", ",\r\"result\"")),
        format!("data: {}\r\r{}\n\n", &LIST[..30], &LIST[30..]),
    ];
    for (kind, body) in forms().into_iter().chain(cut.map(|body| (Some(EVENTS), body))) {
        let policies = vec![r#"permit(principal, action, resource == Tool::"feed");"#.to_owned()];
        let authorizer = Authorizer::cedar(CedarSettings { policies, ..CedarSettings::default() }).unwrap();
        let steps =
            || vec![Step::Authenticate(Authentication::Anonymous), Step::Parse, Step::Authorize(authorizer.clone())];
        let (_, text) = told(steps(), 200, kind, body.clone()).await;
        assert!(!text.contains("secret"), "{kind:?} {body:?}: {text:?}");
        let is_plain = kind == Some("application/json") && body == LIST;
        assert!(!is_plain || text == SHOWN, "{text}");
        for body in [body.clone(), body.replace(r#""id":5"#, r#""id":null"#)] {
            let text = told_quietly(steps(), kind, body.clone()).await;
            assert!(!text.contains("secret"), "{kind:?} {body:?} to a notification: {text:?}");
        }
    }
}

#[tokio::test]
async fn an_answer_of_no_type_that_begins_with_nothing_but_space_is_not_held() {
    let (_, text) = told(steps(), 200, None, format!("{}{LIST}", " ".repeat(1000))).await;
    assert!(text.contains("feed") && !text.contains("secret"), "{text}");
    let (status, text) = told(steps(), 200, None, format!("{}{LIST}", " ".repeat(8 << 20))).await;
    assert_eq!((status, serde_json::from_str::<Value>(&text).unwrap()), (500, refusal()));
}

#[tokio::test]
async fn trap_43_what_cannot_be_read_for_sure_is_not_shown_at_all() {
    let nameless = LIST.replace(r#"{"name":"secret"}"#, r#"{"title":"secret"}"#);
    for (kind, body) in [
        ("application/json", LIST.replace("\"2.0\"", "\"1.0\"")),
        ("application/json", LIST.replace("\"id\":5", "\"id\":5,\"method\":\"x\"")),
        ("application/json", LIST.replace("\"id\":5", "\"id\":5,\"error\":{}")),
        ("application/json", LIST.replace("\"id\":5", "\"id\":{}")),
        ("application/json", LIST.replace(r#"[{"name":"secret"},{"name":"feed"}]"#, r#"{"a":{"name":"secret"}}"#)),
        ("application/json", LIST.replace("\"tools\"", "\"tools\":[],\"tools\"")),
        ("application/json", nameless.clone()),
        ("application/json", LIST.replace("\"secret\"}", "\"\"},{\"title\":\"secret\"}")),
        ("application/json", format!("{LIST} {LIST}")),
        ("application/json", LIST[..LIST.len() - 1].to_owned()),
        ("text/plain", format!("{LIST}x")),
    ] {
        let (status, text) = told(steps(), 200, Some(kind), body.clone()).await;
        assert_eq!((status, serde_json::from_str::<Value>(&text).unwrap()), (500, refusal()), "{body}");
    }
    for event in [
        format!("data: {nameless}\n\n"),
        format!("data: {LIST}{LIST}\n\n"),
        format!("data: 7 {LIST}\n\n"),
        // A line ends here for some clients, and not for others.
        format!("data: {}\n\n", LIST.replace(",\"result\"", ",\r\"result\"")),
        format!("event: odd\ndata: {}\n\n", LIST.replace("\"2.0\"", "2")),
    ] {
        let (status, text) = told(steps(), 200, Some(EVENTS), format!("{event}data: {LIST}\n\n")).await;
        let data: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
        assert_eq!((status, serde_json::from_str::<Value>(data[0]).unwrap()), (200, refusal()), "{event:?}");
        assert_eq!(data[1..], [SHOWN], "what comes after is still edited: {event:?}");
        assert!(!text.contains("odd"), "clients would ignore it: {text}");
    }
    let cut = format!("data: {}\r\r{}\n\n", &LIST[..30], &LIST[30..]);
    let (_, text) = told(steps(), 200, Some(EVENTS), cut).await;
    assert!(!text.contains("secret"), "{text}");
}

#[tokio::test]
async fn trap_44_a_failure_of_the_server_stays_one() {
    let failure = r#"{"jsonrpc":"2.0","id":5,"error":{"code":-32603,"message":"no \"tools\" and no \"result\""}}"#;
    assert_eq!(told(steps(), 500, Some("application/json"), failure).await, (500, failure.to_owned()));
    let (status, text) = told(steps(), 507, Some("application/json"), LIST.replace("\"2.0\"", "7")).await;
    assert_eq!((status, text.contains("secret")), (507, false));
    assert_eq!(told(steps(), 502, Some("text/html"), "<tools>").await, (502, "<tools>".to_owned()));
    assert_eq!(told(steps(), 200, Some("application/json"), "").await, (200, String::new()));
}

#[tokio::test]
async fn an_answer_that_is_packed_is_not_shown() {
    let guarded = Guarded::new(steps(), |seen| {
        assert_eq!(seen.header("accept-encoding"), None, "what is to be edited has to be readable");
        reply(200, &[("content-type", "application/json"), ("content-encoding", "gzip")], "packed")
    })
    .await;
    let post = Request::post(&request(5, "tools/list", &json!({}))).header("Accept-Encoding", "gzip");
    let mut answer = guarded.send(post.clone()).await;
    assert_eq!((answer.status, answer.json().await), (500, refusal()));
    // Whatever comes first.
    guarded.server.replace(|_| {
        let kind = ("content-type", "application/json");
        reply(200, &[kind, ("content-encoding", "identity"), ("content-encoding", "gzip")], LIST)
    });
    let mut answer = guarded.send(post).await;
    assert_eq!((answer.status, answer.json().await), (500, refusal()));
}

#[tokio::test]
async fn answers_to_other_requests_are_not_touched() {
    let text = r#"{"jsonrpc":"2.0","id":5, "result":{"tools":[{"name":"secret"}],"content":[]}}"#;
    let guarded = Guarded::new(steps(), move |_| reply(200, &[("content-type", "application/json")], text)).await;
    let mut answer = guarded.send(Request::post(&request(5, "tools/call", &json!({"name": "feed"})))).await;
    assert_eq!(answer.text().await, text);
}

#[tokio::test]
async fn a_list_on_a_stream_of_its_own_is_edited_and_the_rest_passes() {
    let other =
        ": alive\n\nevent: endpoint\ndata: /messages?id=1\n\nid: 4\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n";
    let stream = format!("{other}event: message\nid: 5\ndata: {LIST}\n\n");
    let guarded =
        Guarded::of(Dialect::Sse, steps(), move |_| reply(200, &[("content-type", EVENTS)], stream.clone())).await;
    let mut answer = guarded.send(Request::new("GET", "/sse").header("Accept", EVENTS)).await;
    assert_eq!(answer.text().await, format!("{other}id: 5\nevent: message\ndata: {SHOWN}\n\n"));
}

#[tokio::test]
async fn trap_45_two_filters_deliver_a_complete_list() {
    let (outer, inner) = (rules(&["feed"], &[]), rules(&["feed", "secret"], &[("feed", "", "Feeds.")]));
    for (kind, body) in [("application/json", LIST.to_owned()), (EVENTS, format!("data: {LIST}\n\n"))] {
        let steps = vec![Step::ToolLists(outer.clone()), Step::ToolLists(inner.clone())];
        let guarded = Guarded::new(steps, move |_| reply(200, &[("content-type", kind)], body.clone())).await;
        let mut answer = guarded.send(Request::post(&request(5, "tools/list", &json!({})))).await;
        let text = answer.text().await;
        let list: Value = serde_json::from_str(text.trim().trim_start_matches("data: ")).unwrap();
        assert_eq!(names(&list), ["feed"]);
        assert_eq!(list["result"]["tools"][0]["description"], "Feeds.");
    }
}

#[tokio::test]
async fn an_answer_that_comes_on_another_stream_passes_two_filters() {
    for said in ["", " \n"] {
        let steps = ["feed", "secret"].map(|tool| Step::ToolLists(rules(&[tool], &[]))).into();
        let guarded = Guarded::of(Dialect::Sse, steps, move |_| reply(202, &[], said)).await;
        let list = request(5, "tools/list", &json!({})).to_string();
        let post = Request::new("POST", "/messages?id=1").header("Content-Type", "application/json").body(list);
        let mut answer = guarded.send(post).await;
        assert_eq!((answer.status, answer.text().await.as_str()), (202, said));
    }
}

#[tokio::test]
async fn what_is_no_list_is_not_shown_to_those_who_asked_for_one() {
    for result in [
        json!({}),
        json!({"Tools": [{"name": "secret"}]}),
        json!({"tools": [{"name": "feed"}], "TOOLS": [{"name": "secret"}]}),
        json!({"items": [{"name": "secret"}]}),
        json!([{"name": "secret"}]),
        json!("secret"),
    ] {
        for (kind, is_event) in [("application/json", false), ("text/event-stream", true)] {
            let told = json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string();
            let told = if is_event { format!("event: message\ndata: {told}\n\n") } else { told };
            let answer = move |_: &Seen| reply(200, &[("content-type", kind)], told.clone());
            let guarded = Guarded::new(vec![Step::ToolLists(rules(&["feed"], &[]))], answer).await;
            let mut refused = guarded.send(Request::post(&request(1, "tools/list", &json!({})))).await;
            let text = refused.text().await;
            assert!(text.contains("-32603") && !text.contains("secret"), "{result} as {kind}: {text}");
        }
    }
    let clean = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "secret"}]}}).to_string();
    let failed = r#""error":{"code":1,"message":""},"Result":"#;
    let wide = |mark: &str| -> Vec<u8> { format!("{mark}{clean}").encode_utf16().flat_map(u16::to_le_bytes).collect() };
    let other_end = clean.encode_utf16().flat_map(u16::to_be_bytes).collect();
    for body in [
        clean.replace("\"result\"", "\"Result\"").into_bytes(),
        clean.replace("\"result\"", "\"RESULT\"").into_bytes(),
        clean.replace("\"result\"", "\"re\u{17f}ult\"").into_bytes(),
        clean.replace("\"result\":", failed).into_bytes(),
        b"secret".to_vec(),
        wide(""),
        wide("\u{feff}"),
        other_end,
    ] {
        let (status, text) = told(steps(), 200, Some("application/json"), body.clone()).await;
        assert!(status == 500 && text.contains("-32603") && !has_secret(&text), "{body:?}: {status} {text}");
        let text = told_quietly(steps(), Some("application/json"), body.clone()).await;
        assert!(text.contains("-32603") && !has_secret(&text), "{body:?} to a notification: {text}");
        let event = [&b"data: "[..], &body, b"\n\n"].concat();
        let (_, text) = told(steps(), 200, Some(EVENTS), event).await;
        assert!(text.contains("-32603") && !has_secret(&text), "{body:?} as an event: {text}");
        if body.contains(&0) {
            let (_, text) = told(steps(), 200, None, body.clone()).await;
            assert!(text.contains("-32603") && !has_secret(&text), "{body:?} as it is: {text}");
        }
    }
    // Somebody who has to be asked something first gets no list yet.
    let asks = json!({"resultType": "input_required", "inputRequests": {}});
    let told = json!({"jsonrpc": "2.0", "id": 1, "result": asks}).to_string();
    let answer = move |_: &Seen| reply(200, &[("content-type", "application/json")], told.clone());
    let guarded = Guarded::new(vec![Step::ToolLists(rules(&["feed"], &[]))], answer).await;
    let mut answer = guarded.send(Request::post(&request(1, "tools/list", &json!({})))).await;
    assert_eq!(answer.json().await["result"], asks);
}

/// Whether a text shows what is hidden, in letters of whatever width.
fn has_secret(text: &str) -> bool {
    text.replace('\0', "").contains("secret")
}

#[tokio::test]
async fn what_a_server_says_besides_an_answer_passes_to_those_who_asked_for_a_list() {
    let besides = concat!(
        ": alive\n\nid: 1\ndata:\n\n",
        "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progress\":1}}\n\n",
        "data: {\"jsonrpc\":\"2.0\",\"id\":\"s\",\"method\":\"ping\"}\n\n",
    );
    let (_, text) = told(steps(), 200, Some(EVENTS), format!("{besides}data: {LIST}\n\n")).await;
    assert_eq!(text, format!("{besides}data: {SHOWN}\n\n"));
    let json = Some("application/json");
    for (status, body) in [
        (200, r#"{"jsonrpc":"2.0","id":5,"error":{"code":-32601,"message":"no"}}"#),
        (200, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#),
        (202, "Accepted"),
        (500, r#"{"error":"overloaded"}"#),
        (502, "<html>"),
    ] {
        assert_eq!(told(steps(), status, json, body).await, (status, body.to_owned()));
    }
}
