"""A short torture with a fixed seed. INTEROP_BROKER=kafka leaves the broker alone: Apache Kafka
4.3.0 tears transactions when it is killed (KAFKA-20734), and the history shows it.
"""

from __future__ import annotations

import os

import pytest

from tests.products import case
from tests.torture.torture import Torture
from tests.workload.access import ACCESSES
from tests.workload.fleet import QUICK_KINDS

# Others by `make torture`: a change is judged by what it changes.
SEEDS = [int(seed) for seed in os.environ.get("TORTURE_SEEDS", "20260602").split()]
RUNS = [
    case("secure", 5, in_test=True),
    *(case(access, 9, in_test=False) for access in ACCESSES),
]
"""Accesses, and seconds of each."""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("access", "duration_s"), RUNS)
def test_no_anomaly_under_faults(broker_class, tmp_path, say, access, duration_s, seed):
    """TORTURE_SEEDS repeats others; the history is in the test's directory.

    Plainly; over SASL_SSL as a user with rights; and with rights that come and go.
    """
    broker = broker_class(tmp_path / "broker")
    reached = ACCESSES[access](broker)
    with broker:
        harms_broker = broker_class.name == "Barnabas"
        torture = Torture(broker, reached, tmp_path, print, QUICK_KINDS)
        outcome = torture.run(seed, duration_s, harms_broker=harms_broker)
    say("\n  ".join(outcome.lines()))
    assert outcome.report.violations == []
    assert outcome.wrong == []
    assert bool(outcome.faults["take_right"]) == reached.loses_rights
    roles = {name.partition("-")[0] for name in outcome.committed}
    assert roles == {"writer", "sender", "transformer"}
