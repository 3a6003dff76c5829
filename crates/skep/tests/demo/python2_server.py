"""A server made with the second Python SDK, which speaks all revisions. Given the argument `stdio`, on lines."""

import socket
import sys
from typing import Annotated

import anyio
import uvicorn
from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from mcp_types import Completion
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


called_off = 0


@server.tool()
async def steps(context: Context) -> str:
    """Tells how far it is."""
    for step in [1, 2]:
        await context.report_progress(step, 2)
    return "done"


@server.tool()
async def log(context: Context) -> str:
    """Logs."""
    await context.error("loud")
    return "done"


@server.tool()
async def change(context: Context) -> str:
    """Says that there are other tools."""
    await context.notify_tools_changed()
    return "done"


@server.tool()
async def wait(context: Context) -> str:
    """Waits until it is called off."""
    global called_off
    try:
        await context.report_progress(1)
        await anyio.sleep_forever()
    finally:
        called_off += 1


@server.tool(name="called-off")
def count() -> str:
    """Counts what was called off."""
    return str(called_off)


@server.resource("sdk://greeting")
def greeting() -> str:
    return "Hello!"


@server.prompt()
def hello(name: str) -> str:
    return f"Greet {name}."


@server.completion()
async def complete(ref, argument, context):
    return Completion(values=[name for name in ["Ada", "Alan", "Grace"] if name.startswith(argument.value)])


if "stdio" in sys.argv:
    server.run("stdio")
    sys.exit()
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="warning")).run(sockets=[listener])
