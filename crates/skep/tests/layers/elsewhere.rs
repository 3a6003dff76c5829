//! Servers of somebody else behind everything: each gets credentials of its own for every caller, by whichever transport, and
//! never the token that the caller has shown to us. So do servers of ours.

use serde_json::{Value, json};

use super::callers::Callers;
use super::{Served, is_hidden, objects};
use crate::outgoing::{credentials, given, is_signed, shown};
use crate::protected::{Begin, Client, first_word, listening};

/// How clients and servers can talk.
const WAYS: [(&str, Begin); 3] =
    [("streamable-http", Client::begin_as), ("sse", Client::listen_as), ("sse", Client::begin_as)];

/// Servers of ours that get credentials in the same way: how, and by which transport.
const OURS: [(&str, &str); 2] = [("exchanged", "streamable-http"), ("aside", "sse")];

/// Each kind of credential before each kind of server.
pub(super) fn workloads() -> Vec<Value> {
    let ours = OURS.map(|(credential, transport)| objects::ours(&our(credential), credential, transport));
    let all =
        credentials().into_iter().flat_map(|(credential, _)| [(credential, "streamable-http"), (credential, "sse")]);
    all.map(|(credential, transport)| objects::elsewhere(&called(credential, transport), credential, transport))
        .chain(ours)
        .collect()
}

fn our(credential: &str) -> String {
    format!("ours-{credential}")
}

fn called(credential: &str, transport: &str) -> String {
    format!("{credential}-{transport}")
}

/// What is shown and may be called, whoever calls.
fn has_one_tool(client: &Client<'_>) {
    let listed = client.listed();
    let told: Vec<_> = listed.iter().map(|tool| (&tool["name"], &tool["description"])).collect();
    assert_eq!(told, [(&json!("headers"), &json!(objects::DESCRIPTION))]);
    assert_eq!(client.call("burn", &json!({})).0, 403, "the decision point is asked");
    is_hidden(client, "sting");
}

/// Servers of ours, behind everything else that there is before these.
fn check_ours(served: &Served, callers: &Callers) {
    for (credential, transport) in OURS {
        let address = served.address(&our(credential));
        nobody_gets_in(address, callers);
        for (_, begin) in WAYS.into_iter().filter(|(way, _)| *way == transport) {
            for token in [&callers.keeper, &callers.helper, &callers.guest] {
                let client = begin(address, Some(token)).unwrap();
                let headers = shown(&client, token);
                let given = json!(given("exchanged", token));
                for headers in [Some(&headers), headers.get("stream")].into_iter().flatten() {
                    let shown = ["authorization", "x-upstream-token"].map(|name| headers.get(name));
                    let expected = if credential == "aside" { [None, Some(&given)] } else { [Some(&given), None] };
                    assert_eq!(shown, expected, "{headers}");
                }
                has_one_tool(&client);
            }
        }
    }
}

pub(super) fn check(served: &Served, callers: &Callers) {
    check_ours(served, callers);
    for (credential, _) in credentials() {
        for (transport, begin) in WAYS {
            let address = served.address(&called(credential, transport));
            nobody_gets_in(address, callers);
            for (caller, token, role) in [
                ("keeper", &callers.keeper, "keeper"),
                ("helper", &callers.helper, "helper"),
                ("guest", &callers.guest, "visitor"),
            ] {
                let client = begin(address, Some(token)).unwrap();
                let headers = shown(&client, token);
                // A stream is opened for its caller like everything else.
                assert_eq!(headers.get("stream").is_some(), transport == "sse", "{headers}");
                for headers in [Some(&headers), headers.get("stream")].into_iter().flatten() {
                    match credential {
                        "signed" => is_signed(headers, token, caller, role),
                        _ => assert_eq!(headers["authorization"], given(credential, token)),
                    }
                    assert_eq!((&headers["x-tenant"], &headers["x-key"]), (&json!("blue"), &json!(objects::KEY)));
                }
                has_one_tool(&client);
            }
        }
    }
    let token = "a token of the caller";
    let headers = shown(&Client::begin_as(served.address("fixed"), Some(token)).unwrap(), token);
    assert_eq!(headers["authorization"], format!("Bearer {}", objects::TOKEN));
}

/// Nobody is called for who has not proved to be somebody.
fn nobody_gets_in(address: &str, callers: &Callers) {
    for token in [None, Some(callers.elsewhere.as_str())] {
        for request in [first_word(token), listening(token)] {
            let refused = request.send(address);
            let challenge = refused.header("www-authenticate").unwrap_or_default();
            assert!(refused.status == 401 && challenge.contains("resource_metadata="), "{challenge}");
        }
    }
}
