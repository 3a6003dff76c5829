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
  roots: async () => ({ roots: [{ uri: "file:///hive", name: "hive" }] }),
};
const told = {
  log: ({ params }) => { logged.push(params.data); },
  updated: ({ params }) => tellUpdated(params.uri),
};

// What is newer than the older one of the two sides is not tried.
const has = (revision) => (process.env.OLDEST ?? revision) >= revision;
// Nor is what not every server has, or not towards every client.
const tries = (feature) => (process.env.FOREIGN ?? "").split(" ").includes(feature);

const onprogress = ({ progress }) => steps.push(progress);

// Calls a tool, and calls the call off when that has begun.
const callOff = (call, name, args) => {
  const controller = new AbortController();
  return call(name, args, { signal: controller.signal, onprogress: () => controller.abort() })
    .then(() => false, () => controller.signal.aborted);
};

// The lists of a server, with what should be in them, and what it completes.
const lists = async (client, { resource, template, prompt }) => ({
  resources: (await client.listResources()).resources.some(({ uri }) => uri === resource),
  templates: (await client.listResourceTemplates()).resourceTemplates.some(({ uriTemplate }) => uriTemplate === template),
  prompts: (await client.listPrompts()).prompts.some(({ name }) => name === prompt),
  completion: (await client.complete({
    ref: { type: "ref/prompt", name: prompt }, argument: { name: "name", value: "A" },
  })).completion.values,
});

// `ping` is undefined where there is no such thing, `call` calls a tool, `level` says which logs are wanted, and `subscribe`
// tells changes of a resource until what it gives is called.
const use = async (client, { ping, call, level, subscribe }) => {
  const text = async (name, args, options) => (await call(name, args, options)).content[0].text;
  const read = async (uri) => (await client.readResource({ uri })).contents[0].text;
  const got = {
    ping: ping && JSON.stringify(await ping()),
    tools: (await client.listTools()).tools.some((tool) => tool.name === "echo"),
    echo: await text("echo", { message: "hi" }),
  };
  if (process.env.FOREIGN !== undefined) return { ...got, ...await useForeign(client, { call, text, read }), steps };
  Object.assign(got, await lists(client, {
    resource: "demo://counter", template: "demo://greeting/{name}", prompt: "greet",
  }), {
    server: client.getServerVersion().name,
    sum: has("2025-06-18") ? (await call("add", { a: 2, b: 3 })).structuredContent : undefined,
    progress: await text("progress", { steps: 2, milliseconds: 200 }, { onprogress }),
    calledOff: await callOff(call, "slow", { seconds: 600 }),
    sampling: await text("sampling", { prompt: "?" }),
    elicitation: has("2025-06-18") ? await text("elicitation", {}) : undefined,
    roots: await text("test_input_required_result_list_roots", {}),
    resource: await read("demo://greeting/Ada"),
    prompt: (await client.getPrompt({ name: "test_simple_prompt" })).messages.length,
  });
  await level("info");
  await text("log", { level: "debug", message: "quiet" });
  await text("log", { level: "error", message: "loud" });
  const done = await subscribe("demo://counter");
  await text("touch", {});
  got.updated = await updated;
  await done();
  return { ...got, steps, logged };
};

// A server of somebody else has other tools.
const useForeign = async (client, { call, text, read }) => {
  const prompt = await client.getPrompt({ name: "hello", arguments: { name: "Ada" } });
  const got = {
    ...await lists(client, { resource: "sdk://greeting", template: "sdk://greeting/{name}", prompt: "hello" }),
    resource: await read("sdk://greeting"),
    templated: await read("sdk://greeting/Ada"),
    prompt: prompt.messages[0].content.text,
    progress: await text("steps", {}, { onprogress }),
  };
  if (tries("questions")) got.elicitation = await text("greet", {});
  if (tries("roots")) got.roots = await text("roots", {});
  if (tries("cancellation")) {
    const before = await text("called-off", {});
    got.calledOff = await callOff(call, "wait", {});
    // The test ends a client that waits for too long.
    while (await text("called-off", {}) === before);
  }
  return got;
};
