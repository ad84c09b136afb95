"""The clients that people run their agents in: where each keeps its servers, and the shape of our entry there.

One module a client, data as far as it goes; a third party adds one by the entry point group `agent_bus.clients`. Facts
about files and limits are from each client's documentation; those of Claude Code, Codex and Gemini CLI were seen.
"""

from __future__ import annotations

import ntpath
import posixpath
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

USER, PROJECT = "user", "project"
SCOPES = (USER, PROJECT)
USUAL_NAME = "bus"
"""The name of our entry."""
PARTS = ("roles", "commands", "hook", "approve")
"""What may be installed besides the entry."""
JSON, JSONC, TOML = "json", "jsonc", "toml"
TOKEN_VARIABLE = "AGENT_BUS_HTTP_TOKEN"
"""The variable that a client reads our HTTP token from, where it can."""
SPARSE = ("HOME", "LANG", "PATH", "TERM", "TMPDIR")
"""All that Codex gives a server of its environment (on Windows the system's own variables besides)."""


@dataclass(frozen=True)
class Home:
    """Whose files: a home folder, the environment that may move some of them, and the kind of system."""

    folder: Path
    environ: Mapping[str, str] = field(default_factory=dict)
    platform: str = sys.platform

    def at(self, path: str) -> Path:
        """A path below home, written with slashes."""
        return self.folder.joinpath(*path.split("/"))

    def moved(self, variable: str, usual: str) -> Path:
        """The folder that a variable names, else the usual one below home."""
        named = self.environ.get(variable, "")
        return Path(named) if named else self.at(usual)

    def app_data(self, mac: str, windows: str, linux: str = "") -> Path | None:
        """An application's folder of this system; None if it has none here."""
        if self.platform == "darwin":
            return self.at(f"Library/Application Support/{mac}")
        if self.platform == "win32":
            return self.moved("APPDATA", "AppData/Roaming").joinpath(*windows.split("/"))
        return self.at(linux) if linux else None


@dataclass(frozen=True)
class Server:
    """What a client shall start or call; the same for all of them.

    Args:
        command: the absolute path of the program; "" for a server reached by url.
        args: its arguments.
        url: the address of a server over HTTP.
        token: its token, "" if the client reads `TOKEN_VARIABLE`.
    """

    command: str = ""
    args: tuple[str, ...] = ()
    url: str = ""
    token: str = ""


@dataclass(frozen=True)
class Limits:
    """What a client does to servers, as far as users meet it.

    Args:
        timeout_key: the key of the entry that sets how long a call may last, "" if it is fixed.
        timeout_unit_s: seconds in one unit of that key.
        default_timeout_s: how long a call may last without that key; 0 = for ever, or not known.
        name_chars: the most that server and tool name may have together; 0 = no limit known.
        sparse: whether servers get only the variables of `SPARSE`.
        notes: message keys of what else a user should know, `clients.note.<key>`.
    """

    timeout_key: str = ""
    timeout_unit_s: float = 0.001
    default_timeout_s: float = 0
    name_chars: int = 0
    sparse: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Signs:
    """What shows that a client is on this machine.

    Args:
        programs: names of executables.
        folders: below home, written with slashes.
    """

    programs: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


@dataclass(frozen=True)
class Client:
    """One client. What differs in more than data, its module overrides.

    Args:
        name: its name on our command line, and the agent's usual name.
        title: its name for people.
        user_file: the user's file below home, "" if it is found in another way (`user_path`).
        project_file: the file inside a project; "" without that scope.
        format: JSON, JSONC or TOML.
        servers: the keys down to the map of servers.
        extras: keys of the entry besides command and args.
        approving: keys that allow our tools without asking; written only if the user asks.
        url_key: the entry's key for an address over HTTP; "" if it takes none.
        url_extras: keys of such an entry besides address and header.
        token_reference: how a header's text names a variable, with `{}` for its name; "" if it cannot.
        after: message keys of what the user does after a change, `clients.after.<key>`.
        hot: whether the running client writes its user file from what it read before.
    """

    name: str
    title: str
    user_file: str = ""
    project_file: str = ""
    format: str = JSON
    servers: tuple[str, ...] = ("mcpServers",)
    extras: Mapping[str, Any] = field(default_factory=dict)
    approving: Mapping[str, Any] = field(default_factory=dict)
    url_key: str = "url"
    url_extras: Mapping[str, Any] = field(default_factory=dict)
    token_reference: str = ""
    signs: Signs = Signs()
    limits: Limits = Limits()
    after: tuple[str, ...] = ()
    hot: bool = False

    def scopes(self) -> tuple[str, ...]:
        """The scopes that it has, the user's first."""
        return SCOPES if self.project_file else (USER,)

    def user_path(self, home: Home) -> Path | None:
        """The user's file; None on a system that the client is not made for."""
        return home.at(self.user_file)

    def project_path(self, project: Path) -> Path:
        """The file inside a project."""
        return project.joinpath(*self.project_file.split("/"))

    def older_paths(self, home: Home) -> tuple[Path, ...]:
        """Files of other versions that may hold an entry: read, never written."""
        return ()

    def dead_places(self, home: Home, project: Path | None) -> tuple[tuple[Path, tuple[str, ...]], ...]:
        """Where users put servers that the client never looks at: files, and the keys down to a map."""
        return ()

    def path(self, scope: str, home: Home, project: Path | None) -> Path | None:
        """The file of a scope; None if there is none."""
        if scope == USER:
            return self.user_path(home)
        return self.project_path(project) if self.project_file and project else None

    def place(self, document: Any) -> tuple[str, ...]:
        """The keys down to the map of servers, in this document."""
        return self.servers

    def entry(self, server: Server, place: Sequence[str]) -> dict[str, Any]:
        """Our entry, in the order that its keys shall have.

        Args:
            server: what to start or call.
            place: the keys down to its map, as `place` gave them.
        """
        if server.url:
            return {**self.url_extras, self.url_key: server.url, **self.header(server)}
        first = {key: value for key, value in self.extras.items() if key == "type"}
        rest = {key: value for key, value in self.extras.items() if key != "type"}
        env: dict[str, Any] = {} if self.format == TOML else {"env": {}}
        return {**first, "command": server.command, "args": list(server.args), **env, **rest}

    def header(self, server: Server) -> dict[str, Any]:
        """The part of a url entry that carries the token."""
        token = server.token or self.token_reference.format(TOKEN_VARIABLE)
        return {"headers": {"Authorization": f"Bearer {token}"}}

    def allowing(
        self, scope: str, home: Home, project: Path | None, key: str
    ) -> tuple[tuple[Path, tuple[str, ...], str], ...]:
        """Rules besides the entry that allow our tools without asking: file, keys down to an array, what is added."""
        return ()

    def started(self, entry: Mapping[str, Any]) -> tuple[str, ...]:
        """The command line of an entry; () if it is none."""
        command, args = entry.get("command"), entry.get("args", [])
        if not isinstance(command, str) or not isinstance(args, list):
            return ()
        return (command, *(str(word) for word in args))

    def address(self, entry: Mapping[str, Any]) -> str:
        """The address of a url entry; "" if it is none."""
        found = entry.get(self.url_key) if self.url_key else None
        return found if isinstance(found, str) else ""


def base_name(path: str) -> str:
    """The last part of a path of any system, without `.exe`, in small letters."""
    name = ntpath.basename(path) if "\\" in path else posixpath.basename(path)
    return name.lower().removesuffix(".exe")
