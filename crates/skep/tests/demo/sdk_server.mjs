// A server made with the first TypeScript SDK: it has sessions. Given the argument `stdio`, it speaks on lines.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import * as z from "zod";

const sessions = new Map();
const make = () => {
  const server = new McpServer({ name: "sdk", version: "1" });
  server.registerTool("echo", { description: "Echoes.", inputSchema: { message: z.string() } },
    async ({ message }) => ({ content: [{ type: "text", text: message }] }));
  server.registerTool("greet", { description: "Asks for a name." }, async (extra) => {
    const requestedSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
    const answer = await server.server.elicitInput(
      { message: "Name?", requestedSchema }, { relatedRequestId: extra.requestId });
    return { content: [{ type: "text", text: `Hello, ${answer.content.name}!` }] };
  });
  return server;
};
const open = async () => {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => sessions.set(id, transport),
    onsessionclosed: (id) => sessions.delete(id),
  });
  await make().connect(transport);
  return transport;
};
const http = createServer(async (request, response) => {
  const transport = sessions.get(request.headers["mcp-session-id"]) ?? (await open());
  await transport.handleRequest(request, response);
});
if (process.argv.includes("stdio")) await make().connect(new StdioServerTransport());
else http.listen(0, "127.0.0.1", () => console.log(http.address().port));
