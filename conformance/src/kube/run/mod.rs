//! Runs scenarios.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, Request};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::definition;
use super::expectation::mismatches;
use super::ignore;
use super::normalise::normalise;
use super::recording::{Exchange, Recording, body_value, recorded_headers};
use super::request::{self, RequestError};
use super::scenario::{Scenario, Step, Until};
use super::server::{CallError, Caller, Server};
use super::template::{TemplateError, Values};
use super::watch::Watch;
use crate::files::LoadError;

/// How long one request may take; watches are opened, not read, within it.
const DEADLINE: Duration = Duration::from_secs(30);

/// How long `eventually` waits.
const PATIENCE: Duration = Duration::from_secs(20);

/// Between two tries of something that will come true.
const PAUSE: Duration = Duration::from_millis(50);

/// Why a scenario cannot go on.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("not a request: {0}")]
    Http(#[from] http::Error),
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("no answer in time")]
    NoAnswerInTime,
    #[error("the answer has no end")]
    NoEnd,
    #[error("the answer broke off: {0}")]
    Broken(Box<kube::Error>),
    #[error("cannot prepare {path}: {status} {body}")]
    NotPrepared { path: String, status: u16, body: Value },
    #[error("{path} is still not served: {status} {body}")]
    NotServed { path: String, status: u16, body: Value },
    #[error("nothing at {pointer} to save as {name}: {body}")]
    NothingToSave { name: String, pointer: String, body: Value },
    #[error("no watch is called {0}")]
    NoSuchWatch(String),
    #[error("{until:?} did not come; seen: {seen}")]
    NotSeen { until: Until, seen: Value },
}

/// What came of a scenario.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The normalised answers.
    pub recording: Recording,
    /// Expectations that did not hold, each with its step.
    pub failures: Vec<String>,
    /// Objects outside of any namespace that the scenario has left behind, by path.
    pub leftovers: Vec<String>,
}

/// Runs scenarios, some at a time; the outcomes are in the order of the scenarios.
pub async fn run_all<S: Server + 'static>(server: Arc<S>, scenarios: Vec<Scenario>, at_once: usize) -> Vec<Outcome> {
    let permits = Arc::new(Semaphore::new(at_once.max(1)));
    let mut tasks = JoinSet::new();
    for (index, scenario) in scenarios.into_iter().enumerate() {
        let (server, permits) = (Arc::clone(&server), Arc::clone(&permits));
        tasks.spawn(async move {
            // The semaphore is never closed; without a permit the scenario merely runs earlier.
            let _permit = permits.acquire().await;
            (index, run(server.as_ref(), &scenario).await)
        });
    }
    let mut outcomes = BTreeMap::new();
    while let Some(ended) = tasks.join_next().await {
        if let Ok((index, outcome)) = ended {
            outcomes.insert(index, outcome);
        }
    }
    outcomes.into_values().collect()
}

/// Runs a scenario in a namespace of its own.
pub async fn run(server: &impl Server, scenario: &Scenario) -> Outcome {
    let mut run = Run::new(server, scenario);
    if let Err(problem) = run.prepare().await {
        run.failures.push(format!("{}: {problem}", scenario.name));
    } else {
        for (index, step) in scenario.steps.iter().enumerate() {
            let label = label(step);
            match run.step(step).await {
                Ok((answer, problems)) => {
                    let place = format!("{} step {} ({label})", scenario.name, index + 1);
                    run.failures.extend(problems.iter().map(|problem| format!("{place}: {problem}")));
                    run.record(index + 1, label, step, answer);
                }
                Err(problem) => {
                    run.failures.push(format!("{} step {} ({label}): {problem}", scenario.name, index + 1));
                    break;
                }
            }
        }
    }
    run.outcome()
}

/// Removes what scenarios have left behind.
pub async fn remove(server: &impl Server, outcomes: &[Outcome]) {
    for path in outcomes.iter().flat_map(|outcome| &outcome.leftovers) {
        if let Ok(request) = Request::delete(path).body(Vec::new()) {
            // What is gone already is as good as removed.
            let _ = timeout(DEADLINE, server.call(&Caller::Admin, request)).await;
        }
    }
}

