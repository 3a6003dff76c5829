"""A server made with the first Python SDK, after python_tools.py: it has sessions."""

from mcp.server.fastmcp import Context, FastMCP
from mcp.types import Completion

server = FastMCP("sdk")


@server.tool()
async def greet(context: Context) -> str:
    """Asks for a name."""
    answer = await context.elicit("Name?", schema=Form)
    return f"Hello, {answer.data.name}!"


@server.tool()
async def roots(context: Context) -> str:
    """Asks for the client's roots."""
    return places(await context.session.list_roots())


offer(server, Context, Completion, lambda context: context.session.send_tool_list_changed())
serve(server)
