//! A server of all revisions, on lines or on streamable HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, GetPromptRequestParams,
    GetPromptResponse, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::words::{of, words};

/// Uses every feature once.
struct Server;

/// Requests that were called off.
static CALLED_OFF: AtomicU64 = AtomicU64::new(0);

/// Reports progress, if it is wanted.
async fn tell(context: &RequestContext<RoleServer>, progress: u64) {
    if let Some(token) = context.meta.get_progress_token() {
        let params = of(json!({"progressToken": words(token), "progress": progress, "total": 2}));
        context.peer.notify_progress(params).await.unwrap();
    }
}

/// A result with what every one says in revisions without sessions. rmcp takes the type out of it for older ones.
fn complete(mut result: Value) -> Value {
    result["resultType"] = json!("complete");
    result["_meta"] = json!({"io.modelcontextprotocol/serverInfo": {"name": "rmcp", "version": "1"}});
    result
}

fn text(text: &str) -> CallToolResponse {
    CallToolResponse::Complete(of(complete(json!({"content": [{"type": "text", "text": text}]}))))
}

/// Asks for the client's roots, and tells where they are.
async fn roots(
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let answer: Value = if let Some(answers) = request.input_responses {
        answers.get("roots").cloned().unwrap_or_default()
    } else if context.protocol_version() == Some(ProtocolVersion::V_2026_07_28) {
        return Ok(CallToolResponse::InputRequired(of(json!({"resultType": "input_required",
            "inputRequests": {"roots": {"method": "roots/list"}}}))));
    } else {
        let answer = context.peer.list_roots().await;
        words(answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?)
    };
    let places = answer["roots"].as_array().into_iter().flatten().filter_map(|root| root["uri"].as_str());
    Ok(text(&places.collect::<Vec<&str>>().join(" ")))
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        of(json!({"protocolVersion": "2025-11-25", "capabilities":
            {"tools": {}, "resources": {}, "prompts": {}, "completions": {}},
            "serverInfo": {"name": "rmcp", "version": "1"}}))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let message = json!({"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]});
        Ok(of(complete(json!({"tools": [
            {"name": "echo", "description": "Echoes.", "inputSchema": message},
            {"name": "greet", "description": "Asks for a name.", "inputSchema": {"type": "object"}},
            {"name": "roots", "description": "Asks for the client's roots.", "inputSchema": {"type": "object"}},
            {"name": "steps", "description": "Tells how far it is.", "inputSchema": {"type": "object"}},
            {"name": "wait", "description": "Waits until it is called off.", "inputSchema": {"type": "object"}},
            {"name": "called-off", "description": "Counts what was called off.", "inputSchema": {"type": "object"}},
        ]}))))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(of(complete(json!({"resources": [{"uri": "sdk://greeting", "name": "greeting"}]}))))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = json!({"uriTemplate": "sdk://greeting/{name}", "name": "greeting-of"});
        Ok(of(complete(json!({"resourceTemplates": [template]}))))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let text = match request.uri.strip_prefix("sdk://greeting/") {
            Some(name) => format!("Hello, {name}!"),
            None => "Hello!".to_owned(),
        };
        let contents = json!([{"uri": request.uri, "text": text}]);
        Ok(ReadResourceResponse::Complete(of(complete(json!({"contents": contents})))))
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(of(complete(json!({"prompts": [{"name": "hello", "arguments": [{"name": "name", "required": true}]}]}))))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let name = words(&request)["arguments"]["name"].as_str().unwrap_or("nobody").to_owned();
        let message = json!({"role": "user", "content": {"type": "text", "text": format!("Greet {name}.")}});
        Ok(GetPromptResponse::Complete(of(complete(json!({"messages": [message]})))))
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let begun = words(&request)["argument"]["value"].as_str().unwrap_or_default().to_owned();
        let names: Vec<&str> = ["Ada", "Alan", "Grace"].into_iter().filter(|name| name.starts_with(&begun)).collect();
        Ok(of(complete(json!({"completion": {"values": names}}))))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name == "echo" {
            let message = request.arguments.as_ref().and_then(|arguments| arguments.get("message")?.as_str());
            return Ok(text(message.unwrap_or_default()));
        }
        match &*request.name {
            "steps" => {
                tell(&context, 1).await;
                tell(&context, 2).await;
                return Ok(text("done"));
            }
            "wait" => {
                tell(&context, 1).await;
                context.ct.cancelled().await;
                CALLED_OFF.fetch_add(1, Ordering::Relaxed);
                return Ok(text("done"));
            }
            "called-off" => return Ok(text(&CALLED_OFF.load(Ordering::Relaxed).to_string())),
            "roots" => return roots(request, &context).await,
            _ => {}
        }
        let question = json!({"message": "Name?", "requestedSchema":
            {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}});
        let answer: Value = if let Some(answers) = request.input_responses {
            answers.get("name").cloned().unwrap_or_default()
        } else if context.protocol_version() == Some(ProtocolVersion::V_2026_07_28) {
            return Ok(CallToolResponse::InputRequired(of(json!({"resultType": "input_required",
                "inputRequests": {"name": {"method": "elicitation/create", "params": question}}}))));
        } else {
            let answer = context.peer.create_elicitation(of(question)).await;
            serde_json::to_value(answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?).unwrap()
        };
        Ok(text(&format!("Hello, {}!", answer["content"]["name"].as_str().unwrap_or("nobody"))))
    }
}

pub(crate) async fn on_lines() {
    let lines = (tokio::io::stdin(), tokio::io::stdout());
    Server.serve(lines).await.unwrap().waiting().await.unwrap();
}

/// Prints its port, and serves for ever.
pub(crate) async fn on_http() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap().port());
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(|| Ok(Server), sessions, Default::default());
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let service = TowerToHyperService::new(service.clone());
        tokio::spawn(async move {
            // Either side may go at any time.
            let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
