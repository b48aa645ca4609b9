"""The size of the store follows the retention of each topic while all share commits."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.broker.testing.store.payloads import Payloads
from barnabas.storage.replicated.log_index import PackedExtents
from barnabas.storage.runtime.threads import start_thread
from barnabas.testing import World
from tests.broker.data_plane import batch
from tests.cluster.watched import WatchedCluster
from tests.products import case
from tests.seeds import SEED
from tests.waiting import wait_until
from tests.workload.routing import Led
from tests.workload.scripted import Transformer, Writer
from tests.workload.wire_client import WireClient
from tests.workload.wire_transactions import IMPLICIT
from tests.worlds import world

__all__ = ["world"]

HOUR, WEEK = "hour", "week"
PARTITIONS = 4
MINUTE_MS = 60_000
CONFIG = {"log.retention.check.interval.ms": str(MINUTE_MS)}
CONFIGS = {
    "retention.ms": str(60 * MINUTE_MS),
    "segment.ms": str(10 * MINUTE_MS),
    "message.timestamp.type": "LogAppendTime",
}
COMMIT_MS = 30
MINUTES = 150
TRANSACTIONS = 1
"""Number of transactions in a minute."""
FACTOR_MOST = 1.5


class Clients:
    """Producers of both topics, and transactions with committed offsets."""

    def __init__(self, cluster: WatchedCluster) -> None:
        addresses = [each.address for each in cluster.brokers]
        self.random = Random(SEED)
        self.bulk = [WireClient(f"bulk-{each}", addresses, SEED) for each in range(PARTITIONS)]
        self.writer = Writer("writer", addresses, SEED, Led(WEEK, 0))
        self.transformer = Transformer(
            "transformer", addresses, SEED, IMPLICIT, Led(WEEK, 0), Led(WEEK, 1)
        )

    def write(self) -> None:
        """Write the records of a minute, of all clients at the same time."""
        threads = [start_thread("client", each) for each in (*self._bulks(), self._others)]
        for each in threads:
            each.join()

    def _bulks(self) -> list[Callable[[], None]]:
        def write(client: WireClient, place: Led) -> None:
            for _ in range(4):
                client.produce(place, batch(self.random.randbytes(2000)))

        places = [Led(HOUR, each) for each in range(PARTITIONS)]
        return [
            lambda client=client, place=place: write(client, place)
            for client, place in zip(self.bulk, places, strict=True)
        ]

    def _others(self) -> None:
        for _ in range(TRANSACTIONS):
            self.writer.once()
            self.transformer.once()

    def close(self) -> None:
        for each in (*self.bulk, self.writer, self.transformer):
            each.routing.close()


@pytest.mark.parametrize("packs", [case(True, in_test=True), case(False, in_test=False)])
def test_store_is_at_most_half_larger_than_its_logs(
    world: World, monkeypatch: pytest.MonkeyPatch, *, packs: bool
) -> None:
    """The logs share all commits; segments of the internal topics are active all the time."""
    if not packs:
        monkeypatch.setattr(Payloads, "pack", lambda *_limits: PackedExtents(0, 0))
    with WatchedCluster(1, commit_ms=COMMIT_MS, seed=SEED, config=CONFIG) as cluster:
        broker, index = cluster.brokers[0], cluster.index
        index._payloads._clock = lambda: broker.clock.now_ms() / 1000
        cluster.create_topic(HOUR, PARTITIONS, CONFIGS)
        cluster.create_topic(WEEK, 2)
        clients = Clients(cluster)
        counts = broker.server._member._upkeep.counts
        factors = []
        for _ in range(MINUTES):
            clients.write()
            looked_ms = counts.looked_ms
            cluster.clock.advance(minutes=1)
            wait_until(lambda looked_ms=looked_ms: counts.looked_ms > looked_ms)
            factors.append(stored_bytes(index) / living_bytes(index))
        clients.close()
        assert len(cluster.records(WEEK).result) == 2 * TRANSACTIONS * MINUTES
    print("factor:", max(factors), counts)
    assert (counts.extents_packed > 100) == packs
    assert (max(factors) < FACTOR_MOST) == packs


def stored_bytes(index: MemoryIndex) -> int:
    """Return the size of all payloads."""
    return sum(each.size_bytes for each in {*index._payloads._payloads.values()})


def living_bytes(index: MemoryIndex) -> int:
    """Return the size of all extents that are not below the start of their log."""
    return sum(
        len(extent.data)
        for row in index.rows.values()
        for extent in row.extents
        if extent.next_offset > row.log_start_offset
    )
