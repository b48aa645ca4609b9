"""Every scenario in small, with a fixed seed; others by `make attack`."""

from __future__ import annotations

import os

import pytest

from tests.attack.run import run
from tests.attack.scenarios import ALL

SEED = int(os.environ.get("ATTACK_SEED", "20261123"))
DURATION_S = 2.0


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ALL, ids=lambda scenario: scenario.name)
def test_the_others_do_not_notice(scenario, tmp_path, say):
    """ATTACK_SEED repeats another one."""
    outcome = run(scenario, SEED, DURATION_S, tmp_path)
    say("\n  ".join(outcome.lines()))
    assert outcome.violations == []