fn label(step: &Step) -> String {
    match (&step.collect, &step.watch) {
        (Some(name), _) => format!("collect {name}"),
        (None, Some(name)) => format!("watch {name}: {}", step.request),
        (None, None) => step.request.clone(),
    }
}

struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Value,
}

struct Run<'a, S> {
    server: &'a S,
    scenario: &'a Scenario,
    namespace: String,
    unique: String,
    values: Values,
    watches: BTreeMap<String, Watch>,
    exchanges: Vec<Exchange>,
    failures: Vec<String>,
    leftovers: Vec<String>,
}

impl<'a, S: Server> Run<'a, S> {
    fn new(server: &'a S, scenario: &'a Scenario) -> Self {
        let unique = unique();
        let namespace = format!("ns-{unique}");
        let mut values = Values::default();
        values.save("namespace", json!(namespace));
        values.save("unique", json!(unique));
        Self {
            server,
            scenario,
            namespace,
            unique,
            values,
            watches: BTreeMap::new(),
            exchanges: Vec::new(),
            failures: Vec::new(),
            leftovers: Vec::new(),
        }
    }

    /// Makes the namespace and the definitions, and waits until all is served.
    async fn prepare(&mut self) -> Result<(), RunError> {
        self.create("/api/v1/namespaces", &json!({ "metadata": { "name": self.namespace } })).await?;
        // Pods are refused without it, and the controller that makes it may come later or not at all.
        let accounts = format!("/api/v1/namespaces/{}/serviceaccounts", self.namespace);
        self.create(&accounts, &json!({ "metadata": { "name": "default" } })).await?;
        for definition in &self.scenario.definitions {
            let template = definition.template()?;
            let object = self.values.value(&template)?;
            self.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &object).await?;
            for collection in definition::collections(&object) {
                self.wait_until_served(&collection).await?;
            }
        }
        Ok(())
    }

    async fn create(&mut self, path: &str, object: &Value) -> Result<(), RunError> {
        let request = Request::post(path).header("content-type", "application/json");
        let request = request.body(object.to_string().into_bytes())?;
        let answer = self.call(&Caller::Admin, request).await?;
        match answer.status {
            200..300 | 409 => {
                self.remember(path, &answer.body);
                Ok(())
            }
            status => Err(RunError::NotPrepared { path: path.to_owned(), status, body: answer.body }),
        }
    }

    async fn wait_until_served(&self, path: &str) -> Result<(), RunError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let request = Request::get(path).body(Vec::new())?;
            let answer = self.call(&Caller::Admin, request).await?;
            if answer.status == 200 {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(RunError::NotServed { path: path.to_owned(), status: answer.status, body: answer.body });
            }
            sleep(PAUSE).await;
        }
    }

    /// The answer to a step and what is wrong with it.
    async fn step(&mut self, step: &Step) -> Result<(Answer, Vec<String>), RunError> {
        let expected = self.values.value(&expected(step))?;
        let deadline = Instant::now() + PATIENCE;
        let (answer, problems) = loop {
            let answer = self.answer(step).await?;
            let headers: BTreeMap<_, _> = recorded_headers(&answer.headers);
            let actual = json!({ "status": answer.status, "headers": headers, "body": answer.body });
            let problems = mismatches(&expected, Some(&actual));
            if problems.is_empty() || !step.eventually || Instant::now() > deadline {
                break (answer, problems);
            }
            sleep(PAUSE).await;
        };
        for (name, pointer) in &step.save {
            let value = answer.body.pointer(pointer);
            let value = value.ok_or_else(|| RunError::NothingToSave {
                name: name.clone(),
                pointer: pointer.clone(),
                body: answer.body.clone(),
            })?;
            self.values.save(name, value.clone());
        }
        Ok((answer, problems))
    }

    async fn answer(&mut self, step: &Step) -> Result<Answer, RunError> {
        if let Some(name) = &step.collect {
            let watch = self.watches.get_mut(name).ok_or_else(|| RunError::NoSuchWatch(name.clone()))?;
            return match watch.collect(&step.until).await {
                Ok(events) => Ok(Answer { status: 200, headers: HeaderMap::new(), body: Value::Array(events) }),
                Err(events) => Err(RunError::NotSeen { until: step.until.clone(), seen: Value::Array(events) }),
            };
        }
        let request = request::build(step, &self.values)?;
        let collection = request.uri().path().to_owned();
        let is_post = request.method() == http::Method::POST;
        match &step.watch {
            None => {
                let answer = self.call(&step.caller, request).await?;
                if is_post || answer.status == 201 {
                    self.remember(&collection, &answer.body);
                }
                Ok(answer)
            }
            Some(name) => {
                let response = self.open(&step.caller, request).await?;
                if response.status() == 200 {
                    let headers = response.headers().clone();
                    self.watches.insert(name.clone(), Watch::read(response));
                    Ok(Answer { status: 200, headers, body: Value::Null })
                } else {
                    read(response).await
                }
            }
        }
    }

    async fn open(&self, caller: &Caller, request: Request<Vec<u8>>) -> Result<http::Response<Body>, RunError> {
        let answered = timeout(DEADLINE, self.server.call(caller, request)).await;
        Ok(answered.map_err(|_| RunError::NoAnswerInTime)??)
    }

    async fn call(&self, caller: &Caller, request: Request<Vec<u8>>) -> Result<Answer, RunError> {
        read(self.open(caller, request).await?).await
    }

    /// Notes an object outside of any namespace that was created, so that it can be removed.
    fn remember(&mut self, collection: &str, object: &Value) {
        let metadata = &object["metadata"];
        if let (Some(name), true, true) =
            (metadata["name"].as_str(), metadata["namespace"].is_null(), metadata["uid"].is_string())
        {
            let name = format!("/{name}");
            let path = collection.strip_suffix(&name).unwrap_or(collection);
            self.leftovers.push(format!("{path}{name}"));
        }
    }

    fn record(&mut self, step: usize, request: String, from: &Step, answer: Answer) {
        let mut body = answer.body;
        for path in &from.ignore {
            match self.values.text(path) {
                Ok(path) => ignore::remove(&mut body, &path),
                Err(problem) => self.failures.push(format!("{} step {step}: {problem}", self.scenario.name)),
            }
        }
        for select in &from.select {
            ignore::select(&mut body, select);
        }
        let headers = recorded_headers(&answer.headers);
        self.exchanges.push(Exchange { step, request, status: answer.status, headers, body });
    }

    fn outcome(self) -> Outcome {
        let raw = Recording { scenario: self.scenario.name.clone(), exchanges: self.exchanges };
        let mut leftovers = self.leftovers;
        leftovers.reverse();
        leftovers.dedup();
        Outcome {
            recording: normalise(raw, &self.namespace, &self.unique, self.scenario.managed_fields),
            failures: self.failures,
            leftovers,
        }
    }
}

async fn read(response: http::Response<Body>) -> Result<Answer, RunError> {
    let (parts, body) = response.into_parts();
    let bytes = timeout(DEADLINE, body.collect_bytes()).await.map_err(|_| RunError::NoEnd)?;
    let body = body_value(&parts.headers, &bytes.map_err(|error| RunError::Broken(Box::new(error)))?);
    Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body })
}

fn expected(step: &Step) -> Value {
    let expect = &step.expect;
    let mut pattern = json!({ "headers": expect.headers });
    if let Some(status) = expect.status {
        pattern["status"] = json!(status);
    }
    if let Some(body) = &expect.body {
        pattern["body"] = body.clone();
    }
    pattern
}

/// Letters that no other run has: the time of the start and a count.
fn unique() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_micros());
    let number = started * 1000 + u128::from(COUNT.fetch_add(1, Ordering::Relaxed) % 1000);
    let letters = number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'k')).collect::<String>();
    format!("q{letters}")
}
