// A client made with the second TypeScript SDK, for the revision whose requests stand alone, after sdk_use.mjs.
// Argument: the URL of the server.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const client = new Client(
  { name: "sdk", version: "2" },
  { capabilities: { sampling: {}, elicitation: {}, roots: {} }, versionNegotiation: { mode: { pin: "2026-07-28" } } },
);
client.setRequestHandler("sampling/createMessage", asked.sampling);
client.setRequestHandler("elicitation/create", asked.elicitation);
client.setRequestHandler("roots/list", asked.roots);
client.setNotificationHandler("notifications/message", told.log);
client.setNotificationHandler("notifications/resources/updated", told.updated);
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[1])));
// Every request says for itself which logs are wanted.
let meta;
const got = await use(client, {
  call: (name, args, options) => client.callTool({ name, arguments: args, _meta: meta }, options),
  level: (level) => { meta = { "io.modelcontextprotocol/logLevel": level }; },
  subscribe: async (uri) => {
    const subscription = await client.listen({ resourceSubscriptions: [uri] });
    return () => subscription.close();
  },
});
await client.close();
console.log(JSON.stringify(got));
