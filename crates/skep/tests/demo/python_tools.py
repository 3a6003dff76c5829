"""What servers of both Python SDKs offer. It stands before their scripts."""

import socket
import sys

import anyio
import uvicorn
from pydantic import BaseModel

called_off = 0


class Form(BaseModel):
    name: str


def offer(server, context_type, completion_type, change):
    """Gives a server its tools, resources and a prompt. Given a context, `change` says that there are other tools."""

    @server.tool()
    def echo(message: str) -> str:
        """Echoes."""
        return message

    @server.tool()
    async def steps(context: context_type) -> str:
        """Tells how far it is."""
        for step in [1, 2]:
            await context.report_progress(step, 2)
        return "done"

    @server.tool()
    async def log(context: context_type) -> str:
        """Logs."""
        await context.error("loud")
        return "done"

    @server.tool(name="change")
    async def tell_change(context: context_type) -> str:
        """Says that there are other tools."""
        await change(context)
        return "done"

    @server.tool()
    async def wait(context: context_type) -> str:
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

    @server.resource("sdk://greeting/{name}")
    def greeting_of(name: str) -> str:
        return f"Hello, {name}!"

    @server.prompt()
    def hello(name: str) -> str:
        return f"Greet {name}."

    @server.completion()
    async def complete(ref, argument, context):
        return completion_type(values=[name for name in ["Ada", "Alan", "Grace"] if name.startswith(argument.value)])


def places(result):
    """Where the roots of a client are."""
    return " ".join(str(root.uri) for root in result.roots)


def serve(server):
    """Serves on streamable HTTP and prints the port. Given the argument `stdio` on lines, given `sse` on HTTP+SSE."""
    if "stdio" in sys.argv:
        server.run("stdio")
        return
    app = server.sse_app() if "sse" in sys.argv else server.streamable_http_app()
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
