//! Bodies that are not JSON.

use skep_kube::decode::decode;
use skep_kube::{protobuf as messages, yaml as documents};

use crate::parts::split;

/// Inputs: an object, and what is done to its message: every letter puts its lowest byte somewhere.
pub(super) fn protobuf(input: &[u8]) {
    read(input);
    let Some(parts) = split(input) else { return };
    let object = parts.first().and_then(|part| decode(part.as_bytes()).ok()).unwrap_or_default().value;
    let Ok(mut message) = messages::encode(&object) else { return };
    read(&message);
    for letter in parts.get(1).into_iter().flat_map(|damage| damage.chars()) {
        let number = u32::from(letter);
        let place = number.wrapping_mul(2_654_435_761) as usize % message.len();
        message[place] = number.to_le_bytes()[0];
        read(&message);
    }
}

fn read(message: &[u8]) {
    let Ok(object) = messages::decode(message) else { return };
    let again = messages::encode(&object).map(|written| messages::decode(&written));
    assert_eq!(again, Ok(Ok(object)), "what is read can be written, and means the same");
}

/// Inputs: a text in YAML.
pub(super) fn yaml(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(document) = documents::read(text) else { return };
    let Ok(written) = documents::write(&document.value) else { return };
    let again = documents::read(&written).map(|again| again.value);
    assert_eq!(again, Ok(document.value), "what is written means the same");
}
