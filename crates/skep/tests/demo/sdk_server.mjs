// A server made with the first TypeScript SDK: it has sessions. Given the argument `stdio`, it speaks on lines.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { completable } from "@modelcontextprotocol/sdk/server/completable.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import * as z from "zod";

const sessions = new Map();
let calledOff = 0;
const make = () => {
  const server = new McpServer({ name: "sdk", version: "1" }, { capabilities: { logging: {} } });
  server.registerTool("echo", { description: "Echoes.", inputSchema: { message: z.string() } },
    async ({ message }) => ({ content: [{ type: "text", text: message }] }));
  server.registerTool("greet", { description: "Asks for a name." }, async (extra) => {
    const requestedSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
    const answer = await server.server.elicitInput(
      { message: "Name?", requestedSchema }, { relatedRequestId: extra.requestId });
    return { content: [{ type: "text", text: `Hello, ${answer.content.name}!` }] };
  });
  const done = { content: [{ type: "text", text: "done" }] };
  server.registerTool("steps", { description: "Tells how far it is." }, async ({ _meta, sendNotification }) => {
    for (const progress of [1, 2]) {
      const params = { progressToken: _meta.progressToken, progress, total: 2 };
      await sendNotification({ method: "notifications/progress", params });
    }
    return done;
  });
  server.registerTool("log", { description: "Logs." }, async ({ sendNotification }) => {
    await sendNotification({ method: "notifications/message", params: { level: "error", data: "loud" } });
    return done;
  });
  server.registerTool("change", { description: "Says that there are other tools." }, async () => {
    server.sendToolListChanged();
    return done;
  });
  server.registerTool("wait", { description: "Waits until it is called off." }, async ({ _meta, sendNotification, signal }) => {
    const called = new Promise((resolve) => signal.addEventListener("abort", resolve));
    const params = { progressToken: _meta.progressToken, progress: 1 };
    await sendNotification({ method: "notifications/progress", params });
    await called;
    calledOff += 1;
    return done;
  });
  server.registerTool("called-off", { description: "Counts what was called off." },
    async () => ({ content: [{ type: "text", text: `${calledOff}` }] }));
  server.registerResource("greeting", "sdk://greeting", {},
    async (uri) => ({ contents: [{ uri: uri.href, text: "Hello!" }] }));
  const name = completable(z.string(), (begun) => ["Ada", "Alan", "Grace"].filter((name) => name.startsWith(begun)));
  server.registerPrompt("hello", { argsSchema: { name } },
    ({ name }) => ({ messages: [{ role: "user", content: { type: "text", text: `Greet ${name}.` } }] }));
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
