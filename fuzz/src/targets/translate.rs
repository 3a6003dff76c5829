//! What a proxy makes of messages of the other era, and of the headers that repeat them.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use serde_json::{Value, json};
use skep_mcp::catalog::{Catalog, CatalogKind};
use skep_mcp::fault::{HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_REVISION};
use skep_mcp::translate::{self, Envelope, Outcome, Question};
use skep_mcp::{Message, MetaKey, Mirror, Param, Revision, header, json, method};

use super::mcp::is_beyond_the_other;
use crate::parts::split;

/// The methods whose results are put into other words.
const METHODS: [&str; 5] =
    [method::DISCOVER, method::TOOLS_LIST, method::TOOLS_CALL, method::PROMPTS_GET, method::RESOURCES_READ];
const SERVER: &str = r#"{"name":"s"}"#;
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The errors that the protocol keeps for itself.
const RESERVED: std::ops::RangeInclusive<i64> = -32099..=-32020;

/// The members that a translation is about. All others have to stay.
type Touched<'a> = &'a [&'a [&'a str]];

/// A request, a result, an error and the value of a header.
pub(super) fn translate(input: &[u8]) {
    let Some(parts) = split(input) else { return };
    let [request, result, error, value, ..] = parts.as_slice() else { return };
    // One of them for each input, as most do the same.
    let revision = Revision::ALL[input.len() % Revision::ALL.len()];
    headers(value);
    results(result, revision);
    tools(result, "{}");
    let Ok(request) = Message::read(Bytes::copy_from_slice(request.as_bytes())) else { return };
    requests(&request, revision);
    errors(&request, error);
    answers(&request, result, error, revision);
    tools(result, request.param(Param::Arguments).unwrap_or_default());
    subjects(&request);
}

