"""The servers that entries start: ours, once, and others that behave badly. Each is gone afterwards."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_bus.clients import registry
from agent_bus.doctor import Finding, server, talk
from agent_bus.doctor.schemas import faults
from agent_bus.faces.cli_doctor import words
from agent_bus.texts import Texts
from tests.doctor.conftest import House, Look, bad

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the planted programs are scripts with a first line")
ANSWERING = """
import json, sys
NAME, SHIFT = %r, %d
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        about = {"serverInfo": {"name": NAME, "version": "1"}, "protocolVersion": "2025-06-18"}
        answer = {"jsonrpc": "2.0", "id": request["id"] + SHIFT, "result": about}
        print(json.dumps(answer), flush=True)
"""
HANGING = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
open(%r, "w").write(str(child.pid))
time.sleep(600)
"""
CRASHING = """
import sys
for number in range(30):
    print(f"line {number}", file=sys.stderr)
sys.exit(7)
"""
STUBBORN = """
import time
print("Welcome to my server!", flush=True)
%s
time.sleep(600)
"""


_KEYS = ["name", "type", "tools", "inputSchema", "properties", "enum", "items", "description", "serverInfo", "content",
         "isError", "supportedVersions", "protocolVersion", "version", "text"]  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def no_process_stays() -> Iterator[None]:
    before = set(psutil.Process().children(recursive=True))  # what tests of other modules left running
    yield
    deadline = time.monotonic() + 5
    while (left := set(psutil.Process().children(recursive=True)) - before) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == set()


