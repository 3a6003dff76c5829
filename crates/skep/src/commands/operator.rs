//! `skep operator`.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use skep_api::names::{LABEL_LIMIT, env, operator};
use skep_operator::election::Candidate;
use skep_operator::metrics::Metrics;
use skep_operator::operator::{KINDS, Operator};
use skep_operator::{health, openshift};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::cli::OperatorArgs;
use crate::endpoint::Caller;
use crate::hint::{Hinted, closest};
use crate::stop::Stop;

/// Which cluster to look after, and how.
#[derive(Debug)]
pub struct Settings {
    kubeconfig: Option<PathBuf>,
    context: Option<String>,
    metrics: Option<SocketAddr>,
    health: Option<SocketAddr>,
    leader_elect: bool,
    operator: skep_operator::settings::Settings,
}

impl TryFrom<OperatorArgs> for Settings {
    type Error = anyhow::Error;

    fn try_from(args: OperatorArgs) -> anyhow::Result<Self> {
        let said = |name: &str| std::env::var(name).ok();
        let mut operator = skep_operator::settings::Settings::from_environment(said).map_err(|text| {
            Hinted::new(text).hint("name namespaces, separated by commas, or unset the variable for all of them")
        })?;
        if !args.controllers.is_empty() {
            operator.controllers =
                args.controllers.iter().map(|name| kind(name)).collect::<Result<BTreeSet<_>, _>>()?;
        }
        check_namespaces(std::env::var(env::operator::WATCH_NAMESPACE).ok().as_deref(), &operator.namespaces)?;
        operator.concurrency = args.concurrency.into();
        operator.proxy.enforce_network_profiles = args.enforce_network_profiles;
        operator.handshake = Some(Arc::new(Caller));
        operator.migration_page = migration_page(&operator.namespaces)?;
        Ok(Self {
            kubeconfig: args.kubeconfig,
            context: args.context,
            metrics: address("--metrics-bind-address", &args.metrics_bind_address)?,
            health: address("--health-probe-bind-address", &args.health_probe_bind_address)?,
            leader_elect: args.leader_elect,
            operator,
        })
    }
}

/// Whether those who gather the logs of pods read what the operator notices.
pub(super) fn is_read_by_programs() -> bool {
    std::env::var(env::operator::UNSTRUCTURED_LOGS).is_ok_and(|said| said.eq_ignore_ascii_case("false"))
}

/// A kind that has a controller, by its name in any case.
fn kind(name: &str) -> Result<&'static str, Hinted> {
    KINDS.into_iter().find(|kind| kind.eq_ignore_ascii_case(name)).ok_or_else(|| {
        let hint = match closest(name, KINDS) {
            Some(meant) => format!("did you mean {meant}?"),
            None => format!("the kinds are {}", KINDS.join(", ")),
        };
        Hinted::new(format!("there is no controller for {name:?}")).hint(hint)
    })
}

/// Refuses namespaces that cannot be, and a list of none, which would mean all of them.
fn check_namespaces(said: Option<&str>, namespaces: &[String]) -> Result<(), Hinted> {
    let name = env::operator::WATCH_NAMESPACE;
    if namespaces.is_empty()
        && let Some(said) = said.filter(|said| !said.is_empty())
    {
        return Err(Hinted::new(format!("{name} {said:?} names no namespace"))
            .hint("name namespaces, separated by commas; unset it to look after all of them"));
    }
    let is_inner = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    let is_label = |text: &str| {
        text.len() <= LABEL_LIMIT && text.chars().all(is_inner) && !text.starts_with('-') && !text.ends_with('-')
    };
    match namespaces.iter().find(|namespace| !is_label(namespace)) {
        None => Ok(()),
        Some(wrong) => Err(Hinted::new(format!("{name}: no namespace can be called {wrong:?}"))
            .hint("a name has lower case letters, digits and hyphens; separate several by commas")),
    }
}

