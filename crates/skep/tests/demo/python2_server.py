"""A server made with the second Python SDK, after python_tools.py: it speaks all revisions."""

from typing import Annotated

from mcp.server.mcpserver import Context, Elicit, ListRoots, MCPServer, Resolve
from mcp_types import Completion, ListRootsResult

server = MCPServer("sdk")


def ask() -> Elicit[Form]:
    return Elicit("Name?", Form)


@server.tool()
def greet(form: Annotated[Form, Resolve(ask)]) -> str:
    """Asks for a name."""
    return f"Hello, {form.name}!"


def ask_for_roots() -> ListRoots:
    return ListRoots()


@server.tool()
def roots(told: Annotated[ListRootsResult, Resolve(ask_for_roots)]) -> str:
    """Asks for the client's roots."""
    return places(told)


offer(server, Context, Completion, lambda context: context.notify_tools_changed())
serve(server)
