"""What clients of both Python SDKs do. It stands before their scripts: they use every feature once, and print what they
got."""

import asyncio
import json
import os
import sys

steps, logged = [], []


async def progress(step, total, text):
    steps.append(int(step))


async def log(params):
    logged.append(params.data)


def answers(types):
    """What a client answers when it is asked, and how it hears of logs."""

    async def sampling(context, params):
        content = types.TextContent(type="text", text="honey")
        return types.CreateMessageResult(role="assistant", content=content, model="test")

    async def elicitation(context, params):
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async def roots(context):
        return types.ListRootsResult(roots=[types.Root(uri="file:///hive", name="hive")])

    callbacks = {"sampling_callback": sampling, "elicitation_callback": elicitation, "logging_callback": log}
    return {**callbacks, "list_roots_callback": roots}


def tries(feature):
    """Whether a server of somebody else has something towards this client."""
    return feature in os.environ.get("FOREIGN", "").split()


async def call_off(client, leave, name, arguments):
    """Calls a tool, and calls the call off when that has begun. `leave` tells the server, where the SDK does not."""
    begun = asyncio.Event()

    async def begin(step, total, text):
        begun.set()

    call = asyncio.create_task(client.call_tool(name, arguments, progress_callback=begin))
    await begun.wait()
    await leave()
    call.cancel()
    await asyncio.wait([call])
    return call.cancelled()


async def lists(client, types, templates, resource, template, prompt):
    """The lists of a server, with what should be in them, and what it completes. `templates` is what the SDK calls those of a
    result, and the pattern of one."""
    found = getattr(await client.list_resource_templates(), templates[0])
    reference = types.PromptReference(type="ref/prompt", name=prompt)
    completed = await client.complete(reference, {"name": "name", "value": "A"})
    return {
        "resources": any(str(one.uri) == resource for one in (await client.list_resources()).resources),
        "templates": any(getattr(one, templates[1]) == template for one in found),
        "prompts": any(one.name == prompt for one in (await client.list_prompts()).prompts),
        "completion": completed.completion.values,
    }


async def use(client, server, types, words, hear, leave, ping=None):
    """`words` is what the SDK calls the structure of a result, the templates of one and the pattern of a template. `hear`
    subscribes to a resource and asks for logs, awaits what it is given, and tells which resource has changed."""

    async def text(name, arguments, **options):
        return (await client.call_tool(name, arguments, **options)).content[0].text

    async def read(uri):
        return (await client.read_resource(uri)).contents[0].text

    got = {
        "tools": any(tool.name == "echo" for tool in (await client.list_tools()).tools),
        "echo": await text("echo", {"message": "hi"}),
    }
    if ping:
        got["ping"] = (await ping()).model_dump_json(exclude_none=True)
    structure, *templates = words
    if "FOREIGN" in os.environ:
        got |= await lists(client, types, templates, "sdk://greeting", "sdk://greeting/{name}", "hello")
        got |= await use_foreign(client, text, read, leave)
        print(json.dumps({**got, "steps": steps}))
        return
    got |= await lists(client, types, templates, "demo://counter", "demo://greeting/{name}", "greet")
    got |= {
        "server": server,
        "progress": await text("progress", {"steps": 2, "milliseconds": 100}, progress_callback=progress),
        "calledOff": await call_off(client, leave, "slow", {"seconds": 600}),
        "sampling": await text("sampling", {"prompt": "?"}),
        "roots": await text("test_input_required_result_list_roots", {}),
        "resource": await read("demo://greeting/Ada"),
        "prompt": len((await client.get_prompt("test_simple_prompt")).messages),
    }
    # What is newer than the older one of the two sides is not tried.
    if os.environ.get("OLDEST", "2025-06-18") >= "2025-06-18":
        got["sum"] = getattr(await client.call_tool("add", {"a": 2, "b": 3}), structure)
        got["elicitation"] = await text("elicitation", {})

    async def make():
        await text("log", {"level": "debug", "message": "quiet"})
        await text("log", {"level": "error", "message": "loud"})
        await text("touch", {})

    got["updated"] = await hear("demo://counter", make)
    print(json.dumps({**got, "steps": steps, "logged": logged}))


async def use_foreign(client, text, read, leave):
    """A server of somebody else has other tools."""
    got = {
        "resource": await read("sdk://greeting"),
        "templated": await read("sdk://greeting/Ada"),
        "prompt": (await client.get_prompt("hello", {"name": "Ada"})).messages[0].content.text,
        "progress": await text("steps", {}, progress_callback=progress),
    }
    if tries("questions"):
        got["elicitation"] = await text("greet", {})
    if tries("roots"):
        got["roots"] = await text("roots", {})
    if tries("cancellation"):
        before = await text("called-off", {})
        got["calledOff"] = await call_off(client, leave, "wait", {})
        # The test ends a client that waits for too long.
        while await text("called-off", {}) == before:
            pass
    return got
