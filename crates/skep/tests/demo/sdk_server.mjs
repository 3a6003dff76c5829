// A server made with the first TypeScript SDK, whatever its version, after sdk_tools.mjs: it has sessions. Given the argument
// `stdio`, it speaks on lines; given `sse`, HTTP+SSE. Given `newest`, it knows no revision but the newest one of its SDK.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { completable } from "@modelcontextprotocol/sdk/server/completable.js";
import { McpServer, ResourceTemplate } from "@modelcontextprotocol/sdk/server/mcp.js";
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { SUPPORTED_PROTOCOL_VERSIONS } from "@modelcontextprotocol/sdk/types.js";
import * as z from "zod";

// The first versions have no streamable HTTP.
const { StreamableHTTPServerTransport } = await import("@modelcontextprotocol/sdk/server/streamableHttp.js").catch(() => ({}));
// The newest one comes first, and is what a client is answered who asks for one that is not here.
if (process.argv.includes("newest")) SUPPORTED_PROTOCOL_VERSIONS.splice(1);

// Gives a server of an older version what the newer ones have: their names for the same things, and the request of a tool.
const renew = (server) => {
  const protocol = server.server;
  const { setRequestHandler } = protocol;
  protocol.setRequestHandler = (schema, handle) => setRequestHandler.call(protocol, schema, (request, context) => handle(
    request, { _meta: request.params?._meta, sendNotification: (told) => protocol.notification(told), ...context },
  ));
  server.registerTool ??= (name, { description, inputSchema }, run) =>
    server.tool(name, description, ...inputSchema ? [inputSchema] : [], run);
  server.registerResource ??= server.resource;
  server.registerPrompt ??= (name, { argsSchema }, run) => server.prompt(name, argsSchema, run);
  return server;
};

const requestedSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
const make = () => {
  const server = renew(new McpServer({ name: "sdk", version: "1" }, { capabilities: { logging: {} } }));
  return offer(server, {
    z,
    completable,
    ResourceTemplate,
    shape: (shape) => shape,
    signal: ({ signal }) => signal,
    tell: ({ _meta, sendNotification }, params) =>
      sendNotification({ method: "notifications/progress", params: { progressToken: _meta.progressToken, ...params } }),
    greet: async ({ requestId }) => {
      const answer = await server.server.elicitInput({ message: "Name?", requestedSchema }, { relatedRequestId: requestId });
      return text(`Hello, ${answer.content.name}!`);
    },
    roots: async ({ requestId }) =>
      places((await server.server.listRoots(undefined, { relatedRequestId: requestId })).roots),
    log: ({ sendNotification }) =>
      sendNotification({ method: "notifications/message", params: { level: "error", data: "loud" } }),
    change: () => server.server.sendToolListChanged(),
  });
};

const sessions = new Map();
const streamable = async (request, response) => {
  let transport = sessions.get(request.headers["mcp-session-id"]);
  if (!transport) {
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => sessions.set(id, transport),
      onsessionclosed: (id) => sessions.delete(id),
    });
    await make().connect(transport);
  }
  await transport.handleRequest(request, response);
};
const sse = async (request, response) => {
  if (request.method === "POST") {
    const id = new URL(request.url, "http://localhost").searchParams.get("sessionId");
    await sessions.get(id).handlePostMessage(request, response);
    return;
  }
  const transport = new SSEServerTransport("/messages", response);
  sessions.set(transport.sessionId, transport);
  await make().connect(transport);
};
if (process.argv.includes("stdio")) await make().connect(new StdioServerTransport());
else listen(createServer(process.argv.includes("sse") ? sse : streamable));
