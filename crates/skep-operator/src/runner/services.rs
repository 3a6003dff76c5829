//! The Services of a backend that speaks HTTP.

use serde_json::{Map, Value, json};
use skep_api::config::run_config::RunConfig;
use skep_api::names::{annotations, labels, mcp_server};

use super::ports::{Port, ports};
use super::{RunnerError, workload_name};

/// How long a client stays with one pod, in seconds.
const AFFINITY_SECONDS: i32 = 1800;

/// The Services, without their owner: one that balances, and one by which single pods are known. A backend on standard
/// input and output has none.
pub fn services(config: &RunConfig) -> Result<Vec<Value>, RunnerError> {
    let ports = ports(config)?;
    if ports.is_empty() {
        return Ok(Vec::new());
    }
    let name = workload_name(config);
    let headless = json!({"clusterIP": "None", "ports": list(&ports, false)});
    let on_nodes = ports.iter().any(|port| port.node_port.is_some());
    let balancing = json!({
        "type": if on_nodes { "NodePort" } else { "ClusterIP" },
        "sessionAffinity": "ClientIP",
        "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}},
        "ports": list(&ports, true),
    });
    Ok(vec![
        service(config, &mcp_server::backend_headless_service(name), headless),
        service(config, &mcp_server::backend_service(name), balancing),
    ])
}

fn service(config: &RunConfig, name: &str, mut spec: Value) -> Value {
    let workload = workload_name(config);
    spec["selector"] = json!(labels::backend_selector(workload));
    let mut stamp = Map::new();
    if config.mcpserver_generation > 0 {
        stamp.insert(annotations::MCP_SERVER_GENERATION.to_owned(), json!(config.mcpserver_generation.to_string()));
    }
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "labels": labels::backend(config.container_labels.clone(), workload),
            "annotations": stamp,
        },
        "spec": spec,
    })
}

fn list(ports: &[Port], with_node_ports: bool) -> Vec<Value> {
    let entry = |port: &Port| {
        let Port { number, node_port } = *port;
        let name = mcp_server::backend_port(number.into());
        let mut entry = json!({"name": name, "port": number, "targetPort": number, "protocol": "TCP"});
        if let Some(node_port) = node_port.filter(|_| with_node_ports) {
            entry["nodePort"] = json!(node_port);
        }
        entry
    };
    ports.iter().map(entry).collect()
}
