//! The race with the real thing: an MCPServer whose image changes, its operator, and proxies that start again meanwhile.
//!
//! Every image carries a number that grows with the generation of the MCPServer. Whatever is written about the server
//! behind the proxies, neither the generation nor the image ever goes back; and a proxy that was overtaken still reaches the
//! server.

use std::time::Instant;

use anyhow::{Context as _, ensure};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{AttachParams, DeleteParams, ListParams, LogParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use tokio::io::AsyncReadExt as _;

use super::history::{History, Written};
use super::{LONG, SHORT, apply, is_ready, until};

const NAMESPACE: &str = "race-of-servers";
const GENERATION: &str = "toolhive.stacklok.dev/mcpserver-generation";
const IMAGE: &str = "skep-demo/echo:";
/// The pods of the proxy.
const PROXIES: &str = "app=mcpserver,app.kubernetes.io/instance=race";

/// The pod of a proxy that starts when its successor is there.
const OVERTAKEN: &str = "overtaken";
const CALL: &str = r#"curl -sS -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
    -d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":2,"b":3}}}' \
    http://127.0.0.1:8080/mcp"#;
const ANSWER: &str = r#""sum":5"#;

/// When the old proxy is told to start again.
#[derive(Debug, Clone, Copy)]
enum Moment {
    AtOnce,
    WhenTheNewOneIsThere,
    WhenTheNewOneHasWritten,
}

/// Runs the race: a few rounds, or very many when `SKEP_SOAK` is set. An operator looks after the cluster, and a node
/// runs its pods. The client may do everything.
pub async fn run(client: Client) -> anyhow::Result<String> {
    let rounds = if std::env::var_os("SKEP_SOAK").is_some() { LONG } else { SHORT };
    apply(&client, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})).await?;
    let history = History::watch(client.clone(), NAMESPACE, written);
    let pods = Api::namespaced(client.clone(), NAMESPACE);
    let mut race = Race { client, pods, history, generation: 0, restarts: 0 };
    race.succeed().await?;
    let mut old = race.settled().await?;
    let begun = Instant::now();
    for number in 1..=rounds {
        let moment = match number % 3 {
            0 => Moment::AtOnce,
            1 => Moment::WhenTheNewOneIsThere,
            _ => Moment::WhenTheNewOneHasWritten,
        };
        let round = race.round(&old, moment).await;
        old = round.with_context(|| format!("round {number} of {rounds}, {moment:?}, {:?}", race.history.all()))?;
    }
    ensure!(race.restarts > 0, "no old proxy was there long enough to start again");
    race.overtaken(&old).await.context("an old proxy that starts when the new one is there")?;
    Ok(format!(
        "{rounds} rounds, {} old proxies started again, in {:.0} s",
        race.restarts,
        begun.elapsed().as_secs_f64()
    ))
}

struct Race {
    client: Client,
    pods: Api<Pod>,
    history: History,
    generation: i64,
    /// How many old proxies were told to start again, and were still there.
    restarts: u32,
}

impl Race {
    /// The next generation of the MCPServer.
    async fn succeed(&mut self) -> anyhow::Result<()> {
        self.generation += 1;
        let spec = json!({"image": format!("{IMAGE}{}", self.generation), "transport": "stdio"});
        let server = json!({"apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer",
            "metadata": {"name": "race", "namespace": NAMESPACE}, "spec": spec});
        apply(&self.client, &server).await
    }

    /// One update in which the old proxy starts again; the name of the new one.
    async fn round(&mut self, old: &str, moment: Moment) -> anyhow::Result<String> {
        self.succeed().await?;
        match moment {
            Moment::AtOnce => {}
            Moment::WhenTheNewOneIsThere => {
                until("the new proxy", || async { Ok((self.proxies().await?.len() > 1).then_some(())) }).await?;
            }
            Moment::WhenTheNewOneHasWritten => {
                let new = Written::of(self.generation);
                until("its word", || async { Ok(self.history.all().contains(&new).then_some(())) }).await?;
            }
        }
        if self.start_again(old).await? {
            self.restarts += 1;
        }
        let new = self.settled().await?;
        let written = self.history.all();
        ensure!(written.is_sorted(), "something older was written over something newer");
        let contents: Vec<i64> = written.iter().map(|written| written.content).collect();
        ensure!(contents.is_sorted(), "an older image came back");
        Ok(new)
    }

