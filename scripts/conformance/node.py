"""Node and the npm packages that we run, in `.cache/conformance/`, as `npm/package-lock.json` has them."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import _env

OLDEST = 22
"""The inspector asks for this Node, https://github.com/modelcontextprotocol/inspector."""
NPM = Path(__file__).resolve().parent / "npm"
HOME = _env.CACHE / "conformance"
NO_NPM = """npm is not on PATH.
  Install Node 22 or newer (nodejs.org); it brings npm."""
OWN = {"Darwin": "darwin", "Linux": "linux", "Windows": "win"}
CPU = {"x86_64": "x64", "AMD64": "x64", "aarch64": "arm64", "arm64": "arm64", "ARM64": "arm64"}


@dataclass(frozen=True)
class Tools:
    """How to run a package's program: Node, and where the packages are."""

    node: Path
    modules: Path

    def command(self, package: str, program: str) -> list[str]:
        """The words that start a program of a package."""
        return [str(self.node), str(self.modules / package / program)]

    def environment(self, **added: str) -> dict[str, str]:
        """This process's environment with that Node first on PATH, and without settings of a bus of the user's."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AGENT_BUS_")}
        path = os.pathsep.join([str(self.node.parent), kept.get("PATH", "")])
        return {**kept, "PATH": path, "MCP_INSPECTOR_SECRET_STORE": "memory", **added}


def ensure() -> Tools:
    """Installs what the lock names unless it is there; exits with 2 and the reason if that cannot be."""
    lock = (NPM / "package-lock.json").read_bytes()
    wanted = hashlib.sha256(lock).hexdigest()
    stamp = HOME / "lock.stamp"
    system = _system_node()
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        _install()
        stamp.write_text(wanted, encoding="utf-8")
    modules = HOME / "node_modules"
    return Tools(system or _own_node(modules), modules)


def _install() -> None:
    npm = shutil.which("npm")
    if npm is None:
        _env.fail(NO_NPM)
    _env.say(f"npm install into {HOME} (about 350 MB, a minute)")
    HOME.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(NPM / name, HOME / name)
    # Not `npm ci`: it refuses a lock without an optional package that the registry does not have.
    words = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run([npm, *words], cwd=HOME, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        _env.fail(f"npm install failed:\n{done.stderr.strip()[-2000:]}\n  The network? Run the same again.")


def _system_node() -> Path | None:
    found = shutil.which("node")
    if found is None:
        return None
    done = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
    version = re.match(r"v(\d+)\.", done.stdout)
    return Path(found) if version and int(version[1]) >= OLDEST else None


def _own_node(modules: Path) -> Path:
    package = f"node-{OWN.get(platform.system())}-{CPU.get(platform.machine())}"
    node = modules / package / "bin" / ("node.exe" if _env.WINDOWS else "node")
    if not node.exists():
        _env.fail(
            f"Node {OLDEST} or newer is needed, and npm has none for {package.removeprefix('node-')}: install it."
        )
    return node
