// A server made with the second TypeScript SDK: every request stands alone, and handshakes are refused. Given the argument
// `stdio`, it speaks on lines.
import { createServer } from "node:http";
import { McpServer, acceptedContent, createMcpHandler, inputRequired } from "@modelcontextprotocol/server";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import * as z from "zod";

const form = z.object({ name: z.string() });
const make = () => {
  const server = new McpServer({ name: "sdk", version: "2" });
  server.registerTool("echo", { description: "Echoes.", inputSchema: z.object({ message: z.string() }) },
    async ({ message }) => ({ content: [{ type: "text", text: message }] }));
  server.registerTool("greet", { description: "Asks for a name." }, async (context) => {
    const answer = acceptedContent(context.mcpReq.inputResponses, "name", form);
    if (answer) return { content: [{ type: "text", text: `Hello, ${answer.name}!` }] };
    return inputRequired({ inputRequests: { name: inputRequired.elicit({ message: "Name?", requestedSchema: form }) } });
  });
  return server;
};
const handler = createMcpHandler(make, { legacy: "reject" });
const http = createServer(toNodeHandler(handler));
if (process.argv.includes("stdio")) await serveStdio(make, { legacy: "reject" });
else http.listen(0, "127.0.0.1", () => console.log(http.address().port));
