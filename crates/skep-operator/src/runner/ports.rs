//! The ports of a backend that speaks HTTP.

use skep_api::config::run_config::{RunConfig, Transport};

use super::RunnerError;

/// The ports on which nodes may be asked.
const NODE_PORTS: std::ops::RangeInclusive<u16> = 30000..=32767;

/// A port of the backend, and the one on which every node offers it, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) number: u16,
    pub(super) node_port: Option<u16>,
}

/// The port that the proxy uses, and those that are published besides, each once.
pub(super) fn ports(config: &RunConfig) -> Result<Vec<Port>, RunnerError> {
    if config.transport == Transport::Stdio {
        return Ok(Vec::new());
    }
    let bad = || RunnerError::Port(config.target_port.to_string());
    let target = u16::try_from(config.target_port).ok().filter(|port| *port > 0).ok_or_else(bad)?;
    // Whatever its number, it is for the proxy alone: on a node, clients would get past that.
    let mut ports = vec![Port { number: target, node_port: None }];
    for text in &config.publish {
        let port = published(text).ok_or_else(|| RunnerError::Port(text.clone()))?;
        match ports.iter_mut().find(|known| known.number == port.number) {
            Some(known) => known.node_port = known.node_port.or(port.node_port),
            None => ports.push(port),
        }
    }
    Ok(ports)
}

/// The port of nodes that a number means by itself.
fn on_nodes(port: u16) -> Option<u16> {
    Some(port).filter(|port| NODE_PORTS.contains(port))
}

fn published(text: &str) -> Option<Port> {
    let read = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
    let (outer, number) = match text.split_once(':') {
        Some((outer, inner)) => (Some(read(outer)?), read(inner)?),
        None => (None, read(text)?),
    };
    Some(Port { number, node_port: outer.and_then(on_nodes) })
}
