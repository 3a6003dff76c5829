//! A proxy that runs, until it is asked to stop or there is nothing left to do.

use std::ffi::{OsStr, OsString};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use skep_proxy::fetch::FetchPolicy;
use skep_proxy::stdio::{Bridge, ChildProcesses, Connector, LinkError};
use skep_proxy::transparent::{Dialect, Target, Transparent};
use skep_proxy::{Calls, Proxy, Readiness, SessionStore};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::tied::tied;
use super::{Front, eras};
use crate::hint::Hinted;
use crate::screen;
use crate::stop::{Stop, asked_again};

/// What comes to its end before this needs no words.
const MOMENT: Duration = Duration::from_millis(700);

/// Requests to stop, from the moment that this exists.
pub(crate) struct Requests {
    usual: Stop,
    quit: Signal,
    /// Whether it is a person who is told what is waited for, and not a log.
    is_by_hand: bool,
}

impl Requests {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { usual: Stop::new()?, quit: signal(SignalKind::quit())?, is_by_hand: false })
    }

    /// Waits for the end, unless somebody asks once more: whoever asks twice does not want to wait.
    async fn until<T>(&mut self, end: impl Future<Output = T>, calls: &Calls) -> Option<T> {
        let is_by_hand = self.is_by_hand;
        let telling = async {
            tokio::time::sleep(MOMENT).await;
            let calls = calls.under_way();
            if is_by_hand {
                screen::say(&waiting_for(calls));
            } else {
                tracing::info!(calls, "stopping; what is under way may finish");
            }
            std::future::pending::<()>().await;
        };
        let again = asked_again(async || {
            tokio::select! {
                () = self.usual.signalled() => {}
                _ = self.quit.recv() => {}
            }
        });
        tokio::select! {
            ended = end => Some(ended),
            () = again => {
                if is_by_hand {
                    screen::say("stopped at once");
                }
                None
            }
            () = telling => None,
        }
    }

    /// Ready when the process is asked to stop.
    pub(super) async fn asked(&mut self) {
        tokio::select! {
            () = self.usual.asked() => {}
            _ = self.quit.recv() => {}
        }
    }
}

/// What a person is told who waits for the end.
fn waiting_for(calls: usize) -> String {
    let what = match calls {
        0 => "the MCP server to end".to_owned(),
        1 => "1 call".to_owned(),
        calls => format!("{calls} calls"),
    };
    format!("stopping; waiting for {what}, Ctrl-C again ends it now")
}

/// A proxy, and what keeps its server connected.
pub(super) struct Served {
    pub(super) proxy: Proxy,
    link: BoxFuture<'static, Result<(), LinkError>>,
    stop: CancellationToken,
}

impl Served {
    /// A server on standard input and output.
    pub(super) fn bridge(front: &Front, bridge: Arc<Bridge>, connector: impl Connector) -> Self {
        let stop = CancellationToken::new();
        eras::warn_without_effect(&front.eras);
        bridge.say_era(front.eras.era);
        let proxy = match front.mode {
            Dialect::Streamable => {
                let proxy = Proxy::streamable(Arc::clone(&bridge)).with_forwarded(front.forwarded.clone());
                if front.is_strict { proxy.with_strict_versions() } else { proxy }
            }
            Dialect::Sse => Proxy::sse(Arc::clone(&bridge), front.forwarded.clone()),
        };
        let link = bridge.run(connector, stop.clone()).boxed();
        Self { proxy: facing(proxy, front), link, stop }
    }

    /// A server that speaks HTTP itself.
    pub(super) fn transparent(front: &Front, store: SessionStore, transparent: Transparent) -> Result<Self, Hinted> {
        eras::fit(&front.eras, front.mode)?;
        let stop = CancellationToken::new();
        let transparent = transparent.with_eras(front.eras.clone()).with_store(store);
        let transparent = if front.is_stateless { transparent.stateless() } else { transparent };
        let link = stop.clone().cancelled_owned().map(Ok).boxed();
        Ok(Self { proxy: facing(Proxy::transparent(transparent), front), link, stop })
    }

    /// A server of somebody else, which may be in our own networks or not.
    pub(super) fn remote(front: &Front, store: SessionStore, url: &str, is_inside: bool) -> anyhow::Result<Self> {
        let target = Target::remote(front.mode, url).map_err(|error| {
            Hinted::new(format!("the server cannot be reached: {error}"))
                .hint("write it like https://mcp.example.com/mcp")
        })?;
        refuse_barred(url)?;
        let target = if is_inside { target.allowing_private() } else { target };
        let transparent = Transparent::new(target, front.limits.clone(), front.forwarded.clone())?;
        let transparent = transparent.with_probing(front.probes_remote.then(|| front.probing.clone()));
        Ok(Self::transparent(front, store, transparent)?)
    }
}

/// Refuses an address that is never asked, whatever is allowed. What names lead to is looked at when it is dialled.
fn refuse_barred(url: &str) -> Result<(), Hinted> {
    let policy = FetchPolicy { allows_private: true, allows_http: true, ..FetchPolicy::default() };
    let address: http::Uri = url.parse().unwrap_or_default();
    policy.check(&address).map(drop).map_err(|cause| {
        Hinted::new(format!("the server cannot be asked: {cause}"))
            .hint("link-local addresses, and those where clouds answer machines about themselves, are never asked")
    })
}

