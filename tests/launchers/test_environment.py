"""What of the daemon's environment a run gets (docs/launcher.md "Environment")."""

import pytest

from agent_bus.launchers import environment, registry
from agent_bus.launchers.environment import child_environment, passed_variables

RUN = environment.run_variables(
    root="/bus", agent="coder", worker="coder#2", task_id="t-1", run_id="r-t-1-1", lease_id="l-1"
)


@pytest.mark.parametrize(
    "name", ["PATH", "HOME", "LC_CTYPE", "XDG_RUNTIME_DIR", "https_proxy", "NO_PROXY", "SSL_CERT_FILE", "TZ"]
)
def test_what_every_program_needs_is_let_through(name: str) -> None:
    assert passed_variables({name: "1"}) == {name: "1"}


@pytest.mark.parametrize(
    "name",
    ["SECRET_X", "AWS_SECRET_ACCESS_KEY", "path", "LC", "XDG", "APPDATA", "DATABASE_URL", "EDITOR", "HOMEX"],
)
def test_what_nobody_named_stays_out(name: str) -> None:
    assert passed_variables({name: "1"}) == {}


@pytest.mark.parametrize(
    "name",
    """CLAUDECODE CLAUDE_CODE_SESSION_ID CLAUDE_CODE_ENTRYPOINT CLAUDE_PROJECT_DIR CLAUDE_CODE_SSE_PORT
    CLAUDE_CODE_MESSAGING_SOCKET_PATH CLAUDE_CODE_SESSION_ACCESS_TOKEN NODE_OPTIONS PYTHONPATH PYTHONHOME PYTHONSTARTUP
    LD_PRELOAD DYLD_INSERT_LIBRARIES DISCORD_WEBHOOK_URL AGENT_BUS_TASK_ID AGENT_BUS_RUN_ID MOAMCP_X""".split(),
)
def test_what_would_leak_into_the_child_is_taken_out_even_if_it_is_named(name: str) -> None:
    assert passed_variables({name: "1"}, prefixes=[name[:4]], env_pass=[name, f"{name[:5]}*"]) == {}


def test_the_login_of_claude_code_is_let_through_by_its_prefix() -> None:
    daemon = {"CLAUDE_CODE_OAUTH_TOKEN": "t", "ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "o"}
    passed = passed_variables(daemon, prefixes=registry.load("claude").env_prefixes)
    assert set(passed) == {"CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_API_KEY"}


def test_env_pass_names_variables_or_beginnings_but_never_all() -> None:
    daemon = {"ONE": "1", "TWO_A": "2", "TWO_B": "3", "OTHER": "4"}
    assert set(passed_variables(daemon, env_pass=["ONE", "TWO_*"])) == {"ONE", "TWO_A", "TWO_B"}
    assert passed_variables(daemon, env_pass=["*", "**", ""]) == {}
    assert passed_variables({"A[B]": "1", "AB": "2"}, env_pass=["A[B]", "A?"]) == {"A[B]": "1"}


def test_the_agents_own_values_go_before_the_daemons_and_ours_before_all() -> None:
    made = child_environment(
        {"PATH": "/daemon", "HOME": "/h", "NODE_OPTIONS": "--require x"},
        env={"PATH": "/agent", "NODE_OPTIONS": "--max-old-space-size=1", "AGENT_BUS_RUN_ID": "forged", "TERM": "xterm"},
        run=RUN,
    )
    assert made == {
        "PATH": "/agent",
        "HOME": "/h",
        "NODE_OPTIONS": "--max-old-space-size=1",
        "PYTHONUTF8": "1",
        "NO_COLOR": "1",
        "TERM": "dumb",
        **RUN,
    }


def test_the_runs_own_bus_commands_find_this_users_host_id_and_settings() -> None:
    daemon = {"AGENT_BUS_STATE_HOME": "/s", "AGENT_BUS_CONFIG": "/c", "AGENT_BUS_ROOT": "/other"}
    assert (
        child_environment(daemon, run=RUN).items()
        >= {
            "AGENT_BUS_STATE_HOME": "/s",
            "AGENT_BUS_CONFIG": "/c",
            "AGENT_BUS_ROOT": "/bus",
        }.items()
    )


def test_a_tower_worker_gets_its_token_and_another_none() -> None:
    names = {"root": "/b", "agent": "a", "worker": "a", "task_id": "t", "run_id": "r", "lease_id": "l"}
    assert "AGENT_BUS_TOWER_TOKEN" not in RUN
    assert environment.run_variables(**names, tower_token="k")["AGENT_BUS_TOWER_TOKEN"] == "k"


def test_on_windows_names_have_no_case_and_its_own_are_let_through() -> None:
    daemon = {
        "Path": "C:\\bin",
        "SystemRoot": "C:\\Windows",
        "ProgramFiles(x86)": "C:\\P",
        "ClaudeCode": "1",
        "Foo": "1",
    }
    made = child_environment(daemon, env={"PATH": "C:\\mine"}, run={"Agent_Bus_Root": "C:\\bus"}, windows=True)
    assert made["PATH"] == "C:\\mine"
    assert {"Path", "ClaudeCode", "Foo"}.isdisjoint(made)
    assert {"SystemRoot", "ProgramFiles(x86)"} <= set(made)
