"""A server made with the second Python SDK, after python_tools.py: it speaks all revisions."""

from typing import Annotated

from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from mcp_types import Completion

server = MCPServer("sdk")


def ask() -> Elicit[Form]:
    return Elicit("Name?", Form)


@server.tool()
def greet(form: Annotated[Form, Resolve(ask)]) -> str:
    """Asks for a name."""
    return f"Hello, {form.name}!"


offer(server, Context, Completion, lambda context: context.notify_tools_changed())
serve(server)
