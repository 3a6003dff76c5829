//! Lists of tools, for clients of the other era.

use std::borrow::Cow;

use super::get;
use crate::catalog::{Catalog, CatalogKind};
use crate::json;
use crate::mirror::Mirror;

/// A list without the tools that can only be called in a way that the other era does not have.
pub fn hide_tasks(result: &str) -> String {
    edit(result, |tool| {
        let support = get(tool, &["execution", "taskSupport"]).and_then(json::decode);
        (support.as_deref() != Some("required")).then_some(Cow::Borrowed(tool))
    })
}

/// A list without the tools whose marks for headers are wrong.
pub fn with_good_mirrors(result: &str) -> String {
    if !Mirror::may_mark(result) {
        return result.to_owned();
    }
    edit(result, |tool| Mirror::of_tool_strictly(tool).map(|_| Cow::Borrowed(tool)))
}

/// A list for clients of sessions: nothing is repeated in headers, and structured results are objects. Tools whose
/// marks for headers are wrong are not offered to anybody.
pub fn without_mirrors(result: &str) -> String {
    edit(result, |tool| {
        let mirrors = Mirror::of_tool_strictly(tool)?;
        let mut text = Cow::Borrowed(tool);
        for mirror in &mirrors {
            if let Ok(Some(without)) = json::remove(&text, &mirror.mark()) {
                text = Cow::Owned(without);
            }
        }
        let kind = get(&text, &["outputSchema", "type"]).and_then(json::decode);
        let is_object = get(&text, &["outputSchema"]).is_none() || kind.as_deref() == Some("object");
        if is_object {
            return Some(text);
        }
        let without = json::remove(&text, &["outputSchema"]).ok().flatten();
        Some(without.map_or(text, Cow::Owned))
    })
}

/// The list with each tool as `change` gives it. One that is none stays as it is, for somebody else to complain.
fn edit<'a>(result: &'a str, change: impl Fn(&'a str) -> Option<Cow<'a, str>>) -> String {
    let Ok(catalog) = Catalog::read(CatalogKind::Tools, result) else { return result.to_owned() };
    let kept: Vec<Cow<'_, str>> = catalog.items().iter().filter_map(|item| change(item.json)).collect();
    let is_same = kept.len() == catalog.items().len() && kept.iter().all(|tool| matches!(tool, Cow::Borrowed(_)));
    if is_same { result.to_owned() } else { catalog.with_items(kept.iter().map(|tool| &**tool)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_offered_to_those_who_can_call_them() {
        let list = r#"{"tools": [{"name":"a"} ,{"name":"b","execution":{"taskSupport":"required"}}]}"#;
        assert_eq!(hide_tasks(list), r#"{"tools": [{"name":"a"}]}"#);
        let plain = r#"{"tools": [{"name":"a"} ,{"name":"b","outputSchema":{"type":"object"}}]}"#;
        assert_eq!((hide_tasks(plain).as_str(), without_mirrors(plain).as_str()), (plain, plain));
    }

    #[test]
    fn marks_and_schemas_that_sessions_do_not_have_are_removed() {
        let list = r#"{"tools":[{"name":"a","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"R"}}},"outputSchema":{"type":"array"}},{"name":"b","inputSchema":{"properties":{"r":{"type":"number","x-mcp-header":"R"}}}}]}"#;
        assert_eq!(
            without_mirrors(list),
            r#"{"tools":[{"name":"a","inputSchema":{"type":"object","properties":{"r":{"type":"string"}}}}]}"#
        );
    }
}
