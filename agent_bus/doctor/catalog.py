"""Every check: what it looks at, and how bad a bad finding is. docs/doctor.md is made from it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One check.

    Args:
        id: as in findings.
        looks: what is looked at, for the documents.
        level: how bad a bad finding is, in words.
    """

    id: str
    looks: str
    level: str


CHECKS = tuple(
    Check(*row)
    for row in (
        ("root.exists", "The bus folder is named, is there, and was made by `agent-bus init`.", "fail"),
        ("root.format", "`format.json` can be read, and this version knows its format.", "fail"),
        ("root.write", "A file can be written where the bus keeps its own, and is taken away again.", "fail"),
        ("root.owner", "This machine is the one that may write to the bus.", "warn"),
        (
            "root.sync",
            "No program that synchronises folders is at work there, no copies of conflicts lie there, the file system"
            " is local, and a lock that one process holds keeps another one out.",
            "warn; a lock that does not hold: fail; git, and names without regard to case: info",
        ),
        ("disk", "Free space: 1 GiB or more.", "warn; below 256 MiB: fail"),
        ("version", "Servers that run or are started by a client have this version.", "warn"),
        ("entry.found", "Some client knows the bus.", "warn; a client here that does not: info"),
        ("entry.parse", "Each configuration file of a client that is there can be read.", "fail"),
        (
            "entry.place",
            "No server stands where its client does not look, or under a key that it does not read.",
            "fail",
        ),
        (
            "entry.command",
            "The program of the entry has an absolute path, is there, can be run, and is this installation, which is"
            " no temporary one.",
            "fail; the earlier agent-bus-mcp: warn",
        ),
        ("entry.root", "`--root` is the bus that the doctor looks at.", "warn; a folder that is not there: fail"),
        ("entry.double", "A client has one entry of ours; that of a project agrees with the user's.", "warn"),
        ("entry.agent", "No two clients have one agent name.", "warn"),
        ("entry.limits", "Calls may last a minute, and the client offers and runs our tools.", "warn"),
        ("entry.secret", "No token and no webhook address in a project's file or in an environment block.", "fail"),
        ("server.start", "The server, started as the client would start it, answers.", "fail"),
        ("server.discover", "It answers `server/discover`, with which the newest clients begin.", "fail"),
        ("server.initialize", "A second one answers `initialize` of 2025-06-18 and 2025-11-25.", "fail"),
        ("server.time", "The first answer of both comes within 2 s.", "warn"),
        ("server.tools", "It offers the tools of its groups, in a form that all clients take.", "fail"),
        ("server.stdout", "It writes nothing but the protocol, and ends within 2 s when its input does.", "fail"),
        ("server.call", "`system_health` answers.", "fail"),
        (
            "http",
            "The server of `agent-bus up`, and one that an entry names, answers for this bus, refuses foreign Host and"
            " Origin headers and calls without a token, listens to this machine only; its token is readable by you"
            " alone.",
            "fail; an open address: warn",
        ),
        ("launch.settings", "With `--launch`, for each agent that is started: settings, work folder, program.", "fail"),
        (
            "launch.program",
            "With `--launch`: the program starts, tells its version, and knows the flags we need.",
            "fail",
        ),
        ("launch.parked", "With `--launch`: the agent is not parked.", "warn"),
        ("launch.login", "With `--launch`: it is logged in, where the program tells without calling a model.", "warn"),
        ("jobs", "The jobs that this bus needs are alive and without a fault.", "warn"),
        ("notify", "Channels are set up rightly and take what they get; with `--send` a test notice is sent.", "warn"),
        (
            "vault",
            "If the bus has notes in a vault: what `agent-bus vault doctor` says of them, in one line.",
            "warn; an error there: fail",
        ),
        ("stop", "The bus is not stopped.", "info"),
        ("tasks", "What `system_health` says of tasks, files and settings.", "warn"),
    )
)
IDS = tuple(check.id for check in CHECKS)
