"""The command line: every verb of the registry, and what only a command line has (init, status, tail …).

Exit codes: 0 done, 1 an error with a code, 2 wrong use, 130 interrupted.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from agent_bus import __version__
from agent_bus.app import load_features
from agent_bus.commands import Command, commands, nearest
from agent_bus.errors import BusError
from agent_bus.faces.answers import fault
from agent_bus.faces.cli_own import OWN
from agent_bus.faces.cli_session import Session, long_name
from agent_bus.faces.cli_verbs import global_options, make
from agent_bus.faces.show import clean
from agent_bus.host import state_folder

SHORT = {
    "dispatch": "dispatch_task",
    "receive": "receive_task",
    "report": "submit_report",
    "tasks": "list_tasks",
    "reports": "get_reports",
    "ack": "acknowledge_report",
    "context": "get_shared_context",
    "share": "share_context",
    "health": "system_health",
    "stop": "emergency_stop",
    "get": "get_task",
    "cancel": "cancel_task",
    "release": "release_task",
    "retry": "retry_task",
}
_LOG_BYTES = 1_000_000
_INTERRUPTED = 130  # 128 + SIGINT, as shells say it


class Verbs(click.Group):
    """The verbs: the command line's own, then those of the registry, by their long and their short names."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        load_features()
        return [*OWN, *SHORT, *map(long_name, commands())]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in OWN:
            return OWN[cmd_name]
        load_features()
        found = commands().get(SHORT.get(cmd_name, cmd_name.replace("-", "_")))
        return make(found, cmd_name) if found else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None and len(args) > 1 and self.get_command(ctx, "-".join(args[:2])):
            args = ["-".join(args[:2]), *args[2:]]  # `project create` is `project-create`
        if self.get_command(ctx, args[0]) is None:
            known = self.list_commands(ctx)
            family = ", ".join(n for n in known if n.startswith(f"{args[0]}-"))
            hint = f"There is {family}." if family else nearest(args[0], dict.fromkeys(known))
            ctx.fail(f"No such command '{args[0]}'. {hint}".rstrip())
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The verbs by group; one with a short form stands under that, with its long name behind."""
        load_features()
        self._section(formatter, "Bus", [(name, own.get_short_help_str(90)) for name, own in OWN.items()])
        short = {long: word for word, long in SHORT.items()}
        for group in dict.fromkeys(command.group for command in commands().values()):
            members = [command for command in commands().values() if command.group == group]
            words = [(_listed(c, short.get(c.name, "")), _first_sentence(c)) for c in members]
            self._section(formatter, group.capitalize(), words)

    @staticmethod
    def _section(formatter: click.HelpFormatter, title: str, words: list[tuple[str, str]]) -> None:
        with formatter.section(title):
            formatter.write_dl(words)


cli = Verbs(
    "agent-bus",
    params=[
        *global_options(hidden=False),
        click.Option(
            ["--version"], is_flag=True, expose_value=False, is_eager=True, help="Print the version and end.",
            callback=lambda context, _, value: _print_version(context) if value else None,
        ),
    ],
    help="One mailbox for all your coding agents. Options stand before the verb or after it.",
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and gives its exit code.

    Args:
        argv: the words after the program's name; default: those of the process.
    """
    _prepare_streams()
    session = Session()
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        code = cli.main(words or ["--help"], prog_name="agent-bus", standalone_mode=False, obj=session)
        return code if isinstance(code, int) else 0
    except click.ClickException as error:
        return _wrong_use(session, error)
    except (KeyboardInterrupt, click.Abort):
        return _INTERRUPTED
    except BusError as error:
        return _refused(session, error)
    except Exception as error:
        return _fault(session, error)


def _wrong_use(session: Session, error: click.ClickException) -> int:
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is not None:
        session.warn(context.get_usage())
    session.warn(session.texts.say("error.line", error=error.format_message()))
    if context is not None:
        session.warn(session.texts.say("error.usage", command=context.command_path))
    return 2


def _refused(session: Session, error: BusError) -> int:
    if session.json:
        session.data({"error": error.as_dict()})
        return 1
    session.warn(session.texts.say("error.line", error=click.style(clean(str(error)), bold=True)))
    meaning = session.texts.say(f"meaning.{error.code}")
    if meaning:
        session.warn(f"  {meaning}")
    return 1


def _fault(session: Session, error: Exception) -> int:
    """A fault of ours: an id for people, the traceback for the log alone."""
    with _log_file(session) as path:
        code = _refused(session, fault(error))
    if path is not None:
        session.warn(session.texts.say("error.log", path=path))
    return code


@contextmanager
def _log_file(session: Session) -> Iterator[Path | None]:
    """Sends the log to a file of the bus if there is one, else of the user; None if it cannot be written."""
    import logging.handlers  # wanted only here

    state = session.layout.state if session.settings.root else None
    path: Path | None = None
    folder = (state if state and state.is_dir() else state_folder()) / "log"
    handler: logging.Handler
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "cli.log"
        handler = logging.handlers.RotatingFileHandler(path, "a", _LOG_BYTES, backupCount=1, encoding="utf-8")
    except OSError:
        handler, path = logging.NullHandler(), None
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    log = logging.getLogger("agent_bus")
    before = log.propagate, log.handlers
    log.propagate, log.handlers = False, [handler]
    try:
        yield path
    finally:
        log.propagate, log.handlers = before
        handler.close()


def _prepare_streams() -> None:
    """UTF-8 everywhere: a Windows console or a C locale must not break on Japanese text."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")


def _print_version(context: click.Context) -> None:
    click.echo(f"agent-bus {__version__}")
    context.exit()


def _listed(command: Command, short: str) -> str:
    long = long_name(command.name)
    return f"{short} ({long})" if short else long


def _first_sentence(command: Command) -> str:
    return command.text.partition(". ")[0].partition("\n\n")[0].replace("\n", " ").rstrip(".") + "."


if __name__ == "__main__":
    sys.exit(main())
