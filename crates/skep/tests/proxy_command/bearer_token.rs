//! A token of ours for a server of somebody else, wherever it comes from.

use std::fs;
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};
use snapbox::cmd::cargo_bin;
use tempfile::TempDir;

use super::http::Request;
use super::logged::remembering;
use super::{ANY, LIMIT, Serving, is_refused, message, run_in_pod, serve_in_pod};

/// The variable that counts when the document names no token.
const VARIABLE: &str = "TOOLHIVE_REMOTE_AUTH_BEARER_TOKEN";

/// A folder with a file of this name and text, and the path of that.
fn file(name: &str, text: &str) -> (TempDir, String) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

/// Asks a proxy for something with a token of the caller's, until it serves.
fn ask(proxy: &Serving) {
    let ping = Request::post(&message(1, "ping", &json!({}))).header("Authorization", "Bearer callers-hunter");
    let begun = Instant::now();
    while ping.send(&proxy.address).status != 200 {
        assert!(begun.elapsed() < LIMIT, "it never serves");
    }
}

/// What a server is told in headers by a proxy in a pod, and by one that somebody runs by hand, with this section.
fn told(auth: &Value, variables: &[(&str, &str)]) -> [String; 2] {
    let (server, heads) = remembering();
    ask(&serve_in_pod(&server, &json!({"middleware_configs": null, "remote_auth_config": auth}), variables));
    let in_pod = std::mem::take(&mut *heads.lock().unwrap());
    let (_folder, config) = file("own.json", &json!({"name": "own", "remote_auth_config": auth}).to_string());
    let url = format!("http://{server}/mcp");
    ask(&Serving::start_with(&[&ANY[..], &["--config", &config, "--url", &url]].concat(), variables));
    let by_hand = heads.lock().unwrap().clone();
    [in_pod, by_hand]
}

#[test]
fn a_bearer_token_in_a_file_or_a_variable_is_shown_to_the_server() {
    let (_folder, path) = file("token", "file-hunter \n");
    let variables = [("TOOLHIVE_SECRET_own", "secret-hunter"), (VARIABLE, "variable-hunter")];
    for (auth, expected) in [
        (json!({"bearer_token": "own,target=bearer_token", "bearer_token_file": path}), "secret-hunter"),
        (json!({"bearer_token_file": path}), "file-hunter"),
        (json!({}), "variable-hunter"),
    ] {
        for heads in told(&auth, &variables) {
            assert!(heads.contains(&format!("Bearer {expected}\r\n")), "{expected} is not shown: {heads}");
            for other in ["secret-hunter", "file-hunter", "variable-hunter", "callers-hunter"] {
                assert!(other == expected || !heads.contains(other), "{other} instead of {expected}: {heads}");
            }
        }
    }
}

/// The words with which a proxy refuses a document with this section.
fn refused(auth: &Value, variables: &[(&str, &str)], told: &str) -> String {
    let config = json!({"name": "n", "port": 0, "transport": "streamable-http", "remote_url": "http://127.0.0.1:9/mcp",
        "remote_auth_config": auth});
    let output = run_in_pod(Some(&config.to_string()), &[variables, &[("RUST_LOG", "trace")]].concat());
    is_refused(&output, told);
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_bearer_token_that_is_not_where_it_should_be_is_told_and_never_what_it_is() {
    let ((_blanks, blank), (_lines, lines)) = (file("blank", " \n\n"), file("lines", "one-hunter\nother-hunter\n"));
    let own = json!({"bearer_token": "own,target=bearer_token"});
    let variables = [(VARIABLE, "variable-hunter")];
    let named = |path: &str| json!({"bearer_token_file": path});
    for (auth, words) in [
        (named("/no/such/file"), "remote_auth_config: bearer_token_file: /no/such/file cannot be read: ".to_owned()),
        (named(&blank), format!("remote_auth_config: bearer_token_file: {blank} is empty; the token has to be in")),
        (named(&lines), "remote_auth_config: the value of the header authorization has characters".to_owned()),
        (own, "remote_auth_config: there is no bearer token; set the variable TOOLHIVE_SECRET_own".to_owned()),
    ] {
        let said = refused(&auth, &variables, &words);
        assert!(!said.contains("hunter"), "{said}");
    }
    for variables in [&[][..], &[(VARIABLE, " ")]] {
        let said = refused(&json!({}), variables, "cannot do yet: remote_auth_config (a login at the server)");
        assert!(said.contains(&format!("or the variable {VARIABLE}")), "{said}");
    }
    let (_folder, config) = file("own.json", r#"{"remote_auth_config": {"bearer_token_file": "/no/such/file"}}"#);
    let mut by_hand = Command::new(cargo_bin!("skep"));
    by_hand.args(ANY).args(["--config", &config, "--url", "http://127.0.0.1:9/mcp"]);
    is_refused(&by_hand.output().unwrap(), "bearer_token_file: /no/such/file cannot be read: ");
}
