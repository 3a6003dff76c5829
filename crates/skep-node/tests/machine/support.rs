//! What the tests have in common.

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use libtest_mimic::Trial;
use skep_node::container::{Container, ContainerSpec, ExecSpec, Exit, Mount, Runtime, StartError};
use skep_node::isolation::Isolation;
use skep_node::network::{Network, NetworkConfig, PodNetwork};
use tokio::io::AsyncReadExt as _;

/// Longer than anything here takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The runtime of all tests, since the network that they share lives on it.
pub fn runtime() -> &'static tokio::runtime::Runtime {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap())
}

pub fn trial<F: Future<Output = ()> + 'static>(name: &str, test: fn() -> F) -> Trial {
    Trial::test(name, move || {
        runtime().block_on(async { tokio::time::timeout(2 * PATIENCE, test()).await }).map_err(Into::into)
    })
}

#[macro_export]
macro_rules! trials {
    ($($test:ident),* $(,)?) => {
        pub fn trials() -> Vec<libtest_mimic::Trial> {
            vec![$($crate::support::trial(concat!(module_path!(), "::", stringify!($test)), $test)),*]
        }
    };
}

/// The network of the namespace that the tests run in.
pub async fn network() -> Network {
    static NETWORK: tokio::sync::OnceCell<Network> = tokio::sync::OnceCell::const_new();
    let start = || async {
        let config = NetworkConfig {
            pod_range: "10.244.0.0/16".parse().unwrap(),
            service_range: "10.96.0.0/16".parse().unwrap(),
        };
        Network::start(Isolation::Namespaces, config).await.unwrap()
    };
    NETWORK.get_or_init(start).await.clone()
}

pub fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

pub fn environment() -> Vec<(String, String)> {
    vec![("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())]
}

/// A container that runs a shell script.
pub fn script(text: &str) -> ContainerSpec {
    ContainerSpec { argv: strings(&["/bin/sh", "-c", text]), env: environment(), ..ContainerSpec::default() }
}

/// A further process that runs a shell script.
pub fn further(text: &str) -> ExecSpec {
    ExecSpec { argv: strings(&["/bin/sh", "-c", text]), env: environment(), ..ExecSpec::default() }
}

/// A container that runs this program in a role.
pub fn role(role: crate::role::Role, arguments: &[&str]) -> ContainerSpec {
    let argv = std::iter::once("/test-program").chain(arguments.iter().copied()).collect::<Vec<_>>();
    ContainerSpec {
        argv: strings(&argv),
        env: vec![role.env()],
        mounts: vec![bind(&std::env::current_exe().unwrap(), "/test-program")],
        ..ContainerSpec::default()
    }
}

pub fn bind(source: &Path, target: &str) -> Mount {
    Mount { source: source.to_owned(), target: target.into(), read_only: false }
}

pub fn bind_read_only(source: &Path, target: &str) -> Mount {
    Mount { read_only: true, ..bind(source, target) }
}

pub async fn start(spec: &ContainerSpec) -> Result<Container, StartError> {
    Runtime::new(Isolation::Namespaces).start(spec, None).await
}

pub async fn start_on(spec: &ContainerSpec, pod: &PodNetwork) -> Container {
    Runtime::new(Isolation::Namespaces).start(spec, Some(pod)).await.unwrap()
}

/// All that a container prints, errors last, and how it ends.
pub async fn output(container: &mut Container) -> (String, Exit) {
    let (mut stdout, mut stderr) = (container.take_stdout().unwrap(), container.take_stderr().unwrap());
    let (mut text, mut errors) = (String::new(), String::new());
    tokio::try_join!(stdout.read_to_string(&mut text), stderr.read_to_string(&mut errors)).unwrap();
    (text + &errors, container.wait().await)
}

/// What a script prints in a container of this kind. It must succeed.
pub async fn printed(spec: &ContainerSpec) -> String {
    let (text, exit) = output(&mut start(spec).await.unwrap()).await;
    assert_eq!(exit, Exit { code: 0, signal: None }, "{text}");
    text
}

/// Tries until something is so.
pub async fn eventually(what: &str, mut check: impl FnMut() -> bool) {
    let so = async {
        while !check() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, so).await.is_ok(), "{what} did not happen");
}
