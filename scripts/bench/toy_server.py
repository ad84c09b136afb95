"""The trivial servers that the MCP face is compared with: one tool that gives a text back.

`python toy_server.py sdk|fastmcp stdio|http PORT`; run as a process of its own.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any


def echo(text: str) -> str:
    """Gives the text back."""
    return text


def main(kind: str, transport: str, port: int) -> None:
    """Serves until it is ended."""
    server: Any
    if kind == "sdk":
        server = importlib.import_module("mcp.server.mcpserver").MCPServer("toy")
        server.tool()(echo)
        options: dict[str, Any] = {"json_response": True, "stateless_http": True}
    else:
        server = importlib.import_module("fastmcp").FastMCP("toy")
        server.tool(echo)
        options = {"json_response": True, "stateless_http": True, "uvicorn_config": {"access_log": False}}
        options["log_level"] = "warning"
    if transport == "stdio":
        server.run("stdio", **({"show_banner": False} if kind == "fastmcp" else {}))
        return
    if kind == "sdk":
        serve_quietly(server, port)
        return
    server.run("http", host="127.0.0.1", port=port, show_banner=False, **options)


def serve_quietly(server: Any, port: int) -> None:
    """The SDK's HTTP app without an access log, as the other two have none."""
    uvicorn: Any = importlib.import_module("uvicorn")
    app = server.streamable_http_app(json_response=True, stateless_http=True)
    uvicorn.run(app, host="127.0.0.1", port=port, access_log=False, log_level="warning")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0)
