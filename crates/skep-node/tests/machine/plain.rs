//! Containers without namespaces.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use skep_node::container::{Container, ContainerSpec, Exit, Runtime, StartError, VOLUME_ROOT_VARIABLE};
use skep_node::isolation::{self, Isolation};

use crate::role::Role;
use crate::support::{bind, eventually, further, output, script};

crate::trials![
    programs_run_and_end,
    a_tree_with_daemons_is_killed_whole,
    volumes_are_for_programs_that_know,
    what_is_in_memory_goes_with_the_process,
];

/// The role that has a folder in memory, with a secret in it.
pub fn memory() -> ExitCode {
    let folder = isolation::memory_folder(Isolation::None, Path::new("unused")).unwrap();
    fs::create_dir(folder.join("deep")).unwrap();
    fs::write(folder.join("deep/secret"), "word").unwrap();
    println!("{}", folder.display());
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
    ExitCode::SUCCESS
}

async fn start(spec: &ContainerSpec) -> Result<Container, StartError> {
    Runtime::new(Isolation::None).start(spec, None).await
}

async fn programs_run_and_end() {
    let mut container = start(&script("echo out; echo error >&2; exit 3")).await.unwrap();
    assert_eq!(output(&mut container).await, ("out\nerror\n".to_owned(), Exit { code: 3, signal: None }));
    let container = start(&script("sleep 1000")).await.unwrap();
    assert_eq!(output(&mut container.exec(&further("echo further")).await.unwrap()).await.0, "further\n");
    container.terminate();
    assert_eq!(container.wait().await, Exit { code: 143, signal: Some(15) });
}

async fn a_tree_with_daemons_is_killed_whole() {
    let folder = tempfile::tempdir().unwrap();
    let beats = ["one", "two"].map(|name| folder.path().join(name));
    let beat = |number: usize| format!("while :; do date +%s%N > {}; sleep 0.02; done", beats[number].display());
    let text =
        format!("setsid sh -c \"trap '' TERM; {}\" & (setsid setsid sh -c '{}' &); sleep 1000", beat(0), beat(1));
    let container = start(&script(&text)).await.unwrap();
    eventually("the start of the daemons", || beats.iter().all(|beat| beat.exists())).await;
    container.kill();
    container.wait().await;
    let read = || beats.clone().map(|beat| fs::read_to_string(beat).unwrap());
    let before = read();
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    assert_eq!(read(), before, "their hearts have stopped");
}

async fn volumes_are_for_programs_that_know() {
    let (volume, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(volume.path().join("word"), "volume\n").unwrap();
    let mut spec = ContainerSpec {
        mounts: vec![bind(volume.path(), "/data/deep")],
        ..script(&format!("cat ${VOLUME_ROOT_VARIABLE}/data/deep/word"))
    };
    let error = start(&spec).await.unwrap_err();
    assert!(error.to_string().contains("mounts need namespaces"), "{error}");
    spec.env.push((VOLUME_ROOT_VARIABLE.to_owned(), root.path().to_str().unwrap().to_owned()));
    for _ in 0..2 {
        assert_eq!(output(&mut start(&spec).await.unwrap()).await.0, "volume\n");
    }
}

async fn what_is_in_memory_goes_with_the_process() {
    let start = || {
        let mut process = Role::Memory.command().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        (process, PathBuf::from(line.trim()))
    };
    let ((mut killed, of_killed), (mut ended, of_ended)) = (start(), start());
    assert!(of_killed.join("deep/secret").exists() && of_ended.join("deep/secret").exists());
    assert_ne!(of_killed, of_ended);
    killed.kill().unwrap();
    killed.wait().unwrap();
    eventually("the end of what a killed process had in memory", || !of_killed.exists()).await;
    assert!(of_ended.exists(), "others keep theirs");
    drop(ended.stdin.take());
    ended.wait().unwrap();
    eventually("the end of what is in memory", || !of_ended.exists()).await;
}
