//! Readers that others wrote: the parser of Prometheus' own client, and the types of OpenTelemetry.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use skep_conformance::skip::skip_outside_ci;

use crate::once;

const PACKAGES: [&str; 2] = ["prometheus_client==0.26.0", "opentelemetry-proto==1.45.2"];

/// What reads them, in Python.
pub(crate) struct Reader(PathBuf);

impl Reader {
    /// Nothing when this machine cannot have it; then the test is recorded as skipped.
    pub(crate) fn get(test: &str) -> Option<Self> {
        let installed = once::install("pypi", &PACKAGES.join("+"), |folder| {
            let mut pip = Command::new("python3");
            pip.args(["-m", "pip", "install", "--quiet", "--retries=1", "--target"]).arg(folder).args(PACKAGES);
            pip
        });
        installed.map(Self).map_err(|reason| skip_outside_ci(test, &reason)).ok()
    }

    /// The spans of requests to a collector.
    pub(crate) fn spans<'a>(&self, requests: impl IntoIterator<Item = &'a [u8]>) -> Vec<Value> {
        self.read("traces", &lines(requests))
    }

    /// What metrics say in requests to a collector.
    pub(crate) fn metrics<'a>(&self, requests: impl IntoIterator<Item = &'a [u8]>) -> Vec<Value> {
        self.read("metrics", &lines(requests))
    }

    /// The samples of a page.
    pub(crate) fn page(&self, text: &str) -> Vec<Value> {
        self.read("page", text)
    }

    fn read(&self, kind: &str, input: &str) -> Vec<Value> {
        let mut python = Command::new("python3");
        python.args(["-c", include_str!("read.py"), kind]).env("PYTHONPATH", &self.0);
        let mut python = python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // It reads everything before it says anything.
        python.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = python.wait_with_output().unwrap();
        assert!(output.status.success(), "{kind} cannot be read: {input}");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

fn lines<'a>(requests: impl IntoIterator<Item = &'a [u8]>) -> String {
    requests.into_iter().map(|request| hex::encode(request) + "\n").collect()
}

/// The value of the only sample of a page that has these labels, whatever others it has.
pub(crate) fn sample(page: &[Value], name: &str, labels: &[(&str, &str)]) -> Value {
    let has = |sample: &&Value| {
        sample["name"] == name && labels.iter().all(|(label, value)| sample["labels"][label] == *value)
    };
    let found: Vec<_> = page.iter().filter(has).collect();
    assert_eq!(found.len(), 1, "{name} {labels:?}: {found:?}");
    found[0]["value"].clone()
}
