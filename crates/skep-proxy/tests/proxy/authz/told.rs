//! Why somebody may not: in the log, and nowhere else.

use serde_json::json;
use skep_proxy::middleware::{Authentication, Authorizer, CedarSettings, Step};
use skep_proxy::transparent::Dialect;
use tracing::Level;

use super::{POLICIES, guarded, hive};
use crate::http::{Request, call, request};
use crate::transparent::server::Server;
use crate::warnings::Warnings;

const FORBID: &str = r#"forbid(principal, action, resource == Tool::"weigh");"#;

#[tokio::test]
async fn the_log_says_who_was_refused_what_and_by_which_policy() {
    let mut policies = POLICIES.map(str::to_owned).to_vec();
    policies.push(FORBID.to_owned());
    let authorizer = Authorizer::cedar(CedarSettings { policies, ..CedarSettings::default() }).unwrap();
    let server = Server::start(hive).await;
    let steps = vec![Step::Authenticate(Authentication::Anonymous), Step::Parse, Step::Authorize(authorizer)];
    let before = guarded(&server, Dialect::Streamable, steps).await;
    let log = Warnings::down_to(Level::DEBUG);
    for (message, status, told) in [
        (call(1, "burn"), 403, "action=\"call_tool\" resource=\"burn\" reason=no policy permits it"),
        // Also when it was decided before.
        (call(1, "burn"), 403, "action=\"call_tool\" resource=\"burn\" reason=no policy permits it"),
        (call(1, "weigh"), 403, "action=\"call_tool\" resource=\"weigh\" reason=it is forbidden by policy4"),
        (
            request(1, "resources/read", &json!({"uri": "hive://9"})),
            403,
            "action=\"read_resource\" resource=\"hive://9\" reason=no policy permits it",
        ),
        (
            request(1, "resources/read", &json!({"uri": "https://ann:hunter2@h/doc?token=hunter2&page=2"})),
            403,
            "resource=\"https://h/doc?token=[REDACTED]&page=2\" reason=no policy permits it",
        ),
        (request(1, "tasks/get", &json!({})), 403, "method=\"tasks/get\" reason=\"no policy can permit this method\""),
        (
            request(1, "tools/call", &json!({})),
            403,
            "reason=\"it does not say what it is about, or in two ways, or is about too much\"",
        ),
        (request(1, "tools/call", &json!({"name": "a", "Name": "b"})), 400, "can be read in two ways"),
        (
            request(1, "tools/list", &json!({})),
            200,
            "action=\"call_tool\" resource=\"burn\" reason=no policy permits it",
        ),
    ] {
        log.take();
        let mut answer = before.send(Request::post(&message).header("Authorization", "Bearer hunter2")).await;
        assert_eq!(answer.status, status, "{message}");
        let heard = answer.text().await;
        assert!(!heard.contains("polic"), "{heard}");
        let log = log.take();
        let is_told = |line: &String| line.contains("subject=\"anonymous\"") && line.contains(told);
        assert!(log.iter().any(is_told), "{message}: {log:#?}");
        assert!(!log.iter().any(|line| line.contains("hunter2")), "{log:#?}");
    }
}
