"""The command line as a face of the registry, in one process."""

from __future__ import annotations

import dataclasses
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel

from agent_bus import commands
from agent_bus.app import load_features, open_bus
from agent_bus.bus import Bus, Caller
from agent_bus.commands import Command, Param, Parameter, command
from agent_bus.errors import BusError
from agent_bus.faces.cli import SHORT, cli, main
from agent_bus.faces.cli_own import OWN
from agent_bus.faces.cli_verbs import option_names
from agent_bus.settings import Settings

Run = Callable[..., tuple[int, str, str]]


class Echo(BaseModel):
    given: dict[str, Any]
    caller: dict[str, Any] = {}


def toy_send(
    bus: Bus,
    target: Annotated[str, Param("who")],
    words: Annotated[str, Param("what", max_chars=20_000)],
    priority: Annotated[Literal["high", "normal", "low"], Param("how soon")] = "normal",
    count: Annotated[int, Param("how often", low=1, high=9)] = 1,
    tags: Annotated[list[str], Param("labels")] = [],  # noqa: B006
    loud: Annotated[bool, Param("with noise")] = False,
    lease_id: Annotated[str, Param("lease")] = "",
) -> Echo:
    """Send words. Then wait for the answer."""
    given = {
        "target": target,
        "words": words,
        "priority": priority,
        "count": count,
        "tags": tags,
        "loud": loud,
    }
    return Echo(given={**given, "lease_id": lease_id}, caller=dataclasses.asdict(bus.caller))


def toy_state(bus: Bus, agent: str, state: str = "idle") -> Echo:
    """A verb with a parameter that is named like a global option."""
    return Echo(given={"agent": agent, "state": state}, caller=dataclasses.asdict(bus.caller))


async def toy_wait(bus: Bus, reason: str = "") -> Echo:
    """Wait."""
    return Echo(given={"reason": reason})


def toy_person(bus: Bus, task_id: str) -> Echo:
    """For people."""
    return Echo(given={"task_id": task_id})


def toy_break(bus: Bus) -> Echo:
    """A fault of ours."""
    raise RuntimeError("secret detail")


