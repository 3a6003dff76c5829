//! The one container of a proxy pod.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, ContainerPort, HTTPGetAction, Probe, ResourceRequirements, VolumeMount};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use skep_api::hash::canonical_json;
use skep_api::kinds::resources::ResourceList;
use skep_api::names::{PORT_NAME, mcp_remote_proxy, proxy_pod};

use super::{PodError, env, security};
use crate::proxy::{Inputs, Target, pod_patch};

/// What Linux takes as one argument of a program, without the zero at its end.
const LONGEST_ARGUMENT: usize = 128 * 1024 - 1;

pub(super) fn container(inputs: &Inputs<'_>, mounts: Vec<VolumeMount>) -> Result<Container, PodError> {
    Ok(Container {
        name: proxy_pod::CONTAINER.to_owned(),
        image: Some(inputs.settings.runner_image.clone()),
        args: Some(arguments(inputs)?),
        ports: Some(vec![ContainerPort {
            name: Some(PORT_NAME.to_owned()),
            container_port: inputs.common.proxy_port,
            protocol: Some("TCP".to_owned()),
            ..ContainerPort::default()
        }]),
        env: Some(env::environment(inputs)),
        volume_mounts: Some(mounts),
        // The startup probe holds the others back, so these need no delay of their own.
        startup_probe: Some(probe(1, 3, 90)),
        readiness_probe: Some(probe(5, 3, 3)),
        liveness_probe: Some(probe(10, 5, 3)),
        resources: resources(inputs),
        security_context: Some(security::container(inputs.settings.openshift)),
        ..Container::default()
    })
}

fn arguments(inputs: &Inputs<'_>) -> Result<Vec<String>, PodError> {
    let mut arguments = vec!["run".to_owned()];
    match inputs.target {
        Target::Server(spec) => {
            if let Some(patch) = pod_patch(inputs)? {
                let argument = format!("{}{}", proxy_pod::POD_PATCH_FLAG, canonical_json(&patch)?);
                if argument.len() > LONGEST_ARGUMENT {
                    return Err(PodError::Template(format!(
                        "spec.podTemplateSpec has {} bytes as an argument of the proxy, which can have {LONGEST_ARGUMENT}; \
                         make it shorter, or put what is long into a ConfigMap",
                        argument.len()
                    )));
                }
                arguments.push(argument);
            }
            arguments.push(spec.image.clone());
        }
        Target::Remote(_) => {
            arguments.push("--foreground=true".to_owned());
            arguments.push(mcp_remote_proxy::PLACEHOLDER_IMAGE.to_owned());
        }
    }
    Ok(arguments)
}

/// Asks for the health of the proxy. Times are in seconds.
fn probe(period: i32, timeout: i32, failures: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(proxy_pod::HEALTH_PATH.to_owned()),
            port: IntOrString::String(PORT_NAME.to_owned()),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(period),
        timeout_seconds: Some(timeout),
        failure_threshold: Some(failures),
        ..Probe::default()
    }
}

pub(super) fn resources(inputs: &Inputs<'_>) -> Option<ResourceRequirements> {
    let wanted = inputs.common.resources?;
    let (limits, requests) = (amounts(wanted.limits.as_ref()), amounts(wanted.requests.as_ref()));
    let any = limits.is_some() || requests.is_some();
    any.then(|| ResourceRequirements { limits, requests, ..ResourceRequirements::default() })
}

fn amounts(list: Option<&ResourceList>) -> Option<BTreeMap<String, Quantity>> {
    let list = list?;
    let named = [("cpu", &list.cpu), ("memory", &list.memory)];
    let given = named.into_iter().filter_map(|(name, amount)| Some((name, amount.as_ref()?)));
    let amounts: BTreeMap<String, Quantity> = given
        .filter(|(_, amount)| !amount.is_empty())
        .map(|(name, amount)| (name.to_owned(), Quantity(amount.clone())))
        .collect();
    (!amounts.is_empty()).then_some(amounts)
}
