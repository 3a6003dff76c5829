//! Servers of somebody else behind everything: each gets credentials of its own for every caller, by whichever transport, and
//! never the token that the caller has shown to us.

use serde_json::{Value, json};

use super::callers::Callers;
use super::{Served, objects};
use crate::outgoing::{credentials, given, is_signed, shown};
use crate::protected::{Begin, Client, first_word, listening};

/// How clients and servers can talk.
const WAYS: [(&str, Begin); 3] =
    [("streamable-http", Client::begin_as), ("sse", Client::listen_as), ("sse", Client::begin_as)];

/// Each kind of credential before each kind of server.
pub(super) fn workloads() -> Vec<Value> {
    let all =
        credentials().into_iter().flat_map(|(credential, _)| [(credential, "streamable-http"), (credential, "sse")]);
    all.map(|(credential, transport)| objects::elsewhere(&called(credential, transport), credential, transport))
        .collect()
}

fn called(credential: &str, transport: &str) -> String {
    format!("{credential}-{transport}")
}

pub(super) fn check(served: &Served, callers: &Callers) {
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
                assert_eq!(client.tools(), ["headers"]);
                assert_eq!(client.call("burn", &json!({})).0, 403, "the decision point is asked");
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