/// Whether stored objects are migrated, which concerns the whole cluster.
fn migration_page(namespaces: &[String]) -> Result<Option<u32>, Hinted> {
    let name = env::operator::ENABLE_STORAGE_VERSION_MIGRATOR;
    let said = std::env::var(name).ok();
    let page = skep_operator::settings::migration_page(said.as_deref())
        .map_err(|text| Hinted::new(text).hint("set it to true or false, or not at all"))?;
    if page.is_some() && !namespaces.is_empty() {
        let text = format!("{name} is on, but {} names some namespaces only", env::operator::WATCH_NAMESPACE);
        return Err(Hinted::new(text).hint("migrate with an operator that looks after the whole cluster"));
    }
    Ok(page)
}

/// An address as [HOST]:PORT; none for 0.
fn address(flag: &str, text: &str) -> Result<Option<SocketAddr>, Hinted> {
    if text == "0" {
        return Ok(None);
    }
    let whole = if text.starts_with(':') { format!("0.0.0.0{text}") } else { text.to_owned() };
    whole.parse().map(Some).map_err(|_| {
        Hinted::new(format!("{flag} {text:?} is no address"))
            .hint("write it as :8080, 127.0.0.1:8080 or [::1]:8080; 0 serves none")
    })
}

pub(super) fn run(settings: Settings) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(serve(settings))
}

async fn serve(settings: Settings) -> anyhow::Result<()> {
    let mut stop = Stop::new()?;
    let client = client(&settings).await?;
    let metrics = Arc::new(Metrics::default());
    let (ready, is_ready) = watch::channel(false);
    let mut told = JoinSet::new();
    if let Some(address) = settings.metrics {
        let listener = listen("--metrics-bind-address", address).await?;
        told.spawn(health::serve_metrics(listener, metrics.clone()));
    }
    if let Some(address) = settings.health {
        let listener = listen("--health-probe-bind-address", address).await?;
        told.spawn(health::serve_health(listener, is_ready));
    }
    let mut candidate = None;
    let ended = tokio::select! {
        worked = work(settings, client, metrics, ready, &mut candidate) => worked,
        Some(ended) = told.join_next() => Err(anyhow!("metrics and health are no longer served: {ended:?}")),
        () = stop.asked() => Ok(()),
    };
    // Nothing writes any more: the next replica need not wait.
    if let Some(candidate) = candidate {
        candidate.resign().await;
    }
    ended
}

/// Looks after the cluster until another replica does. Who stands for election is in `candidate`.
async fn work(
    mut settings: Settings,
    client: Client,
    metrics: Arc<Metrics>,
    ready: watch::Sender<bool>,
    candidate: &mut Option<Candidate>,
) -> anyhow::Result<()> {
    if settings.leader_elect {
        let candidate = candidate.insert(stand(metrics.counted(client.clone())).await?);
        // One that stands by is ready to take over.
        ready.send_replace(true);
        let (lease, namespace) = (operator::LEADER_ELECTION_ID, election_namespace());
        tell(&format!("standing by: another replica may lead, by lease {lease} in namespace {namespace}"));
        candidate.elected().await;
        // One that leads is ready when it works.
        ready.send_replace(false);
    }
    let said = std::env::var(env::operator::OPENSHIFT).ok();
    settings.operator.proxy.openshift = openshift::detect(&client, said.as_deref()).await;
    let operator = Operator::start(client, &settings.operator, metrics);
    let look_after = async {
        operator.ready().await;
        ready.send_replace(true);
        tell(&format!("looking after {}", scope(&settings.operator.namespaces)));
        std::future::pending::<()>().await;
    };
    match candidate {
        None => look_after.await,
        Some(candidate) => tokio::select! {
            () = look_after => {}
            () = candidate.deposed() => bail!("another replica leads now; this one starts anew"),
        },
    }
    Ok(())
}

/// Says how far the operator has come, in the form in which it tells everything else.
fn tell(text: &str) {
    if is_read_by_programs() {
        tracing::info!("{text}");
    } else {
        eprintln!("{text}");
    }
}

