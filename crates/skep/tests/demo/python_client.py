"""A client made with the first Python SDK, which has sessions: uses every feature once and prints what it got."""

import asyncio
import json
import os
import sys

from mcp import ClientSession, types
from mcp.client.streamable_http import streamablehttp_client
from pydantic import AnyUrl


async def main(url):
    steps, logged, updated = [], [], asyncio.Event()

    async def sampling(context, params):
        content = types.TextContent(type="text", text="honey")
        return types.CreateMessageResult(role="assistant", content=content, model="test")

    async def elicitation(context, params):
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async def logging(params):
        logged.append(params.data)

    async def message(received):
        if isinstance(received, types.ServerNotification) and received.root.method == "notifications/resources/updated":
            updated.set()

    async def progress(step, total, text):
        steps.append(int(step))

    async with streamablehttp_client(url) as (read, write, _), ClientSession(
        read, write, sampling_callback=sampling, elicitation_callback=elicitation, logging_callback=logging,
        message_handler=message,
    ) as session:
        server = (await session.initialize()).serverInfo.name

        async def text(name, arguments, **options):
            return (await session.call_tool(name, arguments, **options)).content[0].text

        if "FOREIGN" in os.environ:
            # A server of somebody else has other tools.
            prompt = await session.get_prompt("hello", {"name": "Ada"})
            print(json.dumps({
                "tools": any(tool.name == "echo" for tool in (await session.list_tools()).tools),
                "echo": await text("echo", {"message": "hi"}),
                "resource": (await session.read_resource(AnyUrl("sdk://greeting"))).contents[0].text,
                "prompt": prompt.messages[0].content.text,
            }))
            return
        got = {
            "server": server,
            "tools": any(tool.name == "echo" for tool in (await session.list_tools()).tools),
            "echo": await text("echo", {"message": "hi"}),
            "progress": await text("progress", {"steps": 2, "milliseconds": 100}, progress_callback=progress),
            "sampling": await text("sampling", {"prompt": "?"}),
            "resource": (await session.read_resource(AnyUrl("demo://greeting/Ada"))).contents[0].text,
            "prompt": len((await session.get_prompt("test_simple_prompt")).messages),
        }
        # What is newer than the revision of the server is not tried.
        if os.environ.get("OLDEST", "2025-06-18") >= "2025-06-18":
            got["sum"] = (await session.call_tool("add", {"a": 2, "b": 3})).structuredContent
            got["elicitation"] = await text("elicitation", {})
        await session.set_logging_level("info")
        await text("log", {"level": "debug", "message": "quiet"})
        await text("log", {"level": "error", "message": "loud"})
        await session.subscribe_resource(AnyUrl("demo://counter"))
        await text("touch", {})
        await updated.wait()
        print(json.dumps({**got, "steps": steps, "logged": logged, "updated": "demo://counter"}))


asyncio.run(main(sys.argv[1]))
