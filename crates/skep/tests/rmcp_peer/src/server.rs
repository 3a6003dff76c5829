//! A server of all revisions, on lines or on streamable HTTP.

use std::sync::Arc;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::words::of;

/// Echoes, and greets whoever says their name.
struct Server;

/// A result with what every one says in revisions without sessions. rmcp takes the type out of it for older ones.
fn complete(mut result: Value) -> Value {
    result["resultType"] = json!("complete");
    result["_meta"] = json!({"io.modelcontextprotocol/serverInfo": {"name": "rmcp", "version": "1"}});
    result
}

fn text(text: &str) -> CallToolResponse {
    CallToolResponse::Complete(of(complete(json!({"content": [{"type": "text", "text": text}]}))))
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        of(json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
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
        ]}))))
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
