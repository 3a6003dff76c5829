//! A client of any revision.

use std::sync::{Arc, Mutex};

use rmcp::model::{
    CallToolRequestParams, ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, LoggingMessageNotificationParam, ProgressNotificationParam, ProtocolVersion,
    ResourceUpdatedNotificationParam,
};
use rmcp::service::{NotificationContext, RequestContext, RunningService};
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
    steps: Mutex<Vec<i64>>,
    logged: Mutex<Vec<Value>>,
    updated: Mutex<Option<String>>,
    told: Notify,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        of(json!({"protocolVersion": self.revision, "capabilities": {"sampling": {}, "elicitation": {}},
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

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.heard.steps.lock().unwrap().push(params.progress as i64);
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

/// Uses every feature once, and tells what it got.
pub(crate) async fn use_all(url: &str, revision: &str, folder: &str) -> Value {
    let heard = Arc::new(Heard::default());
    let client = connect(Client { revision: revision.to_owned(), heard: Arc::clone(&heard) }, url, folder).await;
    let call = async |name: &'static str, arguments: Value, meta: &Value| {
        let mut params = CallToolRequestParams::new(name).with_arguments(of(arguments));
        params.meta = meta.is_object().then(|| of(meta.clone()));
        words(client.call_tool(params).await.unwrap())
    };
    let text = async |name, arguments, meta: &Value| call(name, arguments, meta).await["content"][0]["text"].clone();
    let nothing = Value::Null;
    if std::env::var_os("FOREIGN").is_some() {
        // A server of somebody else has other tools.
        let resource = words(client.read_resource(of(json!({"uri": "sdk://greeting"}))).await.unwrap());
        let hello = of(json!({"name": "hello", "arguments": {"name": "Ada"}}));
        let got = json!({
            "tools": client.list_all_tools().await.unwrap().iter().any(|tool| tool.name == "echo"),
            "echo": text("echo", json!({"message": "hi"}), &nothing).await,
            "resource": resource["contents"][0]["text"],
            "prompt": words(client.get_prompt(hello).await.unwrap())["messages"][0]["content"]["text"],
        });
        client.cancel().await.unwrap();
        return got;
    }
    let peer = words(client.peer_info().unwrap().as_ref());
    let resource = words(client.read_resource(of(json!({"uri": "demo://greeting/Ada"}))).await.unwrap());
    let prompt = words(client.get_prompt(of(json!({"name": "test_simple_prompt"}))).await.unwrap());
    let mut got = json!({
        "server": peer["serverInfo"]["name"],
        "tools": client.list_all_tools().await.unwrap().iter().any(|tool| tool.name == "echo"),
        "echo": text("echo", json!({"message": "hi"}), &nothing).await,
        "progress": text("progress", json!({"steps": 2, "milliseconds": 100}), &nothing).await,
        "sampling": text("sampling", json!({"prompt": "?"}), &nothing).await,
        "resource": resource["contents"][0]["text"],
        "prompt": prompt["messages"].as_array().unwrap().len(),
    });
    // What is newer than the older one of the two sides is not tried.
    if std::env::var("OLDEST").unwrap().as_str() >= "2025-06-18" {
        got["sum"] = call("add", json!({"a": 2, "b": 3}), &nothing).await["structuredContent"].clone();
        got["elicitation"] = text("elicitation", json!({}), &nothing).await;
    }
    let mut level = Value::Null;
    if revision == STATELESS {
        level = json!({"io.modelcontextprotocol/logLevel": "info"});
    } else {
        client.set_level(of(json!({"level": "info"}))).await.unwrap();
    }
    text("log", json!({"level": "debug", "message": "quiet"}), &level).await;
    text("log", json!({"level": "error", "message": "loud"}), &level).await;
    if revision == STATELESS {
        let mut listening = client.listen(of(json!({"resourceSubscriptions": ["demo://counter"]}))).await.unwrap();
        text("touch", json!({}), &nothing).await;
        let told = words(listening.next().await.unwrap().unwrap());
        *heard.updated.lock().unwrap() = told["params"]["uri"].as_str().map(str::to_owned);
    } else {
        client.subscribe(of(json!({"uri": "demo://counter"}))).await.unwrap();
        text("touch", json!({}), &nothing).await;
    }
    // Notifications are handled beside the answers. A process that clients share logs to none of them.
    let is_logging = std::env::var_os("SHARED").is_none();
    let is_missing = || {
        heard.updated.lock().unwrap().is_none()
            || is_logging && heard.logged.lock().unwrap().is_empty()
            || heard.steps.lock().unwrap().len() < 2
    };
    while is_missing() {
        heard.told.notified().await;
    }
    let mut steps = heard.steps.lock().unwrap().clone();
    steps.sort_unstable();
    got["steps"] = json!(steps);
    got["updated"] = json!(*heard.updated.lock().unwrap());
    got["logged"] = json!(*heard.logged.lock().unwrap());
    client.cancel().await.unwrap();
    got
}
