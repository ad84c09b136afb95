"""The mirror alone: `vault_mirror.py [--once]` is `agent-bus job mirror …`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

if __name__ == "__main__":
    from agent_bus.faces.cli import main

    sys.exit(main(["job", "mirror", *sys.argv[1:]]))
