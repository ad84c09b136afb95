"""Buses on a clock that is moved by hand, and yards: buses with a launcher on the machine's own clock."""

from tests.jobs.yard import make_yard, yard  # noqa: F401 (fixtures)
from tests.tools.buses import (  # noqa: F401 (fixtures)
    boss,
    bus,
    clock,
    coder,
    disk,
    engine,
    live,
    make,
    person,
    server,
    state_home,
)
