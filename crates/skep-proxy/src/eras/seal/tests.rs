//! Who can open what.

use serde_json::{Value, json};

use super::*;

pub(in crate::eras) fn states(holder: Holder) -> States {
    let seal = Seal::new(&[7; KEY_BYTES]).unwrap();
    States { seal: Some(Arc::new(seal)), server: "http://hive".into(), holder }
}

fn call(params: &Value) -> Message {
    let text = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    Message::read(text.into()).unwrap()
}

fn bearer(text: &'static str) -> Holder {
    Holder::Bearer(text.as_bytes().into())
}

#[test]
fn only_the_same_call_of_the_same_client_opens_it() {
    let ann = states(bearer("Bearer ann"));
    let params = json!({"name": "requeen", "arguments": {"hive": 3}});
    let state = State::OfServer("\"the server's \\u0061 own\"".to_owned());
    let sealed: Value = serde_json::from_str(&ann.close(&call(&params), &state).unwrap()).unwrap();
    assert!(!sealed.as_str().unwrap().contains("own"));
    let with = |change: fn(&mut Value)| {
        let mut params = params.clone();
        params["requestState"] = sealed.clone();
        change(&mut params);
        call(&params)
    };
    let same = with(|params| params["_meta"] = json!({"x": 1}));
    assert_eq!(ann.open(&same), Ok(Some(state)));
    assert!(ann.opened(&same).unwrap().unwrap().as_str().contains(r#""requestState":"the server's \u0061 own""#));
    for changed in [
        with(|params| params["name"] = json!("kill")),
        with(|params| params["arguments"]["hive"] = json!(4)),
        with(|params| drop(params.as_object_mut().unwrap().remove("arguments"))),
        with(|params| params["requestState"] = json!("the server's a own")),
        with(|params| params["requestState"] = json!("sk1.")),
        with(|params| params["requestState"] = json!(7)),
    ] {
        assert_eq!(ann.open(&changed), Err(Broken), "{}", changed.as_str());
    }
    for other in [bearer("Bearer bob"), Holder::Known("Bearer ann".into()), Holder::Anybody] {
        assert_eq!(states(other).open(&same), Err(Broken));
    }
    let elsewhere = States { server: "http://other".into(), ..ann.clone() };
    assert_eq!(elsewhere.open(&same), Err(Broken));
    let read = Message::read(same.as_str().replace("tools/call", "prompts/get").into()).unwrap();
    assert_eq!(ann.open(&read), Err(Broken));
    assert_eq!(ann.open(&call(&params)), Ok(None));
}

#[test]
fn a_key_is_made_of_every_byte_of_a_secret_and_shown_to_nobody() {
    let secret = "wax".repeat(11);
    let key = SealKey::of(&secret).unwrap();
    assert_eq!(key.bytes(), SealKey::of(&format!(" {secret}\n")).unwrap().bytes());
    assert_ne!(key.bytes(), SealKey::of(&format!("{secret}.")).unwrap().bytes());
    assert_ne!(key.bytes().as_slice(), &secret.as_bytes()[..KEY_BYTES]);
    assert_eq!(format!("{key:?}"), "SealKey");
    assert_eq!(SealKey::of(&" ".repeat(64)).unwrap_err(), ShortKey(0));
    assert!(SealKey::of(&secret[..31]).is_err() && SealKey::of(&secret[..32]).is_ok());
}

#[test]
fn no_byte_of_it_can_be_changed_and_it_ends() {
    let seal = Seal::new(&[1; KEY_BYTES]).unwrap();
    let text = seal.close(b"purpose", &State::Waiting("w".to_owned()), 100).unwrap();
    assert_eq!(seal.open(b"purpose", &text, 100), Some(State::Waiting("w".to_owned())));
    assert_eq!(seal.open(b"purpose", &text, 101), None);
    assert_eq!(Seal::new(&[2; KEY_BYTES]).unwrap().open(b"purpose", &text, 0), None);
    for at in 0..text.len() {
        let mut changed = text.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        // The last letter has bits that mean nothing, and is refused when they are set.
        assert_eq!(seal.open(b"purpose", &changed, 0), None, "{at}");
    }
    assert_eq!(seal.open(b"purpose", "", 0), None);
}
