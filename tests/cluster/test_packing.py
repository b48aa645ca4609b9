"""Three brokers with random faults, whose store packs every payload soon after its flush (F12).

All of it runs in a world, as ``tests/cluster/test_at_random.py``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping

import pytest

from barnabas.broker.cluster.leading import upkeep
from barnabas.broker.cluster.leading.upkeep import UpkeepSettings
from barnabas.broker.testing.store.payloads import Payload, Payloads, Place
from barnabas.storage.replicated.log_index import Extent, PackedExtents
from tests.cluster.nemesis import HURRIED, STEADY
from tests.cluster.torture import torture
from tests.products import for_the_night
from tests.seeds import SEED

# Requests that a broker has just started when it is killed are dropped as they are.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")

ADD, PACK = Payloads.add, Payloads.pack


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[PackedExtents]]:
    """Pack payloads of several extents, dead or not, all the time; yield the results."""
    results: list[PackedExtents] = []

    def add(payloads: Payloads, extents: Mapping[Place, Extent]) -> None:
        ADD(payloads, extents)
        if len({partition_id for partition_id, _ in extents}) > 1:
            payload: Payload = payloads._payloads[next(iter(extents))]
            payload.sparse_since = payloads._clock()
            payloads._sparse[payload] = None

    def pack(payloads: Payloads, *arguments: object) -> PackedExtents:
        results.append(PACK(payloads, *arguments))
        return results[-1]

    settings = functools.partial(UpkeepSettings, look_ms=20, garbage_ms=20, pack_rest_ms=0)
    monkeypatch.setattr(upkeep, "UpkeepSettings", settings)
    monkeypatch.setattr(Payloads, "add", add)
    monkeypatch.setattr(Payloads, "pack", pack)
    yield results
    assert sum(each.extents for each in results) > 50, "little was packed"


@pytest.mark.slow
def test_clients_lose_nothing_while_all_is_packed(packed: list[PackedExtents]) -> None:
    torture(SEED, 2.5, HURRIED)


@for_the_night(
    beside="tests/cluster/test_packing.py::test_clients_lose_nothing_while_all_is_packed"
)
def test_clients_lose_nothing_over_takeovers_of_packed_logs(packed: list[PackedExtents]) -> None:
    torture(SEED + 1, 20, STEADY)


def test_wrong_bytes_of_packing_are_detected(
    packed: list[PackedExtents], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other half of the proof: what is wrong is seen."""
    copy = Payloads._copy

    def copy_shifted(payloads: Payloads, partition_id: int, row: object, portion: list) -> None:
        shifted = [*portion[1:], portion[0]]
        changed = [
            each._replace(data=other.data) for each, other in zip(portion, shifted, strict=True)
        ]
        copy(payloads, partition_id, row, changed)

    monkeypatch.setattr(Payloads, "_copy", copy_shifted)
    with pytest.raises(AssertionError):
        torture(SEED, 25, HURRIED)
