// A client made with the second TypeScript SDK, for the revision whose requests stand alone: uses every feature once and
// prints what it got. Argument: the URL of the server.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [url] = process.argv.slice(1);
// What is newer than the revision of the server is not tried.
const has = (revision) => (process.env.OLDEST ?? revision) >= revision;
const client = new Client(
  { name: "sdk", version: "2" },
  { capabilities: { sampling: {}, elicitation: {} }, versionNegotiation: { mode: { pin: "2026-07-28" } } },
);
client.setRequestHandler("sampling/createMessage", async () => ({
  role: "assistant", content: { type: "text", text: "honey" }, model: "test",
}));
client.setRequestHandler("elicitation/create", async () => ({ action: "accept", content: { name: "Ada" } }));
const logged = [];
client.setNotificationHandler("notifications/message", ({ params }) => { logged.push(params.data); });
const updated = new Promise((resolve) => {
  client.setNotificationHandler("notifications/resources/updated", ({ params }) => resolve(params.uri));
});

await client.connect(new StreamableHTTPClientTransport(new URL(url)));
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
const text = async (name, args, options, meta) =>
  (await client.callTool({ name, arguments: args, _meta: meta }, options)).content[0].text;
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
const level = { "io.modelcontextprotocol/logLevel": "info" };
await text("log", { level: "debug", message: "quiet" }, undefined, level);
await text("log", { level: "error", message: "loud" }, undefined, level);
const subscription = await client.listen({ resourceSubscriptions: ["demo://counter"] });
await text("touch", {});
got.updated = await updated;
await subscription.close();
await client.close();
console.log(JSON.stringify({ ...got, steps, logged }));