def toy_refuse(bus: Bus, code: str, stored: str = "") -> Echo:
    """Refuse."""
    raise BusError(code, f"it is so.{stored}", "Do otherwise.")


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The registry with toy verbs beside the real ones, for one test."""
    load_features()
    monkeypatch.setattr(commands, "_registry", dict(commands._registry))
    for verb in (toy_send, toy_state, toy_wait, toy_break, toy_refuse):
        command(group="toys", writes=False)(verb)
    command(group="toys", writes=False, people=True)(toy_person)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bus folder, named by the environment, with nothing of this machine's own settings."""
    config = tmp_path / "bus.toml"
    config.write_text("")
    for name in ("AGENT", "RUN_ID", "LEASE_ID", "LANGUAGE"):
        monkeypatch.delenv(f"AGENT_BUS_{name}", raising=False)
    monkeypatch.setenv("AGENT_BUS_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("AGENT_BUS_CONFIG", str(config))
    monkeypatch.setenv("AGENT_BUS_ROOT", str(tmp_path / "bus"))
    monkeypatch.setenv("LC_ALL", "C")
    assert main(["init"]) == 0
    return tmp_path / "bus"


@pytest.fixture
def run(root: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command line; gives exit code, stdout and stderr."""
    capsys.readouterr()

    def call(*words: str) -> tuple[int, str, str]:
        code = main(list(words))
        out, err = capsys.readouterr()
        return code, out, err

    return call


def given(answer: tuple[int, str, str]) -> Any:
    code, out, err = answer
    assert code == 0, err
    return json.loads(out)["given"]


def stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))


def all_commands() -> list[str]:
    load_features()
    return [name for name in commands.commands() if not name.startswith("toy_")]


def sample(parameter: Parameter, number: int) -> Any:
    """A good value for a parameter."""
    low = parameter.param.low
    values: dict[str, Any] = {
        "integer": low if low is not None else 3,
        "boolean": True,
        "array": ["a b", "ナ"],
    }
    words = [w for w in parameter.words if w]
    return values.get(parameter.kind, words[-1] if words else f"x{number}")


def words_of(parameter: Parameter, option: str, value: Any) -> list[str]:
    if parameter.kind == "boolean":
        return [option]
    return [word for item in (value if isinstance(value, list) else [value]) for word in (option, str(item))]


@pytest.mark.parametrize("name", all_commands())
def test_every_command_is_a_verb_that_takes_every_parameter_and_answers_the_same_json(
    name: str, run: Run, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def echo(bus: Bus, **found: Any) -> Echo:
        return Echo(given=found)

    real = commands.find(name)
    toy = dataclasses.replace(real, verb=echo, people=False)
    monkeypatch.setattr(commands, "_registry", {**commands._registry, name: toy})
    values = {p.name: sample(p, i) for i, p in enumerate(real.parameters)}
    bus = open_bus(Settings(root=str(root)), Caller(channel="cli"))
    expected = commands.run_sync(bus, toy, values).model_dump(mode="json")
    bus.close()
    options = option_names(toy)
    words = [w for p in real.parameters for w in words_of(p, options[p.name][0], values[p.name])]
    verb = name.replace("_", "-")
    _, by_options, err = run(verb, "--json", *words)
    assert by_options, err
    assert json.loads(by_options) == expected
    for call in (["call", name, "--json", json.dumps(values)], ["call", verb, json.dumps(values)]):
        assert json.loads(run(*call)[1]) == expected


def test_short_forms_name_commands_and_no_verb_hides_another() -> None:
    names = [name.replace("_", "-") for name in all_commands()]
    assert set(names) & (set(OWN) | set(SHORT)) == set()
    assert set(SHORT) & set(OWN) == set()


def test_every_short_form_leads_to_a_command() -> None:
    assert [short for short, long in SHORT.items() if long not in commands.commands()] == []


@pytest.mark.parametrize("name", all_commands())
def test_the_help_of_every_verb_names_its_parameters(name: str, run: Run) -> None:
    code, out, _ = run(name.replace("_", "-"), "--help")
    assert code == 0
    assert [p.name for p in commands.find(name).parameters if f"--{p.name.replace('_', '-')}" not in out] == []


@pytest.mark.usefixtures("toys")
def test_the_help_lists_every_verb_by_group(run: Run) -> None:
    code, out, _ = run("--help")
    assert code == 0
    assert [name for name in (*OWN, "Toys:", "toy-send") if name not in out] == []
    assert "Send words." in out
    assert "Then wait" not in out
    assert run()[:2] == (code, out)


@pytest.mark.usefixtures("toys")
def test_required_parameters_stand_in_order_and_others_are_options(run: Run) -> None:
    found = given(run("toy-send", "coder", "do it", "--priority", "high", "--count", "3", "--loud", "--json"))
    assert found == {
        "target": "coder", "words": "do it", "priority": "high", "count": 3, "tags": [], "loud": True, "lease_id": "",
    }  # fmt: skip


@pytest.mark.usefixtures("toys")
def test_required_parameters_may_be_options_and_the_rest_keeps_its_order(run: Run) -> None:
    assert given(run("toy-send", "--words", "do it", "coder", "--json"))["target"] == "coder"
    assert given(run("toy-send", "do it", "--target", "coder", "--json"))["words"] == "do it"


@pytest.mark.usefixtures("toys")
def test_arrays_repeat_under_either_name_and_ids_have_short_options(run: Run) -> None:
    found = given(run("toy-send", "a", "b", "--tag", "x", "--tags", "y z", "--lease", "L1", "--json"))
    assert found["tags"] == ["x", "y z"]
    assert found["lease_id"] == "L1"


@pytest.mark.usefixtures("toys")
def test_a_verb_without_required_parameters_takes_its_first_one_in_place(run: Run) -> None:
    assert given(run("--json", "toy-wait", "because")) == {"reason": "because"}
    assert given(run("--json", "toy-wait")) == {"reason": ""}


@pytest.mark.usefixtures("toys")
def test_a_long_text_may_come_from_stdin_or_a_file(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(monkeypatch, "一行\n二行\r\n".encode())
    assert given(run("toy-send", "coder", "-", "--json"))["words"] == "一行\n二行"
    stdin(monkeypatch, b"\xef\xbb\xbfwith BOM")
    assert given(run("toy-send", "coder", "--words-file", "-", "--json"))["words"] == "with BOM"
    path = tmp_path / "text.md"
    path.write_bytes(b"-\n")
    assert given(run("toy-send", "coder", "--words-file", str(path), "--json"))["words"] == "-"


@pytest.mark.usefixtures("toys")
def test_stdin_or_a_file_that_is_no_text_is_refused_with_the_parameter(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stdin(monkeypatch, b"\xff\xfe")
    code, _, err = run("toy-send", "coder", "-")
    assert (code, "invalid: words on stdin must be UTF-8" in err) == (1, True)
    code, _, err = run("toy-send", "coder", "--words-file", str(tmp_path / "none"))
    assert (code, "invalid: words-file cannot be read" in err) == (1, True)


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["toy-send", "coder"], "Missing WORDS"),
        (["toy-send", "a", "b", "c d"], "One argument too many (c d)"),
        (["toy-send", "a", "b", "--nope"], "--nope"),
        (["toy-send", "a", "--words", "b", "--words-file", "x"], "words is given twice"),
        (["toy-sendd"], "Did you mean toy-send?"),
        (["call", "toy_wait", "{}", "--json", "{}"], "given twice"),
    ],
)
def test_wrong_use_ends_with_2_and_says_how(run: Run, words: list[str], said: str) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert said in err
    assert "--help" in err


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (["--priority", "urgent"], 'priority must be high, normal or low, got "urgent"'),
        (["--count", "many"], 'count must be a whole number, got "many"'),
        (["--count", "10"], "count must be at most 9, got 10"),
    ],
)
def test_a_bad_value_is_judged_by_the_registry(run: Run, words: list[str], rule: str) -> None:
    code, out, err = run("toy-send", "a", "b", *words)
    assert (code, out) == (1, "")
    assert f"Error: invalid: {rule}" in err


@pytest.mark.usefixtures("toys")
def test_a_refusal_is_one_line_for_people_and_an_object_with_json(run: Run) -> None:
    assert run("toy-refuse", "conflict") == (1, "", "Error: conflict: it is so. Do otherwise.\n")
    code, out, err = run("toy-refuse", "conflict", "--json")
    assert (code, err) == (1, "")
    assert json.loads(out) == {"error": {"code": "conflict", "message": "it is so.", "hint": "Do otherwise."}}


@pytest.mark.usefixtures("toys")
def test_stored_text_in_a_refusal_cannot_steer_the_terminal(run: Run) -> None:
    _, _, err = run("toy-refuse", "conflict", "--stored", "\x1b]0;title\x07\x1b[2J")
    assert {"\x1b", "\x07"} & set(err) == set()


@pytest.mark.usefixtures("toys")
def test_people_who_read_japanese_get_it(run: Run) -> None:
    _, _, err = run("toy-refuse", "busy", "--language", "ja")
    assert err.splitlines()[0] == "エラー: busy: it is so. Do otherwise."
    assert "もう一度" in err.splitlines()[1]


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize(
    "words", [["--json", "--agent", "nana", "toy-wait"], ["toy-wait", "--agent", "nana", "--json"]]
)
def test_global_options_stand_before_the_verb_or_after_it(run: Run, words: list[str]) -> None:
    assert given(run(*words)) == {"reason": ""}


@pytest.mark.usefixtures("toys")
def test_a_verbs_own_parameter_wins_over_a_global_option(run: Run) -> None:
    code, out, _ = run("--agent", "boss", "toy-state", "--agent", "coder", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["given"]["agent"] == "coder"
    assert found["caller"]["agent"] == "boss"


@pytest.mark.usefixtures("toys")
def test_the_caller_is_what_the_environment_and_the_options_say(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def caller() -> dict[str, Any]:
        found: dict[str, Any] = json.loads(run("toy-send", "a", "b", "--json")[1])["caller"]
        return found

    free = caller()
    assert (free["agent"], free["role"], free["channel"], free["person"]) == (
        "",
        "orchestrator",
        "cli",
        False,
    )
    assert free["process"] is False
    monkeypatch.setenv("AGENT_BUS_AGENT", "coder")
    monkeypatch.setenv("AGENT_BUS_RUN_ID", "r1")
    monkeypatch.setenv("AGENT_BUS_LEASE_ID", "l1")
    bound = caller()
    assert (bound["agent"], bound["role"], bound["run"], bound["lease_id"]) == ("coder", "worker", "r1", "l1")
    assert run("--agent", "../x", "toy-send", "a", "b")[0] == 1


@pytest.mark.usefixtures("toys")
def test_verbs_for_people_refuse_a_pipe_under_either_name(run: Run) -> None:
    task = "t-20261201-120000-001"
    for words in (["toy-person", task], ["call", "toy_person", json.dumps({"task_id": task})]):
        code, out, err = run(*words)
        assert code == 1
        assert "refused" in out + err
        assert f"agent-bus toy-person {task}" in out + err


@pytest.mark.usefixtures("toys")
def test_a_fault_of_ours_gives_an_id_and_its_trace_goes_to_the_log_alone(run: Run, root: Path) -> None:
    code, out, err = run("toy-break")
    assert (code, out) == (1, "")
    assert "internal: something went wrong here (id " in err
    assert "secret detail" not in err
    assert "Traceback" not in err
    log = (root / ".bus" / "log" / "cli.log").read_text(encoding="utf-8")
    assert "RuntimeError: secret detail" in log
    assert err.partition("(id ")[2][:6] in log
    assert json.loads(run("toy-break", "--json")[1])["error"]["code"] == "internal"


@pytest.mark.usefixtures("toys")
def test_a_result_that_cannot_be_written_is_taken_back(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    undone: list[Any] = []
    real: Command = commands.find("toy_wait")
    toy = dataclasses.replace(real, undo=lambda bus, result: undone.append(result))
    monkeypatch.setitem(commands._registry, "toy_wait", toy)

    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(sys, "stdout", Full())
        assert main(["toy-wait", "x"]) == 1
    assert [r.given for r in undone] == [{"reason": "x"}]
    run("toy-wait", "y")
    assert len(undone) == 1


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize("text", ["{", "[1]", "@nowhere", "7"])
def test_call_wants_an_object(run: Run, text: str) -> None:
    code, out, _ = run("call", "toy_wait", text)
    assert code == 1
    assert json.loads(out)["error"]["code"] == "invalid"


@pytest.mark.usefixtures("toys")
def test_call_reads_its_object_from_a_file_or_stdin(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "given.json").write_text('{"reason": "file"}', encoding="utf-8")
    assert given(run("call", "toy_wait", f"@{tmp_path / 'given.json'}")) == {"reason": "file"}
    stdin(monkeypatch, b'{"reason": "stdin"}')
    assert given(run("call", "toy_wait", "--json", "-")) == {"reason": "stdin"}


def test_call_names_the_nearest_command(run: Run, toys: None) -> None:
    code, out, _ = run("call", "toy_snd")
    assert code == 1
    assert json.loads(out)["error"]["hint"] == "Did you mean toy_send?"


def test_the_version_is_printed(run: Run) -> None:
    code, out, _ = run("--version")
    assert code == 0
    assert out.startswith("agent-bus ")


def test_a_wrong_setting_is_said_on_stderr_and_the_verb_goes_on(run: Run, tmp_path: Path, toys: None) -> None:
    (tmp_path / "bus.toml").write_text("lease_s = 1\n", encoding="utf-8")
    code, out, err = run("toy-wait", "--json")
    assert code == 0
    assert json.loads(out)
    assert "bus.toml line 1: lease_s" in err


def test_the_group_is_called_as_the_program(run: Run) -> None:
    assert cli.name == "agent-bus"
