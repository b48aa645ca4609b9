"""A short soak, and what it would say of a broker that grows."""

from __future__ import annotations

import os

import pytest

from barnabas.broker.coordination.shard import java_hash
from tests.bench.rows import ROWS
from tests.counterparts.barnabas_process import ExecutedBarnabas
from tests.groups.scenario import BROKER_SETTINGS
from tests.products import case, for_the_night
from tests.soak.anchors import PARTITIONS, anchor_groups, partition_of
from tests.soak.memory import SETTINGS, Curve, run_load
from tests.soak.memory import grown as grown_under_load
from tests.soak.soak import GROWTH_MOST_BYTES, Sample, Soak, grown

# One seed here, others by `make soak`: a change is judged by what it changes.
SEED = int(os.environ.get("SOAK_SEED", "20260711"))
REQUESTS_EACH = [case(150, in_test=True), case(500, in_test=False)]
"""The requests of a slice of the load, on a machine of any speed."""


@for_the_night(beside="tests/interop/test_groups.py::test_groups_lose_nothing_and_never_go_back")
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("groups_per_round", "round_s", "duration_s"), [(5, 12, 45)])
def test_groups_under_random_faults_are_sound(
    broker_class, tmp_path, say, groups_per_round, round_s, duration_s
):
    """Run at least two rounds; SOAK_SEED repeats the printed seed."""
    say(f"soak: SOAK_SEED={SEED}")
    with broker_class(tmp_path / "broker", **BROKER_SETTINGS) as broker:
        report = Soak(broker, SEED, round_s, print, groups_per_round).run(duration_s)
    say("\n  ".join(report.lines()))
    assert report.violations == []
    assert report.rounds >= 2
    assert report.read >= report.records > 0


def test_growth_is_found():
    start = Sample(1, 50 << 20, 30)
    flat = [start, Sample(1, 70 << 20, 40), Sample(1, 71 << 20, 41), Sample(2, 99 << 20, 90)]
    assert grown(flat) == []
    more_memory = Sample(1, (71 << 20) + GROWTH_MOST_BYTES, 40)
    assert "memory grew" in grown([*flat, more_memory])[0]
    assert "descriptors grew" in grown([*flat, Sample(1, 70 << 20, 60)])[0]


def curve_of(*mebibytes):
    return Curve(ROWS[0], 1000, [size << 20 for size in mebibytes])


def test_memory_that_grows_is_found():
    filling = (40, 55, 60, 61, 61, 61, 61, 62, 62, 61, 62, 62)
    assert grown_under_load(curve_of(*filling)) == []
    leaking = (40, 55, 60, 61, 62, 63, 64, 66, 67, 69, 70, 72)
    assert "memory grows" in grown_under_load(curve_of(*leaking))[0]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("requests_each", REQUESTS_EACH)
def test_memory_stays_flat_under_a_load_of_transactions(tmp_path, say, requests_each):
    """`make soak-memory` runs every load for minutes."""
    row = next(row for row in ROWS if row.key == "transaction-producers")
    with ExecutedBarnabas(tmp_path / "broker", **SETTINGS) as broker:
        curve = run_load(broker, row, 12, requests_each)
    say(curve.line())
    assert grown_under_load(curve) == []


def test_anchors_lie_in_every_partition():
    groups = anchor_groups()
    assert sorted(map(partition_of, groups)) == list(range(PARTITIONS))
    assert [partition_of(group) for group in groups] == [
        java_hash(group) % PARTITIONS for group in groups
    ]
