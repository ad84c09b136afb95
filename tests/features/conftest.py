"""Buses for the tests of the verbs: the memory engine and the files engine, on a clock that is moved by hand."""

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