    /// Another proxy like this one starts after its successor has written: it leaves that alone, and a tool that is called
    /// through it answers. No Deployment ends it.
    async fn overtaken(&mut self, old: &str) -> anyhow::Result<()> {
        let like = self.pods.get(old).await?;
        let mut spec = serde_json::to_value(&like.spec)?;
        spec["nodeName"].take();
        self.succeed().await?;
        self.settled().await?;
        let metadata = json!({"name": OVERTAKEN, "namespace": NAMESPACE, "annotations": like.metadata.annotations});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
        self.pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
        until("an answer through it", || async { Ok(self.call().await.ok().filter(|told| told.contains(ANSWER))) })
            .await
            .with_context(|| "it does not serve")?;
        let said = self.pods.logs(OVERTAKEN, &LogParams::default()).await?;
        ensure!(said.contains("a newer proxy has deployed the MCP server"), "it was not overtaken: {said}");
        ensure!(self.history.all().last() == Some(&Written::of(self.generation)), "it has written");
        self.pods.delete(OVERTAKEN, &DeleteParams::default()).await?;
        Ok(())
    }

    /// What a tool says that is called through the proxy that was overtaken, by somebody beside it.
    async fn call(&self) -> anyhow::Result<String> {
        let streams = AttachParams::default().stdout(true).stderr(false);
        let mut told = self.pods.exec(OVERTAKEN, ["/bin/sh", "-c", CALL], &streams).await?;
        let mut said = String::new();
        told.stdout().context("it has no output")?.read_to_string(&mut said).await?;
        Ok(said)
    }

    /// Kills the container of a pod; whether it has started again. The pod may be gone before.
    async fn start_again(&self, pod: &str) -> anyhow::Result<bool> {
        // Everything but the first process, which is not the proxy's own, and the shell itself.
        let command = ["/bin/sh", "-c", "kill -KILL -1"];
        let streams = AttachParams::default().stdout(true).stderr(false);
        if let Ok(told) = self.pods.exec(pod, command, &streams).await {
            // It ends as soon as nobody is left.
            let _ = told.join().await;
        }
        until(&format!("the second start of {pod}"), || async {
            let found = self.pods.get_opt(pod).await?;
            let Some(found) = found.filter(|found| found.metadata.deletion_timestamp.is_none()) else {
                return Ok(Some(false));
            };
            let containers = found.status.unwrap_or_default().container_statuses.unwrap_or_default();
            Ok(containers.iter().any(|container| container.restart_count > 0).then_some(true))
        })
        .await
    }

    async fn proxies(&self) -> anyhow::Result<Vec<Pod>> {
        let pods = self.pods.list(&ListParams::default().labels(PROXIES)).await?.items;
        Ok(pods.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect())
    }

    /// Waits until the proxy of this generation is ready and alone, and has written; its name.
    async fn settled(&self) -> anyhow::Result<String> {
        let wanted = self.generation.to_string();
        until(&format!("generation {wanted} alone"), || async {
            let pods = self.proxies().await?;
            let [pod] = pods.as_slice() else { return Ok(None) };
            let is_right = pod.annotations().get(GENERATION) == Some(&wanted) && is_ready(pod);
            let has_written = self.history.all().last() == Some(&Written::of(self.generation));
            Ok((is_right && has_written).then(|| pod.name_any()))
        })
        .await
    }
}

fn written(object: &StatefulSet) -> Option<Written> {
    let template = &object.spec.as_ref()?.template;
    let generation = template.metadata.as_ref()?.annotations.as_ref()?.get(GENERATION)?.parse().ok()?;
    let image = template.spec.as_ref()?.containers.first()?.image.as_deref()?;
    Some(Written { generation, content: image.strip_prefix(IMAGE)?.parse().ok()? })
}
