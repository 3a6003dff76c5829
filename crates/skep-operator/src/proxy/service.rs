//! The Service in front of a proxy.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use skep_api::kinds::session_storage::SessionAffinity;
use skep_api::names::PORT_NAME;

use super::Inputs;
use super::metadata::with_additions;

/// The Service in front of the proxy. Its type is left to the API server.
pub fn service(inputs: &Inputs<'_>) -> Service {
    let overrides = inputs.service_overrides();
    let port = inputs.common.proxy_port;
    Service {
        metadata: ObjectMeta {
            name: Some(inputs.service_name()),
            labels: with_additions(inputs.labels(), overrides.map(|overrides| &overrides.labels)),
            annotations: with_additions(BTreeMap::new(), overrides.map(|overrides| &overrides.annotations)),
            ..ObjectMeta::default()
        },
        spec: Some(ServiceSpec {
            selector: Some(inputs.labels()),
            ports: Some(vec![ServicePort {
                name: Some(PORT_NAME.to_owned()),
                port,
                protocol: Some("TCP".to_owned()),
                target_port: Some(IntOrString::Int(port)),
                ..ServicePort::default()
            }]),
            session_affinity: Some(affinity(inputs.common.session_affinity).to_owned()),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

fn affinity(wanted: SessionAffinity) -> &'static str {
    match wanted {
        SessionAffinity::ClientIP => "ClientIP",
        SessionAffinity::None => "None",
    }
}
