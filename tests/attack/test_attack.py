"""Scenarios in small, with a fixed seed: some of each kind by day; others by `make attack`."""

from __future__ import annotations

import os

import pytest

from tests.attack.run import run
from tests.attack.scenarios import ALL
from tests.products import case

SEED = int(os.environ.get("ATTACK_SEED", "20261123"))
BY_DAY = {
    "made-up-requests",
    "connection-storm",
    "handshake-flood-from-elsewhere",
    "misused-tls",
    "half-frames",
    "slow-readers",
    "http-half-questions",
    "lies",
    "file-faults",
    "damaged-files",
}
"""Scenarios of `make test`: at least one for each resource that the scenarios attack."""
SECONDS, SECONDS_AT_NIGHT = 0.8, 3.0
CASES = [
    case(each, seconds, in_test=seconds == SECONDS)
    for each in ALL
    for seconds in (SECONDS, SECONDS_AT_NIGHT)
    if seconds == SECONDS_AT_NIGHT or each.name in BY_DAY
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "duration_s"), CASES, ids=lambda value: getattr(value, "name", None)
)
def test_the_others_do_not_notice(scenario, tmp_path, say, duration_s):
    """ATTACK_SEED repeats another one."""
    outcome = run(scenario, SEED, duration_s, tmp_path)
    say("\n  ".join(outcome.lines()))
    assert outcome.violations == []


def test_scenarios_of_make_test_exist():
    assert {each.name for each in ALL} >= BY_DAY
