//! Parameters of tools that requests repeat in their headers, so that those on the way can read them.

use std::collections::HashSet;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use crate::fault::Fault;
use crate::header::{self, mismatch};
use crate::json;

/// The mark of such a parameter in the schema of a tool.
const MARK: &str = "x-mcp-header";
/// What the headers that repeat parameters begin with.
const PREFIX: &str = "mcp-param-";
/// How deep parameters are looked for.
const DEPTH: usize = 16;

/// A parameter and the header that repeats it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    header: HeaderName,
    path: Vec<String>,
}

impl Mirror {
    /// The parameters of a tool that are repeated. The tool is given as its server listed it.
    pub fn of_tool(tool: &str) -> Vec<Self> {
        let mut mirrors = Vec::new();
        if let Some(schema) = schema_of(tool) {
            collect(&schema, &mut Vec::new(), &mut mirrors);
        }
        mirrors
    }

    /// The parameters of a tool that are repeated; nothing when one of them is marked in a way that cannot work.
    pub fn of_tool_strictly(tool: &str) -> Option<Vec<Self>> {
        let schema = &schema_of(tool)?;
        let mut mirrors = Vec::new();
        collect(schema, &mut Vec::new(), &mut mirrors);
        let is_fit = |mirror: &Self| {
            let kind = mirror.path.iter().try_fold(schema, |schema, name| schema.get("properties")?.get(name));
            matches!(kind.and_then(|kind| kind["type"].as_str()), Some("string" | "integer" | "boolean"))
        };
        let names: HashSet<&HeaderName> = mirrors.iter().map(|mirror| &mirror.header).collect();
        let is_good = names.len() == mirrors.len() && marks(schema) == mirrors.len() && mirrors.iter().all(is_fit);
        is_good.then_some(mirrors)
    }

    /// Whether a header repeats a parameter.
    pub fn is_by(name: &HeaderName) -> bool {
        name.as_str().starts_with(PREFIX)
    }

    /// Whether a text may mark anything: the mark is there, or something is written in another way.
    pub fn may_mark(text: &str) -> bool {
        text.contains(MARK) || text.contains("\\u")
    }

    /// Where the mark is in the tool.
    pub fn mark(&self) -> Vec<&str> {
        let names = self.path.iter().flat_map(|name| ["properties", name.as_str()]);
        ["inputSchema"].into_iter().chain(names).chain([MARK]).collect()
    }

    /// The header that a call with these arguments has to have.
    pub fn header_of(&self, arguments: &str) -> Option<(HeaderName, HeaderValue)> {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let value = json::find(arguments, &path).ok()??.of(arguments);
        let text = header::encode_json(value)?;
        Some((self.header.clone(), HeaderValue::from_str(&text).ok()?))
    }

    /// Checks that a call says in its header what it says in its arguments.
    pub fn check(&self, headers: &HeaderMap, arguments: Option<&str>) -> Result<(), Fault> {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let value = arguments.and_then(|arguments| Some(json::find(arguments, &path).ok()??.of(arguments)));
        match (header::single(headers, &self.header)?, value.filter(|value| *value != "null")) {
            (None, None) => Ok(()),
            (None, Some(_)) => Err(mismatch(&self.header, "is missing")),
            (Some(_), None) => Err(mismatch(&self.header, "has no counterpart in the arguments")),
            (Some(told), Some(value)) if agree(told, value) => Ok(()),
            (Some(_), Some(_)) => Err(mismatch(&self.header, "does not match the arguments")),
        }
    }
}

/// The schema of a tool's parameters. What else the tool says need not make sense, such as half of a character where a text
/// was cut.
fn schema_of(tool: &str) -> Option<Value> {
    match json::find(tool, &["inputSchema"]).ok()? {
        Some(schema) => serde_json::from_str(schema.of(tool)).ok(),
        None => Some(Value::Null),
    }
}

fn collect(schema: &Value, path: &mut Vec<String>, mirrors: &mut Vec<Mirror>) {
    if path.len() >= DEPTH {
        return;
    }
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        path.push(name.clone());
        let header = property.get(MARK).and_then(Value::as_str);
        if let Some(header) =
            header.filter(|header| !header.is_empty()).and_then(|header| format!("{PREFIX}{header}").parse().ok())
        {
            mirrors.push(Mirror { header, path: path.clone() });
        }
        collect(property, path, mirrors);
        path.pop();
    }
}

