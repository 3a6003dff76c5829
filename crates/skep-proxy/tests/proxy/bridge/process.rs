//! The end of a server that is a process of this machine.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;

use futures::future::BoxFuture;
use skep_proxy::stdio::{Bridge, ChildProcess, ConnectError, Connector, Streams};
use skep_proxy::{Limits, Readiness};
use tokio_util::sync::CancellationToken;

use crate::http::PATIENCE;
use crate::warnings::Warnings;

/// Runs a script as a server until it is ready, stops the bridge, and tells what the script has written by then.
async fn told_by(script: &str, folder: &Path) -> String {
    let (begun, told) = (folder.join("begun"), folder.join("told"));
    let arguments = ["-c", script, "sh"].map(Into::into).into_iter().chain([begun.clone().into(), told.clone().into()]);
    let process = ChildProcess { program: "sh".into(), arguments: arguments.collect(), ..ChildProcess::default() };
    let bridge = Bridge::new(Limits::default(), Readiness::default());
    let stop = CancellationToken::new();
    let running = tokio::spawn(Arc::clone(&bridge).run(process, stop.clone()));
    let waiting = async {
        while !begun.exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    stop.cancel();
    tokio::time::timeout(PATIENCE, running).await.unwrap().unwrap().unwrap();
    std::fs::read_to_string(told).unwrap_or_default()
}

#[tokio::test]
async fn a_process_that_ends_with_its_input_has_time_for_that() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#": > "$1"; cat > /dev/null; echo closed > "$2""#;
    assert_eq!(told_by(script, folder.path()).await, "closed\n");
}

#[tokio::test]
async fn a_process_that_does_not_is_asked_to_end_with_all_that_it_started() {
    let folder = tempfile::tempdir().unwrap();
    // What it starts has the trap too, and says so after it.
    let script = r#"
        child() { trap 'echo child >> "$2"; exit' TERM; while :; do sleep 0.1; done; }
        child "$1" "$2" & child=$!
        trap 'wait $child; echo parent >> "$2"; exit' TERM
        : > "$1"
        while :; do sleep 0.1; done
    "#;
    assert_eq!(told_by(script, folder.path()).await, "child\nparent\n");
}

#[tokio::test]
async fn a_process_that_will_not_end_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"trap '' TERM; echo $$ > "$2"; : > "$1"; while :; do sleep 0.1; done"#;
    let process = told_by(script, folder.path()).await;
    assert!(!Path::new("/proc").join(process.trim()).exists());
}

#[tokio::test]
async fn what_a_process_has_started_does_not_outlive_it() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"sleep 1000 & echo $! > "$2"; : > "$1"; cat > /dev/null"#;
    let started = told_by(script, folder.path()).await;
    // It has ended, too, while nobody has asked how.
    let stat = std::fs::read_to_string(Path::new("/proc").join(started.trim()).join("stat")).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
}

#[tokio::test]
async fn it_is_told_how_a_process_ended() {
    let warnings = Warnings::listen();
    let arguments = ["-c", "exit 3"].map(Into::into).into();
    let process = ChildProcess { program: "sh".into(), arguments, ..ChildProcess::default() };
    let (bridge, stop) = (Bridge::new(Limits::default(), Readiness::default()), CancellationToken::new());
    let running = tokio::spawn(bridge.run(process, stop.clone()));
    let told = async {
        loop {
            if let Some(told) = warnings.take().into_iter().find(|told| told.contains("again")) {
                return told;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    let told = tokio::time::timeout(PATIENCE, told).await.unwrap();
    assert!(told.contains("the MCP server ended (exit status: 3)"), "{told}");
    stop.cancel();
    tokio::time::timeout(PATIENCE, running).await.unwrap().unwrap().unwrap();
}

/// A process that ends at once.
struct Ending;

impl Connector for Ending {
    fn connect(&self) -> BoxFuture<'_, Result<Streams, ConnectError>> {
        let ending = Box::pin(std::future::ready(Some(ExitStatus::from_raw(7 << 8))));
        let streams = Streams { input: Box::new(tokio::io::sink()), output: Box::new(tokio::io::empty()), ending };
        Box::pin(std::future::ready(Ok(streams)))
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_never_answers_is_given_up_and_it_is_told_how_it_ended() {
    let bridge = Bridge::new(Limits::default(), Readiness::default());
    let given_up = bridge.run(Ending, CancellationToken::new()).await.unwrap_err();
    let told = "the MCP server ended 10 times in a row before it answered anything (exit status: 7)";
    assert_eq!(given_up.to_string(), told);
}
