"""The program `agent-bus`, and `python -m agent_bus`."""

from __future__ import annotations

import sys


def main() -> int:
    """Runs the command line and gives its exit code; a hook, which a client waits for, without loading all of that."""
    if sys.argv[1:] == ["hook", "stop"]:
        from agent_bus.faces.cli_hook import main as hook

        return hook(sys.argv[2:])
    from agent_bus.faces.cli import main as cli

    return cli()


if __name__ == "__main__":
    sys.exit(main())
