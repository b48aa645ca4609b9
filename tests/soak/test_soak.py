"""A short soak, and what it would say of a broker that grows."""

from __future__ import annotations

import os

import pytest

from broker.key_hash import java_hash
from tests.groups.scenario import BROKER_SETTINGS
from tests.soak.anchors import PARTITIONS, anchor_groups, partition_of
from tests.soak.soak import GROWTH_MOST_BYTES, Sample, Soak, grown

# One seed here, others by `make soak`: a change is judged by what it changes.
SEED = int(os.environ.get("SOAK_SEED", "20260711"))
DURATION_S = 45
ROUND_S = 12


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore")
def test_a_minute_of_soak(broker_class, tmp_path, say):
    """The seed is printed; SOAK_SEED repeats it."""
    say(f"soak: SOAK_SEED={SEED}")
    with broker_class(tmp_path / "broker", **BROKER_SETTINGS) as broker:
        report = Soak(broker, SEED, ROUND_S, print).run(DURATION_S)
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


def test_anchors_lie_in_every_partition():
    groups = anchor_groups()
    assert sorted(map(partition_of, groups)) == list(range(PARTITIONS))
    assert [partition_of(group) for group in groups] == [
        java_hash(group) % PARTITIONS for group in groups
    ]
