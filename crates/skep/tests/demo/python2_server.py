"""A server made with the second Python SDK, which speaks all revisions. Given the argument `stdio`, on lines."""

import socket
import sys
from typing import Annotated

import uvicorn
from mcp.server.mcpserver import Elicit, MCPServer, Resolve
from pydantic import BaseModel

server = MCPServer("sdk")


class Form(BaseModel):
    name: str


def ask() -> Elicit[Form]:
    return Elicit("Name?", Form)


@server.tool()
def echo(message: str) -> str:
    """Echoes."""
    return message


@server.tool()
def greet(form: Annotated[Form, Resolve(ask)]) -> str:
    """Asks for a name."""
    return f"Hello, {form.name}!"


if "stdio" in sys.argv:
    server.run("stdio")
    sys.exit()
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="warning")).run(sockets=[listener])
