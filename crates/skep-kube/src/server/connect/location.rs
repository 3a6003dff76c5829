//! Where a node serves what is asked for.

use form_urlencoded::Serializer;
use serde_json::Value;

use super::Part;
use super::options::Wanted;
use crate::server::State;
use crate::server::exchange::Exchange;
use crate::server::read;
use crate::status::{ApiError, Reason};
use crate::store::Key;

/// Where kubelets listen that do not say where.
const USUAL_PORT: u16 = 10250;
/// The addresses of a node that are tried, the best first. Its host name need not be known where the server runs.
const ADDRESS_TYPES: [&str; 5] = ["InternalIP", "InternalDNS", "ExternalIP", "ExternalDNS", "Hostname"];

/// A place at a node.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) host: String,
    port: u16,
    pub(super) path_and_query: String,
}

impl Location {
    /// `127.0.0.1:10250`, `[::1]:10250`
    pub(super) fn authority(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    pub(super) fn url(&self) -> String {
        format!("https://{}{}", self.authority(), self.path_and_query)
    }
}

/// Where a container's log is; nowhere before the pod has a node.
pub(super) fn of_log(
    state: &State,
    exchange: &Exchange,
    container: Option<&str>,
    parameters: &[(&str, String)],
) -> Result<Option<Location>, ApiError> {
    let pod = pod(state, exchange)?;
    let container = choose(&pod, container, exchange.name())?;
    let Some(node) = node_name(&pod) else { return Ok(None) };
    let path = format!("/containerLogs/{}/{}/{container}", exchange.namespace(), exchange.name());
    at_node(state, exchange, node, &path, parameters).map(Some)
}

/// Where a conversation is held.
pub(super) fn of_conversation(
    state: &State,
    exchange: &Exchange,
    part: Part,
    query: &str,
) -> Result<Location, ApiError> {
    let wanted = Wanted::read(part, query)?;
    let pod = pod(state, exchange)?;
    let (namespace, name) = (exchange.namespace(), exchange.name());
    let path = if part == Part::PortForward {
        format!("/portForward/{namespace}/{name}")
    } else {
        let verb = if part == Part::Attach { "attach" } else { "exec" };
        format!("/{verb}/{namespace}/{name}/{}", choose(&pod, wanted.container.as_deref(), name)?)
    };
    let homeless = || ApiError::bad_request(format!("pod {name} does not have a host assigned"));
    at_node(state, exchange, node_name(&pod).ok_or_else(homeless)?, &path, &wanted.parameters())
}

fn pod(state: &State, exchange: &Exchange) -> Result<Value, ApiError> {
    read::load(exchange, &*read::find(state, exchange)?)
}

fn node_name(pod: &Value) -> Option<&str> {
    pod["spec"]["nodeName"].as_str().filter(|name| !name.is_empty())
}

/// The container that is meant. Names go into a path, so only those of the pod are taken.
fn choose(pod: &Value, wanted: Option<&str>, pod_name: &str) -> Result<String, ApiError> {
    let names = |list: &str| -> Vec<String> {
        let containers = pod["spec"][list].as_array().into_iter().flatten();
        containers.filter_map(|container| container["name"].as_str().map(str::to_owned)).collect()
    };
    let main = names("containers");
    let all = [names("initContainers"), main.clone(), names("ephemeralContainers")].concat();
    match (wanted.filter(|name| !name.is_empty()), main.as_slice()) {
        (Some(wanted), _) if all.iter().any(|name| name == wanted) => Ok(wanted.to_owned()),
        (Some(wanted), _) => Err(ApiError::bad_request(format!("container {wanted} is not valid for pod {pod_name}"))),
        (None, [only]) => Ok(only.clone()),
        (None, []) => Err(ApiError::bad_request(format!("a container name must be specified for pod {pod_name}"))),
        (None, _) => {
            let all = all.join(" ");
            let text = format!("a container name must be specified for pod {pod_name}, choose one of: [{all}]");
            Err(ApiError::bad_request(text))
        }
    }
}

fn at_node(
    state: &State,
    exchange: &Exchange,
    node: &str,
    path: &str,
    parameters: &[(&str, String)],
) -> Result<Location, ApiError> {
    // The real server names the resource of the request, whatever it was that is missing.
    let missing = || ApiError::not_found(&exchange.resource.name(), node);
    let record = state.store.get(&Key::new("/nodes", "", node)).ok_or_else(missing)?;
    let node: Value =
        serde_json::from_slice(&record.object.bytes()).map_err(|error| ApiError::internal(&error.to_string()))?;
    let (host, port) = address(&node["status"])?;
    let mut path_and_query = path.to_owned();
    if !parameters.is_empty() {
        path_and_query.push('?');
        path_and_query += &Serializer::new(String::new()).extend_pairs(parameters).finish();
    }
    Ok(Location { host, port, path_and_query })
}

fn address(status: &Value) -> Result<(String, u16), ApiError> {
    let known: Vec<(&str, &str)> = status["addresses"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|address| Some((address["type"].as_str()?, address["address"].as_str()?)))
        .collect();
    let best = ADDRESS_TYPES.iter().find_map(|wanted| known.iter().find(|(type_, _)| type_ == wanted));
    let Some((_, host)) = best else {
        let known = known.iter().map(|(type_, address)| format!("{{{type_} {address}}}")).collect::<Vec<_>>().join(" ");
        let text = format!("no preferred addresses found; known addresses: [{known}]");
        return Err(ApiError::new(Reason::Unknown, text));
    };
    let port = status["daemonEndpoints"]["kubeletEndpoint"]["Port"].as_u64();
    let port = port.and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
    Ok(((*host).to_owned(), port.unwrap_or(USUAL_PORT)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_is_reached_where_it_says() {
        let status = json!({
            "addresses": [{"type": "Hostname", "address": "bee"}, {"type": "InternalIP", "address": "10.1.2.3"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 7}},
        });
        assert_eq!(address(&status), Ok(("10.1.2.3".to_owned(), 7)));
        let usual = json!({"addresses": [{"type": "InternalIP", "address": "::1"}]});
        assert_eq!(address(&usual), Ok(("::1".to_owned(), USUAL_PORT)));
        let location = Location { host: "::1".into(), port: 7, path_and_query: "/x".into() };
        assert_eq!(location.url(), "https://[::1]:7/x");
    }

    #[test]
    fn the_container_that_is_meant() {
        let pod = |names: &[&str]| {
            let containers: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
            json!({"spec": {"containers": containers, "initContainers": [{"name": "first"}]}})
        };
        assert_eq!(choose(&pod(&["one"]), None, "bee").unwrap(), "one");
        assert_eq!(choose(&pod(&["one"]), Some("first"), "bee").unwrap(), "first");
        let several = choose(&pod(&["one", "two"]), None, "bee").unwrap_err();
        let text = "a container name must be specified for pod bee, choose one of: [first one two]";
        assert_eq!(several.message, text);
        assert!(choose(&pod(&["one"]), Some("../x"), "bee").is_err());
    }
}
