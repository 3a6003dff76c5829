// A client made with the first TypeScript SDK, whatever its version, after sdk_use.mjs.
// Arguments: the URL of the server, or the command that is the server.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import * as types from "@modelcontextprotocol/sdk/types.js";

// The first versions have neither streamable HTTP nor questions to users.
const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js").catch(() => ({}));
const [first, ...rest] = process.argv.slice(1);
const isOnSse = first.endsWith("/sse") || !StreamableHTTPClientTransport;
const transport = !first.startsWith("http")
  ? new StdioClientTransport({ command: first, args: rest })
  : new (isOnSse ? SSEClientTransport : StreamableHTTPClientTransport)(new URL(first));

const capabilities = { sampling: {}, roots: {}, ...types.ElicitRequestSchema && { elicitation: {} } };
const client = new Client({ name: "sdk", version: "1" }, { capabilities });
client.setRequestHandler(types.CreateMessageRequestSchema, asked.sampling);
client.setRequestHandler(types.ListRootsRequestSchema, asked.roots);
if (types.ElicitRequestSchema) client.setRequestHandler(types.ElicitRequestSchema, asked.elicitation);
client.setNotificationHandler(types.LoggingMessageNotificationSchema, told.log);
client.setNotificationHandler(types.ResourceUpdatedNotificationSchema, told.updated);
await client.connect(transport);
const got = await use(client, {
  ping: () => client.ping(),
  call: (name, args, options) => client.callTool({ name, arguments: args }, undefined, options),
  level: (level) => client.setLoggingLevel(level),
  subscribe: async (uri) => {
    await client.subscribeResource({ uri });
    return () => {};
  },
});
await client.close();
console.log(JSON.stringify(got));
