"""A server made with the first Python SDK: it has sessions. Given the argument `stdio`, it speaks on lines."""

import socket
import sys

import uvicorn
from mcp.server.fastmcp import Context, FastMCP
from pydantic import BaseModel

server = FastMCP("sdk")


class Form(BaseModel):
    name: str


@server.tool()
def echo(message: str) -> str:
    """Echoes."""
    return message


@server.tool()
async def greet(context: Context) -> str:
    """Asks for a name."""
    answer = await context.elicit("Name?", schema=Form)
    return f"Hello, {answer.data.name}!"


if "stdio" in sys.argv:
    server.run("stdio")
    sys.exit()
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="warning")).run(sockets=[listener])
