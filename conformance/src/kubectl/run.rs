//! Running scripts.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use regex::Regex;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::follow::Following;
use super::normalise::Normaliser;
use super::script::{Script, Step};
use super::transcript::{Entry, Transcript};
use super::words::{self, OpenQuote};

/// How long a step may take.
const PATIENCE: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(200);

/// Why a script cannot be run. What kubectl or the server does wrong is in the transcript instead.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("cannot run kubectl: {0}")]
    Kubectl(#[from] io::Error),
    #[error(transparent)]
    Words(#[from] OpenQuote),
    #[error(transparent)]
    Pattern(#[from] regex::Error),
    #[error("the namespace {namespace} cannot be made: {cause}")]
    Namespace { namespace: String, cause: String },
    #[error("nothing is followed under the name {0}")]
    NotFollowed(String),
    #[error("a script was cut short: {0}")]
    Panicked(#[from] tokio::task::JoinError),
}

/// The kubectl of a cluster.
#[derive(Debug, Clone)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    /// Where it keeps its cache and its temporary files.
    home: PathBuf,
}

impl Kubectl {
    pub fn new(program: PathBuf, kubeconfig: PathBuf, home: PathBuf) -> Self {
        Self { program, kubeconfig, home }
    }

    fn command(&self, namespace: &str, line: &str) -> Result<Command, RunError> {
        let mut command = Command::new(&self.program);
        command
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(["--namespace", namespace])
            .args(words::split(line)?)
            .current_dir(super::folder().join("manifests"))
            .env("HOME", &self.home)
            .env("TMPDIR", &self.home)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        Ok(command)
    }

    /// Makes a namespace in which pods can be created.
    async fn prepare(&self, namespace: &str) -> Result<(), RunError> {
        let document = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        let mut child = self.command(namespace, "create -f -")?.stdin(Stdio::piped()).spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(document.to_string().as_bytes()).await?;
        }
        let created = child.wait_with_output().await?;
        let account =
            self.command(namespace, "wait --for=create serviceaccount/default --timeout=60s")?.output().await?;
        for output in [created, account] {
            if !output.status.success() {
                let cause = String::from_utf8_lossy(&output.stderr).into_owned();
                return Err(RunError::Namespace { namespace: namespace.to_owned(), cause });
            }
        }
        Ok(())
    }
}

/// Runs scripts side by side, each in the namespace of its name; the transcripts come in the order of the scripts.
pub async fn run_all(kubectl: &Kubectl, scripts: Vec<Script>, at_once: usize) -> Result<Vec<Transcript>, RunError> {
    let permits = Arc::new(Semaphore::new(at_once));
    let mut running = JoinSet::new();
    for script in scripts {
        let (kubectl, permits) = (kubectl.clone(), Arc::clone(&permits));
        running.spawn(async move {
            // The semaphore is never closed.
            let _permit = permits.acquire_owned().await;
            run(&kubectl, &script).await
        });
    }
    let mut transcripts = Vec::new();
    while let Some(transcript) = running.join_next().await {
        transcripts.push(transcript??);
    }
    transcripts.sort_by(|left, right| left.script.cmp(&right.script));
    Ok(transcripts)
}

async fn run(kubectl: &Kubectl, script: &Script) -> Result<Transcript, RunError> {
    kubectl.prepare(&script.name).await?;
    let mut session = Session { kubectl, namespace: &script.name, followed: BTreeMap::new() };
    let mut normaliser = Normaliser::new();
    let mut transcript = Transcript { script: script.name.clone(), entries: Vec::new() };
    for step in &script.steps {
        let command = step.collect.as_ref().map_or_else(|| step.run.clone(), |name| format!("(collect {name})"));
        let printed = timeout(PATIENCE, session.step(step)).await;
        let is_late = printed.is_err();
        let text = printed.unwrap_or_else(|_| Ok(format!("[not done after {} s]\n", PATIENCE.as_secs())))?;
        let mut output = normaliser.lines(&text, step.sorted);
        if let Some(only) = &step.only {
            let pattern = Regex::new(only)?;
            output.retain(|line| pattern.is_match(line));
        }
        transcript.entries.push(Entry { command, output });
        if is_late {
            break;
        }
    }
    Ok(transcript)
}

/// A script under way.
struct Session<'a> {
    kubectl: &'a Kubectl,
    namespace: &'a str,
    followed: BTreeMap<String, Following>,
}

impl Session<'_> {
    /// What a step prints. It waits without a limit of its own.
    async fn step(&mut self, step: &Step) -> Result<String, RunError> {
        let until = step.until.as_deref().map(Regex::new).transpose()?;
        if let Some(name) = &step.collect {
            let following = self.followed.remove(name).ok_or_else(|| RunError::NotFollowed(name.clone()))?;
            if let Some(pattern) = &until {
                following.until(pattern).await;
            }
            return Ok(following.output());
        }
        let mut command = self.kubectl.command(self.namespace, &step.run)?;
        if let Some(editor) = &step.editor {
            command.env("KUBE_EDITOR", editor);
        }
        if let Some(name) = &step.follow {
            let following = Following::start(command)?;
            if let Some(pattern) = &until {
                following.until(pattern).await;
            }
            self.followed.insert(name.clone(), following);
            return Ok(String::new());
        }
        loop {
            let printed = printed(&command.output().await?);
            match &until {
                Some(pattern) if !pattern.is_match(&printed) => tokio::time::sleep(PAUSE).await,
                _ => return Ok(printed),
            }
        }
    }
}

fn printed(output: &Output) -> String {
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    for line in String::from_utf8_lossy(&output.stderr).lines() {
        text.extend(["! ", line, "\n"]);
    }
    match output.status.code() {
        Some(0) => {}
        Some(code) => text.extend(["[exit ", &code.to_string(), "]\n"]),
        None => text.push_str("[killed]\n"),
    }
    text
}
