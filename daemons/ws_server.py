"""The WebSocket hub under the seed's name and flags: `ws_server.py [--port 8123]` is `agent-bus job hub …`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

if __name__ == "__main__":
    from agent_bus.faces.cli import main

    sys.exit(main(["job", "hub", *sys.argv[1:]]))