/// A proxy as its clients are to see it.
fn facing(proxy: Proxy, front: &Front) -> Proxy {
    let proxy = proxy.with_origins(front.origins.clone()).with_middleware(front.middleware.clone());
    match &front.tls {
        Some(identity) => proxy.with_tls(identity.clone()),
        None => proxy,
    }
}

/// Opens the address that clients use.
pub(super) async fn listen(front: &Front) -> anyhow::Result<TcpListener> {
    let Front { host, port, .. } = front;
    let listener = TcpListener::bind((host.as_str(), *port)).await.map_err(|error| {
        Hinted::new(format!("cannot listen on {host}:{port}: {error}"))
            .hint("choose another address with --listen, or in a pod another proxyPort")
    })?;
    Ok(listener)
}

/// The same, for people.
async fn open(front: &Front) -> anyhow::Result<TcpListener> {
    let listener = listen(front).await?;
    let path = match front.mode {
        Dialect::Streamable => "mcp",
        Dialect::Sse => "sse",
    };
    let scheme = if front.tls.is_some() { "https" } else { "http" };
    eprintln!("serving {scheme}://{}/{path}", listener.local_addr()?);
    Ok(listener)
}

/// Serves until the process is asked to stop, the server is given up, or `work` has come to its end.
pub(super) async fn run(
    listener: TcpListener,
    served: Served,
    work: impl Future<Output = anyhow::Result<()>>,
    requests: &mut Requests,
) -> anyhow::Result<()> {
    let Served { proxy, link, stop } = served;
    let calls = proxy.calls();
    // Whoever comes to its end first ends the others, which finish what is under way.
    let serving = async {
        let ended = proxy.serve(listener, stop.clone()).await;
        stop.cancel();
        ended
    };
    let linking = async {
        let ended = link.await;
        stop.cancel();
        ended
    };
    let mut ending = pin!(async { tokio::join!(serving, linking) });
    let (worked, ended) = {
        let mut working = pin!(async {
            let ended = tokio::select! {
                ended = work => ended,
                () = requests.asked() => Ok(()),
                () = stop.cancelled() => Ok(()),
            };
            stop.cancel();
            ended
        });
        tokio::select! {
            worked = &mut working => (worked, None),
            ended = &mut ending => (working.as_mut().await, Some(ended)),
        }
    };
    let ended = match ended {
        Some(ended) => Some(ended),
        None => requests.until(ending, &calls).await,
    };
    worked?;
    let Some((served, linked)) = ended else { return Ok(()) };
    linked?;
    Ok(served?)
}

/// Serves a server of somebody else.
pub(crate) async fn serve_url(front: &Front, url: &str, requests: &mut Requests) -> anyhow::Result<()> {
    requests.is_by_hand = true;
    // Whoever starts a proxy by hand knows where the server is.
    let served = Served::remote(front, front.store().await?, url, true)?;
    run(open(front).await?, served, std::future::pending(), requests).await
}

/// Serves a program of this machine that speaks on standard input and output. With `own` processes, so many sessions have
/// one each.
pub(crate) async fn serve_command(
    front: &Front,
    command: Vec<OsString>,
    own: usize,
    requests: &mut Requests,
) -> anyhow::Result<()> {
    requests.is_by_hand = true;
    let program = command.first().cloned().unwrap_or_default();
    let process = tied(command);
    let (limits, readiness, store) = (front.limits.clone(), Readiness::default(), front.store().await?);
    let bridge = match own {
        0 => Bridge::with_store(limits, readiness, store),
        most => Bridge::with_processes(limits, readiness, store, ChildProcesses::new(process.clone(), most)),
    };
    let served = Served::bridge(front, bridge, process);
    let ended = run(open(front).await?, served, std::future::pending(), requests).await;
    ended.map_err(|error| naming(&program, error))
}

/// An error that says which command it is about.
fn naming(program: &OsStr, error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref() {
        // That it cannot be started is said with its name.
        None | Some(LinkError::Connect(_)) => error,
        Some(unstable) => Hinted::new(format!("{}: {unstable}", program.display()))
            .hint("it has to stay, and to speak MCP on standard input and output")
            .hint("what it says about itself on standard error is above")
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use skep_proxy::stdio::ConnectError;

    use super::*;

    #[test]
    fn a_command_that_does_not_stay_is_named_with_a_hint() {
        let said = |error: LinkError| crate::hint::report(&naming(OsStr::new("sh"), error.into()));
        let unstable = said(LinkError::Unstable(" (exit status: 1)".to_owned()));
        assert!(unstable.starts_with("error: sh: the MCP server ended 10 times"), "{unstable}");
        assert!(unstable.contains("hint: it has to stay"), "{unstable}");
        let connect = ConnectError { message: "cannot start sh: no".to_owned(), is_final: true };
        assert_eq!(said(LinkError::Connect(connect)), "error: cannot start sh: no\n");
    }

    #[test]
    fn a_server_is_not_where_clouds_answer_machines_whatever_is_allowed() {
        let front = Front::at("127.0.0.1".to_owned(), 0, Dialect::Streamable);
        let made = |url: &str| Served::remote(&front, SessionStore::memory(), url, true).map(drop);
        for url in ["http://169.254.169.254/latest", "https://[fd00:ec2::254]/mcp", "http://0.0.0.0:8080/mcp"] {
            let said = crate::hint::report(&made(url).unwrap_err());
            assert!(said.contains("which is not allowed") && said.contains("are never asked"), "{url}: {said}");
        }
        for url in ["http://127.0.0.1:8080/mcp", "https://mcp.example.com/mcp"] {
            assert!(made(url).is_ok(), "{url}");
        }
    }
}
