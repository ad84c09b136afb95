"""The orchestrator under the seed's name and flags: `auto_orchestrator.py [--interval 10] [--once]`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

if __name__ == "__main__":
    from agent_bus.faces.cli import main

    sys.exit(main(["job", "orchestrator", *sys.argv[1:]]))
