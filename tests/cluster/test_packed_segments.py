"""Three brokers with random faults, whose logs are packed into segments soon after each flush.

Each call of the object store fails before or after its effect, comes late or as a ghost (F7, F12).
Otherwise as ``test_packing``.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.broker.cluster.leading import packer
from barnabas.broker.testing.store.log_upkeep import LogUpkeep
from barnabas.storage.replicated.log_index import SegmentExtent
from barnabas.storage.replicated.segment_packing import PackLimits
from tests.cluster.nemesis import HURRIED, STEADY
from tests.cluster.objects import keep_up_all_the_time
from tests.cluster.torture import torture
from tests.products import for_the_night
from tests.seeds import SEED
from tests.storage.scripted_objects import clusters_with_objects

# Requests that a broker has just started when it is killed are dropped as they are.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")

FLUSHES = {"barnabas.flush.object.min.bytes": "500", "barnabas.objects.delete.delay.ms": "0"}
"""Many flushes are objects, too, and are deleted as soon as they are packed."""
REPLACE = LogUpkeep.replace_by_segment


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[SegmentExtent]]:
    """Pack logs all the time; yield the segments."""
    segments: list[SegmentExtent] = []

    def replace(index: LogUpkeep, *arguments: object) -> bool:
        is_replaced = REPLACE(index, *arguments)
        if is_replaced:
            segments.append(arguments[-1])
        return is_replaced

    limits = PackLimits(segment_bytes=20_000, object_bytes_min=100, extents_max=4)
    settings = packer.PackerSettings(limits, pack_ms=200, look_ms=20, retry_ms=50)
    keep_up_all_the_time(monkeypatch, snapshot_ms=50)
    monkeypatch.setattr(packer, "PackerSettings", lambda *_: settings)
    monkeypatch.setattr(LogUpkeep, "replace_by_segment", replace)
    with clusters_with_objects(SEED, failures=0.05) as stores:
        yield segments
    assert sum(each.deleted for each in stores), "packed flushes leave objects"
    assert len(segments) > 20, "little was packed"


@pytest.mark.slow
def test_clients_lose_nothing_while_all_is_packed_f12(packed: list[SegmentExtent]) -> None:
    torture(SEED, 2.5, HURRIED, FLUSHES)


@for_the_night(
    beside="tests/cluster/test_killed_at_packing.py::"
    "test_broker_that_dies_while_it_packs_leaves_the_log_as_it_was"
)
def test_clients_lose_nothing_over_takeovers_of_packed_logs(packed: list[SegmentExtent]) -> None:
    torture(SEED + 1, 20, STEADY, FLUSHES)
