"""Every scenario in small, with a fixed seed; others by `make attack`."""

from __future__ import annotations

import os

import pytest

from tests.attack.run import run
from tests.attack.scenarios import ALL
from tests.products import case

SEED = int(os.environ.get("ATTACK_SEED", "20261123"))


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ALL, ids=lambda scenario: scenario.name)
@pytest.mark.parametrize("duration_s", [case(0.8, in_test=True), case(3.0, in_test=False)])
def test_the_others_do_not_notice(scenario, tmp_path, say, duration_s):
    """ATTACK_SEED repeats another one."""
    outcome = run(scenario, SEED, duration_s, tmp_path)
    say("\n  ".join(outcome.lines()))
    assert outcome.violations == []
