// What clients of both TypeScript SDKs do. It stands before their scripts: they use every feature once, and print what they
// got.
const steps = [];
const logged = [];
let tellUpdated;
const updated = new Promise((resolve) => { tellUpdated = resolve; });

// What a server asks its client, and what it tells.
const asked = {
  sampling: async () => ({ role: "assistant", content: { type: "text", text: "honey" }, model: "test" }),
  elicitation: async () => ({ action: "accept", content: { name: "Ada" } }),
};
const told = {
  log: ({ params }) => { logged.push(params.data); },
  updated: ({ params }) => tellUpdated(params.uri),
};

// What is newer than the older one of the two sides is not tried.
const has = (revision) => (process.env.OLDEST ?? revision) >= revision;

// `call` calls a tool, `level` says which logs are wanted, and `subscribe` tells changes of a resource until what it gives is
// called.
const use = async (client, { call, level, subscribe }) => {
  const text = async (name, args, options) => (await call(name, args, options)).content[0].text;
  const tools = (await client.listTools()).tools.some((tool) => tool.name === "echo");
  const echo = await text("echo", { message: "hi" });
  if (process.env.FOREIGN) {
    // A server of somebody else has other tools.
    const resource = (await client.readResource({ uri: "sdk://greeting" })).contents[0].text;
    const prompt = await client.getPrompt({ name: "hello", arguments: { name: "Ada" } });
    return { tools, echo, resource, prompt: prompt.messages[0].content.text };
  }
  const got = {
    server: client.getServerVersion().name,
    tools,
    echo,
    sum: has("2025-06-18") ? (await call("add", { a: 2, b: 3 })).structuredContent : undefined,
    progress: await text("progress", { steps: 2, milliseconds: 200 }, { onprogress: ({ progress }) => steps.push(progress) }),
    sampling: await text("sampling", { prompt: "?" }),
    elicitation: has("2025-06-18") ? await text("elicitation", {}) : undefined,
    resource: (await client.readResource({ uri: "demo://greeting/Ada" })).contents[0].text,
    prompt: (await client.getPrompt({ name: "test_simple_prompt" })).messages.length,
  };
  await level("info");
  await text("log", { level: "debug", message: "quiet" });
  await text("log", { level: "error", message: "loud" });
  const done = await subscribe("demo://counter");
  await text("touch", {});
  got.updated = await updated;
  await done();
  return { ...got, steps, logged };
};
