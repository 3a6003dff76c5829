"""A client made with the first Python SDK, after python_use.py: it has sessions. Argument: the URL of the server."""

from mcp import ClientSession, types
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamablehttp_client


async def main(url):
    updated = asyncio.Queue()

    async def message(received):
        if isinstance(received, types.ServerNotification) and received.root.method == "notifications/resources/updated":
            updated.put_nowait(str(received.root.params.uri))

    transport = sse_client if url.endswith("/sse") else streamablehttp_client
    async with transport(url) as (read, write, *_), ClientSession(
        read, write, message_handler=message, **answers(types)
    ) as session:

        async def hear(uri, make):
            await session.set_logging_level("info")
            await session.subscribe_resource(uri)
            await make()
            return await updated.get()

        server = (await session.initialize()).serverInfo.name
        await use(session, server, "structuredContent", hear)


asyncio.run(main(sys.argv[1]))