/// Where the lease is by which one replica leads.
fn election_namespace() -> String {
    let said = std::env::var(env::operator::POD_NAMESPACE).ok().filter(|namespace| !namespace.is_empty());
    said.unwrap_or_else(|| operator::DEFAULT_NAMESPACE.to_owned())
}

async fn stand(client: Client) -> anyhow::Result<Candidate> {
    let (lease, namespace) = (operator::LEADER_ELECTION_ID, election_namespace());
    let stood = Candidate::stand(client, &namespace, &identity()).await;
    stood.with_context(|| format!("cannot stand for election by lease {lease} in namespace {namespace}"))
}

fn scope(namespaces: &[String]) -> String {
    if namespaces.is_empty() { "all namespaces".to_owned() } else { format!("namespaces {}", namespaces.join(", ")) }
}

/// A name that no other replica has: the pod's, or this process's.
fn identity() -> String {
    std::env::var(env::runner::HOSTNAME).ok().filter(|name| !name.is_empty()).map_or_else(
        || format!("skep-operator-{}", std::process::id()),
        |name| format!("{name}-{}", std::process::id()),
    )
}

async fn client(settings: &Settings) -> anyhow::Result<Client> {
    let options = KubeConfigOptions { context: settings.context.clone(), ..KubeConfigOptions::default() };
    let config = match (&settings.kubeconfig, &settings.context) {
        (Some(path), _) => {
            let named = format!("the kubeconfig {}", path.display());
            let document = Kubeconfig::read_from(path).map_err(|error| unusable(&named, &error))?;
            Config::from_custom_kubeconfig(document, &options).await.map_err(|error| unusable(&named, &error))?
        }
        (None, Some(_)) => {
            let unusable = |error| unusable("the kubeconfig of the environment", &error);
            Config::from_kubeconfig(&options).await.map_err(unusable)?
        }
        (None, None) => Config::infer().await.map_err(|error| {
            Hinted::new(format!("there is no cluster to look after: {error}"))
                .hint("name a kubeconfig with --kubeconfig, or run in a pod that has a service account")
        })?,
    };
    Ok(Client::try_from(config)?)
}

/// What is wrong with a kubeconfig. Its place is told once.
fn unusable(kubeconfig: &str, error: &KubeconfigError) -> Hinted {
    let cause = match error {
        KubeconfigError::ReadConfig(cause, _) => cause.to_string(),
        other => other.to_string(),
    };
    Hinted::new(format!("cannot use {kubeconfig}: {cause}")).hint(
        "give --kubeconfig a file that kubectl can read; `kubectl config get-contexts` lists what --context can name",
    )
}

async fn listen(flag: &str, address: SocketAddr) -> Result<tokio::net::TcpListener, Hinted> {
    tokio::net::TcpListener::bind(address).await.map_err(|error: io::Error| {
        Hinted::new(format!("cannot listen on {address}: {error}"))
            .hint(format!("choose another address with {flag}, or 0 for none"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_the_reference() {
        assert_eq!(address("--x", ":8080").unwrap(), Some(SocketAddr::from(([0, 0, 0, 0], 8080))));
        assert_eq!(address("--x", "127.0.0.1:1").unwrap(), Some(SocketAddr::from(([127, 0, 0, 1], 1))));
        assert_eq!(address("--x", "0").unwrap(), None);
        assert!(address("--x", "here").unwrap_err().to_string().contains("--x \"here\""));
    }

    #[test]
    fn namespaces_that_cannot_be_are_refused() {
        let check = |said: &str| {
            let named: Vec<String> =
                said.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
            check_namespaces(Some(said), &named).is_ok()
        };
        assert!(check("") && check("a, b-2") && check_namespaces(None, &[]).is_ok());
        for said in [" , ", "Bad_NS", "boot,x y", "-a"] {
            assert!(!check(said), "{said}");
        }
    }

    #[test]
    fn kinds_are_found_in_any_case() {
        assert_eq!(kind("mcpserver").unwrap(), "MCPServer");
        assert!(kind("MCPSever").unwrap_err().to_string().contains("MCPSever"));
    }
}
