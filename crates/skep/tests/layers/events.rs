//! HTTP+SSE: what holds for a stream and the address for its messages, besides what holds for every transport.

use serde_json::json;

use super::callers::Callers;
use super::is_hidden;
use crate::protected::{Client, KEY, listening, signed_with};

pub(super) fn check(address: &str, callers: &Callers) {
    let nobody = listening(None).send(address);
    let challenge = nobody.header("www-authenticate").unwrap_or_default();
    assert_eq!(nobody.status, 401);
    assert!(challenge.contains("resource_metadata=") && challenge.contains("scope=\"mcp\""), "{challenge}");
    assert_eq!(listening(Some(&callers.elsewhere)).send(address).status, 401);
    // Whoever gets to know the address for messages of somebody else cannot use it.
    let stolen = Client::listen_as(address, Some(&callers.keeper)).unwrap().stolen_by(&callers.helper);
    assert_eq!(stolen.send("tools/list", &json!({})).status, 404);
    let own = stolen.stolen_by(&callers.keeper);
    assert_eq!(own.tools(), ["add", "say"], "and it still is of use to whom it was announced");
    // A client of the newer transport meets the same layers.
    let helper = Client::begin_as(address, Some(&callers.helper)).unwrap();
    assert_eq!(helper.tools(), ["add", "say"]);
    is_hidden(&helper, "echo");
    let (status, said) = helper.call("say", &json!({"message": "as it was"}));
    assert_eq!((status, &said["result"]["content"][0]["text"]), (200, &json!(signed_with(KEY))), "{said}");
    assert_eq!(Client::begin_as(address, Some(&callers.guest)).unwrap().tools(), [""; 0]);
}
