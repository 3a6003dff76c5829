//! A real Prometheus, as Debian has it, that asks what it is told to ask.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use skep_conformance::ports::free_port;
use skep_conformance::process::Process;
use skep_conformance::skip::skip;
use tempfile::TempDir;

use crate::http::Request;
use crate::once;
use crate::place::speaks;

/// Unpacks the package without installing it, so that nothing of the machine changes. A machine that is new knows of no
/// packages yet.
const UNPACK: &str = r#"
cd "$1"
apt-get download prometheus || { apt-get update && apt-get download prometheus; }
dpkg -x prometheus_*.deb . && rm prometheus_*.deb
"#;

/// The program.
#[derive(Debug)]
pub(crate) struct Prometheus(PathBuf);

/// One that runs, and ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Scraper {
    process: Process,
    address: String,
    _folder: TempDir,
}

impl Prometheus {
    /// Nothing when this machine cannot have it; then the test is recorded as skipped.
    pub(crate) fn get(test: &str) -> Option<Self> {
        if Command::new("apt-get").arg("--version").output().is_err() {
            skip(test, "no apt-get to fetch Prometheus with");
            return None;
        }
        let installed = once::install("debian", "prometheus", |folder| {
            let mut shell = Command::new("sh");
            shell.args(["-euc", UNPACK, "unpack"]).arg(folder).env("DEBIAN_FRONTEND", "noninteractive");
            shell
        });
        installed.map(|folder| Self(folder.join("usr/bin/prometheus"))).map_err(|reason| skip(test, &reason)).ok()
    }

    /// Asks the page of a server every second.
    pub(crate) fn scrape(&self, target: &str) -> Scraper {
        let folder = tempfile::tempdir().unwrap();
        let settings = json!({"scrape_configs": [{
            "job_name": "hive", "scrape_interval": "1s", "scrape_timeout": "1s", "static_configs": [{"targets": [target]}],
        }]});
        let file = folder.path().join("prometheus.yml");
        std::fs::write(&file, settings.to_string()).unwrap();
        let address = format!("127.0.0.1:{}", free_port().unwrap());
        let arguments = [
            format!("--config.file={}", file.display()),
            format!("--storage.tsdb.path={}", folder.path().join("data").display()),
            format!("--web.listen-address={address}"),
        ];
        let process = Process::start("prometheus", &self.0, &arguments, folder.path()).unwrap();
        Scraper { process, address, _folder: folder }
    }
}

impl Scraper {
    /// The only value of a query. What has no value yet is told as an error.
    pub(crate) fn ask(&self, query: &str) -> Result<f64, String> {
        speaks(&self.address, "/-/ready")?;
        let body = format!("query={}", encoded(query));
        let request = Request::new("POST", "/api/v1/query").header("Content-Type", "application/x-www-form-urlencoded");
        let answer = request.body(&body).send(&self.address).json();
        let [found] = answer["data"]["result"].as_array().map_or(&[][..], Vec::as_slice) else {
            return Err(format!("{query}: {answer}\n{}", self.process.output()));
        };
        let value = found["value"][1].as_str().and_then(|value| value.parse().ok());
        value.ok_or_else(|| format!("{query}: {found}"))
    }

    /// What it takes a metric for.
    pub(crate) fn kind(&self, metric: &str) -> Value {
        let answer = Request::new("GET", &format!("/api/v1/metadata?metric={metric}")).send(&self.address).json();
        answer["data"][metric][0]["type"].clone()
    }
}

fn encoded(text: &str) -> String {
    hex::encode(text).as_bytes().chunks(2).flat_map(|byte| ['%', byte[0].into(), byte[1].into()]).collect()
}
