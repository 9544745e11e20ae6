"""MCP servers of the library that the benchmark of the gateway reaches in both ways.

    gateway_servers.py echo|time [PORT]

With a port over streamable HTTP on loopback, without one over a pipe. ``time`` is the real mcp-server-time, which must be
installed in the environment of the interpreter.
"""

from __future__ import annotations

import logging
import sys

import uvicorn
from mcp.server.mcpserver import MCPServer


def main(name: str, port: str = "") -> None:
    """Serve until killed."""
    if name == "time":
        from mcp_server_time.server import create_server

        server = create_server("UTC")
    else:
        server = MCPServer("echo")

        @server.tool(structured_output=False)
        def echo(text: str) -> str:
            """Give a text back."""
            return text

        @server.tool(structured_output=False)
        def big(size: int) -> str:
            """Give a text of this size."""
            return "x" * size

    logging.getLogger().setLevel(logging.ERROR)  # neither way pays for lines of a log
    if port:
        app = server.streamable_http_app()
        uvicorn.run(
            app, host="127.0.0.1", port=int(port), log_config=None, access_log=False, timeout_keep_alive=120
        )
    else:
        server.run("stdio")


if __name__ == "__main__":
    main(*sys.argv[1:])
