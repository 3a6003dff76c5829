//! AWS, as others have written it: `moto` gives the credentials, and `botocore` says how a request is signed with them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use skep_conformance::skip::skip_outside_ci;
use skep_proxy::middleware::{Authentication, AwsSts, AwsStsSettings, Chain, Step};

use super::super::Guarded;
use super::{arn, settings, with_tools};
use crate::http::{Request, call};
use crate::once;
use crate::transparent::server::Seen;

/// Exactly what is installed.
const PACKAGES: [&str; 4] = ["moto==5.1.22", "botocore==1.44.0", "flask==3.1.3", "flask-cors==6.0.5"];

struct Aws {
    child: Child,
    requests: ChildStdin,
    signatures: BufReader<ChildStdout>,
    address: String,
}

impl Drop for Aws {
    fn drop(&mut self) {
        // One that has ended already is what we want.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Aws {
    /// Nothing when this machine cannot have it; then the test is recorded as skipped.
    fn start(test: &str) -> Option<Self> {
        let installed = once::install("pip", &PACKAGES.join("+"), |folder| {
            let mut pip = Command::new("python3");
            pip.args(["-m", "pip", "install", "--quiet", "--retries=1", "--target"]).arg(folder).args(PACKAGES);
            pip
        });
        let folder = installed.map_err(|reason| skip_outside_ci(test, &reason)).ok()?;
        let mut python = Command::new("python3");
        python.args(["-c", include_str!("independent.py")]).env("PYTHONPATH", folder);
        let mut child = python.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (requests, mut signatures) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut port = String::new();
        signatures.read_line(&mut port).unwrap();
        Some(Self { child, requests, signatures, address: format!("127.0.0.1:{}", port.trim()) })
    }

    /// The role and the signature that a request should have.
    fn judge(&mut self, server: &str, seen: &Seen) -> Value {
        let headers = seen.headers.iter().map(|(name, value)| (name.to_string(), json!(value.to_str().unwrap())));
        let request = json!({"method": seen.method, "url": format!("http://{server}{}", seen.target),
            "headers": headers.collect::<serde_json::Map<_, _>>(), "body": String::from_utf8_lossy(&seen.body)});
        writeln!(self.requests, "{request}").unwrap();
        let mut judged = String::new();
        self.signatures.read_line(&mut judged).unwrap();
        serde_json::from_str(&judged).unwrap_or_else(|error| panic!("{error}: {judged:?}"))
    }
}

#[tokio::test]
async fn requests_are_signed_as_others_sign_them_with_credentials_that_others_give() {
    let test = "requests_are_signed_as_others_sign_them_with_credentials_that_others_give";
    let Some(mut aws) = Aws::start(test) else { return };
    let guarded = Guarded::new(vec![], with_tools).await;
    let settings = AwsStsSettings { fallback_role: arn("keeper"), role_mappings: vec![], ..settings(&aws.address) };
    let step = Step::SignForAws(AwsSts::new(settings).unwrap());
    guarded.middleware.replace(Chain::new(vec![Step::Authenticate(Authentication::Anonymous), step]));
    let address = guarded.server.address.clone();
    for (target, name, value) in [
        ("/mcp", "X-Plain", "x"),
        ("/mcp?b=2&a=1&a=0&c", "X-Spaces", "  a   b  "),
        ("/a%2Cb/c%20d/", "X-Amz-Target", "Service.Do"),
        ("/mcp/./x/..//y", "Accept-Language", "de"),
    ] {
        let body = call(1, "feed").to_string();
        let request = Request::new("POST", target)
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream")
            .header("Authorization", "Bearer ours")
            .header(name, value)
            .body(body);
        let status = guarded.send(request).await.status;
        let seen = guarded.server.seen().pop().unwrap_or_else(|| panic!("{target}: {status}"));
        let judged = aws.judge(&address, &seen);
        let signature = seen.header("authorization").unwrap().rsplit("Signature=").next().unwrap();
        assert_eq!(judged["signature"], signature, "{target} {name}: {seen:?}");
        assert_eq!(judged["role"], "arn:aws:sts::123456789012:assumed-role/keeper/anonymous");
        assert_eq!(seen.header("x-amz-security-token"), judged["token"].as_str());
    }
}
