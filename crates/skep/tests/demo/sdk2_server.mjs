// A server made with the second TypeScript SDK, after sdk_tools.mjs: every request stands alone, and handshakes are refused.
// Given the argument `stdio`, it speaks on lines.
import { createServer } from "node:http";
import {
  McpServer, ResourceTemplate, acceptedContent, completable, createMcpHandler, inputRequired, inputResponse,
} from "@modelcontextprotocol/server";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import * as z from "zod";

const form = z.object({ name: z.string() });
const isOnLines = process.argv.includes("stdio");
const make = () => {
  const server = new McpServer({ name: "sdk", version: "2" }, { capabilities: { logging: {} } });
  return offer(server, {
    z,
    completable,
    ResourceTemplate,
    shape: z.object,
    signal: ({ mcpReq }) => mcpReq.signal,
    tell: ({ mcpReq }, params) =>
      mcpReq.notify({
        method: "notifications/progress", params: { progressToken: mcpReq._meta.progressToken, ...params },
      }),
    greet: ({ mcpReq }) => {
      const answer = acceptedContent(mcpReq.inputResponses, "name", form);
      if (answer) return text(`Hello, ${answer.name}!`);
      return inputRequired({ inputRequests: { name: inputRequired.elicit({ message: "Name?", requestedSchema: form }) } });
    },
    roots: ({ mcpReq }) => {
      const answer = inputResponse(mcpReq.inputResponses, "roots");
      if (answer.kind === "roots") return places(answer.roots);
      return inputRequired({ inputRequests: { roots: inputRequired.listRoots() } });
    },
    log: ({ mcpReq }) => mcpReq.log("error", "loud"),
    // On HTTP a server lives as long as its request, so that somebody else tells those who listen.
    change: () => (isOnLines ? server.sendToolListChanged() : handler.notify.toolsChanged()),
  });
};
const handler = createMcpHandler(make, { legacy: "reject" });
if (isOnLines) await serveStdio(make, { legacy: "reject" });
else listen(createServer(toNodeHandler(handler)));
