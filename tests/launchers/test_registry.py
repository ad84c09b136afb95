"""Launchers are found by name."""

import pytest

from agent_bus.errors import BusError
from agent_bus.launchers import registry


@pytest.mark.parametrize("name", registry.names())
def test_every_launcher_has_the_name_it_is_found_by(name: str) -> None:
    launcher = registry.load(name)
    assert launcher.name == name
    assert launcher.permissions
    assert not launcher.optional_flags & launcher.required_flags


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(BusError, match="Use claude") as error:
        registry.load("cluade")
    assert error.value.code == "invalid"


@pytest.mark.parametrize("name", ["process", "registry", "../x", "os", ""])
def test_a_module_that_is_no_launcher_is_not_taken_for_one(name: str) -> None:
    with pytest.raises(BusError):
        registry.load(name)
