//! What to paste into the settings of an MCP client.

use serde_json::{Map, Value, json};

use super::Endpoint;

/// The settings, in the form that most clients read. Endpoints that are not served, or not known to
/// speak MCP, are left out.
pub(crate) fn client_settings(endpoints: &[Endpoint]) -> Value {
    let mut servers = Map::new();
    for endpoint in endpoints.iter().filter(|endpoint| endpoint.ready) {
        let Some(url) = &endpoint.local_url else { continue };
        let Some(transport) = &endpoint.transport else { continue };
        let old = transport == "sse" || url.split(['#', '?']).next().is_some_and(|path| path.ends_with("/sse"));
        let alone = endpoints.iter().filter(|other| other.name == endpoint.name).count() == 1;
        let name = if alone { endpoint.name.clone() } else { format!("{}-{}", endpoint.namespace, endpoint.name) };
        let name = if servers.contains_key(&name) { format!("{name}-{}", servers.len()) } else { name };
        servers.insert(name, json!({"type": if old { "sse" } else { "http" }, "url": url}));
    }
    json!({ "mcpServers": servers })
}

/// The same for people to copy, once there is something.
pub(crate) fn client_lines(endpoints: &[Endpoint]) -> Vec<String> {
    let settings = client_settings(endpoints);
    if settings["mcpServers"].as_object().is_none_or(Map::is_empty) {
        return Vec::new();
    }
    let text = format!("{settings:#}");
    let lines = text.lines().map(str::to_owned);
    [String::new(), "For MCP clients:".to_owned()].into_iter().chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(namespace: &str, name: &str, transport: Option<&str>, url: Option<&str>) -> Endpoint {
        Endpoint {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            transport: transport.map(str::to_owned),
            local_url: url.map(str::to_owned),
            ready: name != "broken",
            ..Endpoint::default()
        }
    }

    #[test]
    fn every_server_has_a_name_of_its_own() {
        let http = Some("streamable-http");
        let endpoints = [
            endpoint("a", "echo", http, Some("http://127.0.0.1:1/mcp")),
            endpoint("b", "echo", http, Some("http://127.0.0.1:2/mcp")),
            endpoint("b", "echo", http, Some("http://127.0.0.1:3/mcp")),
            endpoint("b", "old", Some("stdio"), Some("http://127.0.0.1:4/sse#old")),
            endpoint("b", "web", None, Some("http://127.0.0.1:5")),
            endpoint("b", "later", http, None),
            endpoint("b", "broken", http, Some("http://127.0.0.1:6/mcp")),
        ];
        let expected = json!({"mcpServers": {
            "a-echo": {"type": "http", "url": "http://127.0.0.1:1/mcp"},
            "b-echo": {"type": "http", "url": "http://127.0.0.1:2/mcp"},
            "b-echo-2": {"type": "http", "url": "http://127.0.0.1:3/mcp"},
            "old": {"type": "sse", "url": "http://127.0.0.1:4/sse#old"},
        }});
        assert_eq!(client_settings(&endpoints), expected);
    }
}
