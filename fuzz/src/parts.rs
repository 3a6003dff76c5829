//! An input of several documents: text, with a line of three dashes between them.

use serde_json::Value;

const SEPARATOR: &str = "\n---\n";

/// The documents of an input. What is not text is no input.
pub(crate) fn split(input: &[u8]) -> Option<Vec<&str>> {
    Some(std::str::from_utf8(input).ok()?.split(SEPARATOR).collect())
}

pub(crate) fn join(parts: &[String]) -> Vec<u8> {
    parts.join(SEPARATOR).into_bytes()
}

/// The documents of an input, each read as the server reads bodies; missing ones are null.
pub(crate) fn documents<const N: usize>(input: &[u8]) -> Option<[Value; N]> {
    let mut documents = [const { Value::Null }; N];
    for (document, part) in documents.iter_mut().zip(split(input)?) {
        *document = skep_kube::decode::decode(part.as_bytes()).ok()?.value;
    }
    Some(documents)
}