def ends(pid: int) -> bool:
    """Whether a process that was killed is gone, or is only still to be reaped by init."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


def probed(house: House, look: Look, client: str, patience_s: float = 1.0) -> list[Finding]:
    ground = look(client, patience_s=patience_s)
    ((file, one),) = ground.ours()
    return list(server.look(ground, file, one))


@pytest.mark.req("clients:8", "clients:19")
def test_our_server_passes_every_check_with_five_variables_from_a_path_with_odd_signs(house: House, look: Look) -> None:
    seen = house.folder / "seen"
    wrapper = f"import json, os\nopen({str(seen)!r}, 'w').write(json.dumps(dict(os.environ)))\n"
    program = house.plant("wrapped", wrapper + house.installation.program.read_text())
    house.install("codex", command=program, env={"EXTRA": "given"})
    for other in ("cursor", "opencode", "vscode"):
        house.install(other)
    starts = [server.start_of(ground, *one).argv for ground in [look("cursor", "opencode", "vscode")]
              for one in ground.ours()]  # fmt: skip
    assert {(argv[0], argv[3]) for argv in starts} == {(str(house.installation.program), house.settings.root)}
    before = sorted(house.layout.root.rglob("*"))
    found = probed(house, look, "codex", 20.0)
    assert [line for line in bad(found) if line[0] != "server.time"] == []
    assert {f.id for f in found} == {
        "server.start", "server.discover", "server.initialize", "server.time", "server.tools", "server.stdout",
        "server.call",
    }  # fmt: skip
    environ = json.loads(seen.read_text())
    assert set(environ) - {"LC_CTYPE", "__CF_USER_TEXT_ENCODING"} == {"PATH", "HOME", "LANG", "EXTRA"}
    assert {path.name for path in set(house.layout.root.rglob("*")) - set(before)} <= {"log"}


def test_other_clients_give_what_they_have_but_no_secret_and_macos_apps_a_short_path(house: House, look: Look) -> None:
    house.install("claude-code")
    ground = look("claude-code")
    ((file, one),) = ground.ours()
    start = server.start_of(ground, file, one)
    assert start.env["MARK"] == "1"
    assert "MY_TOKEN" not in start.env
    assert start.cwd == house.home.folder
    assert start.argv[0] == str(house.installation.program)
    on_mac = replace(ground, home=replace(ground.home, platform="darwin"))
    desktop = replace(file, client=registry.load("claude-desktop"))
    assert server.start_of(on_mac, desktop, one).env["PATH"] == "/usr/bin:/bin:/usr/sbin:/sbin"
    assert server.start_of(on_mac, file, one).env["PATH"] == house.home.environ["PATH"]


@pytest.mark.req("clients:18")
def test_each_way_a_server_can_be_wrong_has_its_own_words_and_leaves_no_process(
    house: House, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(talk, "END_S", 0.2)
    grandchild = house.folder / "grandchild"
    wanted = {
        "crashed": (CRASHING, [("server.start", "crashed")]),
        "hangs": (HANGING % str(grandchild), [("server.start", "silent")]),
        "banner": (STUBBORN % (ANSWERING % ("agent-bus", 0)), [("server.stdout", "noise")]),
        "other": (ANSWERING % ("weather", 0), [("server.start", "other")]),
        "wrong id": (ANSWERING % ("agent-bus", 100), [("server.discover", "wrong_id")]),
    }
    said: dict[str, str] = {}
    for name, (code, ids) in wanted.items():
        house.install("cursor", command=house.plant(name, code))
        found = probed(house, look, "cursor")
        wrong = [(id, case) for id, level, case, _ in bad(found) if level == "fail"]
        assert wrong[:1] == ids, name
        worst = next(f for f in found if f.level == "fail")
        said[name] = "\n".join("\n".join(words(Texts(language), worst)) for language in ("en", "ja"))
    assert len(set(said.values())) == len(wanted)
    assert "line 10\n" in said["crashed"]
    assert "line 29" in said["crashed"]
    assert "line 9\n" not in said["crashed"]
    assert "code 7" in said["crashed"]
    assert "Welcome to my server!" in said["banner"]
    assert "weather" in said["other"]
    assert ends(int(grandchild.read_text()))


def test_a_projects_entry_is_started_only_if_it_is_our_program_as_install_writes_it(house: House, look: Look) -> None:
    house.project = house.folder / "project"
    path, ran = house.project / ".mcp.json", house.folder / "ran"
    evil = house.plant("evil", f"open({str(ran)!r}, 'w')")
    module = {"command": sys.executable, "args": ["-m", "agent_bus.faces.cli", "mcp"]}
    for change in ({"command": evil}, {"env": {"PYTHONPATH": "."}}, module):
        house.install("claude-code", path=path, **dict[str, Any](change))
        found = probed(house, look, "claude-code")
        assert bad(found) == [("server.start", "info", "foreign", "claude-code")]
        assert all("\n".join(words(Texts(language), found[0])) for language in ("en", "ja"))
    assert not ran.exists()


def test_whatever_is_still_spoken_to_is_ended_when_the_doctor_leaves(house: House) -> None:
    start = talk.Start((house.plant("hangs", "import time\ntime.sleep(600)"),), dict(house.home.environ), house.folder)
    heard: list[talk.Heard] = []
    one = talk.Question("ping", name="ping")
    thread = threading.Thread(target=lambda: heard.append(talk.converse(start, [one], 30.0)))
    thread.start()
    deadline = time.monotonic() + 5
    while not talk._LIVE and time.monotonic() < deadline:
        time.sleep(0.01)
    talk.end_all()
    thread.join(10)
    assert [one.fault for one in heard] == ["crashed"]


def test_a_server_of_another_version_with_wrong_answers_is_named_check_by_check(house: House, look: Look) -> None:
    house.install("cursor", command=house.plant("old", ANSWERING % ("agent-bus", 0)))
    found = probed(house, look, "cursor")
    assert [(id, level, case) for id, level, case, _ in bad(found)] == [
        ("version", "warn", "entry"),
        ("server.discover", "fail", "refused"),
        ("server.initialize", "fail", "refused"),
        ("server.tools", "fail", "none"),
        ("server.call", "fail", "refused"),
    ]
    assert all(words(Texts("ja"), f) for f in found)


def test_a_program_that_cannot_be_started_is_named(house: House, look: Look) -> None:
    path = Path(house.plant("broken", ""))
    path.write_text("#!/no/such/interpreter\n")
    house.install("cursor", command=str(path))
    found = probed(house, look, "cursor")
    assert bad(found) == [("server.start", "fail", "spawn", "cursor")]
    assert str(path) in words(Texts("en"), found[0])[0]


def test_a_server_that_outlives_its_input_is_ended_and_named(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(talk, "END_S", 0.2)
    code = ANSWERING % ("agent-bus", 0) + "import time\ntime.sleep(600)\n"
    start = talk.Start((house.plant("stays", code),), dict(house.home.environ), house.folder)
    heard = talk.converse(start, [talk.Question("ping", name="ping")], 5.0)
    assert heard.answers["ping"]["result"]["serverInfo"]["name"] == "agent-bus"
    assert not heard.left


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"name": "9lives"}, "name"),
        ({"description": ""}, "description"),
        ({"inputSchema": {"type": "array"}}, "no object"),
        ({"inputSchema": {"type": "object", "$defs": {}}}, "$defs"),
        ({"inputSchema": {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}}, "type"),
        ({"inputSchema": {"type": "object", "properties": {"a": {"type": "string", "format": "uri"}}}}, "format"),
        ({"inputSchema": {"type": "object", "properties": {"a": {"type": "array", "items": {}}}}}, "array"),
        ({"inputSchema": {"type": "object", "properties": {"a": {"type": "string", "enum": ["", "x"]}}}}, "enum"),
        ({"description": "x" * 1001}, "description"),
    ],
)
def test_a_tool_that_some_client_would_refuse_is_named(change: dict[str, Any], fault: str) -> None:
    tool = {"name": "fine_tool", "description": "Do.", "inputSchema": {"type": "object", "properties": {}}}
    assert faults([tool], "none") == []
    (found,) = faults([tool | change], "none")
    assert fault in found
    assert any("system_health is missing" in one for one in faults([tool], ""))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["object", "agent-bus", "array"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS) | st.text(max_size=3), inner),
    max_leaves=12,
)


@settings(max_examples=25, deadline=None)
@given(answers=st.dictionaries(st.sampled_from(["discover", "tools", "call", *server.OLDER]), _JSON))
def test_whatever_a_server_answers_is_judged_and_said(answers: dict[str, Any]) -> None:
    heard = talk.Heard({name: {"result": value} for name, value in answers.items()})
    found = list(server.judge("cursor", ("agent-bus",), heard, heard, {}))
    assert "fail" in {f.level for f in found}
    assert all(words(Texts("ja"), f)[0] for f in found)
