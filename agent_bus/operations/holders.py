"""Who a caller is: the agent it may speak for, the worker label, and the holder that its leases name."""

from __future__ import annotations

from agent_bus import host, ids
from agent_bus.bus import Bus
from agent_bus.domain.task import Holder, Lease
from agent_bus.errors import BusError, invalid
from agent_bus.operations import agents


def agent_for(bus: Bus, given: str, name: str) -> str:
    """The agent a call speaks for: the server's own if it is bound, else what the call says.

    Raises:
        BusError: `not_yours` if a bound server is asked to speak for another; `invalid` for a bad or missing name.
    """
    bound = bus.caller.agent
    if not given:
        if not bound:
            raise invalid(name, "must not be empty", "Give your agent's name, for example claude-code.")
        return bound
    checked = ids.check_agent(given, name)
    if bound and not ids.same_name(checked, bound):
        raise BusError(
            "not_yours",
            f"this server speaks for {bound}, so {name} cannot be {checked}.",
            f'Leave {name} out, or use "{bound}".',
        )
    return bound or checked


def inbox_for(bus: Bus, given: str) -> str:
    """The inbox a call reads from: its agent's own, or one of that agent's pools (setting `[agents.X] pools`)."""
    bound = bus.caller.agent
    if bound and given and not ids.same_name(given, bound):
        pools = next((a.pools for n, a in bus.settings.agents.items() if ids.same_name(n, bound)), [])
        pool = next((p for p in pools if ids.same_name(p, given)), "")
        if pool:
            return agents.spelled(bus, ids.check_agent(pool, "agent_name"))
    return agents.spelled(bus, agent_for(bus, given, "agent_name"))


def worker_for(bus: Bus, given: str, agent: str) -> str:
    """The worker label: the one given, else the agent's name.

    Raises:
        BusError: `not_yours` for another agent's label; `invalid` if an HTTP client without a session gives none.
    """
    bound = bus.caller.agent
    if given:
        label = ids.check_worker(given)
        if bound and not ids.same_name(ids.agent_of(label), bound):
            raise BusError(
                "not_yours",
                f"this server speaks for {bound}, so worker cannot be {label}.",
                f'Leave worker out, or use "{bound}#2".',
            )
        return label
    if bus.caller.channel == "http" and not bus.caller.session:
        raise invalid(
            "worker",
            "is needed over HTTP without a session: it tells your leases from others'",
            f'For example "{agent}#2".',
        )
    return bound or agent


def holder_of(bus: Bus) -> Holder:
    """The holder that a lease of this caller names: its run, its process, its HTTP session, or nothing but the
    label.
    """
    caller = bus.caller
    process = host.as_record(host.this_process()) if caller.process else {"host": host.host_id()}
    return Holder.model_validate({**process, "session": caller.session, "run": caller.run})


def liveness(lease: Lease) -> str:
    """`alive`, `dead` or `unknown` for the process of a lease's holder."""
    held = lease.holder
    return host.liveness(host.ProcessId(held.host, held.boot, held.pid_ns, held.pid, held.pid_started))


def in_words(lease: Lease) -> str:
    """The holder for people: worker, and the process if there is one."""
    return f"{lease.worker} (process {lease.holder.pid})" if lease.holder.pid else lease.worker
