//! A client of any revision.

use std::sync::{Arc, Mutex};

use rmcp::model::{
    CallToolRequestParams, ClientConfig, ClientRequest, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequestParams, ElicitResult, ListRootsResult, LoggingMessageNotificationParam, ProgressNotificationParam,
    ProtocolVersion, ResourceUpdatedNotificationParam,
};
use rmcp::service::{NotificationContext, PeerRequestOptions, RequestContext, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt as _, ErrorData, RoleClient};
use serde_json::{Value, json};
use tokio::net::{TcpStream, UnixListener};
use tokio::sync::Notify;

use crate::words::{of, words};

const STATELESS: &str = "2026-07-28";

/// What the client can be asked, and what it has heard.
struct Client {
    revision: String,
    heard: Arc<Heard>,
}

#[derive(Default)]
struct Heard {
    /// By the calls that they are steps of.
    steps: Mutex<Vec<(Value, i64)>>,
    logged: Mutex<Vec<Value>>,
    updated: Mutex<Option<String>>,
    told: Notify,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        of(json!({"protocolVersion": self.revision, "capabilities": {"sampling": {}, "elicitation": {}, "roots": {}},
            "clientInfo": {"name": "rmcp", "version": "1"}}))
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        Ok(of(json!({"role": "assistant", "content": {"type": "text", "text": "honey"}, "model": "test"})))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(of(json!({"action": "accept", "content": {"name": "Ada"}})))
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(of(json!({"roots": [{"uri": "file:///hive", "name": "hive"}]})))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.heard.steps.lock().unwrap().push((words(params.progress_token), params.progress as i64));
        self.heard.told.notify_one();
    }

    async fn on_logging_message(&self, params: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        self.heard.logged.lock().unwrap().push(params.data);
        self.heard.told.notify_one();
    }

    async fn on_resource_updated(&self, params: ResourceUpdatedNotificationParam, _: NotificationContext<RoleClient>) {
        *self.heard.updated.lock().unwrap() = Some(params.uri);
        self.heard.told.notify_one();
    }
}

/// Connects. Without reqwest rmcp speaks HTTP on a socket of the file system, which is led on to the address here.
async fn connect(client: Client, url: &str, folder: &str) -> RunningService<RoleClient, Client> {
    let socket = format!("{folder}/{}", std::process::id());
    let target = url.trim_start_matches("http://").split('/').next().unwrap().to_owned();
    let listener = UnixListener::bind(&socket).unwrap();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let target = target.clone();
            tokio::spawn(async move {
                let mut far = TcpStream::connect(target).await.unwrap();
                // Either side may go at any time.
                let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            });
        }
    });
    let transport = StreamableHttpClientTransport::from_unix_socket(socket.as_str(), url.to_owned());
    let lifecycle = if client.revision == STATELESS {
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
    } else {
        ClientLifecycleMode::Initialize
    };
    client.serve_with_lifecycle(transport, lifecycle).await.unwrap()
}

/// A client that is connected, and what it has heard.
struct Connected {
    client: RunningService<RoleClient, Client>,
    heard: Arc<Heard>,
}

impl Connected {
    async fn call(&self, name: &'static str, arguments: Value, meta: &Value) -> Value {
        let mut params = CallToolRequestParams::new(name).with_arguments(of(arguments));
        params.meta = meta.is_object().then(|| of(meta.clone()));
        words(self.client.call_tool(params).await.unwrap())
    }

    async fn text(&self, name: &'static str, arguments: Value) -> Value {
        self.call(name, arguments, &Value::Null).await["content"][0]["text"].clone()
    }

    async fn read(&self, uri: &str) -> Value {
        words(self.client.read_resource(of(json!({"uri": uri}))).await.unwrap())["contents"][0]["text"].clone()
    }

    /// Waits until something was heard. Notifications are handled beside the answers.
    async fn until(&self, is_heard: impl Fn(&Heard) -> bool) {
        while !is_heard(&self.heard) {
            self.heard.told.notified().await;
        }
    }

    /// Calls a tool, and calls the call off when that has begun. What it told is forgotten.
    async fn call_off(&self, name: &str, arguments: Value) {
        let call: ClientRequest = of(json!({"method": "tools/call", "params": {"name": name, "arguments": arguments}}));
        let handle = self.client.send_cancellable_request(call, PeerRequestOptions::no_options()).await.unwrap();
        let token = words(&handle.progress_token);
        self.until(|heard| heard.steps.lock().unwrap().iter().any(|(of, _)| *of == token)).await;
        handle.cancel(None).await.unwrap();
        self.heard.steps.lock().unwrap().retain(|(of, _)| *of != token);
    }

    /// What every server has, with these names: its lists and what should be in them, and what it completes.
    async fn lists(&self, resource: &str, template: &str, prompt: &str) -> Value {
        let client = &self.client;
        let complete =
            of(json!({"ref": {"type": "ref/prompt", "name": prompt}, "argument": {"name": "name", "value": "A"}}));
        let templates = client.list_all_resource_templates().await.unwrap();
        json!({
            "tools": client.list_all_tools().await.unwrap().iter().any(|tool| tool.name == "echo"),
            "echo": self.text("echo", json!({"message": "hi"})).await,
            "resources": client.list_all_resources().await.unwrap().iter().any(|one| one.uri == resource),
            "templates": templates.iter().any(|one| one.uri_template == template),
            "prompts": client.list_all_prompts().await.unwrap().iter().any(|one| one.name == prompt),
            "completion": words(client.complete(complete).await.unwrap())["completion"]["values"],
        })
    }

