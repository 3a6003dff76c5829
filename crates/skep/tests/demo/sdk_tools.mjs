// What servers of both TypeScript SDKs offer. It stands before their scripts.
const text = (text) => ({ content: [{ type: "text", text }] });
let calledOff = 0;

// Gives a server its tools, resources and a prompt. `shape` is how the SDK takes the names and types of arguments, `tell`
// reports progress, `signal` is aborted when a request is called off, and the others are tools that the SDKs make in
// different ways.
const offer = (server, { z, completable, ResourceTemplate, shape, tell, signal, greet, roots, log, change }) => {
  const tool = (name, description, run) => server.registerTool(name, { description }, run);
  server.registerTool("echo", { description: "Echoes.", inputSchema: shape({ message: z.string() }) },
    async ({ message }) => text(message));
  tool("greet", "Asks for a name.", async (context) => greet(context));
  tool("roots", "Asks for the client's roots.", async (context) => roots(context));
  tool("steps", "Tells how far it is.", async (context) => {
    for (const progress of [1, 2]) await tell(context, { progress, total: 2 });
    // The oldest clients forget who wants to hear of it when the answer is read together with it.
    await new Promise((resolve) => setTimeout(resolve, 200));
    return text("done");
  });
  tool("log", "Logs.", async (context) => {
    await log(context);
    return text("done");
  });
  tool("change", "Says that there are other tools.", async () => {
    change();
    return text("done");
  });
  tool("wait", "Waits until it is called off.", async (context) => {
    const called = new Promise((resolve) => signal(context).addEventListener("abort", resolve));
    await tell(context, { progress: 1 });
    await called;
    calledOff += 1;
    return text("done");
  });
  tool("called-off", "Counts what was called off.", async () => text(`${calledOff}`));
  server.registerResource("greeting", "sdk://greeting", {},
    async (uri) => ({ contents: [{ uri: uri.href, text: "Hello!" }] }));
  server.registerResource("greeting-of", new ResourceTemplate("sdk://greeting/{name}", { list: undefined }), {},
    async (uri, { name }) => ({ contents: [{ uri: uri.href, text: `Hello, ${name}!` }] }));
  const name = completable(z.string(), (begun) => ["Ada", "Alan", "Grace"].filter((name) => name.startsWith(begun)));
  server.registerPrompt("hello", { argsSchema: shape({ name }) },
    ({ name }) => ({ messages: [{ role: "user", content: { type: "text", text: `Greet ${name}.` } }] }));
  return server;
};

const places = (roots) => text(roots.map(({ uri }) => uri).join(" "));

// Serves HTTP, and prints the port.
const listen = (http) => http.listen(0, "127.0.0.1", () => console.log(http.address().port));
