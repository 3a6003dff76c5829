// A server made with the second TypeScript SDK: every request stands alone, and handshakes are refused. Given the argument
// `stdio`, it speaks on lines.
import { createServer } from "node:http";
import { McpServer, acceptedContent, completable, createMcpHandler, inputRequired } from "@modelcontextprotocol/server";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import * as z from "zod";

const form = z.object({ name: z.string() });
let calledOff = 0;
// On HTTP a server lives as long as its request, so that somebody else tells those who listen.
let changed = (server) => server.sendToolListChanged();
const make = () => {
  const server = new McpServer({ name: "sdk", version: "2" }, { capabilities: { logging: {} } });
  server.registerTool("echo", { description: "Echoes.", inputSchema: z.object({ message: z.string() }) },
    async ({ message }) => ({ content: [{ type: "text", text: message }] }));
  server.registerTool("greet", { description: "Asks for a name." }, async (context) => {
    const answer = acceptedContent(context.mcpReq.inputResponses, "name", form);
    if (answer) return { content: [{ type: "text", text: `Hello, ${answer.name}!` }] };
    return inputRequired({ inputRequests: { name: inputRequired.elicit({ message: "Name?", requestedSchema: form }) } });
  });
  const done = { content: [{ type: "text", text: "done" }] };
  const tell = ({ mcpReq }, progress) => {
    const params = { progressToken: mcpReq._meta.progressToken, progress, total: 2 };
    return mcpReq.notify({ method: "notifications/progress", params });
  };
  server.registerTool("steps", { description: "Tells how far it is." }, async (context) => {
    await tell(context, 1);
    await tell(context, 2);
    return done;
  });
  server.registerTool("log", { description: "Logs." }, async ({ mcpReq }) => {
    await mcpReq.log("error", "loud");
    return done;
  });
  server.registerTool("change", { description: "Says that there are other tools." }, async () => {
    changed(server);
    return done;
  });
  server.registerTool("wait", { description: "Waits until it is called off." }, async (context) => {
    const called = new Promise((resolve) => context.mcpReq.signal.addEventListener("abort", resolve));
    await tell(context, 1);
    await called;
    calledOff += 1;
    return done;
  });
  server.registerTool("called-off", { description: "Counts what was called off." },
    async () => ({ content: [{ type: "text", text: `${calledOff}` }] }));
  server.registerResource("greeting", "sdk://greeting", {},
    async (uri) => ({ contents: [{ uri: uri.href, text: "Hello!" }] }));
  const name = completable(z.string(), (begun) => ["Ada", "Alan", "Grace"].filter((name) => name.startsWith(begun)));
  server.registerPrompt("hello", { argsSchema: z.object({ name }) },
    ({ name }) => ({ messages: [{ role: "user", content: { type: "text", text: `Greet ${name}.` } }] }));
  return server;
};
const handler = createMcpHandler(make, { legacy: "reject" });
const http = createServer(toNodeHandler(handler));
if (process.argv.includes("stdio")) {
  await serveStdio(make, { legacy: "reject" });
} else {
  changed = () => handler.notify.toolsChanged();
  http.listen(0, "127.0.0.1", () => console.log(http.address().port));
}
