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

    return {"sampling_callback": sampling, "elicitation_callback": elicitation, "logging_callback": log}


async def use(client, server, structure, hear):
    """`structure` is what the SDK calls the structure of a result. `hear` subscribes to a resource and asks for logs, awaits
    what it is given, and tells which resource has changed."""

    async def text(name, arguments, **options):
        return (await client.call_tool(name, arguments, **options)).content[0].text

    async def read(uri):
        return (await client.read_resource(uri)).contents[0].text

    got = {
        "tools": any(tool.name == "echo" for tool in (await client.list_tools()).tools),
        "echo": await text("echo", {"message": "hi"}),
    }
    if "FOREIGN" in os.environ:
        # A server of somebody else has other tools.
        prompt = await client.get_prompt("hello", {"name": "Ada"})
        print(json.dumps({**got, "resource": await read("sdk://greeting"), "prompt": prompt.messages[0].content.text}))
        return
    got |= {
        "server": server,
        "progress": await text("progress", {"steps": 2, "milliseconds": 100}, progress_callback=progress),
        "sampling": await text("sampling", {"prompt": "?"}),
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
