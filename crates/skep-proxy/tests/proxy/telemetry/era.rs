//! What is told about the era of the server.

use serde_json::json;
use skep_proxy::middleware::TelemetrySettings;

use super::{prometheus, proxy, settings};
use crate::eras::stands_alone;
use crate::http::{Request, modern};
use crate::transparent::server::{Server, with_sessions};

#[tokio::test]
async fn the_era_of_the_server_is_told_with_its_age_and_how_often_it_was_another_one() {
    let server = Server::start(stands_alone).await;
    let told = TelemetrySettings { prometheus: Some(prometheus()), ..settings() };
    let before = proxy(&server, told, vec![]).await;
    let page = async || before.send(Request::new("GET", "/metrics")).await.text().await;
    assert!(!page().await.contains("skep_backend_era"), "nothing is known yet");
    before.send(modern(1, "tools/list", json!({}))).await;
    let of = r#"server="hive",transport="streamable-http""#;
    let text = page().await;
    assert!(text.contains(&format!("skep_backend_era{{{of},era=\"modern\"}} 1\n")), "{text}");
    assert!(text.contains(&format!("skep_backend_era_reclassifications_total{{{of}}} 0\n")), "{text}");
    assert!(text.contains(&format!("skep_backend_era_age_seconds{{{of}}} ")), "{text}");
    server.replace(with_sessions("a"));
    assert_eq!(before.send(modern(2, "tools/call", json!({"name": "a"}))).await.status, 200);
    let text = page().await;
    assert!(text.contains(&format!("skep_backend_era{{{of},era=\"legacy\"}} 1\n")), "{text}");
    assert!(!text.contains("era=\"modern\""), "{text}");
    assert!(text.contains(&format!("skep_backend_era_reclassifications_total{{{of}}} 1\n")), "{text}");
}
