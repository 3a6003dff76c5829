"""A client made with the second Python SDK, after python_use.py, for the revision whose requests stand alone. Argument: the
URL of the server."""

import mcp_types as types
from mcp import Client


async def main(url):
    async with Client(url, mode="auto", log_level="info", **answers(types)) as client:
        assert client.protocol_version == "2026-07-28", client.protocol_version

        async def hear(uri, make):
            async with client.listen(resource_subscriptions=[uri]) as subscription:
                await make()
                async for event in subscription:
                    return event.uri

        async def leave():
            # This SDK closes the stream of a call that is left.
            pass

        words = ["structured_content", "resource_templates", "uri_template"]
        await use(client, client.server_info.name, types, words, hear, leave)


asyncio.run(main(sys.argv[1]))
