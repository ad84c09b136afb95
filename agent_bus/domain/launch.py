"""Whether a task's run may start now: the plan as data, from facts, in the order of its checks. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo

from agent_bus.domain.run import Run, seconds_since
from agent_bus.times import parse_stamp

LEAST_FREE = 256 * 1024 * 1024


@dataclass(frozen=True)
class Facts:
    """What is known when a start is considered; a text that is not empty is the reason against it.

    Args:
        stopped, off, no_launcher, other_host, not_ready: as the words of the plan.
        parked: why, and until when.
        agent_runs, host_runs: live ones; each with its most.
        ahead: queued tasks of the agent that come first.
        session: which live run uses the thread's session.
        last_minute: starts in the last 60 s, of the agent and of all; each with its most.
        launches: starts of the task, and how many it may have.
        failed_starts: why it will never start.
        back_off: until when its last crash delays the next start.
        budget: which sum is spent.
        free_bytes: of the disk; -1 = not known.
    """

    stopped: str = ""
    off: str = ""
    no_launcher: str = ""
    other_host: str = ""
    not_ready: str = ""
    parked: str = ""
    agent_runs: tuple[int, int] = (0, 1)
    host_runs: tuple[int, int] = (0, 1)
    ahead: int = 0
    session: str = ""
    agent_rate: tuple[int, int] = (0, 1)
    host_rate: tuple[int, int] = (0, 1)
    launches: tuple[int, int] = (0, 1)
    failed_starts: str = ""
    back_off: str = ""
    budget: str = ""
    free_bytes: int = -1


@dataclass(frozen=True)
class Plan:
    """`launch` (started, queued, off, no_launcher, parked, waiting, or dead_letter) and why, in words.

    `whole` says that the reason holds for every task of the agent, so that no other one need be looked at.
    """

    launch: str
    reason: str = ""
    whole: bool = False

    @property
    def start(self) -> bool:
        """Whether all checks hold."""
        return self.launch == "started"


def plan(facts: Facts) -> Plan:
    """The first check that does not hold decides."""
    whole = (
        ("waiting", facts.stopped),
        ("no_launcher", facts.no_launcher),
        ("off", facts.off),
        ("waiting", facts.other_host),
    )
    for word, reason in whole:
        if reason:
            return Plan(word, reason, whole=True)
    if facts.not_ready:
        return Plan("waiting", facts.not_ready)
    if facts.failed_starts or facts.launches[0] >= facts.launches[1]:
        words = f"launch_cap: it was started {facts.launches[0]} times, which is the most it may be"
        return Plan("dead_letter", facts.failed_starts or words)
    if facts.parked:
        return Plan("parked", facts.parked, whole=True)
    if queued := _queued(facts):
        return Plan("queued", queued, whole=True)
    if facts.session:
        return Plan("queued", f"its session is in use by {facts.session}")
    if facts.back_off or facts.budget:
        return Plan("waiting", facts.back_off or facts.budget)
    if 0 <= facts.free_bytes < LEAST_FREE:
        return Plan("waiting", f"only {facts.free_bytes // 1_048_576} MiB of disk are free", whole=True)
    return Plan("started")


def _queued(facts: Facts) -> str:
    live, most = facts.agent_runs
    if live + facts.ahead >= most:
        return f"{live} of {most} runs of the agent are live" + (
            f", {facts.ahead} tasks come first" if facts.ahead else ""
        )
    if facts.host_runs[0] >= facts.host_runs[1]:
        return f"{facts.host_runs[0]} of {facts.host_runs[1]} runs of this host are live"
    for (count, most), whose in ((facts.agent_rate, "the agent"), (facts.host_rate, "this host")):
        if count >= most:
            return f"{count} starts of {whose} in the last minute, which is the most"
    return ""


@dataclass(frozen=True)
class Spent:
    """Sums over runs."""

    cost_usd: float = 0.0
    tokens: int = 0
    runs: int = 0


def spent(runs: Iterable[Run]) -> Spent:
    """What runs have cost, as far as it is known."""
    known = [r for r in runs if r.outcome != "void"]
    return Spent(sum(r.cost_usd for r in known), sum(r.tokens for r in known), len(known))


def of_day(runs: Iterable[Run], now: datetime, zone: tzinfo | None) -> list[Run]:
    """The runs that were made on the local day of `now`."""
    today = now.astimezone(zone).date()
    return [r for r in runs if _day(r, zone) == today]


def _day(run: Run, zone: tzinfo | None) -> object:
    try:
        return parse_stamp(run.made_at).astimezone(zone).date()
    except ValueError:
        return None


@dataclass(frozen=True)
class Caps:
    """What may be spent; 0 = no limit. `granted_usd` is what a person has allowed the task, whatever the day's sums."""

    task_usd: float = 0.0
    task_tokens: int = 0
    agent_day_usd: float = 0.0
    agent_day_runs: int = 0
    host_day_usd: float = 0.0
    granted_usd: float = 0.0


