"""A broker is killed at each step of packing a log: another one takes over, or itself again.

The steps: before or after the put of the segment, of its sidecar, and of the call that names both.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from barnabas.broker.cluster.leading import packer
from barnabas.broker.testing.cluster import Cluster
from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.broker.testing.store.log_upkeep import LogUpkeep
from barnabas.storage.objects.blob_store import keys_with
from barnabas.storage.objects.guard import GUARD_KEY
from barnabas.storage.replicated.segment_packing import PackLimits
from tests.cluster.objects import Bucket, give_clusters_a_bucket, keep_up_all_the_time
from tests.cluster.test_old_records import T, produce, read, values
from tests.products import case
from tests.storage.leading import MANY
from tests.waiting import wait_until
from tests.workload.wire_client import WireClient
from tests.worlds import world

__all__ = ["world"]

# Requests that a broker has just started when it is killed are dropped as they are.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")

REPLACE = LogUpkeep.replace_by_segment
COUNT = 12
STEPS = ["log", "sidecar", "name"]


class Death:
    """Death of the leader at a step of packing."""

    def __init__(self, cluster: Cluster, step: str, *, is_done: bool) -> None:
        self.cluster = cluster
        self.step = step
        self.is_done = is_done
        self.victim: int | None = None

    def comes(self, step: str) -> bool:
        """Cut the leader off and return True if it dies now, without any effect."""
        if self.step != step or self.victim is not None:
            return False
        self.victim = self.cluster.leader(*T)
        self.cluster.cut_from_store(self.victim)
        return not self.is_done


def put_or_die(death: Death, key: str, put: Callable[[], None]) -> None:
    if not (key.startswith("seg/") and death.comes(STEPS[key.endswith(".idx")])):
        put()


def replace(index: MemoryIndex, death: Death, *arguments: object) -> bool:
    return not death.comes("name") and REPLACE(index, *arguments)


@pytest.fixture
def bucket(monkeypatch) -> Bucket:
    return give_clusters_a_bucket(monkeypatch)


@pytest.fixture
def cluster(brokers, monkeypatch, bucket) -> Iterator[Cluster]:
    settings = packer.PackerSettings(
        PackLimits(object_bytes_min=100, extents_max=5), look_ms=20, retry_ms=20
    )
    monkeypatch.setattr(packer, "PackerSettings", lambda *_: settings)
    keep_up_all_the_time(monkeypatch, snapshot_ms=50)
    config = {
        "barnabas.flush.object.min.bytes": "1",
        "barnabas.flush.ms": "0",
        "barnabas.objects.delete.delay.ms": "1000",
    }
    with Cluster(brokers=brokers, config=config) as running:
        running.create_topic("t")
        yield running


@pytest.fixture
def client(cluster):
    made = WireClient("client", [broker.address for broker in cluster.brokers], 1)
    yield made
    made.routing.close()


def packed(cluster):
    """Return the packed segments of the log."""
    index = cluster._store.index
    (partition_id,) = [each for each, row in index.rows.items() if row.extents]
    return [each for each in index.extent_sizes(partition_id, 0, most=MANY) if each.is_segment]


def packed_end(cluster):
    return max((each.next_offset for each in packed(cluster)), default=0)


DEATHS = [
    case(brokers, step, is_done, in_test=is_done == ((brokers + number) % 2 == 0))
    for number, step in enumerate(STEPS)
    for brokers in (1, 2)
    for is_done in (False, True)
]
"""One broker follows itself, of two the other one. In `make test` each dies on one side."""


@pytest.mark.parametrize(("brokers", "step", "is_done"), DEATHS)
def test_broker_that_dies_while_it_packs_leaves_the_log_as_it_was(
    cluster, client, bucket, monkeypatch, step, is_done
):
    death = Death(cluster, step, is_done=is_done)
    bucket.on_put = partial(put_or_die, death)
    monkeypatch.setattr(LogUpkeep, "replace_by_segment", functools.partialmethod(replace, death))
    produce(client, 0, COUNT)
    wait_until(lambda: death.victim is not None, "the death of the packing broker")
    cluster.kill(death.victim)
    cluster.mend_to_store(death.victim)
    cluster.restart(death.victim)
    cluster.wait_until_served()
    assert read(cluster) == values(COUNT)
    produce(client, COUNT, COUNT)
    wait_until(lambda: packed_end(cluster) > COUNT, "the successor's segments")
    assert read(cluster) == values(2 * COUNT)
    cluster.clock.advance(minutes=1)
    wait_until(lambda: {*bucket} <= {*wanted(cluster), GUARD_KEY}, "the end of all garbage")


def wanted(cluster):
    """Return the keys of all objects that logs have."""
    index = cluster._store.index
    sizes = [size for each in index.rows for size in index.extent_sizes(each, 0, most=MANY)]
    return {key for size in sizes if size.key for key in keys_with(size.key)}
