"""A client made with the second Python SDK, for the revision whose requests stand alone."""

import asyncio
import json
import os
import sys

import mcp_types as types
from mcp import Client


async def main(url):
    steps, logged = [], []

    async def sampling(context, params):
        content = types.TextContent(type="text", text="honey")
        return types.CreateMessageResult(role="assistant", content=content, model="test")

    async def elicitation(context, params):
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async def logging(params):
        logged.append(params.data)

    async def progress(step, total, text):
        steps.append(int(step))

    async with Client(
        url, mode="auto", sampling_callback=sampling, elicitation_callback=elicitation, logging_callback=logging,
        log_level="info",
    ) as client:
        assert client.protocol_version == "2026-07-28", client.protocol_version

        async def text(name, arguments, **options):
            return (await client.call_tool(name, arguments, **options)).content[0].text

        if "FOREIGN" in os.environ:
            # A server of somebody else has other tools.
            prompt = await client.get_prompt("hello", {"name": "Ada"})
            print(json.dumps({
                "tools": any(tool.name == "echo" for tool in (await client.list_tools()).tools),
                "echo": await text("echo", {"message": "hi"}),
                "resource": (await client.read_resource("sdk://greeting")).contents[0].text,
                "prompt": prompt.messages[0].content.text,
            }))
            return
        got = {
            "server": client.server_info.name,
            "tools": any(tool.name == "echo" for tool in (await client.list_tools()).tools),
            "echo": await text("echo", {"message": "hi"}),
            "progress": await text("progress", {"steps": 2, "milliseconds": 100}, progress_callback=progress),
            "sampling": await text("sampling", {"prompt": "?"}),
            "resource": (await client.read_resource("demo://greeting/Ada")).contents[0].text,
            "prompt": len((await client.get_prompt("test_simple_prompt")).messages),
        }
        # What is newer than the revision of the server is not tried.
        if os.environ.get("OLDEST", "2025-06-18") >= "2025-06-18":
            got["sum"] = (await client.call_tool("add", {"a": 2, "b": 3})).structured_content
            got["elicitation"] = await text("elicitation", {})
        await text("log", {"level": "debug", "message": "quiet"})
        await text("log", {"level": "error", "message": "loud"})
        async with client.listen(resource_subscriptions=["demo://counter"]) as subscription:
            await text("touch", {})
            async for event in subscription:
                got["updated"] = event.uri
                break
        print(json.dumps({**got, "steps": steps, "logged": logged}))


asyncio.run(main(sys.argv[1]))
