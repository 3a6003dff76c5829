//! Results in the words of older revisions.

use serde_json::{Value, json};

use crate::demo::revision::Revision;

/// Replaces what the revision has no word for.
pub(super) fn adapt(mut result: Value, revision: Revision) -> Value {
    if !revision.has_structured_results()
        && let Some(members) = result.as_object_mut()
    {
        members.remove("structuredContent");
    }
    for block in result["content"].as_array_mut().into_iter().flatten() {
        match block["type"].as_str() {
            Some("audio") if !revision.has_audio() => {
                let resource = json!({"uri": "demo://audio", "mimeType": block["mimeType"], "blob": block["data"]});
                *block = json!({"type": "resource", "resource": resource});
            }
            Some("resource_link") if !revision.has_structured_results() => {
                let words = format!(
                    "{}: {}",
                    block["name"].as_str().unwrap_or("link"),
                    block["uri"].as_str().unwrap_or_default()
                );
                *block = super::text(&words);
            }
            _ => {}
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_revisions_get_what_they_know() {
        let result = json!({
            "content": [
                {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
                {"type": "resource_link", "name": "about", "uri": "demo://about"},
            ],
            "structuredContent": {"sum": 3},
        });
        let kinds = |revision| {
            let adapted = adapt(result.clone(), revision);
            let kinds: Vec<&str> =
                adapted["content"].as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap()).collect();
            (kinds.join(" "), adapted.get("structuredContent").is_some())
        };
        assert_eq!(kinds(Revision::November2024), ("resource text".to_owned(), false));
        assert_eq!(kinds(Revision::March2025), ("audio text".to_owned(), false));
        assert_eq!(kinds(Revision::June2025), ("audio resource_link".to_owned(), true));
    }
}
