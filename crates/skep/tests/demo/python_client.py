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

        async def leave():
            # This SDK tells the server nothing when a call is left.
            params = types.CancelledNotificationParams(requestId=session._request_id - 1)
            await session.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))

        server = (await session.initialize()).serverInfo.name
        words = ["structuredContent", "resourceTemplates", "uriTemplate"]
        await use(session, server, types, words, hear, leave, session.send_ping)


asyncio.run(main(sys.argv[1]))
