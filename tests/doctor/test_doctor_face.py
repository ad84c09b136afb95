"""`agent-bus doctor` as people and programs call it; and its words."""

from __future__ import annotations

import ast
import json
import re
import string
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import agent_bus.doctor
from agent_bus.doctor import Finding, examination, good, warn
from agent_bus.doctor.catalog import IDS
from agent_bus.doctor.running import Deadline, Probe, run_all
from agent_bus.errors import BusError
from agent_bus.faces import cli_doctor
from agent_bus.faces.cli import main
from agent_bus.faces.cli_doctor import words
from agent_bus.locale.doctor import DOCTOR
from agent_bus.texts import Texts
from tests.doctor.conftest import ABSENT, House

SOURCES = sorted(Path(agent_bus.doctor.__file__).parent.glob("*.py"))
KINDS = {"good": "", "info": "info", "warn": "warn", "fail": "fail"}


@pytest.fixture
def at_home(house: House, monkeypatch: pytest.MonkeyPatch) -> House:
    """The command line runs in this house; no server is started."""
    monkeypatch.setenv("HOME", str(house.home.folder))
    monkeypatch.setenv("USERPROFILE", str(house.home.folder))
    monkeypatch.setenv("AGENT_BUS_ROOT", house.settings.root)
    monkeypatch.setenv("AGENT_BUS_CONFIG", str(house.folder / "bus.toml"))
    monkeypatch.setenv("LANG", "C")
    (house.folder / "bus.toml").write_text("")
    monkeypatch.chdir(house.folder)
    monkeypatch.setattr("agent_bus.doctor.server.look", lambda ground, file, entry: iter([good("server.start")]))
    monkeypatch.setattr("agent_bus.doctor.sync.look", lambda ground: iter([good("root.sync")]))
    return house


@pytest.mark.req("clients:29")
def test_json_has_the_documented_keys_and_ok_is_the_exit_code(
    at_home: House, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in at_home.folder.rglob("*") if path.is_file()}
    for strict, code in (((), 0), (("--strict",), 1)):
        assert main(["doctor", "--json", *strict]) == code
        found = json.loads(capsys.readouterr().out)
        assert set(found) == {"ok", "findings"}
        assert found["ok"] is (code == 0)
        for finding in found["findings"]:
            assert set(finding) == {"id", "level", "client", "what", "why", "fix"}
            assert finding["id"] in IDS
            assert finding["what"]
            assert (finding["level"] == "ok") == (finding["fix"] == "")
    assert {f["id"] for f in found["findings"] if f["level"] == "warn"} == {"entry.found"}
    after = {path: path.read_bytes() for path in at_home.folder.rglob("*") if path.is_file()}
    assert {path for path in after if before.get(path) != after[path] and path.parent.name != "locks"} == set()


def test_people_read_what_is_wrong_why_and_what_to_do_in_their_language(
    at_home: House, capsys: pytest.CaptureFixture[str]
) -> None:
    at_home.install("codex", default_tools_approval_mode="prompt")
    assert main(["doctor", "--client", "codex"]) == 1
    text = capsys.readouterr().out
    assert "FAIL  entry.command" in text
    assert "fix: agent-bus install codex sets it in" in text
    assert text.rstrip().split("\n")[-1].startswith("Things that do not work: 1.")
    assert main(["doctor", "--language", "ja", "--client", "codex"]) == 1
    assert "異常  entry.command" in (text := capsys.readouterr().out)
    assert "対処: agent-bus install codex" in text


@pytest.mark.req("clients:21")
def test_what_an_entry_lacks_is_named_and_install_adds_it(
    at_home: House, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = {"codex": "default_tools_approval_mode", "claude-code": "alwaysLoad", "kimi": "toolTimeoutMs"}
    monkeypatch.setattr("agent_bus.faces.cli_install_run.this_installation", lambda: at_home.installation)
    for client, key in lacking.items():
        at_home.install(client, path=at_home.path(client), **dict[str, Any]({key: ABSENT}))

    def limits() -> dict[str, str]:
        main(["doctor", "--json"])
        found = json.loads(capsys.readouterr().out)["findings"]
        return {f["client"]: f["level"] for f in found if f["id"] == "entry.limits"}

    assert limits() == dict.fromkeys(lacking, "warn")
    assert main(["install", *lacking, "--force"]) == 0
    capsys.readouterr()
    assert limits() == dict.fromkeys(lacking, "ok")


def test_an_unknown_client_is_wrong_use_with_the_nearest_name(
    at_home: House, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--client", "claud"]) == 2
    assert "claude-code" in capsys.readouterr().err


def test_a_probe_that_hangs_or_fails_costs_the_others_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_bus.doctor.running.GRACE_S", 0.1)
    over = threading.Event()

    def slow() -> Iterator[Finding]:
        yield good("stop")
        over.wait(30)

    def refused() -> Iterator[Finding]:
        yield warn("jobs", "gone", names="x")
        raise BusError("busy", "the lock was held.", "Try again.")

    def unreadable() -> Iterator[Finding]:
        yield from ()
        raise PermissionError(13, "Permission denied")

    probes = [Probe("stop", slow), Probe("jobs", refused), Probe("tasks", unreadable, heavy=True)]
    done = run_all(probes, Deadline.within(0.5), 1)
    over.set()
    assert [(f.id, f.case) for f in done] == [
        ("stop", "!late"), ("jobs", "gone"), ("jobs", "!unread"), ("tasks", "!unread"),
    ]  # fmt: skip
    assert "Permission denied" in words(Texts("ja"), done[-1])[0]
    assert examination.exit_code(done, strict=False) == 0
    assert examination.exit_code(done, strict=True) == 1


def cases() -> set[tuple[str, str]]:
    """Every (id, case) that the code can say, as far as it stands there in words."""
    found = set()
    for node in (node for path in SOURCES for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in KINDS and node.args:
            texts = [part.value for part in node.args[:2] if isinstance(part, ast.Constant)]
            if node.func.id != "good" and len(texts) == 2:
                found.add((str(texts[0]), str(texts[1])))
    return found


def test_every_case_has_its_words_and_every_check_its_place_in_the_catalogue() -> None:
    assert len(cases()) > 50
    assert [case for case in cases() if f"doctor.{'.'.join(case)}" not in DOCTOR] == []
    assert [id for id in IDS if f"doctor.check.{id}" not in DOCTOR] == []
    spoken = {
        node.value
        for path in [*SOURCES, Path(cli_doctor.__file__)]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    unused = [key for key in DOCTOR if not spoken & {key, key.rpartition(".")[2].removeprefix("!")}]
    assert [key for key in unused if not key.startswith(("doctor.check", "doctor.level", "doctor.end"))] == []
    named = {key.removeprefix("doctor.").rpartition(".")[0] for key in DOCTOR if key.count(".") >= 2}
    ids = {id for id in named if not id.startswith(("check", "level", "end"))}
    assert ids <= set(IDS)


def test_both_languages_have_two_lines_and_the_same_placeholders() -> None:
    said = {key: texts for key, texts in DOCTOR.items() if not key.startswith(("doctor.level", "doctor.end"))}
    for key, texts in said.items():
        names = [{name for _, name, _, _ in string.Formatter().parse(text) if name} for text in texts]
        assert names[0] == names[1], key
        if key.count(".") >= 2 or "!" in key:
            assert [text.count("\n") for text in texts] == [1, 1], key
        assert re.search(r"[ぁ-んァ-ヶ一-龠]", texts[1]) or texts[0] == texts[1], key