/// How many marks there are anywhere in a schema.
fn marks(schema: &Value) -> usize {
    match schema {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| match value {
                _ if name == MARK => 1,
                // The names in here are those of parameters.
                Value::Object(properties) if name == "properties" => properties.values().map(marks).sum(),
                _ => marks(value),
            })
            .sum(),
        Value::Array(items) => items.iter().map(marks).sum(),
        _ => 0,
    }
}

fn agree(told: &str, value: &str) -> bool {
    let Some(told) = header::decode(told) else { return false };
    match value.bytes().next() {
        Some(b'"') => json::decode(value).is_some_and(|value| value == told),
        // `7`, `7.0` and `07` are one number.
        Some(b'-' | b'0'..=b'9') => told.parse::<f64>().ok().zip(value.parse::<f64>().ok()).is_some_and(is_same),
        _ => told == value,
    }
}

#[expect(clippy::float_cmp, reason = "both were written out, and are the same number or are not")]
fn is_same((told, value): (f64, f64)) -> bool {
    told == value
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const TOOL: &str = r#"{"name":"a","inputSchema":{"type":"object","properties":{
        "region":{"type":"string","x-mcp-header":"Region"},
        "deep":{"type":"object","properties":{"count":{"type":"integer","x-mcp-header":"Count"}}},
        "items":{"type":"array","items":{"type":"string","x-mcp-header":"Never"}},
        "bad":{"x-mcp-header":"not a token"}}}}"#;

    fn is_good(headers: &[(&'static str, &'static str)], arguments: &str) -> bool {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)));
        let headers = headers.collect();
        Mirror::of_tool(TOOL).iter().all(|mirror| mirror.check(&headers, Some(arguments)).is_ok())
    }

    #[test]
    fn a_mark_that_cannot_work_spoils_its_tool() {
        let tool = |schema: &str| format!(r#"{{"name":"a","inputSchema":{schema}}}"#);
        for (schema, expected) in [
            ("{}", Some(0)),
            (r#"{"properties":{"a":{"type":"integer","x-mcp-header":"A"}}}"#, Some(1)),
            (r#"{"properties":{"x-mcp-header":{"type":"string"}}}"#, Some(0)),
            (r#"{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}"#, None),
            (r#"{"properties":{"a":{"type":"string","x-mcp-header":"a b"}}}"#, None),
            (r#"{"properties":{"a":{"type":"string","x-mcp-header":""}}}"#, None),
            (r#"{"properties":{"a":{"items":{"type":"string","x-mcp-header":"A"}}}}"#, None),
            (
                r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}"#,
                None,
            ),
        ] {
            let found = Mirror::of_tool_strictly(&tool(schema)).map(|mirrors| mirrors.len());
            assert_eq!(found, expected, "{schema}");
        }
        let cut = r#"{"name":"a","description":"\ud83d","inputSchema":{}}"#;
        assert_eq!(Mirror::of_tool_strictly(cut), Some(Vec::new()), "a text that was cut marks nothing");
        let mirrors = Mirror::of_tool(TOOL);
        let said: Vec<_> = mirrors
            .iter()
            .filter_map(|mirror| mirror.header_of(r#"{"region":"Z\u00fcrich","deep":{"count":3}}"#))
            .collect();
        let said = |name: &str| said.iter().find(|(known, _)| known == name).unwrap().1.to_str().unwrap();
        assert_eq!((said("mcp-param-region"), said("mcp-param-count")), ("=?base64?WsO8cmljaA==?=", "3"));
    }

    #[test]
    fn headers_say_what_the_arguments_say() {
        assert_eq!(Mirror::of_tool(TOOL).len(), 2);
        assert_eq!(Mirror::of_tool("nonsense"), []);
        let arguments = r#"{"region":"Zürich","deep":{"count":3}}"#;
        let (region, count) = (("mcp-param-region", "=?base64?WsO8cmljaA==?="), ("mcp-param-count", " 3.0 "));
        assert!(is_good(&[region, count], arguments));
        assert!(is_good(&[], r#"{"region":null}"#));
        assert!(!is_good(&[region], arguments));
        assert!(!is_good(&[region, ("mcp-param-count", "4")], arguments));
        assert!(!is_good(&[("mcp-param-region", "=?base64?!?="), count], arguments));
        assert!(!is_good(&[region], "{}"));
    }
}
