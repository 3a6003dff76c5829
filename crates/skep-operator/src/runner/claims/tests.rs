//! The order of things, with an API server that holds one StatefulSet and some pods of proxies.

use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::Value;
use tower::BoxError;

use super::*;

/// What the API server holds.
#[derive(Clone)]
struct Cluster(Arc<Mutex<Held>>);

struct Held {
    stateful_set: Value,
    /// The phase of each proxy that is there.
    proxies: BTreeMap<String, &'static str>,
    /// Whether somebody else writes after each time that somebody reads.
    is_busy: bool,
}

impl Cluster {
    fn new() -> Self {
        let metadata = json!({"name": "own", "resourceVersion": "1"});
        let stateful_set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata});
        Self(Arc::new(Mutex::new(Held { stateful_set, proxies: BTreeMap::new(), is_busy: false })))
    }

    /// The claims of a process in a pod.
    fn proxy(&self, pod: &str, process: &str) -> Claims {
        self.0.lock().proxies.insert(pod.to_owned(), "Running");
        self.proxy_in(Some(pod), process)
    }

    fn proxy_in(&self, pod: Option<&str>, process: &str) -> Claims {
        let held = Arc::clone(&self.0);
        let service = tower::service_fn(move |request: Request<Body>| {
            let held = Arc::clone(&held);
            async move {
                let (parts, body) = request.into_parts();
                let written = serde_json::from_slice(&body.collect().await?.to_bytes()).unwrap_or_default();
                let (status, answer) = held.lock().answer(parts.uri.path(), &written);
                let answer = Response::builder().status(status).body(Body::from(answer.to_string().into_bytes()))?;
                Ok::<_, BoxError>(answer)
            }
        });
        let proxy = Proxy { pod: pod.map(str::to_owned), process: process.to_owned() };
        Claims::new(Client::new(service, "default"), "default", "own", proxy)
    }
}

impl Held {
    fn answer(&mut self, path: &str, written: &Value) -> (u16, Value) {
        let failed = |code: u16, reason: &str| {
            (code, json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code}))
        };
        let version = |object: &Value| object["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap();
        if let Some(name) = path.strip_prefix("/api/v1/namespaces/default/pods/") {
            return match self.proxies.get(name) {
                Some(phase) => (200, json!({"metadata": {"name": name}, "status": {"phase": phase}})),
                None => failed(404, "NotFound"),
            };
        }
        let was_read = self.stateful_set.clone();
        if written.is_null() {
            if self.is_busy {
                self.stateful_set["metadata"]["resourceVersion"] = json!((version(&was_read) + 1).to_string());
            }
            return (200, was_read);
        }
        if written["metadata"]["resourceVersion"] != was_read["metadata"]["resourceVersion"] {
            return failed(409, "Conflict");
        }
        self.stateful_set["metadata"]["annotations"] = written["metadata"]["annotations"].clone();
        self.stateful_set["metadata"]["resourceVersion"] = json!((version(&was_read) + 1).to_string());
        (200, self.stateful_set.clone())
    }
}

fn running(containers: &[(&str, &str)]) -> Vec<Container> {
    let container = |(pod, id): &(&str, &str)| Container { pod: (*pod).into(), id: (*id).into(), is_ready: true };
    containers.iter().map(container).collect()
}

/// Claims a container, and attaches to it.
async fn visit(claims: &Claims, containers: &[(&str, &str)]) -> Option<String> {
    let mut claim = claims.claim(&running(containers)).await.unwrap()?;
    claim.use_up();
    Some(claim.container().id.clone())
}

#[tokio::test]
async fn a_container_is_taken_once_whichever_proxies_there_are() {
    let cluster = Cluster::new();
    let (old, new) = (cluster.proxy("old", "1"), cluster.proxy("new", "2"));
    let both = [("own-1", "a"), ("own-2", "b")];
    assert_eq!(visit(&old, &both).await.as_deref(), Some("a"));
    assert_eq!(visit(&new, &both).await.as_deref(), Some("b"));
    for proxy in [&old, &new] {
        assert_eq!(visit(proxy, &both).await, None);
        assert_eq!(proxy.left_behind(&running(&both)).await.unwrap(), Vec::<String>::new());
    }
    // The next container of a pod is another one, and who was there before does not matter.
    let both = [("own-1", "c"), ("own-2", "b")];
    assert_eq!(visit(&new, &both).await.as_deref(), Some("c"));
    assert_eq!(visit(&old, &both).await, None);
}

#[tokio::test]
async fn of_proxies_that_claim_at_once_one_gets_it() {
    let cluster = Cluster::new();
    let proxies: Vec<Claims> = (0..8).map(|number| cluster.proxy(&format!("p{number}"), &number.to_string())).collect();
    let visits =
        proxies.iter().flat_map(|proxy| [proxy, proxy]).map(|proxy| visit(proxy, &[("own-1", "a"), ("own-2", "b")]));
    let mut visited: Vec<String> = futures::future::join_all(visits).await.into_iter().flatten().collect();
    visited.sort();
    assert_eq!(visited, ["a", "b"]);
}

#[tokio::test]
async fn a_claim_that_was_not_used_is_used_by_its_process_only() {
    let cluster = Cluster::new();
    let (first, second) = (cluster.proxy("one", "1"), cluster.proxy("two", "2"));
    let one = [("own-1", "a")];
    drop(first.claim(&running(&one)).await.unwrap().unwrap());
    assert_eq!(visit(&second, &one).await, None);
    assert_eq!(visit(&first, &one).await.as_deref(), Some("a"));
    assert_eq!(visit(&first, &one).await, None);
}

#[tokio::test]
async fn what_proxies_leave_behind_is_ended_and_taken_by_nobody() {
    let cluster = Cluster::new();
    let all = [("own-1", "a"), ("own-2", "b"), ("own-3", "c"), ("own-4", "d"), ("own-5", "e")];
    for proxy in [cluster.proxy("gone", "1"), cluster.proxy("evicted", "2"), cluster.proxy("again", "3")] {
        visit(&proxy, &all).await.unwrap();
    }
    // Nobody can tell whether this one is still there.
    visit(&cluster.proxy_in(Some("laptop"), "4"), &all).await.unwrap();
    visit(&cluster.proxy_in(None, "5"), &all).await.unwrap();
    let last = cluster.proxy("again", "6");
    cluster.0.lock().proxies.remove("gone");
    cluster.0.lock().proxies.insert("evicted".into(), "Failed");
    assert_eq!(last.left_behind(&running(&all)).await.unwrap(), ["own-1", "own-2", "own-3"]);
    assert_eq!(visit(&last, &all).await, None);
    let next = [("own-1", "f")];
    assert_eq!(last.left_behind(&running(&next)).await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn nothing_is_taken_on_the_word_of_an_old_version_or_of_nobody() {
    let cluster = Cluster::new();
    let proxy = cluster.proxy("one", "1");
    let one = [("own-1", "a")];
    cluster.0.lock().is_busy = true;
    assert!(proxy.claim(&running(&one)).await.unwrap_err().contains("written all the time"));
    cluster.0.lock().is_busy = false;
    cluster.0.lock().stateful_set["metadata"]["annotations"] = json!({STDIO_PROCESSES_TAKEN: "{"});
    assert!(proxy.claim(&running(&one)).await.unwrap_err().contains("cannot be read, remove it"));
    cluster.0.lock().stateful_set["metadata"]["annotations"] = json!({});
    assert_eq!(visit(&proxy, &[("own-1", "")]).await, None, "it has no id yet");
    assert_eq!(visit(&proxy, &one).await.as_deref(), Some("a"));
}
