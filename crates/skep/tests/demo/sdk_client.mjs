// A client made with the TypeScript SDK: uses every feature once and prints what it got.
// Arguments: the URL of the server, or the command that is the server.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";

const [first, ...rest] = process.argv.slice(1);
// What is newer than the revision of the server is not tried.
const has = (revision) => (process.env.OLDEST ?? revision) >= revision;
const transport = first.endsWith("/sse")
  ? new SSEClientTransport(new URL(first))
  : first.startsWith("http")
    ? new StreamableHTTPClientTransport(new URL(first))
    : new StdioClientTransport({ command: first, args: rest });

const client = new Client({ name: "sdk", version: "1" }, { capabilities: { sampling: {}, elicitation: {} } });
client.setRequestHandler(CreateMessageRequestSchema, async () => ({
  role: "assistant", content: { type: "text", text: "honey" }, model: "test",
}));
client.setRequestHandler(ElicitRequestSchema, async () => ({ action: "accept", content: { name: "Ada" } }));
const logged = [];
client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => { logged.push(params.data); });
const updated = new Promise((resolve) => {
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => resolve(params.uri));
});

await client.connect(transport);
if (process.env.FOREIGN) {
  // A server of somebody else has other tools.
  const got = {
    tools: (await client.listTools()).tools.some((tool) => tool.name === "echo"),
    echo: (await client.callTool({ name: "echo", arguments: { message: "hi" } })).content[0].text,
    resource: (await client.readResource({ uri: "sdk://greeting" })).contents[0].text,
    prompt: (await client.getPrompt({ name: "hello", arguments: { name: "Ada" } })).messages[0].content.text,
  };
  await client.close();
  console.log(JSON.stringify(got));
  process.exit();
}
const text = async (name, args, options) =>
  (await client.callTool({ name, arguments: args }, undefined, options)).content[0].text;
const steps = [];
const got = {
  server: client.getServerVersion().name,
  tools: (await client.listTools()).tools.some((tool) => tool.name === "echo"),
  echo: await text("echo", { message: "hi" }),
  sum: has("2025-06-18")
    ? (await client.callTool({ name: "add", arguments: { a: 2, b: 3 } })).structuredContent
    : undefined,
  progress: await text("progress", { steps: 2, milliseconds: 500 }, { onprogress: ({ progress }) => steps.push(progress) }),
  sampling: await text("sampling", { prompt: "?" }),
  elicitation: has("2025-06-18") ? await text("elicitation", {}) : undefined,
  resource: (await client.readResource({ uri: "demo://greeting/Ada" })).contents[0].text,
  prompt: (await client.getPrompt({ name: "test_simple_prompt" })).messages.length,
};
await client.setLoggingLevel("info");
await text("log", { level: "debug", message: "quiet" });
await text("log", { level: "error", message: "loud" });
await client.subscribeResource({ uri: "demo://counter" });
await text("touch", {});
got.updated = await updated;
await client.close();
console.log(JSON.stringify({ ...got, steps, logged }));
