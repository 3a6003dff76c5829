//! The race of a rolling update: an old pod's container starts again while the new pod is coming up, and finds the
//! configuration of the new one under its live mount.
//!
//! What must hold: a pod keeps the generation of its own template, and nothing that an older pod writes lasts over what
//! a newer one wrote. The pods run a small stand-in for the proxy runner ([`WRITER`]); any API server and node will do.

mod history;
mod objects;
pub mod servers;

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::api::{DynamicObject, ListParams, LogParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use history::{History, Written};
use objects::{Orders, Template};

const NAMESPACE: &str = "race";
/// What the pods run.
const WRITER: &str = include_str!("writer.py");
/// Far more than a step takes on a busy machine.
const LIMIT: Duration = Duration::from_mins(2);
const SHORT: u32 = 3;
const LONG: u32 = 200;
const POLL: Duration = Duration::from_millis(50);

/// Where the race takes place.
#[derive(Debug, Clone)]
pub struct Place {
    /// The API server, as pods reach it.
    pub server: String,
    /// Whether pods have to use the network of the node to reach it.
    pub host_network: bool,
    /// An image of the node; its command is replaced.
    pub image: String,
}

/// Runs the race: a few rounds, or very many when `SKEP_SOAK` is set. Before, it proves that it would notice.
///
/// The client may do everything.
pub async fn run(client: Client, place: Place) -> anyhow::Result<String> {
    let rounds = if std::env::var_os("SKEP_SOAK").is_some() { LONG } else { SHORT };
    let mut race = Race::start(client, place).await?;
    race.round_without_frozen_generation().await.context("without a frozen generation")?;
    let begun = Instant::now();
    for number in 1..=rounds {
        race.round().await.with_context(|| format!("round {number} of {rounds}"))?;
    }
    Ok(format!("{rounds} rounds in {:.0} s", begun.elapsed().as_secs_f64()))
}

/// A race between a pod and its successor, again and again.
struct Race {
    client: Client,
    place: Place,
    pods: Api<Pod>,
    history: History,
    generation: i64,
}

impl Race {
    /// Brings up the pod of the first generation.
    async fn start(client: Client, place: Place) -> anyhow::Result<Self> {
        for object in objects::surroundings(NAMESPACE) {
            apply(&client, &object).await?;
        }
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
        until("the account of the pods", || async { Ok(accounts.get_opt("default").await?) }).await?;
        let pods = Api::namespaced(client.clone(), NAMESPACE);
        let history = History::watch(client.clone(), NAMESPACE, written);
        let mut race = Self { client, place, pods, history, generation: 0 };
        race.succeed(true).await?;
        Ok(race)
    }

    /// One update: the old container starts again before the new pod is ready, and in every second round after the new
    /// pod has written.
    async fn round(&mut self) -> anyhow::Result<()> {
        let late = self.generation % 2 == 0;
        let said = self.update(true, late).await?;
        let old = self.generation - 1;
        let expected = format!("own={old} live={} ", self.generation);
        ensure!(said.starts_with(&expected), "the old pod said {said:?}, and should have begun with {expected:?}");
        if late {
            ensure!(said.ends_with("skipped"), "the old pod saw what the new one wrote, and said {said:?}");
        }
        let last = Some(Written::of(self.generation));
        let seen = until("the end", || async { Ok((self.history.all().last().copied() == last).then_some(())) }).await;
        let written = self.history.all();
        seen.with_context(|| format!("was written: {written:?}"))?;
        ensure!(written.is_sorted(), "something older was written over something newer: {written:?}");
        Ok(())
    }

    /// The same with pods that take their generation from the live mount: the old pod overwrites the new one. It shows
    /// that the rounds would notice.
    async fn round_without_frozen_generation(&mut self) -> anyhow::Result<()> {
        let said = self.update(false, true).await?;
        let wrong = Written { generation: self.generation, content: self.generation - 1 };
        let written = self.history.all();
        ensure!(said.ends_with("applied") && written.contains(&wrong), "{said:?}, {written:?}");
        self.history.forget();
        self.succeed(true).await?;
        self.history.forget();
        Ok(())
    }

    /// The next generation, undisturbed.
    async fn succeed(&mut self, frozen: bool) -> anyhow::Result<()> {
        self.generation += 1;
        let generation = self.generation;
        self.order(&Orders { generation, go: generation, die: String::new() }).await?;
        self.roll_out(frozen).await?;
        self.settled(generation).await?;
        Ok(())
    }

    /// What the old pod said when it started again.
    async fn update(&mut self, frozen: bool, late: bool) -> anyhow::Result<String> {
        if !frozen {
            // The old pod is to know as little of its generation as the new one.
            self.succeed(false).await?;
        }
        let old = self.settled(self.generation).await?;
        self.generation += 1;
        let generation = self.generation;
        let mut orders = Orders { generation, go: generation - 1, die: String::new() };
        self.order(&orders).await?;
        self.roll_out(frozen).await?;
        if late {
            let new = Written::of(generation);
            until("the word of the new pod", || async { Ok(self.history.all().contains(&new).then_some(())) }).await?;
        }
        orders.die.clone_from(&old);
        self.order(&orders).await?;
        let said = self.said_again(&old).await?;
        orders.go = generation;
        self.order(&orders).await?;
        self.settled(generation).await?;
        Ok(said)
    }

    async fn order(&self, orders: &Orders) -> anyhow::Result<()> {
        apply(&self.client, &objects::orders(NAMESPACE, orders)).await
    }

    async fn roll_out(&self, frozen: bool) -> anyhow::Result<()> {
        let template = Template { generation: self.generation, frozen };
        apply(&self.client, &objects::deployment(NAMESPACE, &self.place, &template)).await
    }

    /// Waits until the pod of a generation is ready and alone, and has written; its name.
    async fn settled(&self, generation: i64) -> anyhow::Result<String> {
        let wanted = generation.to_string();
        let settled = until(&format!("generation {generation} alone"), || async {
            let pods = self.pods.list(&ListParams::default().labels("app=race")).await?;
            let [pod] = pods.items.as_slice() else { return Ok(None) };
            let is_right = pod.annotations().get(objects::GENERATION) == Some(&wanted);
            Ok((is_right && is_ready(pod)).then(|| pod.name_any()))
        })
        .await;
        match settled {
            Ok(name) => Ok(name),
            Err(error) => Err(error.context(self.told().await)),
        }
    }

    /// How all pods are, for people.
    async fn told(&self) -> String {
        let pods = self.pods.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
        let mut told = Vec::new();
        for pod in pods {
            let log = self.pods.logs(&pod.name_any(), &LogParams::default()).await;
            told.push(format!("{:#}\n{log:?}", json!({"metadata": pod.metadata, "status": pod.status})));
        }
        told.join("\n")
    }

    async fn said_again(&self, pod: &str) -> anyhow::Result<String> {
        until(&format!("the second start of {pod}"), || async {
            let status = self.pods.get(pod).await?.status.unwrap_or_default();
            let container = status.container_statuses.unwrap_or_default().into_iter().next();
            if container.is_none_or(|container| container.restart_count < 1) {
                return Ok(None);
            }
            // There is no log between the two runs.
            let log = self.pods.logs(pod, &LogParams::default()).await.unwrap_or_default();
            Ok(log.lines().next().map(str::to_owned))
        })
        .await
    }
}

fn written(object: &StatefulSet) -> Option<Written> {
    let template = &object.spec.as_ref()?.template;
    let generation = template.metadata.as_ref()?.annotations.as_ref()?.get(objects::GENERATION)?.parse().ok()?;
    let image = template.spec.as_ref()?.containers.first()?.image.as_deref()?;
    Some(Written { generation, content: image.strip_prefix("content-")?.parse().ok()? })
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

async fn apply(client: &Client, object: &Value) -> anyhow::Result<()> {
    let text = |member: &Value| member.as_str().unwrap_or_default().to_owned();
    let (group, version) = match text(&object["apiVersion"]).split_once('/') {
        Some((group, version)) => (group.to_owned(), version.to_owned()),
        None => (String::new(), text(&object["apiVersion"])),
    };
    let resource = ApiResource::from_gvk(&GroupVersionKind { group, version, kind: text(&object["kind"]) });
    let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let parameters = PatchParams::apply("race").force();
    let name = text(&object["metadata"]["name"]);
    api.patch(&name, &parameters, &Patch::Apply(object)).await.with_context(|| format!("cannot apply {name}"))?;
    Ok(())
}

/// Asks again and again until there is an answer.
async fn until<T, F: Future<Output = anyhow::Result<Option<T>>>>(what: &str, ask: impl Fn() -> F) -> anyhow::Result<T> {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask().await? {
            return Ok(answer);
        }
        ensure!(begun.elapsed() < LIMIT, "waited {} s for {what}", LIMIT.as_secs());
        tokio::time::sleep(POLL).await;
    }
}
