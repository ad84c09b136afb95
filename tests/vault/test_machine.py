"""The state machine of the vault, with few examples; `scripts/simulate_vault.py` runs it long."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.vault.machine import VaultMachine


@pytest.mark.req("vault:52")
def test_whatever_person_synchroniser_and_crashes_do_nothing_is_lost_or_taken_twice() -> None:
    few = settings(
        max_examples=6, stateful_step_count=20, deadline=None, derandomize=True, database=None,
        phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    run_state_machine_as_test(VaultMachine, settings=few)
