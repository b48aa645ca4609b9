"""A broker over an object store is killed at each kind of call of its flushes and its upkeep.

No other broker runs, so each call is its own. Then it starts again, or another broker takes its
place. Each acknowledged record is in the log once, each transaction and its offsets end whole, and
objects that no log has are deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count
from typing import Any, Final

import pytest

from barnabas.broker.cluster.leading import packer
from barnabas.broker.testing.cluster import Cluster
from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_topics import DELETE_TOPICS, DeleteTopicsRequest
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.storage.objects.blob_store import UPLOADS_PREFIX, BlobStoreError
from barnabas.storage.objects.guard import GUARD_KEY
from barnabas.storage.replicated import blob_garbage
from barnabas.storage.replicated.flush_committer import FlushCommitter
from barnabas.storage.replicated.segment_packing import PackLimits
from barnabas.storage.runtime.threads import start_thread
from tests.broker.data_plane import Named, Wire, batch, produce_request
from tests.cluster.objects import Bucket, give_clusters_a_bucket, keep_up_all_the_time
from tests.cluster.test_killed_at_packing import wanted
from tests.cluster.test_old_records import T, values
from tests.products import case
from tests.waiting import wait_until
from tests.workload.wire_client import WireClient, committed_offset
from tests.workload.wire_transactions import CLASSIC, IMPLICIT, Transactional
from tests.worlds import world

__all__ = ["world"]

# Requests that a broker has just started when it is killed are dropped as they are.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")

COUNT: Final = 12
"""Records before the death, and as many after it."""
PRODUCER_ID: Final = 4711
VICTIM, OTHER = 0, 1
DELETION: Final = DeleteTopicsRequest(topic_names=["t"], timeout_ms=30_000)

OF_BUCKET: Final = {
    "upload": ("put", "wal/"),
    "part of an upload": ("put", "wal/"),
    "segment": ("put", ".log"),
    "part of a segment": ("put", ".log"),
    "sidecar": ("put", ".idx"),
    "part of a sidecar": ("put", ".idx"),
    "footer": ("get_range", "wal/"),
    "delete": ("delete", ""),
    "listing": ("list", ""),
}
"""Method of the objects of a point, and a part of its first argument."""
OF_INDEX: Final = {
    "commit": "commit_flush",
    "snapshot": "put_snapshot",
    "name of a segment": "replace_by_segment",
    "deletion of extents": "collect_garbage",
    "confirmation of garbage": "dead_keys",
    "keys without extents": "dereferenced_keys",
    "end of a key": "forget_keys",
}
"""Method of the index of a point."""
IN_PART: Final = {each for each in OF_BUCKET if each.startswith("part of")}
"""Points of calls that leave a half of their object, after which the broker dies."""
LOADS: Final = {"footer"}
"""Points of a broker that takes a log over."""
LOOKS: Final = {"listing", "confirmation of garbage", "keys without extents"}
"""Points of calls without an effect, which mostly return nothing: a death needs a result."""
GARBAGE: Final = "deletion of extents"
"""Point that returns whether something was deleted: a death needs that."""
WITH_EFFECT: Final = {GARBAGE, *IN_PART}
"""Points after whose call the broker dies, and not before it."""
OF_DELETION: Final = (GARBAGE, "keys without extents", "delete", "end of a key")
RESULT: Final = "result of a commit"
GROUP: Final = "g"
ANSWERED: Final = "response to a client"
"""Point without a call: the client has its response, and segments may not be written."""


class Death:
    """Death of the broker that runs, at the first call of a point after it is armed."""

    def __init__(self, cluster: Cluster, point: str, *, is_done: bool, after: int = 0) -> None:
        """``after`` is the number of calls of the point before the last one."""
        self._cluster = cluster
        self._point = point
        self._is_done = is_done
        self._left = after
        self.on_call: Callable[[], None] = lambda: None
        """Called before the last call of the broker."""
        self.is_armed = False
        self.has_come = False
        """Whether the broker is cut off; its last call may still have its effect."""

    def at(self, call: Callable[[], Any], last: Callable[[], Any]) -> Any:
        """Make a call that may be the last one of the broker, which does not learn its result."""
        if not self.is_armed:
            return call()
        if self._point in LOOKS or self._point == GARBAGE:
            found = call()
            if not found:
                return found
            last = partial(self._result, found)
        elif self._left:
            self._left -= 1
            return call()
        self.is_armed = False
        self.on_call()
        self._cluster.cut_from_store(VICTIM)
        self.has_come = True
        return last() if self._is_done else None

    @staticmethod
    def _result(found: Any) -> Any:
        return found

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Replace the method of the point."""
        if self._point in OF_BUCKET:
            name, part = OF_BUCKET[self._point]
            self._replace(monkeypatch, Bucket, name, part)
        elif self._point in OF_INDEX:
            self._replace(monkeypatch, MemoryIndex, OF_INDEX[self._point])
        elif self._point == RESULT:
            self._replace(monkeypatch, FlushCommitter, "finish")

    def _replace(
        self, monkeypatch: pytest.MonkeyPatch, owner: type, name: str, part: str = ""
    ) -> None:
        method, is_in_part = getattr(owner, name), self._point in IN_PART

        def replaced(of: object, *arguments: Any, **more: Any) -> Any:
            call = last = partial(method, of, *arguments, **more)
            if is_in_part:
                key, body = arguments
                last = partial(method, of, key, body[: len(body) // 2])
            return self.at(call, last) if part in str(arguments[0]) else call()

        monkeypatch.setattr(owner, name, replaced)


@pytest.fixture
def bucket(monkeypatch) -> Bucket:
    """Objects, of which every second upload has two: the first attempt fails after its effect."""
    made = give_clusters_a_bucket(monkeypatch)
    uploads = count()

    def put_late(key: str, put: Callable[[], None]) -> None:
        put()
        if key.startswith(UPLOADS_PREFIX) and next(uploads) % 3 == 0:
            raise BlobStoreError("no response")

    made.on_put = put_late
    return made


@pytest.fixture
def cluster(monkeypatch, bucket) -> Iterator[Cluster]:
    settings = packer.PackerSettings(
        PackLimits(object_bytes_min=100, extents_max=5), look_ms=20, retry_ms=20
    )
    monkeypatch.setattr(packer, "PackerSettings", lambda *_: settings)
    monkeypatch.setattr(blob_garbage, "KEYS_AT_ONCE", 16)
    keep_up_all_the_time(monkeypatch, snapshot_ms=50)
    config = {
        "barnabas.flush.object.min.bytes": "1",
        "barnabas.flush.ms": "0",
        "barnabas.objects.delete.delay.ms": "0",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
    }
    with Cluster(brokers=2, config=config) as running:
        running.kill(OTHER)
        running.create_topic("t")
        yield running


@pytest.fixture
def client(cluster) -> Iterator[WireClient]:
    made = WireClient("client", [broker.address for broker in cluster.brokers], 1)
    yield made
    made.routing.close()


def produce(client: WireClient, begin: int, count: int) -> None:
    """Write records one after the other, each repeated until it is acknowledged."""
    for number in range(begin, begin + count):
        producer = {"producer_id": PRODUCER_ID, "producer_epoch": 0, "base_sequence": number}
        assert client.produce(T, batch(b"%d" % number, **producer)) == number


class Transactions:
    """Transactions of one record and one offset of a group; every third is aborted."""

    def __init__(self, cluster: Cluster, version: int) -> None:
        addresses = [broker.address for broker in cluster.brokers]
        self.client = Transactional("client", addresses, 1, version)

    def run(self, begin: int, count: int) -> None:
        """Run transactions one after the other, with each step repeated until it is done."""
        if not begin:
            self.client.init()
        for number in range(begin, begin + count):
            self.client.add(T)
            self.client.write(T, str(number))
            self.client.commit_offset(GROUP, T, number)
            self.client.end(commit=self._is_committed(number))

    def check(self, cluster: Cluster, count: int) -> None:
        """Make sure that the log has each committed record, and the group its last offset."""
        committed = [*filter(self._is_committed, range(count))]
        found = cluster.records("t", "read_committed").result
        assert [each.value for each in found] == [b"%d" % number for number in committed]
        assert committed_offset(self.client, GROUP, T) == committed[-1]

    @staticmethod
    def _is_committed(number: int) -> bool:
        return number % 3 != 2


def read(cluster: Cluster) -> list[bytes | None]:
    return [each.value for each in cluster.records("t").result]


def has_garbage(cluster: Cluster, bucket: Bucket) -> bool:
    return not {*bucket} <= {*wanted(cluster), GUARD_KEY}


def deaths_at(points: Iterable[str]) -> list[Any]:
    """Return deaths before and after a call of each point; in `make test` each broker follows one
    of both.
    """
    return [
        case(point, is_done, successor, in_test=(number + is_done + successor) % 2 == 0)
        for number, point in enumerate(points)
        for is_done in (False, True)
        for successor in (VICTIM, OTHER)
        if is_done or point not in WITH_EFFECT
    ]


DEATHS = [
    *deaths_at(each for each in (*OF_BUCKET, *OF_INDEX) if each != GARBAGE),
    *(case(RESULT, False, each, in_test=True) for each in (VICTIM, OTHER)),
    *(case(ANSWERED, True, each, in_test=True) for each in (VICTIM, OTHER)),
]


@pytest.mark.parametrize(("point", "is_done", "successor"), DEATHS)
def test_broker_that_dies_at_a_call_leaves_each_record_once(
    cluster, client, bucket, monkeypatch, point, is_done, successor
):
    death = Death(cluster, point, is_done=is_done)
    death.install(monkeypatch)
    produce(client, 0, COUNT)
    arm(death, cluster, point)
    producing = start_thread("client", lambda: produce(client, COUNT, COUNT))
    if point == ANSWERED:
        producing.join()
    else:
        wait_until(lambda: death.has_come, point)
    follow(cluster, successor)
    producing.join()
    assert read(cluster) == values(2 * COUNT)
    produce(client, 2 * COUNT, COUNT)
    assert read(cluster) == values(3 * COUNT)
    wait_until(lambda: not has_garbage(cluster, bucket), "the end of all garbage")


IN_TRANSACTIONS: Final = {
    "upload": 6,
    "part of an upload": 6,
    "commit": 6,
    RESULT: 6,
    "snapshot": 1,
    "segment": 1,
}
"""Points, and the number of their calls of which the broker dies at each: those of flushes may be
any step of a transaction."""
TRANSACTIONS: Final = [
    case(
        *(version, point, is_done, successor, after),
        in_test=after == (5 * number + is_done) % calls
        and (version, successor) == ((CLASSIC, IMPLICIT)[number % 2], VICTIM),
    )
    for number, (point, calls) in enumerate(IN_TRANSACTIONS.items())
    for is_done in (False, True)
    if (is_done or point not in WITH_EFFECT) and not (is_done and point == RESULT)
    for version, successor in ((CLASSIC, VICTIM), (IMPLICIT, VICTIM), (IMPLICIT, OTHER))
    for after in range(calls)
]
"""In `make test` each broker follows itself, after one of the calls."""


@pytest.mark.parametrize(("version", "point", "is_done", "successor", "after"), TRANSACTIONS)
def test_broker_that_dies_at_a_call_leaves_no_transaction_in_part(
    cluster, bucket, monkeypatch, version, point, is_done, successor, after
):
    death = Death(cluster, point, is_done=is_done, after=after)
    death.install(monkeypatch)
    transactions = Transactions(cluster, version)
    transactions.run(0, COUNT)
    death.is_armed = True
    running = start_thread("client", lambda: transactions.run(COUNT, COUNT))
    wait_until(lambda: death.has_come, point)
    follow(cluster, successor)
    running.join()
    transactions.check(cluster, 2 * COUNT)
    transactions.run(2 * COUNT, COUNT)
    transactions.check(cluster, 3 * COUNT)
    transactions.client.close()
    wait_until(lambda: not has_garbage(cluster, bucket), "the end of all garbage")


@pytest.mark.parametrize(("point", "is_done", "successor"), deaths_at(OF_DELETION))
def test_broker_that_dies_while_it_deletes_a_topic_leaves_no_objects(
    cluster, client, bucket, monkeypatch, point, is_done, successor
):
    death = Death(cluster, point, is_done=is_done)
    death.install(monkeypatch)
    produce(client, 0, COUNT)
    wait_until(lambda: not has_garbage(cluster, bucket), "the end of earlier garbage")
    death.is_armed = True
    with Wire(cluster.brokers[VICTIM].address) as wire:
        wire.send(DELETE_TOPICS, DELETION, 5)
        wait_until(lambda: death.has_come, point)
    follow(cluster, successor)
    delete(cluster, successor)  # Unless the dead broker has.
    wait_until(lambda: {*bucket} <= {GUARD_KEY}, "the end of all objects")


TOPIC_DELETIONS: Final = [
    case(point, is_done, successor, is_at_once, in_test=turn % 4 == 0)
    for number, point in enumerate((*OF_BUCKET, *OF_INDEX, RESULT))
    if point != GARBAGE
    for is_done in (False, True)
    if is_done or point not in WITH_EFFECT
    for successor in (VICTIM, OTHER)
    for is_at_once in (False, True)
    for turn in (number + 2 * is_done + successor + 2 * is_at_once,)
]


@pytest.mark.parametrize(("point", "is_done", "successor", "is_at_once"), TOPIC_DELETIONS)
def test_topic_that_is_deleted_at_a_death_leaves_no_objects(
    cluster, bucket, client, monkeypatch, point, is_done, successor, is_at_once
):
    """Another broker deletes the topic during the last call of the broker, or its successor."""
    death = Death(cluster, point, is_done=is_done)
    death.install(monkeypatch)
    if is_at_once:
        metastore = cluster._base.metastore(OTHER)
        (topic,) = metastore.load().topics
        death.on_call = lambda: metastore.delete_topic(topic.topic_id)
    produce(client, 0, COUNT)
    arm(death, cluster, point)
    with Wire(cluster.brokers[VICTIM].address) as wire:

        def has_come() -> bool:
            wire.send(PRODUCE, produce_request(9, Named("t"), (0, batch(b"more"))), 9)
            return death.has_come

        wait_until(has_come, point)
    follow(cluster, successor)
    delete(cluster, successor)
    wait_until(lambda: {*bucket} <= {GUARD_KEY}, "the end of all objects")
    cluster.create_topic("t")
    assert read(cluster) == []


def arm(death: Death, cluster: Cluster, point: str) -> None:
    """Make the next call of the point the last one; for a load the broker starts again."""
    if point in LOADS:
        cluster.kill(VICTIM)
    death.is_armed = True
    if point in LOADS:
        cluster.restart(VICTIM)


def follow(cluster: Cluster, successor: int) -> None:
    """Kill the broker that was cut off, and start its successor."""
    cluster.kill(VICTIM)
    cluster.mend_to_store(VICTIM)
    cluster.restart(successor)


def delete(cluster: Cluster, number: int) -> None:
    """Delete the topic by a request to a broker."""
    with Wire(cluster.brokers[number].address) as wire:
        (found,) = wire.ask(DELETE_TOPICS, DELETION, 5).responses
        assert found.error_code in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
