"""The state machine of the vault, with few examples; `scripts/simulate_vault.py` runs it long."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.vault.machine import VaultMachine


@pytest.mark.req("vault:52")
def test_whatever_person_synchroniser_and_crashes_do_nothing_is_lost_or_taken_twice() -> None:
    few = settings(max_examples=8, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(VaultMachine, settings=few)
