"""The MCP server under the seed's name and flags: `server.py [--transport sse --port 8200]` is `agent-bus mcp …`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

if __name__ == "__main__":
    from agent_bus.faces.cli import main

    sys.exit(main(["mcp", *sys.argv[1:]]))
