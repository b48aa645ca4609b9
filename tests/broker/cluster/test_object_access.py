"""The steps of a broker that checks the object store, in each state."""

from __future__ import annotations

import pytest

from barnabas.broker.cluster.start.object_access import (
    CHECK_MS,
    GIVEN_UP_S,
    REPORTED_S,
    Step,
    gives_up,
    next_step,
)
from barnabas.storage.objects.counted_blobs import Puts

CHECK_S = CHECK_MS / 1000
NOTHING = Step(reports=False, tests=False)
REPORTS = Step(reports=True, tests=False)
BOTH = Step(reports=True, tests=True)

PUTS = {
    "none": Puts(None, None),
    "just stored": Puts(None, CHECK_S / 2),
    "stored": Puts(None, CHECK_S),
    "fails": Puts(0.5, CHECK_S / 2),
    "fails, stored": Puts(REPORTED_S - 0.1, REPORTED_S),
    "fails long": Puts(REPORTED_S, None),
    "fails for good": Puts(GIVEN_UP_S, GIVEN_UP_S),
}
STEPS = {
    # Other brokers fail, this one has reported failures: none, others, own, both.
    "none": (NOTHING, BOTH, REPORTS, BOTH),
    "just stored": (NOTHING, REPORTS, REPORTS, REPORTS),
    "stored": (NOTHING, BOTH, REPORTS, BOTH),
    "fails": (NOTHING, REPORTS, REPORTS, REPORTS),
    "fails, stored": (NOTHING, BOTH, REPORTS, BOTH),
    "fails long": (BOTH, BOTH, BOTH, BOTH),
    "fails for good": (BOTH, BOTH, BOTH, BOTH),
}


@pytest.mark.parametrize("puts", PUTS)
def test_step_of_each_state(puts):
    steps = [
        next_step(PUTS[puts], others_fail=others_fail, is_reported=is_reported)
        for is_reported in (False, True)
        for others_fail in (False, True)
    ]
    assert tuple(steps) == STEPS[puts]


@pytest.mark.parametrize("puts", PUTS)
@pytest.mark.parametrize("storing", [[], [2]])
def test_broker_gives_up_only_after_its_time_and_for_others(puts, storing):
    assert gives_up(PUTS[puts], storing) == (puts == "fails for good" and bool(storing))