def over_budget(agent: str, caps: Caps, task: Spent, agent_day: Spent, host_day: Spent) -> str:
    """Which cap is reached, in words with the sums; "" if none is."""
    cap = caps.granted_usd or caps.task_usd
    if cap and task.cost_usd >= cap:
        return f"the task spent {task.cost_usd:.2f} of {cap:.2f} USD"
    if caps.task_tokens and task.tokens >= caps.task_tokens:
        return f"the task spent {task.tokens} of {caps.task_tokens} tokens"
    if caps.granted_usd:
        return ""
    if caps.agent_day_usd and agent_day.cost_usd >= caps.agent_day_usd:
        return f"agent {agent} spent {agent_day.cost_usd:.2f} of {caps.agent_day_usd:.2f} USD today"
    if caps.agent_day_runs and agent_day.runs >= caps.agent_day_runs:
        return f"agent {agent} had {agent_day.runs} of {caps.agent_day_runs} runs today"
    if caps.host_day_usd and host_day.cost_usd >= caps.host_day_usd:
        return f"all agents spent {host_day.cost_usd:.2f} of {caps.host_day_usd:.2f} USD today"
    return ""


def left_usd(caps: Caps, task: Spent, agent_day: Spent, host_day: Spent) -> float:
    """The smallest remaining cap in USD, 0 = no limit."""
    cap = caps.granted_usd or caps.task_usd
    rest = [cap - task.cost_usd] if cap else []
    if not caps.granted_usd:
        days = ((caps.agent_day_usd, agent_day), (caps.host_day_usd, host_day))
        rest += [most - day.cost_usd for most, day in days if most]
    return max(0.01, min(rest)) if rest else 0.0


def runtime_s(asked: float, agent_s: int, default_s: int, most_s: int) -> float:
    """The hard end of a run: the task's own limit, up to `most_s`; else the agent's, else the default."""
    return min(asked, most_s) if asked else float(agent_s or default_s)


def caps_of(limits: Mapping[str, object], agent_usd: float, agent_tokens: int) -> tuple[float, int, float]:
    """(task USD, task tokens, granted USD) from a task's limits and the agent's caps: the smaller one holds."""
    own_usd, own_tokens = _number(limits, "cost_usd"), int(_number(limits, "tokens"))
    usd = min((x for x in (own_usd, agent_usd) if x), default=0.0)
    return usd, min((x for x in (own_tokens, agent_tokens) if x), default=0), _number(limits, "granted_usd")


def _number(limits: Mapping[str, object], key: str) -> float:
    value = limits.get(key, 0)
    return float(value) if isinstance(value, int | float) else 0.0


def recent(runs: Iterable[Run], now: datetime, seconds: float = 60.0) -> list[Run]:
    """The runs made in the last seconds that have started something."""
    return [r for r in runs if r.outcome != "void" and seconds_since(r.made_at, now) < seconds]