    /// What it was told of steps, in their order.
    async fn steps(&self) -> Value {
        self.until(|heard| heard.steps.lock().unwrap().len() >= 2).await;
        let mut steps: Vec<i64> = self.heard.steps.lock().unwrap().iter().map(|(_, step)| *step).collect();
        steps.sort_unstable();
        json!(steps)
    }
}

/// Uses every feature once, and tells what it got.
pub(crate) async fn use_all(url: &str, revision: &str, folder: &str) -> Value {
    let heard = Arc::new(Heard::default());
    let client = connect(Client { revision: revision.to_owned(), heard: Arc::clone(&heard) }, url, folder).await;
    let connected = Connected { client, heard };
    let mut got = match std::env::var("FOREIGN") {
        Ok(features) => use_foreign(&connected, &features).await,
        Err(_) => use_demo(&connected, revision).await,
    };
    if revision != STATELESS {
        let ping: ClientRequest = of(json!({"method": "ping"}));
        got["ping"] = json!(words(connected.client.send_request(ping).await.unwrap()).to_string());
    }
    got["steps"] = connected.steps().await;
    connected.client.cancel().await.unwrap();
    got
}

/// A server of somebody else has other tools, and these features towards this client.
async fn use_foreign(connected: &Connected, features: &str) -> Value {
    let tries = |feature| features.split(' ').any(|one| one == feature);
    let hello = of(json!({"name": "hello", "arguments": {"name": "Ada"}}));
    let mut got = connected.lists("sdk://greeting", "sdk://greeting/{name}", "hello").await;
    got["resource"] = connected.read("sdk://greeting").await;
    got["templated"] = connected.read("sdk://greeting/Ada").await;
    let prompt = words(connected.client.get_prompt(hello).await.unwrap());
    got["prompt"] = prompt["messages"][0]["content"]["text"].clone();
    got["progress"] = connected.text("steps", json!({})).await;
    if tries("questions") {
        got["elicitation"] = connected.text("greet", json!({})).await;
    }
    if tries("roots") {
        got["roots"] = connected.text("roots", json!({})).await;
    }
    if tries("cancellation") {
        let before = connected.text("called-off", json!({})).await;
        connected.call_off("wait", json!({})).await;
        got["calledOff"] = json!(true);
        // The test ends a client that waits for too long.
        while connected.text("called-off", json!({})).await == before {}
    }
    got
}

async fn use_demo(connected: &Connected, revision: &str) -> Value {
    let Connected { client, heard } = connected;
    let mut got = connected.lists("demo://counter", "demo://greeting/{name}", "greet").await;
    got["server"] = words(client.peer_info().unwrap().as_ref())["serverInfo"]["name"].clone();
    got["resource"] = connected.read("demo://greeting/Ada").await;
    let prompt = words(client.get_prompt(of(json!({"name": "test_simple_prompt"}))).await.unwrap());
    got["prompt"] = json!(prompt["messages"].as_array().unwrap().len());
    got["progress"] = connected.text("progress", json!({"steps": 2, "milliseconds": 100})).await;
    connected.call_off("slow", json!({"seconds": 600})).await;
    got["calledOff"] = json!(true);
    got["sampling"] = connected.text("sampling", json!({"prompt": "?"})).await;
    got["roots"] = connected.text("test_input_required_result_list_roots", json!({})).await;
    // What is newer than the older one of the two sides is not tried.
    if std::env::var("OLDEST").unwrap().as_str() >= "2025-06-18" {
        got["sum"] = connected.call("add", json!({"a": 2, "b": 3}), &Value::Null).await["structuredContent"].clone();
        got["elicitation"] = connected.text("elicitation", json!({})).await;
    }
    let mut level = Value::Null;
    if revision == STATELESS {
        level = json!({"io.modelcontextprotocol/logLevel": "info"});
    } else {
        client.set_level(of(json!({"level": "info"}))).await.unwrap();
    }
    connected.call("log", json!({"level": "debug", "message": "quiet"}), &level).await;
    connected.call("log", json!({"level": "error", "message": "loud"}), &level).await;
    if revision == STATELESS {
        let mut listening = client.listen(of(json!({"resourceSubscriptions": ["demo://counter"]}))).await.unwrap();
        connected.text("touch", json!({})).await;
        let told = words(listening.next().await.unwrap().unwrap());
        *heard.updated.lock().unwrap() = told["params"]["uri"].as_str().map(str::to_owned);
    } else {
        client.subscribe(of(json!({"uri": "demo://counter"}))).await.unwrap();
        connected.text("touch", json!({})).await;
    }
    // A process that clients share logs to none of them.
    let is_logging = std::env::var_os("SHARED").is_none();
    connected.until(|heard| heard.updated.lock().unwrap().is_some()).await;
    connected.until(|heard| !is_logging || !heard.logged.lock().unwrap().is_empty()).await;
    got["updated"] = json!(*heard.updated.lock().unwrap());
    got["logged"] = json!(*heard.logged.lock().unwrap());
    got
}
