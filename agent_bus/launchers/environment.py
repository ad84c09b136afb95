"""The environment of a run: what of the daemon's is let through, what never is, what we set. Pure.

A list of what may pass, not of what may not: a new secret of the user's shell stays out by itself
(docs/launcher.md "Environment").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

RUN_ID = "AGENT_BUS_RUN_ID"
"""The marker by which every process of a run is found again."""

ALLOWED = tuple(
    """PATH HOME USER LOGNAME SHELL LANG LC_* TZ TMPDIR TEMP TMP XDG_* SSH_AUTH_SOCK HTTP_PROXY HTTPS_PROXY NO_PROXY
    NODE_EXTRA_CA_CERTS SSL_CERT_*""".split()
)
ALLOWED_LOWER = ("http_proxy", "https_proxy", "no_proxy")
ALLOWED_WINDOWS = tuple(
    """USERPROFILE APPDATA LOCALAPPDATA PROGRAMDATA PROGRAMFILES* SYSTEMROOT SYSTEMDRIVE COMSPEC PATHEXT HOMEDRIVE
    HOMEPATH USERNAME NUMBER_OF_PROCESSORS""".split()
)
REMOVED = tuple(
    """CLAUDECODE CLAUDE_CODE_SESSION_ID CLAUDE_CODE_ENTRYPOINT CLAUDE_PROJECT_DIR CLAUDE_CODE_SSE_PORT
    CLAUDE_CODE_*SOCKET* CLAUDE_CODE_*TOKEN* NODE_OPTIONS PYTHONPATH PYTHONHOME PYTHONSTARTUP LD_PRELOAD DYLD_*
    DISCORD_WEBHOOK_URL AGENT_BUS_* MOAMCP_*""".split()
)
"""Never let through: guards against nested starts, code loaded into the child, secrets of the daemon."""
PLACES = ("AGENT_BUS_STATE_HOME", "AGENT_BUS_CONFIG")
"""Where this user's agent-bus keeps its host id and settings: without them the run's own bus commands would take this
machine for another host and refuse to write."""
KEPT = ("CLAUDE_CODE_OAUTH_TOKEN", *PLACES)
ALWAYS = {"PYTHONUTF8": "1", "NO_COLOR": "1", "TERM": "dumb"}


def child_environment(
    daemon: Mapping[str, str],
    *,
    prefixes: Iterable[str] = (),
    env_pass: Iterable[str] = (),
    env: Mapping[str, str] | None = None,
    run: Mapping[str, str] | None = None,
    windows: bool = False,
) -> dict[str, str]:
    """The whole environment of a run.

    Args:
        daemon: the environment of the process that starts it.
        prefixes: the launcher's own (`Launcher.env_prefixes`).
        env_pass: the agent's further names, `X_*` allowed; `*` alone lets nothing through.
        env: the agent's own values; they may set what is never let through.
        run: what we set for this run (`run_variables`); nothing overrides it.
        windows: names are compared without regard to case, and Windows' own are allowed.
    """
    passed = passed_variables(daemon, prefixes=prefixes, env_pass=env_pass, windows=windows)
    ours = {**ALWAYS, **(run or {})}
    return _merged((passed, env or {}, ours), windows)


def passed_variables(
    daemon: Mapping[str, str], *, prefixes: Iterable[str] = (), env_pass: Iterable[str] = (), windows: bool = False
) -> dict[str, str]:
    """What of the daemon's environment a run gets."""
    wanted = [p for p in env_pass if p.strip("*")]
    ours = (*ALLOWED, *ALLOWED_LOWER, *PLACES, *(ALLOWED_WINDOWS if windows else ()))
    allowed = [*ours, *(f"{prefix}*" for prefix in prefixes), *wanted]
    return {
        name: value
        for name, value in daemon.items()
        if _matches(name, allowed, windows) and (name.upper() in KEPT or not _matches(name, REMOVED, True))
    }


def run_variables(
    *, root: str, agent: str, worker: str, task_id: str, run_id: str, lease_id: str, tower_token: str = ""
) -> dict[str, str]:
    """What tells the worker, its bus server and its hook which run they belong to."""
    tower = {"AGENT_BUS_TOWER_TOKEN": tower_token} if tower_token else {}
    return {
        "AGENT_BUS_ROOT": root,
        "AGENT_BUS_AGENT": agent,
        "AGENT_BUS_WORKER": worker,
        "AGENT_BUS_TASK_ID": task_id,
        RUN_ID: run_id,
        "AGENT_BUS_LEASE_ID": lease_id,
        **tower,
    }


def _matches(name: str, patterns: Iterable[str], fold: bool) -> bool:
    """Whether a name fits one of the patterns, whose only wild card is `*`."""
    seen = name.upper() if fold else name
    return any(fnmatchcase(seen, (p.upper() if fold else p).replace("[", "[[]").replace("?", "[?]")) for p in patterns)


def _merged(parts: Iterable[Mapping[str, str]], windows: bool) -> dict[str, str]:
    """Later parts win; on Windows whatever the case of a name."""
    names: dict[str, str] = {}
    values: dict[str, str] = {}
    for name, value in ((n, v) for part in parts for n, v in part.items()):
        key = name.upper() if windows else name
        values.pop(names.get(key, name), None)
        names[key] = name
        values[name] = value
    return values
