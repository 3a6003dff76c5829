//! A proxy in a pod of the operator: it brings its server up, and goes when that is gone.

use std::time::Duration;

use anyhow::Context as _;
use kube::{Client, Config};
use skep_api::config::run_config::{RunConfig, Transport};
use skep_api::names::env::{operator, runner};
use skep_api::names::{annotations, mcp_server};
use skep_operator::openshift;
use skep_operator::runner::{Backend, Proxy, pods_for_sessions, wants_pods_for_sessions, workload_name};
use skep_proxy::middleware::Middleware;
use skep_proxy::stdio::Bridge;
use skep_proxy::transparent::{Target, Transparent};
use skep_proxy::{Readiness, ServeError, SessionStore, answer_until};
use tokio_util::sync::CancellationToken;

use super::plain::Plain;
use super::pods::{OwnPods, PodStreams, wanted};
use super::serve::{Requests, Served, listen, run};
use super::{Front, Variables, chain};
use crate::hint::Hinted;

/// How long the API server may take to take a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// How long a proxy waits to be ended after its server was taken away. One that ended by itself would be started again,
/// and would bring back what somebody has just deleted.
const FAREWELL: Duration = Duration::from_secs(20);

/// Serves what a document asks for: a server at a URL, or one that runs in this cluster.
pub(crate) async fn serve_image(
    config: &RunConfig,
    variables: Variables<'_>,
    requests: &mut Requests,
) -> anyhow::Result<()> {
    let front = Front::of(config, variables)?;
    let listener = listen(&front).await?;
    let (dialect, tls, limits) = (front.mode, front.tls.clone(), front.limits.clone());
    let (listener, made) = tokio::select! {
        made = answer_until(listener, dialect, tls.as_ref(), &limits, make_ready(front, config, variables)) => made?,
        () = requests.asked() => return Ok(()),
    };
    let (front, store, backend) = made?;
    tracing::info!(address = %listener.local_addr()?, name = config.name, "serving");
    let Some((backend, address)) = backend else {
        let served = Served::remote(&front, store, &config.remote_url, config.allow_private_endpoint)?;
        let ended = run(listener, served, std::future::pending(), requests).await;
        // There is no StatefulSet whose pods would be missed.
        return if is_server_lost(&ended) { Ok(()) } else { ended };
    };
    let (readiness, deployed) = (Readiness::default(), CancellationToken::new());
    let served = if config.transport == Transport::Stdio {
        let attachment = backend.attachment().with_patience(front.attaching);
        let streams = PodStreams {
            backend: backend.clone(),
            attachment,
            deployed: deployed.clone(),
            readiness: readiness.clone(),
        };
        let own = pods_for_sessions(config)?;
        if own.is_empty() {
            if wants_pods_for_sessions(config)? {
                let annotation = annotations::STDIO_PROCESS_PER_SESSION;
                tracing::warn!(annotation, "sessions share one pod, because spec.backendReplicas is not 2 or more");
            }
            Served::bridge(&front, Bridge::with_store(front.limits.clone(), readiness.clone(), store), streams)
        } else {
            let process = uuid::Uuid::new_v4().to_string();
            let pods = OwnPods::new(&streams, own, Proxy { pod: variables(runner::HOSTNAME), process });
            let bridge = Bridge::with_processes(front.limits.clone(), readiness.clone(), store, pods);
            Served::bridge(&front, bridge, streams.to_pod(0))
        }
    } else {
        let target = Target::local(front.mode, &address)?;
        let transparent = Transparent::new(target, front.limits.clone(), front.forwarded.clone())?;
        let transparent = transparent.with_probing(Some(front.probing.clone()));
        Served::transparent(&front, store, transparent.expecting(deployed.clone(), readiness.clone()))?
    };
    let work = async {
        let how = backend.deploy().await?;
        tracing::info!(?how, "the MCP server is deployed");
        wanted(&backend, &readiness).await;
        deployed.cancel();
        backend.gone().await;
        tracing::info!("the StatefulSet is gone");
        tokio::time::sleep(FAREWELL).await;
        Ok(())
    };
    let ended = Box::pin(run(listener, served, work, requests)).await;
    if is_server_lost(&ended) && !backend.exists().await {
        return Ok(());
    }
    ended
}

/// Everything that somebody else has to be asked for: what requests pass, where sessions are kept, and the server that runs
/// in this cluster, if it is one of those.
async fn make_ready(
    mut front: Front,
    config: &RunConfig,
    variables: Variables<'_>,
) -> anyhow::Result<(Front, SessionStore, Option<(Backend, String)>)> {
    front.middleware = Middleware::new(chain::build(config, variables).await?);
    let store = front.store().await?;
    let is_remote = !config.remote_url.is_empty();
    let backend = if is_remote { None } else { Some(backend(config, variables).await?) };
    Ok((front, store, backend))
}

/// The server that a document asks for, in the cluster of this pod, and where it is when it speaks HTTP.
async fn backend(config: &RunConfig, variables: Variables<'_>) -> anyhow::Result<(Backend, String)> {
    let (client, namespace) = client(variables).await?;
    let said = variables(operator::OPENSHIFT);
    let is_openshift = openshift::require(&client, said.as_deref()).await;
    let is_openshift = is_openshift.context("cannot ask the cluster whether it is OpenShift")?;
    let backend = Backend::new(client.clone(), &namespace, config, is_openshift)?;
    let (name, port) = (workload_name(config), config.target_port);
    let address = match Plain::of(variables) {
        Some(plain) if config.transport != Transport::Stdio => {
            // Its service is looked up, so it has to be there.
            backend.write().await?;
            plain.backend_url(client, &namespace, name, port).await?
        }
        _ => mcp_server::backend_url(name, port),
    };
    Ok((backend, address))
}

fn is_server_lost(ended: &anyhow::Result<()>) -> bool {
    let error = ended.as_ref().err().and_then(|error| error.downcast_ref::<ServeError>());
    matches!(error, Some(ServeError::ServerLost))
}

/// Whether this process is part of a cluster.
pub(super) fn is_pod(variables: Variables<'_>) -> bool {
    variables(runner::RUNTIME).as_deref() == Some(runner::RUNTIME_KUBERNETES)
        || variables(runner::KUBERNETES_SERVICE_HOST).is_some()
}

/// The cluster of this pod, and its namespace in it.
async fn client(variables: Variables<'_>) -> anyhow::Result<(Client, String)> {
    if !is_pod(variables) {
        return Err(Hinted::new("an image needs Kubernetes, and this is no pod")
            .hint("without Kubernetes: skep proxy run --url URL, or skep proxy run -- COMMAND")
            .into());
    }
    let (mut config, is_pod) = match (Plain::of(variables), Config::incluster()) {
        (Some(plain), _) => (plain.config().await?, true),
        (None, Ok(config)) => (config, true),
        (None, Err(_)) => {
            (Config::infer().await.context("there is neither a service account nor a kubeconfig")?, false)
        }
    };
    config.connect_timeout = Some(CONNECT_LIMIT);
    // Watches and streams may be silent for long.
    config.read_timeout = None;
    let told = variables(operator::POD_NAMESPACE).filter(|name| !name.is_empty() && !is_pod);
    let namespace = told.unwrap_or_else(|| config.default_namespace.clone());
    Ok((Client::try_from(config)?, namespace))
}
