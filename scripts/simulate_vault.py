"""A person, a synchroniser and mirrors that are killed, for long: `python3 scripts/simulate_vault.py [--steps N]`.

Runs the state machine of tests/vault/machine.py with as many random steps. By hand, not part of the tests.
"""

from __future__ import annotations

import argparse
import sys
import time

import _env


def main() -> int:
    """Runs it; 0 if everything held."""
    _env.enter()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    steps = parser.parse_args()
    sys.path.insert(0, str(_env.ROOT))
    from hypothesis import HealthCheck, seed, settings
    from hypothesis.stateful import run_state_machine_as_test

    from tests.vault.machine import VaultMachine

    each = 100
    long = settings(
        max_examples=max(1, steps.steps // each),
        stateful_step_count=each,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
    begun = time.monotonic()
    run_state_machine_as_test(seed(steps.seed)(VaultMachine), settings=long)
    print(f"{steps.steps} steps in {time.monotonic() - begun:.0f} s: everything held")
    return 0


if __name__ == "__main__":
    sys.exit(main())
