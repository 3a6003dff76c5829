//! A server on standard input and output, which speaks all revisions.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ElicitRequestParams, ListToolsResult, PaginatedRequestParams, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::transport::stdio;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};
use serde_json::{Value, json};

use crate::{of, words};

struct Server;

/// What a person is asked.
fn form() -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    json!({"mode": "form", "message": "Name?", "requestedSchema": schema})
}

fn said(text: &str) -> CallToolResponse {
    CallToolResponse::Complete(of(json!({"content": [{"type": "text", "text": text}], "resultType": "complete"})))
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut config = ServerConfig::default();
        config.capabilities = of(json!({"tools": {}}));
        config
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({"type": "object", "properties": {"message": {"type": "string"}}});
        Ok(of(
            json!({"tools": [{"name": "echo", "inputSchema": schema}, {"name": "greet", "inputSchema": {"type": "object"}}]}),
        ))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = words(&request.arguments);
        if request.name == "echo" {
            return Ok(said(arguments["message"].as_str().unwrap_or_default()));
        }
        // A request that stands alone is answered with the question, and comes again with the answer.
        let answer = if words(&context.meta)["io.modelcontextprotocol/protocolVersion"].is_string() {
            let answers = words(&request.input_responses);
            if answers["name"].is_null() {
                let question = json!({"method": "elicitation/create", "params": form()});
                let wanted = json!({"resultType": "input_required", "inputRequests": {"name": question}});
                return Ok(CallToolResponse::InputRequired(of(wanted)));
            }
            answers["name"].clone()
        } else {
            let asked = context.peer.create_elicitation(of::<ElicitRequestParams>(form())).await;
            words(asked.map_err(|error| ErrorData::internal_error(error.to_string(), None))?)
        };
        Ok(said(&format!("Hello, {}!", answer["content"]["name"].as_str().unwrap_or_default())))
    }
}

pub(crate) async fn run() {
    Server.serve(stdio()).await.unwrap().waiting().await.unwrap();
}
