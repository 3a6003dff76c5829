//! `skep logs`.

use std::collections::BTreeMap;
use std::io::{self, Write as _};

use anyhow::Context as _;
use futures::{AsyncBufRead, AsyncBufReadExt as _, Stream, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::{ListParams, LogParams};
use kube::core::Selector;
use kube::{Api, Client, ResourceExt as _};

use crate::cli::LogsArgs;
use crate::connection::{connect, refusal};
use crate::data_folder::DataFolder;
use crate::hint::Hinted;
use crate::objects::Kinds;

pub(super) async fn run(args: LogsArgs) -> anyhow::Result<()> {
    let client = connect(&DataFolder::try_from(args.data.clone())?).await?;
    let pods = find(&client, &args).await?;
    let api: Api<Pod> = Api::namespaced(client, &args.namespace.namespace);
    let several = pods.len() > 1;
    let mut streams = Vec::new();
    for pod in &pods {
        let name = pod.name_any();
        let parameters = LogParams {
            container: container(pod, &args)?,
            follow: args.follow,
            previous: args.previous,
            tail_lines: args.tail.map(i64::from),
            ..LogParams::default()
        };
        let stream = api.log_stream(&name, &parameters).await;
        let stream = stream.map_err(refusal).with_context(|| format!("cannot print the log of the pod {name}"))?;
        let prefix = if several { format!("[{name}] ") } else { String::new() };
        streams.push(lines(prefix, stream).boxed_local());
    }
    let mut lines = futures::stream::select_all(streams);
    while let Some(line) = lines.try_next().await.context("the log has broken off")? {
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(&line).and_then(|()| stdout.flush());
        written.context("cannot write to standard output")?;
    }
    Ok(())
}

/// The lines of a log, whatever bytes they are made of.
fn lines(prefix: String, log: impl AsyncBufRead + Unpin) -> impl Stream<Item = io::Result<Vec<u8>>> {
    futures::stream::try_unfold((prefix, log), async |(prefix, mut log)| {
        let mut line = prefix.clone().into_bytes();
        let read = log.read_until(b'\n', &mut line).await?;
        Ok((read > 0).then_some((line, (prefix, log))))
    })
}

/// The container that is meant: the one that is named, the one that the pod prefers, or the first.
fn container(pod: &Pod, args: &LogsArgs) -> anyhow::Result<Option<String>> {
    let spec = pod.spec.as_ref();
    let first = spec.iter().flat_map(|spec| &spec.containers).map(|container| &container.name);
    let init = spec.iter().flat_map(|spec| spec.init_containers.iter().flatten()).map(|container| &container.name);
    let names: Vec<&String> = first.chain(init).collect();
    if let Some(wanted) = &args.container {
        if !names.contains(&wanted) {
            let names: Vec<&str> = names.into_iter().map(String::as_str).collect();
            return Err(Hinted::new(format!("the pod {} has no container {wanted}", pod.name_any()))
                .hint(format!("it has {}", names.join(", ")))
                .into());
        }
        return Ok(Some(wanted.clone()));
    }
    let preferred = pod.annotations().get("kubectl.kubernetes.io/default-container");
    let chosen = preferred.filter(|name| names.contains(name)).or(names.first().copied());
    if let Some(chosen) = chosen.filter(|_| names.len() > 1) {
        eprintln!("{} has {} containers, this is {chosen}; -c names another", pod.name_any(), names.len());
    }
    Ok(chosen.cloned())
}

/// The pods that are meant.
async fn find(client: &Client, args: &LogsArgs) -> anyhow::Result<Vec<Pod>> {
    let namespace = &args.namespace.namespace;
    let (kind, name) = args.name.split_once('/').map_or((None, args.name.as_str()), |(kind, name)| (Some(kind), name));
    if name.is_empty() {
        return Err(Hinted::new(format!("{:?} names nothing", args.name))
            .hint("name a pod or its owner: NAME or KIND/NAME; skep get pods shows what there is")
            .into());
    }
    let kind = match kind {
        Some(kind) => Some(Kinds::discover(client).await?.find(kind)?.resource.kind.clone()),
        None => None,
    };
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let is_meant = |other: &str| kind.as_deref().is_none_or(|kind| kind == other);
    if is_meant("Pod")
        && let Some(pod) = pods.get_opt(name).await.map_err(refusal)?
    {
        return Ok(vec![pod]);
    }
    let mut selectors = Vec::new();
    // Objects of Skep's kinds have workloads of their own name.
    let is_ours = kind.as_deref().is_some_and(|kind| kind.contains("MCP"));
    if is_meant("Deployment") || is_ours {
        let found = Api::<Deployment>::namespaced(client.clone(), namespace).get_opt(name).await.map_err(refusal)?;
        selectors.extend(found.and_then(|found| Some(found.spec?.selector)));
    }
    if is_meant("StatefulSet") || is_ours {
        let found = Api::<StatefulSet>::namespaced(client.clone(), namespace).get_opt(name).await.map_err(refusal)?;
        selectors.extend(found.and_then(|found| Some(found.spec?.selector)));
    }
    if is_meant("ReplicaSet") {
        let found = Api::<ReplicaSet>::namespaced(client.clone(), namespace).get_opt(name).await.map_err(refusal)?;
        selectors.extend(found.and_then(|found| Some(found.spec?.selector)));
    }
    if selectors.is_empty() {
        return Err(Hinted::new(format!("there is no {} in the namespace {namespace}", args.name))
            .hint("name a pod or its owner: skep get pods, skep get deployments")
            .into());
    }
    let mut found: BTreeMap<String, Pod> = BTreeMap::new();
    for selector in selectors {
        found.extend(selected(&pods, selector).await?.into_iter().map(|pod| (pod.name_any(), pod)));
    }
    if found.is_empty() {
        return Err(Hinted::new(format!("{} has no pods", args.name))
            .hint("it may be scaled to zero, or just made: skep get pods, skep get events")
            .into());
    }
    Ok(found.into_values().collect())
}

async fn selected(pods: &Api<Pod>, selector: LabelSelector) -> anyhow::Result<Vec<Pod>> {
    let selector = Selector::try_from(selector).context("the selector of the owner cannot be understood")?;
    Ok(pods.list(&ListParams::default().labels_from(&selector)).await.map_err(refusal)?.items)
}