/// Reads what came in. Another reader may refuse what it cannot represent, such as half of a character.
fn read(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

/// Reads what came out, which has to be JSON as what came in was.
fn written(text: &str) -> Option<Value> {
    let read = serde_json::from_str(text);
    assert!(read.as_ref().map_or_else(is_beyond_the_other, |_: &Value| true), "it is no JSON: {text}");
    read.ok()
}

/// Whether all readers find the same in a text: of two members of one name each may take another.
fn is_clear(text: &str) -> bool {
    json::twice(text) == Ok(None)
}

/// A document without some members, and without a `_meta` that is left bare.
fn rest(mut document: Value, touched: Touched<'_>) -> Value {
    let metas: [&[&str]; 2] = [&["_meta"], &["params", "_meta"]];
    for path in touched {
        remove(&mut document, path);
    }
    for path in metas {
        let meta = path.iter().try_fold(&document, |value, name| value.get(name));
        if meta.is_some_and(|meta| *meta == json!({})) {
            remove(&mut document, path);
        }
    }
    document
}

fn remove(document: &mut Value, path: &[&str]) {
    let Some((name, way)) = path.split_last() else { return };
    let object = way.iter().try_fold(document, |value, name| value.get_mut(name)).and_then(Value::as_object_mut);
    object.map(|object| object.remove(*name));
}

/// Nothing else has changed than what a translation is about.
fn untouched(before: &str, after: &str, touched: Touched<'_>) {
    let Some(before) = read(before) else { return };
    if let Some(after) = written(after) {
        assert_eq!(rest(before, touched), rest(after, touched));
    }
}

/// A member of `_meta` of a request.
fn meta(key: MetaKey) -> [&'static str; 3] {
    ["params", "_meta", key.name()]
}

fn requests(request: &Message, server: Revision) {
    let claims = MetaKey::BETWEEN_NEIGHBOURS.map(meta);
    let rounds: [&[&str]; 2] = [&["params", "inputResponses"], &["params", "requestState"]];
    let round: Vec<&[&str]> = claims.iter().map(|path| &path[..]).chain(rounds).collect();
    if let Ok(older) = translate::older_request(request) {
        untouched(request.as_str(), &older, &round);
        let is_gone = |path: &&[&str]| json::find(&older, path).is_ok_and(|place| place.is_none());
        assert!(round.iter().all(is_gone), "{older}");
    }
    let envelope = Envelope {
        capabilities: "{}",
        client: SERVER,
        log_level: Some("info"),
        answers: Some(r#"{"a":{}}"#),
        state: Some("\"s\""),
    };
    if let Ok(newer) = translate::newer_request(request, &envelope) {
        // Where there was nothing there are parameters now, if only to say all of this in.
        let task: &[&str] = &["params", "task"];
        let with_task: Vec<&[&str]> = round.iter().copied().chain([task]).collect();
        let had_params = request.params_span().is_some_and(|params| params.of(request.as_str()) != "null");
        untouched(request.as_str(), &newer, if had_params { &with_task } else { &[&["params"]] });
        let said = Message::read(newer.clone().into());
        let said = said.as_ref().ok().and_then(|newer| newer.meta(MetaKey::ClientInfo));
        assert_eq!(said, Some(SERVER), "{newer}");
        there_and_back(request, &newer, &with_task);
    }
    untouched(request.as_str(), &translate::older_notification(request), &[&meta(MetaKey::SubscriptionId)]);
    if let Ok(Some(without)) = translate::without_claims(request) {
        untouched(request.as_str(), &without, &round);
    }
    if let Some(older) = translate::request_for(request, server) {
        untouched(request.as_str(), &String::from_utf8_lossy(&older), &[&["params", "context"]]);
    }
}

/// A request that says something in `_meta`, and nothing that is translated, comes back byte for byte.
fn there_and_back(request: &Message, newer: &str, touched: Touched<'_>) {
    let has = |path: &&[&str]| json::find(request.as_str(), path).is_ok_and(|place| place.is_some());
    let is_bare = read(request.as_str()).is_none_or(|request| request["params"]["_meta"] == json!({}));
    if !request.has_meta() || is_bare || touched.iter().any(has) {
        return;
    }
    let back = Message::read(newer.to_owned().into()).ok().and_then(|newer| translate::older_request(&newer).ok());
    assert_eq!(back.as_deref(), Some(request.as_str()));
}

fn results(result: &str, client: Revision) {
    const SAID: Touched<'static> =
        &[&["resultType"], &["ttlMs"], &["cacheScope"], &["_meta", SERVER_INFO], &["supportedVersions"], &["tools"]];
    let subscription = ["_meta", MetaKey::SubscriptionId.name()];
    let words: [&[&str]; 4] = [&subscription, &["content"], &["structuredContent"], &["messages"]];
    let older: Vec<&[&str]> = SAID.iter().copied().chain(words).collect();
    for method in METHODS {
        if let Ok(newer) = translate::newer_result(method, result, Some(SERVER)) {
            untouched(result, &newer, SAID);
            assert_eq!(translate::outcome(&newer), Ok(Outcome::Complete), "{newer}");
            assert_eq!(translate::completed(method, &newer).map(|_| ()), Ok(()), "{newer}");
        }
        if let Ok(Some(completed)) = translate::completed(method, result) {
            untouched(result, &completed, SAID);
            assert_eq!(translate::completed(method, &completed), Ok(None), "{completed}");
        }
        if let Ok(text) = translate::older_result(method, result, client) {
            untouched(result, &text, &older);
        }
    }
    if read(result).is_some() {
        let asked = translate::agreed(result).map_or("", Revision::text);
        written(&translate::discovered(result));
        written(&translate::initialized(result, asked));
    }
    questions(result);
}

fn questions(result: &str) {
    let Ok(Outcome::Questions { questions, state }) = translate::outcome(result) else { return };
    let Some(value) = read(result).filter(|_| is_clear(result)) else { return };
    let names: Vec<&str> = questions.iter().map(|question| question.key.as_str()).collect();
    let asked = value["inputRequests"].as_object();
    assert_eq!(names.len(), asked.map_or(0, serde_json::Map::len), "{result}");
    assert!(names.iter().all(|name| asked.is_some_and(|asked| asked.contains_key(*name))), "{result}");
    assert_eq!(state.and_then(|state| read(&state)), value.get("requestState").cloned());
    questions.iter().for_each(question);
}

fn question(question: &Question) {
    let _ = question.is_declared(r#"{"elicitation":{"url":{}},"sampling":{},"roots":{}}"#);
    if let Some(member) = written(&format!("{{{}}}", question.as_member())) {
        assert_eq!(member[&question.key]["method"], question.method);
        assert_eq!(Some(&member[&question.key]["params"]), read(&question.params).as_ref());
    }
}

fn errors(request: &Message, error: &str) {
    let [newer, older] = [translate::newer_error(request, error), translate::older_error(request, error)];
    untouched(error, &newer, &[&["code"], &["data"]]);
    untouched(error, &older, &[&["code"]]);
    assert!(!RESERVED.contains(&translate::error_code(&newer)), "{newer}");
    let ours = [HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_REVISION];
    assert!(!ours.contains(&translate::error_code(&older)), "{older}");
    if read(error).is_some() {
        let questions = Question::of_error(error);
        assert!(questions.iter().all(Question::is_by_url), "{error}");
        questions.iter().for_each(question);
    }
}

/// Whole answers, which keep everything around their results.
fn answers(request: &Message, result: &str, error: &str, client: Revision) {
    let Some(id) = request.id() else { return };
    if read(result).is_none() || read(error).is_none() {
        return;
    }
    for answer in [
        format!(r#"{{"jsonrpc":"2.0" ,"id":{id}, "result":{result},"x": {error}}}"#),
        format!(r#"{{"error":{error},"id": {id},"jsonrpc":"2.0"}}"#),
    ] {
        if let Some(text) = translate::answer_for(&answer, client) {
            let words = ["content", "structuredContent", "messages"].map(|name| ["result", name]);
            untouched(&answer, &text, &words.each_ref().map(|path| &path[..]));
            assert_eq!(translate::answer_for(&text, client), None, "{text}");
        }
    }
}

/// The tools of a list, and calls of them with these arguments.
fn tools(result: &str, arguments: &str) {
    let Ok(catalog) = Catalog::read(CatalogKind::Tools, result) else { return };
    for tool in catalog.items() {
        let Some(mirrors) = Mirror::of_tool_strictly(tool.json) else { continue };
        assert_eq!(mirrors, Mirror::of_tool(tool.json));
        let said = mirrors.iter().filter_map(|mirror| Some((mirror, mirror.header_of(arguments)?)));
        let (saying, headers): (Vec<&Mirror>, HeaderMap) = said.unzip();
        for mirror in saying {
            assert_eq!(mirror.check(&headers, Some(arguments)).map_err(|fault| fault.message), Ok(()), "{arguments}");
        }
    }
    if read(result).is_none() || !is_clear(result) {
        return;
    }
    let older = translate::without_mirrors(result);
    let good = translate::with_good_mirrors(result);
    for (list, is_older) in [(&older, true), (&good, false)] {
        let catalog = Catalog::read(CatalogKind::Tools, list);
        assert!(catalog.is_ok(), "it is no list any more: {list}");
        for tool in catalog.iter().flat_map(Catalog::items) {
            let mirrors = Mirror::of_tool_strictly(tool.json);
            assert!(mirrors.is_some_and(|mirrors| !is_older || mirrors.is_empty()), "{list}");
        }
    }
}

/// Whatever is written into a header is read from it again.
fn headers(text: &str) {
    let _ = header::decode(text);
    let encoded = header::encode(text);
    assert_eq!(header::decode(&encoded).as_deref(), Some(text));
    let is_plain = HeaderValue::from_str(&encoded).is_ok() && encoded.trim() == encoded;
    assert!(is_plain, "it cannot be sent: {encoded:?}");
    let quoted = json::quote(text);
    assert_eq!(header::encode_json(&quoted), Some(encoded));
    if read(text).is_some_and(|value| value.is_boolean() || value.is_i64()) {
        assert!(header::encode_json(text.trim()).is_none_or(|value| value == text.trim()), "{text}");
    }
}

/// The headers that a request has to have are accepted.
fn subjects(request: &Message) {
    let mut headers = HeaderMap::new();
    let Ok(told) = HeaderValue::from_str(request.method()) else { return };
    let is_plain = request.method().trim() == request.method() && told.to_str().is_ok();
    headers.insert(header::METHOD, told);
    assert!(!is_plain || header::check(&headers, request).is_ok(), "{}", request.method());
    if let Some(subject) = method::subject(request.method()).and_then(|subject| request.param_text(subject)) {
        let value = HeaderValue::from_str(&header::encode(&subject));
        headers.extend(value.map(|value| (header::NAME, value)));
    }
    assert!(header::check_subject(&headers, request).is_ok(), "{}", request.as_str());
}
